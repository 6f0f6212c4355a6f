//! What [`Window`](echoless::Window) promises, with a map of keys to times.

use proptest::prelude::*;

use crate::harness::{Kind, assert_promise, kinds, observe, streams, windows};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// So few keys that no line is ever full.
    #[test]
    fn keys_are_remembered_for_the_window_and_forgotten_a_granule_later(
        (kind, window, stream) in (kinds(), windows()).prop_flat_map(|(kind, window)| {
            let keys = 1..=kind.slots as u64;
            (Just(kind), Just(window), streams(kind, window, keys, 400))
        }),
        refresh: bool,
    ) {
        let spec = kind.spec(window, refresh, 3);
        let promised = spec.facts().window.expect("timed");
        prop_assert_eq!(promised.ticks, window);
        let mut filter = spec.build().expect("valid");
        let verdicts = observe(&mut *filter, &stream);
        assert_promise(&spec, promised, refresh, &stream, &verdicts)?;
        prop_assert_eq!(filter.report().tally.evictions, Some(0));
        prop_assert_eq!(filter.report().window, Some(promised));
    }
}

#[test]
fn a_key_that_keeps_arriving_expires_unless_it_is_renewed() {
    for kind in crate::harness::KINDS {
        let fresh = |refresh| fresh_arrivals(kind, refresh);
        assert_eq!(fresh(true), [0], "{kind:?}");
        assert!(fresh(false).len() > 5, "{kind:?}");
    }
}

/// The ticks at which a key that arrives at every tick is fresh.
fn fresh_arrivals(kind: Kind, refresh: bool) -> Vec<u64> {
    let spec = kind.spec(10, refresh, 1);
    let mut filter = spec.build().expect("valid");
    let key = crate::harness::key_hash(3);
    let fresh = (0..100).filter(|tick| {
        filter.advance_to(*tick);
        !filter.observe_one(key).is_duplicate()
    });
    fresh.collect()
}
