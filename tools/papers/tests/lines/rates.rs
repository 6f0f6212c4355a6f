//! The rates that line filters report, against measured ones, and bounds that must hold.

use echoless::filters::lines::LineFilter;
use echoless::{KeyHasher, Verdict};

use crate::harness::parse;

/// A line filter that observed `distinct` distinct keys.
fn fed(text: &str, distinct: u64) -> Box<dyn LineFilter> {
    let spec = parse(&format!("{text},form=line,memory=64KiB"));
    let mut filter = spec.build_lines().expect("valid");
    for key in 0..distinct {
        filter.observe_one(KeyHasher::seeded(3).hash_u64(key));
    }
    filter
}

/// The fraction of `probes` other keys that the filter would report as duplicates.
fn measured_fpr(filter: &dyn LineFilter, probes: u64) -> f64 {
    let others = (0..probes).map(|key| KeyHasher::seeded(3).hash_u64(u64::MAX - key));
    others.filter(|key| filter.contains(*key)).count() as f64 / probes as f64
}

#[test]
fn reported_rates_match_measured_ones() {
    const PROBES: u64 = 300_000;
    for text in [
        "bloom:k=1",
        "bloom:k=4",
        "bloom:k=5",
        "rsbf:k=2,as=tabled",
        "rsbf:k=3,as=described",
        "bsbf:k=2",
        "bsbfsd:k=3",
        "rlbsbf:k=2",
        "sbf:k=2,p=5",
        "sbf:k=5,d=4,fps=0.1",
        "fpsbf:k=1,c=2,f=6",
        "fpsbf:k=2,c=6,f=2",
        "fpsbf:k=3,c=14,f=2,refill=overwrite",
        "qht:slots=64,bits=8",
        "qhtd:slots=63,bits=8",
        "qqht:slots=64,bits=8",
        "qqhtd:slots=64,bits=8",
        "rowlru:slots=64,bits=8",
    ] {
        for distinct in [30_000, 200_000] {
            let filter = fed(text, distinct);
            let reported = filter.report().expected_fpr.unwrap();
            let measured = measured_fpr(&*filter, PROBES);
            // Five standard deviations of the measurement, and 2 % for means over lines of unequal
            // fill.
            let deviation = (reported / PROBES as f64).sqrt();
            let allowed = 5.0 * deviation + 0.02 * reported;
            assert!(
                (measured - reported).abs() < allowed,
                "{text}, {distinct} keys: measured {measured}, reported {reported}"
            );
        }
    }
}

#[test]
fn expected_false_duplicates_of_queues_match_measured_ones() {
    for name in ["qqht", "qqhtd", "rowlru"] {
        let mut filter = fed(&format!("{name}:slots=64,bits=8"), 0);
        let keys = (0..200_000).map(|key| KeyHasher::seeded(3).hash_u64(key));
        let wrong = keys
            .filter(|key| filter.observe_one(*key) == Verdict::Duplicate)
            .count() as f64;
        let expected = filter.report().expected_false_duplicates.expect("a number");
        assert!(
            (wrong / expected - 1.0).abs() < 0.02,
            "{name}: {wrong}, expected {expected}"
        );
    }
}

#[test]
fn reported_rates_of_queues_with_copies_are_upper_bounds() {
    // Every key arrives six times in a row, so that most slots hold copies.
    let spec = parse("qqhtd:slots=64,bits=8,form=line,memory=64KiB");
    let mut filter = spec.build_lines().expect("valid");
    for arrival in 0..400_000 {
        filter.observe_one(KeyHasher::seeded(3).hash_u64(arrival / 6));
    }
    let reported = filter.report().expected_fpr.unwrap();
    let measured = measured_fpr(&*filter, 100_000);
    assert!(
        measured < reported && measured > 0.1 * reported,
        "measured {measured}, reported {reported}"
    );
}

#[test]
fn decrements_derived_from_an_fpr_bound_keep_it() {
    let mut built = 0;
    for bits in [1, 2, 4] {
        for hashes in [1, 2, 3, 4, 6, 8, 10, 16, 24, 31] {
            for bound in [0.3, 0.1, 0.01_f64] {
                let text = format!("sbf:k={hashes},d={bits},fps={bound}");
                let spec = parse(&format!("{text},form=line,memory=64KiB"));
                if spec.build().is_err() {
                    continue;
                }
                built += 1;
                let filter = fed(&text, 400_000);
                // 3 % for the state of 1024 lines at one moment, and five standard deviations of
                // the measurement.
                let measured = measured_fpr(&*filter, 200_000);
                let allowed = 1.03 * bound + 5.0 * (bound / 200_000.0).sqrt();
                assert!(measured <= allowed, "{text}: {measured}");
            }
        }
    }
    assert!(built > 60, "{built}");
    let filter = fed("sbf:k=2,fps=0.1", 0);
    assert!(
        filter.parameters().contains("decrements: 5"),
        "{}",
        filter.parameters()
    );
}
