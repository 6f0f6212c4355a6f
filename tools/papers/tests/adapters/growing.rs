//! Growing filters against a plain list of Bloom filters.

use echoless::{Filter, KeyHash};
use proptest::prelude::*;

use crate::harness::{PlainBloom, build, is_duplicate, key, parse};

/// The filters of one slice, oldest first, with the numbers of their keys.
struct Plain {
    empty: PlainBloom,
    filters: Vec<(PlainBloom, u64)>,
    most: usize,
    fpr: f64,
    by_count: bool,
    forgotten: u64,
}

impl Plain {
    fn new(hashes: usize, bytes: usize, most: usize, fpr: f64, by_count: bool) -> Self {
        let empty = PlainBloom::new(hashes, bytes);
        Self {
            filters: vec![(empty.clone(), 0)],
            empty,
            most,
            fpr,
            by_count,
            forgotten: 0,
        }
    }

    /// Whether a filter can take a key at all before it is full.
    fn is_possible(&self) -> bool {
        let least = if self.by_count {
            1.0
        } else {
            self.empty.bits.len() as f64
        };
        self.threshold() >= least
    }

    fn threshold(&self) -> f64 {
        let (cells, hashes) = (self.empty.cells() as f64, self.empty.bits.len() as f64);
        let root = self.fpr.powf(1.0 / hashes);
        if self.by_count {
            -(cells / hashes) * (1.0 - root).ln()
        } else {
            cells * root
        }
    }

    fn holds(&self, key: KeyHash) -> bool {
        self.filters.iter().any(|(filter, _)| filter.holds(key))
    }

    fn observe(&mut self, key: KeyHash) -> bool {
        if self.holds(key) {
            return true;
        }
        let (newest, keys) = self.filters.last().unwrap();
        let size = if self.by_count {
            *keys as f64
        } else {
            newest.ones() as f64
        };
        if size > self.threshold() {
            if self.filters.len() == self.most {
                let (_, keys) = self.filters.remove(0);
                self.forgotten += keys;
            }
            self.filters.push((self.empty.clone(), 0));
        }
        let (newest, keys) = self.filters.last_mut().unwrap();
        newest.insert(key);
        *keys += 1;
        false
    }
}

proptest! {
    #[test]
    fn growing_filters_agree_with_a_plain_list(
        hashes in 1_usize..7,
        bytes in 4_usize..40,
        most in 1_usize..6,
        more in 0_usize..4,
        fpr in 0.001_f64..0.9,
        by_count in any::<bool>(),
        keys in prop::collection::vec(0_u64..1000, 0..800),
    ) {
        let mut model = Plain::new(hashes, bytes, most, fpr, by_count);
        let threshold = ["density", "cardinality"][usize::from(by_count)];
        let growing = format!("growing:fpr={fpr},threshold={threshold},step={bytes}");
        // A remainder of the memory is not enough for another filter.
        let memory = bytes * most + more.min(bytes - 1);
        let built = parse(&format!("{growing}/bloom:k={hashes},memory={memory}")).build();
        prop_assert_eq!(built.is_ok(), model.is_possible());
        let Ok(mut filter) = built else {
            return Ok(());
        };
        let one = filter.memory_bytes();
        for number in &keys {
            let key = key(*number);
            prop_assert_eq!(is_duplicate(&mut *filter, key), model.observe(key));
            prop_assert_eq!(filter.memory_bytes(), one * model.filters.len() as u64);
        }
        for key in (0..1000).map(key) {
            prop_assert_eq!(filter.contains(key), model.holds(key));
        }
        let report = filter.report();
        prop_assert_eq!(report.tally.evictions, Some(model.forgotten));
        let fresh = model.filters.iter().map(|(filter, _)| {
            let fill = filter.ones() as f64 / filter.cells() as f64;
            1.0 - fill.powi(hashes as i32)
        });
        let expected = 1.0 - fresh.product::<f64>();
        prop_assert!((report.expected_fpr.unwrap() - expected).abs() < 1e-9);
        // Cleared, it is as new.
        filter.clear();
        prop_assert_eq!(filter.memory_bytes(), one);
        let mut model = Plain::new(hashes, bytes, most, fpr, by_count);
        for number in keys {
            let key = key(number);
            prop_assert_eq!(is_duplicate(&mut *filter, key), model.observe(key));
        }
    }
}

#[test]
fn slices_grow_on_their_own() {
    let mut filter = build("horizontal:slices=4/growing:fpr=0.01,step=1KiB/bloom:k=4,memory=32KiB");
    let one = filter.memory_bytes();
    assert!(one < 5 << 10, "{one} B at the beginning");
    let mut models: Vec<Plain> = (0..4)
        .map(|_| Plain::new(4, 1024, 8, 0.01, false))
        .collect();
    let slice =
        |key: KeyHash| KeyHash::from_uniform(key.remix(0x736c_6963_6573_0000)).line(4) as usize;
    for number in (0..12_000).map(|number| number % 8000) {
        let expected = models[slice(key(number))].observe(key(number));
        assert_eq!(is_duplicate(&mut *filter, key(number)), expected);
    }
    let filters: usize = models.iter().map(|model| model.filters.len()).sum();
    assert!(filters > 8 && filters < 32, "{filters} filters");
    assert_eq!(filter.memory_bytes(), one / 4 * filters as u64);
    // No filter was dropped, so no key was forgotten.
    assert_eq!(filter.report().tally.evictions, Some(0));
    let rates: f64 = models
        .iter()
        .map(|model| {
            let fresh = model
                .filters
                .iter()
                .map(|(filter, _)| 1.0 - (filter.ones() as f64 / filter.cells() as f64).powi(4));
            1.0 - fresh.product::<f64>()
        })
        .sum();
    assert!((filter.report().expected_fpr.unwrap() - rates / 4.0).abs() < 1e-9);
}

#[test]
fn at_the_ceiling_the_oldest_keys_are_forgotten_first() {
    let mut filter = build("growing:fpr=0.001,step=1KiB/bloom:k=6,memory=4KiB");
    let mut most = 0;
    for number in 0..20_000 {
        filter.observe_one(key(number));
        most = most.max(filter.memory_bytes());
    }
    // The counts of ones are beside the bits.
    assert!(most <= (4 << 10) + 4 * 48, "{most} B");
    // Some were taken for duplicates of keys in a filter that was dropped since.
    let recent = (19_000..20_000)
        .filter(|number| filter.contains(key(*number)))
        .count();
    assert!(recent > 980, "{recent} of the latest 1000 are kept");
    let kept = (0..10_000)
        .filter(|number| filter.contains(key(*number)))
        .count();
    assert!(kept < 100, "{kept} of the oldest are kept");
    let tally = filter.tally();
    // Every key that was inserted is in a filter, or counted as evicted.
    let expected = tally.fresh.unwrap() - tally.evictions.unwrap();
    assert!(
        (1500..4000).contains(&expected),
        "{expected} keys in four filters"
    );
}

#[test]
fn what_a_specification_tells_of_growth_is_that_of_all_filters() {
    let spec = parse("growing:step=1KiB/bloom:k=4,memory=6KiB");
    assert_eq!(spec.facts().cache_lines, 24.0);
    assert_eq!(
        (spec.facts().rate_model, spec.facts().fpr_limit),
        (None, None)
    );
    assert_eq!(spec.facts().most_memory, 1 << 20);
    assert_eq!(spec.facts().window, None);
    assert_eq!(
        parse("growing/bloom:k=4,memory=6KiB").facts().cache_lines,
        32.0
    );
    assert!(parse("growing/bloom:k=4").facts().most_memory > 1 << 60);
}
