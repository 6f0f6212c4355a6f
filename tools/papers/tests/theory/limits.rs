//! What filters tend to when they are full, and how queues forget, against numbers that are computed
//! here: the models of single arrivals draw from the hashes that the filters draw from, so they
//! would not notice draws that depend on each other.

use echoless::{Filter, FilterSpec, Verdict};

use crate::trial::{assert_close, fnr_at_gap, fresh_keys, probed_fpr};

fn build(text: &str) -> (FilterSpec, Box<dyn Filter>) {
    let spec: FilterSpec = echoless_papers::parse(text).expect("a valid specification");
    let filter = spec.build().expect("small");
    (spec, filter)
}

/// In a full row, each of the searched slots holds one of the values of a fingerprint, all equally
/// likely. They are different where a fingerprint that is found is not inserted again; in the two
/// rows of a cuckoo filter they are nearly independent.
#[test]
fn full_rows_reach_the_limit_of_their_rate() {
    for (text, searched, values, are_different, keys) in [
        ("qht:slots=4,bits=6,memory=30000", 4, 63, true, 320_000),
        ("qht:slots=16,bits=6,memory=30000", 16, 63, true, 320_000),
        ("qqht:slots=4,bits=6,memory=30000", 4, 63, true, 320_000),
        ("qhtd:slots=4,bits=4,memory=10000", 4, 15, false, 400_000),
        ("qqhtd:slots=4,bits=4,memory=10000", 4, 15, false, 400_000),
        ("cuckoo:slots=1,bits=6,memory=8192", 2, 63, false, 300_000),
        ("cuckoo:slots=4,bits=8,memory=8192", 8, 255, false, 300_000),
    ] {
        let (spec, mut filter) = build(&format!("{text},seed=2"));
        fresh_keys(keys).for_each(|key| {
            filter.observe_one(key);
        });
        let one = 1.0 / f64::from(values);
        let expected = match are_different {
            true => f64::from(searched) * one,
            false => 1.0 - (1.0 - one).powi(searched),
        };
        let measured = probed_fpr(&*filter, 300_000);
        let is_cuckoo = text.starts_with("cuckoo");
        assert_close(
            measured,
            expected,
            if is_cuckoo { 0.05 } else { 0.02 },
            text,
        );
        let limit = spec.facts().fpr_limit.expect("rows have one");
        assert!(expected <= limit, "{text}: {expected} is above {limit}");
        assert!(measured < 1.02 * limit, "{text}: {measured} of {limit}");
    }
}

/// A QQHTD inserts every arrival, so a key has left its row once as many others came to the row as
/// it has slots. Their number is Poisson distributed. The key is found all the same if one of the
/// fingerprints there now equals its own.
#[test]
fn queues_forget_by_age() {
    let (slots, bits, rows) = (4, 8, 2000);
    let bytes = rows * slots * bits / 8;
    let text = format!("qqhtd:slots={slots},bits={bits},memory={bytes},seed=2");
    let differs = 1.0 - 1.0 / (f64::from(1 << bits) - 1.0);
    for age in [500, 4000, 8000, 16_000, 60_000] {
        let arrived = f64::from(age) / f64::from(rows);
        // P(n), the probability of n arrivals: P(0) = exp(-mean), P(n + 1) = P(n) mean / (n + 1).
        let next = |term: &mut f64, count: i32| {
            let this = *term;
            *term *= arrived / f64::from(count + 1);
            Some(this)
        };
        let still_there: f64 = (0..slots).scan((-arrived).exp(), next).sum();
        let expected = (1.0 - still_there) * differs.powi(slots);
        let (_, mut filter) = build(&text);
        let measured = fnr_at_gap(&mut *filter, age as u64, 60_000);
        assert!(
            (measured - expected).abs() < 0.01,
            "age {age}: {measured}, expected {expected}"
        );
    }
}

/// The fill of k filters after `time` fresh keys a bit of one filter, from an empty one.
///
/// A fresh key is taken for a duplicate with probability p^k, where p is the fill. Otherwise, in each
/// filter, it sets its bit if that is zero, and clears a set bit with a probability that `clearing`
/// has: dp = (1 - p) - (1 - p^k) rho for each key and bit. Paper 000 claims that the fill of BSBF and
/// RLBSBF tends to 1 for k >= 2; by these dynamics, which are its own, it does not.
fn fill_after(hashes: i32, time: f64, clearing: impl Fn(f64) -> f64) -> f64 {
    let slope = |fill: f64| (1.0 - fill) - (1.0 - fill.powi(hashes)) * clearing(fill);
    let step = time / 10_000.0;
    (0..10_000).fold(0.0, |fill, _| {
        fill + step * slope(fill + step * slope(fill) / 2.0)
    })
}

/// The fill of a filter of RSBF as tabled, for any k. The first s arrivals clear a random bit and set
/// their own, dp = (1 - p) - p for each; later ones do so with the probability 1/time.
fn reservoir_fill_after(time: f64) -> f64 {
    0.5 - 0.5 * (-2.0 * time.min(1.0)).exp() / time.max(1.0).powi(2)
}

#[test]
fn ageing_filters_fill_as_the_dynamics_of_their_paper_say() {
    let size = 40_000;
    for hashes in [1, 2, 3] {
        let in_one_of = f64::from(hashes);
        let fills: [(&str, &dyn Fn(f64) -> f64); 5] = [
            ("bloom:", &|time| fill_after(hashes, time, |_| 0.0)),
            ("bsbf:", &|time| fill_after(hashes, time, |fill| fill)),
            ("bsbfsd:", &|time| {
                fill_after(hashes, time, |fill| fill / in_one_of)
            }),
            ("rlbsbf:", &|time| {
                fill_after(hashes, time, |fill| fill * fill)
            }),
            ("rsbf:as=tabled,", &reservoir_fill_after),
        ];
        for (name, fill_after) in fills {
            let bytes = hashes * size / 8;
            let (_, mut filter) = build(&format!("{name}k={hashes},memory={bytes},seed=3"));
            for (key, arrivals) in fresh_keys(20 * size as u64).zip(1..) {
                filter.observe_one(key);
                if [size / 4, size, 4 * size, 20 * size].contains(&arrivals) {
                    let expected = fill_after(f64::from(arrivals) / f64::from(size));
                    let fill = filter.report().fill().expect("bits");
                    let told = format!("{name} k {hashes}, after {arrivals}");
                    assert!(
                        (fill - expected).abs() < 0.01,
                        "{told}: {fill}, not {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_buffer_that_guesses_is_wrong_as_often_as_it_guesses() {
    for guess in [0.1, 0.4] {
        let (_, mut filter) = build(&format!("fpbuffer:q={guess},memory=240000,seed=4"));
        let wrong = fresh_keys(60_000)
            .filter(|key| filter.observe_one(*key) == Verdict::Duplicate)
            .count();
        assert_close(wrong as f64 / 60_000.0, guess, 0.05, "guesses");
    }
}
