//! What [`Window`](echoless::Window) promises, for the published forms: with a map of keys to
//! times, in filters so large that no key is taken for another, and in crowded ones.

use std::collections::HashMap;

use echoless::{Filter, FilterSpec, KeyHasher};
use proptest::prelude::*;

use crate::arrivals::{Arrival, arrivals, observe};
use crate::promises::{assert_promise, observe_at};

/// A published form without its window, and the units of time after which its state repeats.
#[derive(Debug, Clone, Copy)]
struct Published {
    options: &'static str,
    /// The most units of a window.
    most: u64,
    wrap: u64,
}

const PUBLISHED: [Published; 8] = [
    Published::new("tbf:k=6,bits=2", 2, 3),
    Published::new("tbf:k=7,bits=3", 5, 7),
    Published::new("tbf:k=6,bits=8", 191, 255),
    Published::new("tbf:k=6,bits=13", 6143, 8191),
    Published::new("gbf:k=7,q=1", 1, 3),
    Published::new("gbf:k=7,q=10", 10, 12),
    Published::new("apbf:k=8,l=1", 1, 9),
    Published::new("apbf:k=9,l=12", 12, 21),
];

impl Published {
    const fn new(options: &'static str, most: u64, wrap: u64) -> Self {
        Self {
            options,
            most,
            wrap,
        }
    }

    fn spec(self, window: u64, refresh: bool, memory: u64) -> FilterSpec {
        let text = format!("{},window={window},refresh={refresh}", self.options);
        let spec: FilterSpec = echoless_papers::parse(&text).expect("valid");
        spec.memory(memory)
    }
}

fn streams(keys: u64, count: usize) -> impl Strategy<Value = (Published, u64, Vec<Arrival>)> {
    let windows = prop_oneof![1_u64..30, Just(1000_u64), 4000_u64..5000, Just(1_u64 << 40)];
    let forms = prop::sample::select(PUBLISHED.to_vec());
    (forms, windows).prop_flat_map(move |(form, window)| {
        let wrap = window.div_ceil(form.most) * form.wrap;
        let stream = arrivals(window, wrap, 1..=keys, count);
        (Just(form), Just(window), stream)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The expected number of keys that are taken for others is below 10^-9 in all cases.
    #[test]
    fn keys_are_remembered_for_the_window_and_forgotten_a_granule_later(
        (form, window, stream) in streams(30, 400),
        refresh: bool,
    ) {
        let spec = form.spec(window, refresh, 1 << 16);
        let promised = spec.facts().window.expect("timed");
        prop_assert_eq!(promised.ticks, window);
        let mut filter = spec.build().expect("valid");
        prop_assert!(filter.memory_bytes() <= 1 << 16);
        prop_assert_eq!(filter.report().window, Some(promised));
        let verdicts = observe(&mut *filter, &stream);
        assert_promise(&spec, promised, refresh, &stream, &verdicts)?;
        filter.clear();
        prop_assert_eq!(observe_at(&mut *filter, &stream, 77), verdicts, "{}", spec);
    }

    /// A key that is taken for others is not recorded, unless duplicates are.
    #[test]
    fn no_recorded_key_is_missed_however_crowded_the_filter(
        (form, window, stream) in streams(300, 1500),
        refresh: bool,
        memory in 300_u64..500,
    ) {
        let spec = form.spec(window, refresh, memory);
        let mut filter = spec.build().expect("valid");
        prop_assert!(filter.memory_bytes() <= memory);
        let verdicts = observe(&mut *filter, &stream);
        let mut recorded = HashMap::new();
        let mut clock = 0;
        for (arrival, duplicate) in stream.iter().zip(verdicts) {
            clock = clock.max(arrival.tick);
            let age = recorded.get(&arrival.key).map(|time| clock - time);
            let alive = age.is_some_and(|age| age <= window);
            prop_assert!(duplicate || !alive, "{} at age {:?}", spec, age);
            if refresh || !duplicate {
                recorded.insert(arrival.key, clock);
            }
        }
    }
}

#[test]
fn expired_keys_leave_no_trace_in_a_crowded_filter() {
    for form in PUBLISHED {
        for jump in [0, 1, form.wrap - 1, form.wrap, 5 * form.wrap + 1] {
            let spec = form.spec(1000, false, 1 << 10);
            let window = spec.facts().window.expect("timed");
            let mut filter = spec.build().expect("valid");
            let hasher = KeyHasher::seeded(4);
            filter.advance_to(77);
            for key in 0..5000 {
                filter.observe_one(hasher.hash_u64(key));
            }
            assert!(filter.report().expected_fpr > Some(0.5), "{spec}");
            // One unit at a time, and then a jump; slices keep bits for k generations more.
            let unit = 1000_u64.div_ceil(form.most);
            let end = 77 + window.ticks + window.granule + 9 * unit;
            for tick in (77..end).step_by((unit as usize / 2).max(1)) {
                filter.advance_to(tick);
            }
            filter.advance_to(end + jump * unit);
            assert_eq!(filter.report().fill(), Some(0.0), "{spec}");
            assert_eq!(filter.report().expected_fpr, Some(0.0), "{spec}");
            let held = (0..5000).filter(|key| filter.contains(hasher.hash_u64(*key)));
            assert_eq!(held.count(), 0, "{spec}");
        }
    }
}

#[test]
fn a_key_that_keeps_arriving_expires_unless_it_is_renewed() {
    for form in PUBLISHED {
        let fresh = |refresh| {
            let mut filter = form.spec(10, refresh, 1 << 12).build().expect("valid");
            let key = KeyHasher::seeded(4).hash_u64(3);
            let ticks = (0..100).filter(|tick| {
                filter.advance_to(*tick);
                !filter.observe_one(key).is_duplicate()
            });
            ticks.collect::<Vec<u64>>()
        };
        assert_eq!(fresh(true), [0], "{form:?}");
        assert!(fresh(false).len() >= 4, "{form:?}: {:?}", fresh(false));
    }
}

/// The last ticks of the clock, whose next unit has no number.
#[test]
fn the_clock_can_reach_its_end() {
    for form in PUBLISHED {
        for refresh in [false, true] {
            let mut filter = form.spec(1, refresh, 1 << 12).build().expect("valid");
            let key = KeyHasher::seeded(4).hash_u64(3);
            let at = |filter: &mut dyn Filter, tick| {
                filter.advance_to(tick);
                filter.observe_one(key).is_duplicate()
            };
            assert!(!at(&mut *filter, u64::MAX - 3), "{form:?}");
            assert!(at(&mut *filter, u64::MAX - 2), "{form:?}");
            assert_eq!(at(&mut *filter, u64::MAX - 1), refresh, "{form:?}");
            assert!(at(&mut *filter, u64::MAX), "{form:?}");
            assert!(at(&mut *filter, 0), "{form:?}");
        }
    }
}
