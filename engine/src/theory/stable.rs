//! Stable Bloom filters: the stable point, the decrements that keep a bound, and what is missed at a gap (paper 004, sections 3 and 4).
//!
//! All is for streams in which every cell is equally likely to be set, as in the paper; for others the FPR is lower. Max is the value of a set
//! cell, K the cells of a key, P the cells lowered for each arrival, m the number of cells.

/// The share of zero cells that the filter converges to (theorem 3): (1 / (1 + 1 / (P (1/K - 1/m))))^Max.
///
/// Simulations agree within 0.005.
///
/// # Examples
/// ```
/// let zeros = echoless::theory::stable::stable_zeros(4.0, 1, 2, 1 << 20);
/// assert!((zeros - 0.667).abs() < 0.001);
/// ```
#[must_use]
pub fn stable_zeros(decrements: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    let spread = 1.0 / f64::from(hashes) - 1.0 / cells as f64;
    let once = 1.0 / (1.0 + 1.0 / (decrements * spread));
    once.powf(f64::from(max))
}

/// FPS, the FPR at the stable point and the bound before it (equation 8): (1 - zeros)^K.
///
/// # Examples
/// ```
/// use echoless::theory::stable::stable_point_fpr;
/// // The P = 4 of the paper breaks its bound of 10 %; 5 keeps it.
/// assert!((stable_point_fpr(4.0, 1, 2, 1 << 20) - 0.111).abs() < 0.001);
/// assert!(stable_point_fpr(5.0, 1, 2, 1 << 20) < 0.1);
/// ```
#[must_use]
pub fn stable_point_fpr(decrements: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    (1.0 - stable_zeros(decrements, max, hashes, cells)).powi(hashes as i32)
}

/// P for a given FPS (equation 17), not rounded: rounding up keeps the bound.
///
/// # Examples
/// ```
/// let decrements = echoless::theory::stable::decrements_for(0.1, 1, 2, 1 << 20);
/// assert!((decrements - 4.325).abs() < 0.001);
/// ```
#[must_use]
pub fn decrements_for(fps: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    let spread = 1.0 / f64::from(hashes) - 1.0 / cells as f64;
    let zeros = 1.0 - fps.powf(1.0 / f64::from(hashes));
    1.0 / ((zeros.powf(-1.0 / f64::from(max)) - 1.0) * spread)
}

/// The probability that a duplicate is missed `gap` arrivals after the last arrival of its key (equations 9 to 14).
///
/// Looking back from now, each arrival between set the cell with probability K/m or else lowered it with probability P/m; the cell is zero if Max
/// lowerings are met before a setting. That sums the paper's series exactly: zero = (a / (a + b))^Max P(Binomial(gap, a + b) >= Max) with
/// b = K/m and a = (1 - b) P/m. Simulations agree within 0.01.
///
/// # Examples
/// ```
/// use echoless::theory::stable::fnr_at_gap;
/// let cells = 1 << 20;
/// assert_eq!(fnr_at_gap(0, 4.0, 1, 2, cells), 0.0);
/// // Far back, a duplicate is found as often as a key never seen.
/// let far = fnr_at_gap(1 << 40, 4.0, 1, 2, cells);
/// let fps = echoless::theory::stable::stable_point_fpr(4.0, 1, 2, cells);
/// assert!((1.0 - far - fps).abs() < 1e-6);
/// ```
#[must_use]
pub fn fnr_at_gap(gap: u64, decrements: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    let set = f64::from(hashes) / cells as f64;
    let lowered = (1.0 - set) * decrements / cells as f64;
    let zero = (lowered / (lowered + set)).powf(f64::from(max))
        * binomial_at_least(max, gap, lowered + set);
    1.0 - (1.0 - zero).powi(hashes as i32)
}

/// The K of 1 to 10 that misses least `gap` arrivals back while FPS is kept, by trial as in section 4 of the paper, which finds that the gap and the
/// memory hardly matter.
///
/// # Examples
/// ```
/// use echoless::theory::stable::best_hashes;
/// assert_eq!(best_hashes(0.1, 1, 1000, 1 << 20), 2);
/// ```
#[must_use]
pub fn best_hashes(fps: f64, max: u32, gap: u64, cells: u64) -> u32 {
    let fnr = |hashes: u32| {
        let decrements = decrements_for(fps, max, hashes, cells);
        fnr_at_gap(gap, decrements, max, hashes, cells)
    };
    (1..=10)
        .min_by(|left, right| fnr(*left).total_cmp(&fnr(*right)))
        .unwrap_or(1)
}

/// P(Binomial(trials, probability) >= least).
fn binomial_at_least(least: u32, trials: u64, probability: f64) -> f64 {
    if trials < u64::from(least) {
        return 0.0;
    }
    if probability >= 1.0 {
        return 1.0;
    }
    // Terms in logarithms: the first of them underflows once trials * probability passes 745.
    let odds = probability.ln() - (-probability).ln_1p();
    let mut log_term = trials as f64 * (-probability).ln_1p();
    let mut below = 0.0;
    for successes in 0..least {
        below += log_term.exp();
        log_term +=
            (trials as f64 - f64::from(successes)).ln() - f64::from(successes + 1).ln() + odds;
    }
    (1.0 - below).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::Filter;
    use crate::filters::published::cells::{Decrement, Lowering, StableSpec, Update};
    use crate::theory::trial::{fnr_at_gap as measured_fnr_at_gap, fresh_keys, probed_fpr};

    fn spec(cell_bits: u32, hashes: u32, decrements: u64, decrement: Decrement) -> StableSpec {
        StableSpec {
            hashes,
            cell_bits,
            lowering: Lowering::Cells(decrements),
            update: Update::Every,
            decrement,
            reach: 1.0,
        }
    }

    #[test]
    fn the_stable_point_is_that_of_the_filter() {
        for decrement in [Decrement::Consecutive, Decrement::Independent] {
            for (bits, hashes, decrements) in [(1, 2, 4), (2, 3, 12), (3, 2, 20)] {
                let bytes = 12_000;
                let filter = spec(bits, hashes, decrements, decrement).build(bytes, 1);
                let mut filter = filter.expect("valid");
                for key in fresh_keys(400_000) {
                    filter.observe_one(key);
                }
                let cells = bytes * 8 / u64::from(bits);
                let max = (1 << bits) - 1;
                let zeros = stable_zeros(decrements as f64, max, hashes, cells);
                assert!(
                    (filter.zeros() - zeros).abs() < 0.005,
                    "{bits} bits: {zeros}"
                );
                let fps = stable_point_fpr(decrements as f64, max, hashes, cells);
                let fpr = probed_fpr(&filter, 200_000);
                assert!((fpr - fps).abs() < 0.005, "{bits} bits: {fpr} for {fps}");
            }
        }
    }

    #[test]
    fn decrements_from_a_bound_keep_it() {
        for fps in [0.2, 0.1, 0.01, 0.001] {
            for max in [1, 3, 7, 15] {
                for hashes in 1..=10 {
                    let exact = decrements_for(fps, max, hashes, 1 << 20);
                    let back = stable_point_fpr(exact, max, hashes, 1 << 20);
                    assert!(
                        (back / fps - 1.0).abs() < 1e-9,
                        "{fps} {max} {hashes}: {back}"
                    );
                    assert!(stable_point_fpr(exact.ceil(), max, hashes, 1 << 20) <= fps);
                }
            }
        }
    }

    #[test]
    fn duplicates_are_missed_as_often_as_computed() {
        for (bits, hashes, decrements) in [(1, 2, 4), (2, 2, 8)] {
            let bytes = 4000;
            let (cells, max) = (bytes * 8 / u64::from(bits), (1 << bits) - 1);
            for gap in [100, 1000, 10_000, 100_000] {
                let filter = spec(bits, hashes, decrements, Decrement::Independent).build(bytes, 5);
                let measured = measured_fnr_at_gap(&mut filter.expect("valid"), gap, 60_000);
                let expected = fnr_at_gap(gap, decrements as f64, max, hashes, cells);
                assert!(
                    (measured - expected).abs() < 0.01,
                    "{bits} bits, gap {gap}: {measured} for {expected}"
                );
            }
        }
    }

    #[test]
    fn the_best_number_of_cells_is_that_of_the_paper() {
        for gap in [100, 5000] {
            for (fps, max, least, most) in [
                (0.2, 1, 1, 2),
                (0.1, 1, 2, 2),
                (0.1, 3, 2, 3),
                (0.01, 3, 4, 5),
            ] {
                let best = best_hashes(fps, max, gap, 100_000);
                assert!(
                    (least..=most).contains(&best),
                    "{fps}, Max {max}, gap {gap}: {best}"
                );
            }
        }
    }

    #[test]
    fn the_sum_of_the_paper_is_the_closed_form() {
        // Equations 9 to 12, term by term.
        let (cells, hashes, decrements, max, gap) = (300.0, 2.0, 5.0, 3_u32, 400_u64);
        let (p, k): (f64, f64) = (decrements / cells, hashes / cells);
        let tail = |trials: u64| binomial_at_least(max, trials, p);
        let sum: f64 = (u64::from(max)..gap)
            .map(|l| tail(l) * (1.0 - k).powi(l as i32) * k)
            .sum();
        let zero = sum + tail(gap) * (1.0 - k).powi(gap as i32);
        let expected = 1.0 - (1.0 - zero).powi(2);
        assert!((fnr_at_gap(gap, 5.0, max, 2, 300) - expected).abs() < 1e-12);
    }
}
