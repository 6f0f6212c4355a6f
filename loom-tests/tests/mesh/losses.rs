//! A filter that panics in a node: an error at both nodes, or unknown keys with a policy.

use std::panic::{AssertUnwindSafe, catch_unwind};

use echoless::{ExchangeError, KeyHash, LossPolicy, Verdicts};
use echoless_loom::{Exact, PANICS, Preemptions, Sometimes, check, duplicates, unknown};
use loom::thread;

use super::{HIGH, LOW, two_nodes, two_nodes_with};

/// The first node goes on to be used after its caller caught the panic of its filter.
#[test]
fn mesh_caught_panic_is_error() {
    static APPLIED: Sometimes = Sometimes::new();
    static UNKNOWN: Sometimes = Sometimes::new();
    check("mesh_caught_panic_is_error", Preemptions::AtMost(2), || {
        let (mut first, mut second) = two_nodes();
        let lost = ExchangeError::Panicked(0);
        let peer = thread::spawn(move || {
            let mut verdicts = Verdicts::new();
            let answer = second.observe(1, &[LOW, HIGH], &mut verdicts);
            assert_eq!(answer, Err(lost));
            assert!(verdicts.is_empty());
            assert_eq!(second.submit(2, &[HIGH]), Err(lost));
            let applied = second.take_partial(&mut verdicts) && {
                assert!(verdicts.is_unknown(0));
                !verdicts.is_unknown(1)
            };
            if applied {
                // After batch 0, or not at all.
                assert!(verdicts.is_duplicate(1));
            }
            APPLIED.note(applied);
            UNKNOWN.note(!applied);
            second
        });
        let mut verdicts = Verdicts::new();
        let observed = catch_unwind(AssertUnwindSafe(|| {
            first.observe(0, &[PANICS, HIGH], &mut verdicts)
        }));
        assert!(observed.unwrap_err().is::<KeyHash>());
        assert_eq!(first.poll(&mut verdicts), Err(lost));
        assert_eq!(first.serve_until(|| false), Err(lost));
        assert!(first.take_partial(&mut verdicts));
        assert!(verdicts.is_unknown(0));
        let second = peer.join().unwrap();
        assert!(first.into_filter().is_none());
        assert!(second.into_filter().is_some());
    });
    APPLIED.assert();
    UNKNOWN.assert();
}

/// The first node loses its filter and gets a new one, while its peer submits the next batch.
#[test]
fn mesh_goes_on_without_a_filter() {
    static KNOWN: Sometimes = Sometimes::new();
    static UNKNOWN: Sometimes = Sometimes::new();
    check(
        "mesh_goes_on_without_a_filter",
        Preemptions::AtMost(1),
        || {
            let (mut first, mut second) = two_nodes_with(LossPolicy::AsFresh);
            let peer = thread::spawn(move || {
                let mut verdicts = Verdicts::new();
                second.observe(1, &[LOW, HIGH], &mut verdicts).unwrap();
                assert_eq!(duplicates(&verdicts), [false, true]);
                assert!(!verdicts.is_unknown(1));
                second.finish().unwrap();
                verdicts.is_unknown(0)
            });
            let mut verdicts = Verdicts::new();
            first.observe(0, &[PANICS, HIGH], &mut verdicts).unwrap();
            assert_eq!(duplicates(&verdicts), [false, false]);
            assert_eq!(unknown(&verdicts), [true, false]);
            first.replace(Exact::default()).unwrap();
            let low = first.finish().unwrap();
            let unknown = peer.join().unwrap();
            assert_eq!(low.0.contains(&LOW), !unknown);
            KNOWN.note(!unknown);
            UNKNOWN.note(unknown);
        },
    );
    KNOWN.assert();
    UNKNOWN.assert();
}
