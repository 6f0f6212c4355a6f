//! Filters with a window: the rates of timers (paper 001, section 4), of a jumping window (Zhang
//! and Guan 2008) and of age-partitioned slices (Shtul, Baquero, Almeida 2020).
//!
//! A unit is what the filter measures time in: a tick or several. Rates are those for a key that
//! was never seen. They follow from how full the filter is, so a formula has two steps: the
//! expected fill after a steady stream of recorded keys, and the rate at any fill.

/// The expected fraction of the timers of each age, 0 to `ages - 1` units, after a steady stream
/// of `keys_per_unit` recorded keys of k timers each among `cells`.
///
/// A timer has age j if one of the keys of that unit set it and no later key did: (1 - q) q^j with
/// q = e^(-k n / m).
///
/// # Panics
/// If `ages` numbers do not fit in memory.
///
/// # Examples
/// ```
/// use echoless_papers::theory::windows::timer_fractions;
/// let fractions = timer_fractions(4, 100.0, 50, 100_000);
/// assert_eq!(fractions.len(), 50);
/// // 5000 keys are alive: as many timers are set as bits in a Bloom filter of 5000 keys.
/// let fill = echoless_papers::theory::bloom::fill(4, 5000, 100_000);
/// assert!((fractions.iter().sum::<f64>() - fill).abs() < 1e-12);
/// ```
#[must_use]
pub fn timer_fractions(hashes: u32, keys_per_unit: f64, ages: usize, cells: u64) -> Vec<f64> {
    let settings = f64::from(hashes) * keys_per_unit / cells as f64;
    let set_in_unit = -(-settings).exp_m1();
    let fraction = |age| set_in_unit * (-settings * age as f64).exp();
    (0..ages).map(fraction).collect()
}

/// The FPR of timers: the probability that all k timers of a key are active and at least `equal` of
/// them have the same age. `fractions` are the fractions of all timers that are active and of one
/// age.
///
/// With `equal = 1` that is p^k, p being the sum of the fractions. Simulations agree within 5 %, or
/// 15 % where `equal` is above 1 and a unit has a single key.
///
/// Paper 001 gives (1 - e^(-k/m))^k for `equal = k`: the rate of **one** live event in a unit of
/// its own. Every live event can be the one that set the k timers, so the rate is about that times
/// their number.
///
/// The sum runs over the ages. Its state is how many of the k timers have an age so far, and
/// whether one age has `equal` of them; all terms are positive, so that a tiny rate keeps its
/// digits. It takes a time of k^2 for each age, unless `equal` is 1: then it is the k-th power of
/// the sum of the fractions.
///
/// # Examples
/// ```
/// use echoless_papers::theory::windows::{timer_fractions, timers_fpr};
/// let fractions = timer_fractions(4, 1.0, 5000, 30_000);
/// let [one, all] = [1, 4].map(|equal| timers_fpr(4, equal, &fractions));
/// assert!(one > 0.05 && all < 1e-11);
/// // 5000 live events, each with the rate of the paper.
/// let paper = (1.0 - (-4.0_f64 / 30_000.0).exp()).powi(4);
/// assert!(all > 1000.0 * paper && all < 5000.0 * paper);
/// ```
#[must_use]
pub fn timers_fpr(hashes: u32, equal: u32, fractions: &[f64]) -> f64 {
    if equal <= 1 {
        // All timers are active, of any ages.
        return fractions.iter().sum::<f64>().powi(hashes as i32).min(1.0);
    }
    let (hashes, equal) = (hashes as usize, equal as usize);
    // Entry t times t! is the probability that t given timers have an age so far, and that one age
    // has `equal` of them (`found`) or none has (`apart`).
    let mut apart = vec![0.0; hashes + 1];
    let mut found = vec![0.0; hashes + 1];
    apart[0] = 1.0;
    for fraction in fractions {
        // In place: from many timers to few, each entry depends on entries of fewer timers only.
        for timers in (1..=hashes).rev() {
            // fraction^count / count!
            let mut weight = 1.0;
            for count in 1..=timers {
                weight *= fraction / count as f64;
                let before = timers - count;
                found[timers] += found[before] * weight;
                if count >= equal {
                    found[timers] += apart[before] * weight;
                } else {
                    apart[timers] += apart[before] * weight;
                }
            }
        }
    }
    let factorial: f64 = (1..=hashes).map(|factor| factor as f64).product();
    (found[hashes] * factorial).min(1.0)
}

/// The FNR of timers: the probability that a key recorded `age` units ago is missed because fewer
/// than `equal` of its timers have the same age, after a steady stream of `keys_per_unit` recorded
/// keys. 0 for `equal = 1`: later keys set timers to later times only.
///
/// Each timer of the key has the age of the last key that set it: the key itself with probability
/// q^age, q = e^(-k n / m), else a later one. The key is found where k' of these ages are equal.
/// The paper has no formula for this. Simulations agree within 5 %. Takes time and memory for each
/// unit of `age`.
///
/// # Panics
/// If `equal` is above 1 and `age` numbers do not fit in memory.
///
/// # Examples
/// ```
/// use echoless_papers::theory::windows::timers_fnr;
/// let [one, some, all] = [1, 3, 4].map(|equal| timers_fnr(4, equal, 10.0, 50, 20_000));
/// assert_eq!(one, 0.0);
/// // Two of four timers were overwritten in 50 units, or one of them.
/// assert!(some > 0.01 && some < 0.05 && all > 0.3);
/// ```
#[must_use]
pub fn timers_fnr(hashes: u32, equal: u32, keys_per_unit: f64, age: usize, cells: u64) -> f64 {
    if equal <= 1 {
        return 0.0;
    }
    let mut fractions = timer_fractions(hashes, keys_per_unit, age, cells);
    let settings = f64::from(hashes) * keys_per_unit / cells as f64;
    fractions.push((-settings * age as f64).exp());
    (1.0 - timers_fpr(hashes, equal, &fractions)).max(0.0)
}

/// The FPR of a jumping window: the probability that the k bits of a key are set in one of the
/// live generations, whose fills are given: 1 - (1 - p^k)(1 - p^k)...
///
/// The fill of a generation is that of a Bloom filter ([`bloom::fill`](super::bloom::fill)).
/// Simulations agree within 5 %.
///
/// # Examples
/// ```
/// use echoless_papers::theory::{bloom, windows::jumping_fpr};
/// let one = bloom::fill(4, 1000, 20_000);
/// let fpr = jumping_fpr(4, &[one; 9]);
/// assert!((fpr / (9.0 * one.powi(4)) - 1.0).abs() < 0.01);
/// ```
#[must_use]
pub fn jumping_fpr(hashes: u32, fills: &[f64]) -> f64 {
    // In logarithms, so that a tiny rate keeps its digits.
    let misses: f64 = fills
        .iter()
        .map(|fill| (-fill.powi(hashes as i32)).ln_1p())
        .sum();
    -misses.exp_m1()
}

/// The expected fills of the k + l slices at the end of a generation, newest first, after a steady
/// stream of `keys` recorded in each generation in slices of `slice_bits`: 1 - e^(-g n / s), where
/// slice i has taken the keys of g = min(i + 1, k) generations.
///
/// # Examples
/// ```
/// use echoless_papers::theory::windows::age_partitioned_fills;
/// let fills = age_partitioned_fills(2, 3, 693.1, 2000);
/// assert_eq!(fills.len(), 5);
/// assert!(fills[0] < 0.3 && (fills[1] - 0.5).abs() < 1e-4 && fills[1] == fills[4]);
/// ```
#[must_use]
pub fn age_partitioned_fills(
    hashes: u32,
    generations: u32,
    keys: f64,
    slice_bits: u64,
) -> Vec<f64> {
    let filled = |slice: u32| f64::from(hashes.min(slice + 1)) * keys / slice_bits as f64;
    let slices = 0..hashes + generations;
    slices.map(|slice| -(-filled(slice)).exp_m1()).collect()
}

/// The FPR of age-partitioned slices of these fills: the probability that the bits of a key are set
/// in k consecutive ones.
///
/// The recurrence of the source walks the slices with the length of the current run of set bits: at
/// slice i the run grows by one with probability `fills[i]`, else it ends. Simulations agree within
/// 5 %.
///
/// # Examples
/// ```
/// use echoless_papers::theory::windows::age_partitioned_fpr;
/// // Two of three slices: 1-2, 2-3 or all.
/// assert_eq!(age_partitioned_fpr(2, &[0.5; 3]), 3.0 / 8.0);
/// ```
#[must_use]
pub fn age_partitioned_fpr(hashes: u32, fills: &[f64]) -> f64 {
    if hashes == 0 {
        return 1.0; // no slice has to be set
    }
    // The probability of each length of the current run, while no run was long enough.
    let mut runs = vec![0.0; hashes as usize];
    runs[0] = 1.0;
    let mut fpr = 0.0;
    for fill in fills {
        fpr += runs[runs.len() - 1] * fill;
        let ended: f64 = runs.iter().sum::<f64>() * (1.0 - fill);
        for length in (1..runs.len()).rev() {
            runs[length] = runs[length - 1] * fill;
        }
        runs[0] = ended;
    }
    fpr.min(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rate by its definition: every assignment of ages to timers.
    fn plain_timers_fpr(hashes: usize, equal: usize, fractions: &[f64]) -> f64 {
        let mut sum = 0.0;
        for number in 0..fractions.len().pow(hashes as u32) {
            let ages: Vec<usize> = (0..hashes)
                .map(|timer| number / fractions.len().pow(timer as u32) % fractions.len())
                .collect();
            let most = ages
                .iter()
                .map(|age| ages.iter().filter(|other| *other == age).count());
            if most.max() >= Some(equal) {
                sum += ages.iter().map(|age| fractions[*age]).product::<f64>();
            }
        }
        sum
    }

    /// The rate by its definition: every combination of set bits.
    fn plain_age_partitioned_fpr(hashes: usize, fills: &[f64]) -> f64 {
        let slices = fills.len();
        let set = |bits: usize, slice: usize| bits >> slice & 1 == 1;
        let found = |bits: &usize| {
            (0..=slices - hashes).any(|first| (first..first + hashes).all(|i| set(*bits, i)))
        };
        let chance = |bits: usize| -> f64 {
            let slices = fills.iter().enumerate();
            slices
                .map(|(slice, fill)| if set(bits, slice) { *fill } else { 1.0 - fill })
                .product()
        };
        (0..1 << slices).filter(found).map(chance).sum()
    }

    proptest! {
        #[test]
        fn timers_agree_with_all_assignments(
            hashes in 1_usize..5,
            equal in 1_usize..5,
            fractions in prop::collection::vec(1e-9_f64..0.2, 1..5),
        ) {
            let equal = equal.min(hashes);
            let expected = plain_timers_fpr(hashes, equal, &fractions);
            let fpr = timers_fpr(hashes as u32, equal as u32, &fractions);
            prop_assert!((fpr - expected).abs() <= 1e-12 * expected, "{fpr}, expected {expected}");
        }

        #[test]
        fn age_partitioned_slices_agree_with_all_combinations(
            hashes in 1_usize..6,
            fills in prop::collection::vec(1e-6_f64..1.0, 5..10),
        ) {
            let expected = plain_age_partitioned_fpr(hashes, &fills);
            let fpr = age_partitioned_fpr(hashes as u32, &fills);
            prop_assert!((fpr - expected).abs() <= 1e-9 * expected, "{fpr}, expected {expected}");
        }
    }

    #[test]
    fn without_the_heuristic_timers_are_a_bloom_filter() {
        for hashes in [1, 4, 16, 64] {
            let fractions = timer_fractions(hashes, 7.0, 300, 1 << 16);
            let fpr = timers_fpr(hashes, 1, &fractions);
            let expected = super::super::bloom::fpr(hashes, 2100, 1 << 16);
            assert!(
                (fpr / expected - 1.0).abs() < 1e-9,
                "{fpr}, expected {expected}"
            );
        }
    }

    #[test]
    fn one_event_in_each_unit_has_the_rate_of_the_paper() {
        // A single live event, whose unit is over.
        let fractions = timer_fractions(4, 1.0, 1, 10_000);
        let paper = (1.0 - (-4.0_f64 / 10_000.0).exp()).powi(4);
        assert!((timers_fpr(4, 4, &fractions) / paper - 1.0).abs() < 1e-9);
        // Few enough live events that hardly any timer is overwritten: their sum.
        let fractions = timer_fractions(4, 1.0, 20, 1_000_000);
        let paper = (1.0 - (-4.0_f64 / 1e6).exp()).powi(4);
        assert!((timers_fpr(4, 4, &fractions) / (20.0 * paper) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn the_rate_of_half_full_slices_is_that_of_one_to_all_runs() {
        // l + 1 runs of k half-filled slices bound the rate.
        for (hashes, generations) in [(4, 3), (7, 5), (10, 7), (14, 11), (18, 16)] {
            // Half of the bits of a slice are set once it has taken k generations.
            let keys = 1000.0 * std::f64::consts::LN_2 / f64::from(hashes);
            let fills = age_partitioned_fills(hashes, generations, keys, 1000);
            let fpr = age_partitioned_fpr(hashes, &fills);
            let one = 0.5_f64.powi(hashes as i32);
            assert!(
                fpr > one && fpr < f64::from(generations + 1) * one,
                "k {hashes}: {fpr}"
            );
        }
    }
}
