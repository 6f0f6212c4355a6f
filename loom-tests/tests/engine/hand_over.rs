//! Batches go to the workers, and their verdicts come back: of one port and several, in one message
//! and several.

use std::sync::Arc;

use echoless::transport::Wait;
use echoless::{Engine, KeyHash, Port, Verdicts};
use echoless_loom::{Exact, Preemptions, Sometimes, check, duplicates, expected};
use loom::thread;

use super::{A, B, HIGH, held, start};

fn hand_over(
    property: &str,
    workers: usize,
    preemptions: Preemptions,
    batches: &'static [&[KeyHash]],
    shut_down: bool,
) {
    check(property, preemptions, move || {
        let (engine, mut ports) = start(workers, 1);
        let mut port = ports.remove(0);
        let mut verdicts = Verdicts::new();
        let mut answers = Vec::new();
        for batch in batches {
            port.submit(batch).unwrap();
        }
        while port.drain(&mut verdicts).unwrap() {
            answers.push(duplicates(&verdicts));
        }
        assert_eq!(answers, expected(batches));
        assert_eq!(port.in_flight(), 0);
        drop(port);
        if !shut_down {
            return;
        }
        let mut keys = batches.concat();
        keys.sort();
        keys.dedup();
        assert_eq!(held(engine.shutdown().unwrap()), keys);
    });
}

/// The verdicts equal those of a set, no batch stays in flight, the filter is returned whole (1
/// worker, 1 slot, 2 batches).
#[test]
fn port_and_server_hand_over() {
    hand_over(
        "port_and_server_hand_over",
        1,
        Preemptions::AtMost(2),
        &[&[A, B], &[B]],
        true,
    );
}

/// As `port_and_server_hand_over`, with keys of two partitions in a batch (2 workers, 1 slot; 2
/// batches, then 1 batch and the engine dropped).
#[test]
fn port_and_two_servers_hand_over() {
    hand_over(
        "port_and_two_servers_hand_over, 2 batches",
        2,
        Preemptions::AtMost(0),
        &[&[A, HIGH, A], &[HIGH]],
        true,
    );
    // Drops the engine: joining its workers as well makes the model too large for loom.
    hand_over(
        "port_and_two_servers_hand_over, 1 batch",
        2,
        Preemptions::AtMost(1),
        &[&[A, HIGH]],
        false,
    );
}

/// More keys than fit in a message (two under loom) and room for one message: the port wakes the
/// server before it blocks for room.
#[test]
fn batch_of_two_messages() {
    hand_over(
        "batch_of_two_messages",
        1,
        Preemptions::AtMost(2),
        &[&[A, B, A]],
        false,
    );
}

/// Two messages in a ring with room for both: the worker may take the first while the second is
/// published, and must apply that, too.
#[test]
fn second_message_is_noticed() {
    check("second_message_is_noticed", Preemptions::AtMost(2), || {
        let (_engine, mut ports) = Engine::builder(Exact::partitions(1))
            .ring_depth(2)
            .wait(Wait::Shared)
            .build()
            .expect("loom starts threads");
        let mut verdicts = Verdicts::new();
        ports[0].submit(&[A]).unwrap();
        ports[0].submit(&[A]).unwrap();
        for duplicate in [false, true] {
            assert_eq!(ports[0].drain(&mut verdicts), Ok(true));
            assert_eq!(duplicates(&verdicts), [duplicate]);
        }
    });
}

/// A pass counts its keys before its duplicates, and both before its answers.
#[test]
fn counts_of_a_running_engine() {
    let between = Arc::new(Sometimes::new());
    let noted = Arc::clone(&between);
    let property = "counts_of_a_running_engine";
    check(property, Preemptions::AtMost(2), move || {
        let (engine, mut ports) = start(1, 1);
        let mut port = ports.remove(0);
        port.submit(&[A, A]).unwrap();
        let early = engine.counts();
        assert!(early.duplicates <= early.judged, "{early:?}");
        noted.note((early.judged, early.duplicates) == (2, 0));
        assert_eq!(port.drain(&mut Verdicts::new()), Ok(true));
        let counts = engine.counts();
        assert_eq!((counts.judged, counts.duplicates), (2, 1));
    });
    between.assert();
}

/// Of two ports that submit one key, exactly one gets Fresh (1 worker, 2 ports).
#[test]
fn ports_one_fresh() {
    static FIRST: Sometimes = Sometimes::new();
    static SECOND: Sometimes = Sometimes::new();
    fn observe(mut port: Port) -> bool {
        let mut verdicts = Verdicts::new();
        port.observe(&[A], &mut verdicts).unwrap();
        !verdicts.is_duplicate(0)
    }
    check("ports_one_fresh", Preemptions::AtMost(1), || {
        let (engine, mut ports) = start(1, 2);
        let (second, first) = (ports.remove(1), ports.remove(0));
        let peer = thread::spawn(move || observe(second));
        let fresh = observe(first);
        assert_ne!(fresh, peer.join().unwrap(), "exactly one port gets Fresh");
        assert_eq!(held(engine.shutdown().unwrap()), [A]);
        FIRST.note(fresh);
        SECOND.note(!fresh);
    });
    FIRST.assert();
    SECOND.assert();
}
