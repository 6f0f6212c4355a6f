//! The equal-timers heuristic: which keys it misses, and what it gains.

use std::collections::HashMap;

use echoless::FilterSpec;
use proptest::prelude::*;

use crate::arrivals::{arrivals, observe};
use crate::harness::position;
use crate::windows::cells_in;

proptest! {
    /// With k - k' overwritten timers, k' are left that are equal.
    #[test]
    fn equal_timers_miss_only_keys_of_which_more_timers_were_overwritten(
        (window, stream) in (1_u64..300).prop_flat_map(|window| {
            (Just(window), arrivals(window, window, 1..=200, 1200))
        }),
        (hashes, equal) in (1_usize..9).prop_flat_map(|hashes| (Just(hashes), 1..=hashes)),
        memory in 40_usize..900,
        refresh: bool,
    ) {
        let text = format!(
            "tbf:window={window},k={hashes},equal={equal},refresh={refresh},bits=10,\
             memory={memory}"
        );
        let spec: FilterSpec = echoless_papers::parse(&text).expect("valid");
        let verdicts = observe(&mut *spec.build().expect("valid"), &stream);
        // The last arrival that set each timer, and that recorded each key.
        let len = cells_in(memory, 10);
        let mut setters = vec![0; len];
        let mut recorded = HashMap::new();
        let mut clock = 0;
        for (index, (arrival, duplicate)) in (1..).zip(stream.iter().zip(verdicts)) {
            clock = clock.max(arrival.tick);
            let timers: Vec<usize> =
                (0..hashes).map(|hash| position(arrival.key, hash, len)).collect();
            if let Some((time, setter)) = recorded.get(&arrival.key)
                && clock - time <= window
                && !duplicate
            {
                let overwritten = timers.iter().filter(|timer| setters[**timer] != *setter);
                let overwritten = overwritten.count();
                prop_assert!(overwritten > hashes - equal, "{}: {}", text, overwritten);
            }
            if refresh || !duplicate {
                for timer in &timers {
                    setters[*timer] = index;
                }
                recorded.insert(arrival.key, (clock, index));
            }
        }
    }
}

#[test]
fn equal_timers_trade_false_positives_for_misses() {
    // Every key arrives twice, the second time 500 ticks later.
    let rates = |equal: usize| {
        let text = format!("tbf:window=1000,k=6,equal={equal},memory=12KiB");
        let mut filter = echoless_papers::parse(&text).unwrap().build().unwrap();
        let hasher = echoless::KeyHasher::seeded(9);
        let (mut wrong, mut missed) = (0, 0);
        for tick in 0..20_000_u64 {
            filter.advance_to(tick);
            let fresh = filter.observe_one(hasher.hash_u64(tick));
            wrong += u32::from(fresh.is_duplicate());
            if let Some(old) = tick.checked_sub(500) {
                missed += u32::from(!filter.observe_one(hasher.hash_u64(old)).is_duplicate());
            }
        }
        (wrong, missed)
    };
    let [one, two, all] = [1, 2, 6].map(rates);
    assert!(
        one.0 > 20 * two.0 && two.0 > all.0,
        "{one:?} {two:?} {all:?}"
    );
    // A key that is taken for others is not recorded, so few repeats are fresh even without the
    // heuristic.
    assert!(
        one.1 <= one.0 && all.1 > 10 * two.1,
        "{one:?} {two:?} {all:?}"
    );
}
