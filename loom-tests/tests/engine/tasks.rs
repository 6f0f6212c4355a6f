//! Ports in tasks: a task is woken for room, for verdicts and by the end of the engine.

use std::future::poll_fn;

use echoless::{KeyHash, Verdicts};
use echoless_loom::{Preemptions, Sometimes, check, duplicates, expected};
use loom::thread;

use super::{A, B, start};

/// As `batch_of_two_messages`, in a task: what has no room is sent when the port is polled.
#[test]
fn task_and_server_hand_over() {
    check("task_and_server_hand_over", Preemptions::AtMost(2), || {
        let (engine, mut ports) = start(1, 1);
        let mut port = ports.remove(0);
        let mut verdicts = Verdicts::new();
        let mut answers = Vec::new();
        let batches: [&[KeyHash]; 2] = [&[A, B, A], &[B]];
        loom::future::block_on(async {
            for batch in batches {
                poll_fn(|context| port.poll_ready(context)).await.unwrap();
                assert_eq!(port.try_submit(batch), Ok(true));
            }
            while poll_fn(|context| port.poll_drain(context, &mut verdicts))
                .await
                .unwrap()
            {
                answers.push(duplicates(&verdicts));
            }
        });
        assert_eq!(answers, expected(&batches));
        drop(port);
        drop(engine);
    });
}

/// Room that messages without keys leave is only hinted, and a task waits for that, too.
#[test]
fn task_waits_for_hinted_room() {
    check("task_waits_for_hinted_room", Preemptions::AtMost(2), || {
        let (engine, mut ports) = start(1, 1);
        let port = &mut ports[0];
        let mut verdicts = Verdicts::new();
        for tick in 1..=3 {
            assert_eq!(port.try_submit_at(tick, &[]), Ok(true));
            loom::future::block_on(poll_fn(|context| port.poll_ready(context))).unwrap();
            assert_eq!(port.poll(&mut verdicts), Ok(true));
        }
        drop(ports);
        drop(engine);
    });
}

/// A task that waits for verdicts is woken by the end of the engine.
#[test]
fn task_and_shutdown() {
    static JUDGED: Sometimes = Sometimes::new();
    static LOST: Sometimes = Sometimes::new();
    check("task_and_shutdown", Preemptions::AtMost(2), || {
        let (engine, mut ports) = start(1, 1);
        let mut port = ports.remove(0);
        let waiting = thread::spawn(move || {
            let mut verdicts = Verdicts::new();
            let submitted = port.try_submit(&[A, B, A]);
            let drained =
                loom::future::block_on(poll_fn(|context| port.poll_drain(context, &mut verdicts)));
            match (submitted, drained) {
                (Ok(true), Ok(true)) => {
                    assert_eq!(duplicates(&verdicts), [false, false, true]);
                    true
                }
                (Ok(true) | Err(_), Err(_)) => false,
                outcome => panic!("{outcome:?}"),
            }
        });
        engine.shutdown().unwrap();
        let judged = waiting.join().unwrap();
        JUDGED.note(judged);
        LOST.note(!judged);
    });
    JUDGED.assert();
    LOST.assert();
}
