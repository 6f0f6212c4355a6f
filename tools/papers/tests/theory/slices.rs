//! Sliced filters while slices have failed, and their loads.

use echoless::{Filter, FilterSpec, KeyHash, KeyHasher, Verdict};
use echoless_papers::theory::bloom;
use echoless_papers::theory::slices::{Failures, fairness, horizontal_fpr, largest_fraction};

use crate::trial::{assert_close, fresh_keys, probed_fpr};

const HASHES: u32 = 8;
const KEYS: u64 = 20_000;
const PROBES: u64 = 40_000;
/// The bits of a Bloom filter of 16 KiB.
const BITS: u64 = 1 << 17;

/// What was measured with every fifth slice failed, as a mean over the five ways to do that.
#[derive(Default)]
struct Measured {
    /// The fraction of the live bits that are set.
    fill: f64,
    fpr: f64,
    /// Of the keys that were inserted, those that are not found.
    fnr: f64,
    /// The number of inserted keys, summed over the five ways.
    inserted: f64,
}

/// Bloom filters in 40 slices, 8 of which fail once the filter holds its keys.
///
/// A vertical filter has the eight bits of a key in eight ranges of five slices each, so a fifth of
/// each range has failed.
fn measure(adapter: &str) -> Measured {
    let text = format!("{adapter}/bloom:k={HASHES},memory=16KiB");
    let spec: FilterSpec = echoless_papers::parse(&text).expect("valid");
    let mut mean = Measured::default();
    for first in 0..5 {
        let mut filter = spec.build().expect("small");
        // The hybrid heuristic takes many keys for duplicates, and does not insert them.
        let mut inserted = Vec::new();
        for key in fresh_keys(KEYS) {
            if filter.observe_one(key) == Verdict::Fresh {
                inserted.push(key);
            }
        }
        let slices = filter.slices_mut().unwrap();
        for slice in (first..40).step_by(5) {
            slices.fail(&[slice]).expect("exists");
        }
        let missed = inserted
            .iter()
            .filter(|key| !filter.contains(**key))
            .count();
        mean.fill += filter.report().fill().expect("counted") / 0.8 / 5.0;
        mean.fpr += probed_fpr(&*filter, PROBES) / 5.0;
        mean.inserted += inserted.len() as f64;
        mean.fnr += missed as f64 / inserted.len() as f64 / 5.0;
    }
    mean
}

/// A sliced filter that has observed these keys.
fn filled(text: &str, keys: impl Iterator<Item = KeyHash>) -> Box<dyn Filter> {
    let spec: FilterSpec = echoless_papers::parse(text).expect("valid");
    let mut filter = spec.build().expect("small");
    for key in keys {
        filter.observe_one(key);
    }
    filter
}

fn check(adapter: &str, measured: &Measured, fpr: f64, fnr: f64) {
    assert_close(measured.fpr, fpr, 0.1, &format!("FPR of {adapter}"));
    if fnr > 0.005 {
        assert_close(measured.fnr, fnr, 0.1, &format!("FNR of {adapter}"));
    } else {
        // A few keys: within four standard deviations of their number.
        let error = (measured.fnr - fnr).abs();
        let deviation = (fnr / measured.inserted).sqrt();
        assert!(error <= 4.0 * deviation, "{adapter}: FNR {}", measured.fnr);
    }
}

#[test]
fn horizontal_rates_with_eight_of_forty_slices_failed() {
    let failures = Failures::new(8, 40);
    let fpr = bloom::fpr(HASHES, KEYS, BITS);
    let text = "horizontal:slices=40,failed=duplicate";
    check(text, &measure(text), failures.horizontal_fpr(fpr), 0.0);
    let text = "horizontal:slices=40,failed=fresh";
    let fresh = failures.horizontal_fpr_as_fresh(fpr);
    check(text, &measure(text), fresh, failures.horizontal_fnr());
}

#[test]
fn vertical_rates_with_eight_of_forty_slices_failed() {
    let failures = Failures::new(8, 40);
    let fill = bloom::fill(HASHES, KEYS, BITS);
    let text = "vertical:slices=40,failed=duplicate";
    check(
        text,
        &measure(text),
        failures.vertical_fpr(HASHES, fill),
        0.0,
    );
    let text = "vertical:slices=40,failed=fresh";
    let fresh = failures.vertical_fpr_as_fresh(HASHES, fill);
    check(
        text,
        &measure(text),
        fresh,
        failures.vertical_fnr_as_fresh(HASHES),
    );
    for least in 1..=HASHES {
        let fnr = failures.hybrid_fnr(HASHES, least);
        let text = format!("vertical:slices=40,failed=repaired,least={least}");
        let fpr = failures.repaired_fpr(HASHES, least, fill);
        check(&text, &measure(&text), fpr, fnr);
        let text = format!("vertical:slices=40,failed=hybrid,least={least}");
        let measured = measure(&text);
        let fpr = failures.hybrid_fpr(HASHES, least, measured.fill);
        check(&text, &measured, fpr, fnr);
    }
}

#[test]
fn diced_rates_are_those_of_all_pieces() {
    // v-h: one of the five pieces of each vertical slice, each of which has one bit of a key.
    let failures = Failures::new(8, 40);
    let text = "vertical:slices=8/horizontal:slices=5/bloom:k=8,memory=16KiB";
    let mut filter = filled(text, fresh_keys(KEYS));
    for slice in 0..8 {
        filter
            .slices_mut()
            .unwrap()
            .fail(&[slice, slice % 5])
            .unwrap();
    }
    let fill = bloom::fill(HASHES, KEYS, BITS);
    let expected = failures.vertical_fpr(HASHES, fill);
    assert_close(probed_fpr(&*filter, 5 * PROBES), expected, 0.1, text);
    assert!(fresh_keys(KEYS).all(|key| filter.contains(key)));
    // h-v: the keys of a slice have one bit in each of its eight vertical slices.
    let text = "horizontal:slices=5/vertical:slices=8/bloom:k=8,memory=16KiB";
    let mut filter = filled(text, fresh_keys(KEYS));
    for piece in 0..5 {
        filter.slices_mut().unwrap().fail(&[piece, piece]).unwrap();
    }
    assert_close(probed_fpr(&*filter, 5 * PROBES), fill.powi(7), 0.1, text);
    assert!(fresh_keys(KEYS).all(|key| filter.contains(key)));
}

#[test]
fn vertical_slices_balance_skewed_streams_better() {
    // Zipf with exponent 1 over 1000 keys, by inversion of evenly spread quantiles.
    let harmonic: f64 = (1..=1000).map(|rank| 1.0 / f64::from(rank)).sum();
    let hasher = KeyHasher::seeded(3);
    let zipf = (1..=1000_u32).flat_map(|rank| {
        let count = (50_000.0 / (f64::from(rank) * harmonic)).round() as usize;
        std::iter::repeat_n(hasher.hash_u64(u64::from(rank)), count)
    });
    let zipf: Vec<KeyHash> = zipf.collect();
    let uniform: Vec<KeyHash> = (0..50_000).map(|key| hasher.hash_u64(key)).collect();
    let loads = |adapter: &str, keys: &[KeyHash]| {
        let text = format!("{adapter}:slices=20/bloom:k=4,memory=64KiB");
        filled(&text, keys.iter().copied())
            .slices()
            .unwrap()
            .loads()
            .to_vec()
    };
    for adapter in ["horizontal", "vertical"] {
        let uniform = loads(adapter, &uniform);
        assert!(fairness(&uniform) > 0.99, "{adapter}: {uniform:?}");
        assert!(
            largest_fraction(&uniform) < 1.1 / 20.0,
            "{adapter}: {uniform:?}"
        );
    }
    let (horizontal, vertical) = (loads("horizontal", &zipf), loads("vertical", &zipf));
    assert_eq!(horizontal.iter().sum::<u64>(), zipf.len() as u64);
    // A key is probed in each of its up to four slices.
    assert_eq!(vertical.iter().sum::<u64>(), 4 * zipf.len() as u64);
    assert!(fairness(&vertical) > fairness(&horizontal) + 0.1);
    assert!(largest_fraction(&vertical) < largest_fraction(&horizontal) - 0.05);
}

#[test]
fn horizontal_slices_have_the_fpr_of_uneven_ones() {
    for slices in [1, 10, 100] {
        let text = format!("horizontal:slices={slices}/bloom:k=4,memory=8000B");
        let spec: FilterSpec = echoless_papers::parse(&text).expect("valid");
        let mut fpr = 0.0;
        // The slices fill differently with each choice of keys.
        for run in 0..20 {
            let hasher = KeyHasher::seeded(run);
            let mut filter = spec.build().expect("small");
            for number in 0..8000 {
                filter.observe_one(hasher.hash_u64(number));
            }
            let probes = 8000..28_000_u64;
            let wrong = probes.filter(|number| filter.contains(hasher.hash_u64(*number)));
            fpr += wrong.count() as f64 / 20_000.0 / 20.0;
        }
        assert_close(fpr, horizontal_fpr(4, 8000, 64_000, slices), 0.05, &text);
    }
}
