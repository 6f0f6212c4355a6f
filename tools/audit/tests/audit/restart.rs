//! An audit that is saved and loaded goes on as if nothing had happened.

use echoless::{AgeOrigin, KeyHash, KeyHasher, MissAge, Verdict, Window};
use echoless_audit::{Audit, Moment, SavedAudit as _, WindowAudit};
use proptest::prelude::*;

/// A key of a stream in which few keys are frequent, and a verdict that is sometimes wrong.
fn event(random: u64) -> (KeyHash, Verdict) {
    let spread = random % 17;
    let key = KeyHasher::seeded(0).hash_u64((random >> 8) % (1 << spread));
    let verdict = if random >> 60 < spread {
        Verdict::Duplicate
    } else {
        Verdict::Fresh
    };
    (key, verdict)
}

fn randoms(seed: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| KeyHasher::seeded(seed).hash_u64(number).get())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn estimates_go_on(seed: u64, count in 0u64..300_000, cut in 0u64..300_000) {
        let mut whole = Audit::new();
        let mut restarted = Audit::new();
        for (number, random) in (0..).zip(randoms(seed, count)) {
            if number == cut {
                restarted = Audit::load(&restarted.save()).unwrap();
            }
            let (key, verdict) = event(random);
            whole.observe_one(key, verdict);
            restarted.observe_one(key, verdict);
        }
        prop_assert_eq!(whole.counts(), restarted.counts());
        prop_assert!(whole.save() == restarted.save());
    }

    #[test]
    fn estimates_of_windows_go_on(
        seed: u64,
        count in 0u64..100_000,
        cut in 0u64..100_000,
        renews: bool,
        second: bool,
    ) {
        let audit = || {
            let audit = WindowAudit::new(Window::new(5000, 1000), renews)
                .with_miss_age(MissAge::new(2000.0, AgeOrigin::LastSeen));
            if second { audit.also_within(Window::new(300, 60)) } else { audit }
        };
        let (mut whole, mut restarted) = (audit(), audit());
        for (number, random) in (0..).zip(randoms(seed, count)) {
            if number == cut {
                restarted = WindowAudit::load(&restarted.save()).unwrap();
            }
            let (key, verdict) = event(random);
            let moment = || Moment { tick: number / 3, number };
            whole.observe(key, moment, verdict);
            restarted.observe(key, moment, verdict);
        }
        prop_assert_eq!(whole.counts(), restarted.counts());
        prop_assert_eq!(whole.miss_age_ticks(), restarted.miss_age_ticks());
        prop_assert_eq!(whole.busiest_window_keys(), restarted.busiest_window_keys());
        prop_assert!(whole.save() == restarted.save());
    }
}

#[test]
fn bytes_that_are_cut_or_too_many_are_no_audit() {
    let mut audit = WindowAudit::new(Window::new(50, 10), false);
    for (number, random) in (0..).zip(randoms(1, 200)) {
        let (key, verdict) = event(random);
        audit.observe(
            key,
            || Moment {
                tick: number,
                number,
            },
            verdict,
        );
    }
    let mut bytes = audit.save();
    for length in (0..bytes.len()).step_by(bytes.len() / 100 + 1) {
        assert!(WindowAudit::load(&bytes[..length]).is_none(), "{length}");
    }
    bytes.push(0);
    assert!(WindowAudit::load(&bytes).is_none());
}
