//! Tests of the [turns](super::turns), with threads and without. They are no part of that file,
//! which the model checks include.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use echoless::transport::{Parker, Wait};

use super::turns::Turns;

const MOST_BYTES: usize = 100;

/// The turns of workers that have begun.
fn turns(workers: usize) -> Turns {
    let turns = Turns::new(MOST_BYTES, (0..workers).map(|_| Parker::new().doorbell()));
    for _ in 0..workers {
        assert!(!turns.try_fill());
        turns.begin();
    }
    turns
}

/// The workers that are busy or called.
fn called(turns: &Turns, workers: usize) -> Vec<usize> {
    (0..workers)
        .filter(|worker| turns.is_called(*worker))
        .collect()
}

/// Worker 0 has the turn, and the others are idle.
fn filling(workers: usize) -> Turns {
    let turns = turns(workers);
    assert!(turns.try_fill());
    for worker in 1..workers {
        assert!(!turns.try_fill());
        assert!(turns.become_idle(worker, false));
    }
    turns
}

#[test]
fn the_turn_passes_to_the_worker_that_became_idle_last() {
    let turns = filling(3);
    assert_eq!(called(&turns, 3), [0]);
    assert_eq!(turns.pass_on(0, 1), 0);
    assert_eq!(called(&turns, 3), [0, 2]);
    // A busy worker takes the turn of the called one, which finds nothing to do.
    assert!(turns.try_fill());
    assert!(!turns.try_fill() && !turns.seems_free());
    assert!(turns.become_idle(2, false));
    assert_eq!(called(&turns, 3), [0]);
    assert_eq!(turns.pass_on(0, 1), 1);
    assert_eq!(called(&turns, 3), [0, 2]);
}

#[test]
fn a_worker_does_not_become_idle_while_it_can_fill() {
    let turns = turns(2);
    assert!(!turns.become_idle(1, false));
    // It has just found no data: but no chunk is under way, so no other worker would.
    assert!(!turns.become_idle(1, true));
    assert!(turns.try_fill());
    assert_eq!(turns.pass_on(0, 1), 0);
    assert!(!turns.become_idle(1, false));
    // Now worker 0 is: it tries again once it has delivered its chunk.
    assert!(turns.become_idle(1, true));
}

#[test]
fn only_a_worker_that_is_alone_waits_for_data() {
    let turns = filling(2);
    assert!(turns.is_alone() && !turns.give_back());
    assert_eq!(turns.pass_on(0, 1), 0);
    assert!(turns.try_fill());
    assert!(!turns.is_alone() && turns.give_back());
    assert!(turns.seems_free() && turns.try_fill());
    turns.set_delivered();
    assert!(turns.is_alone() && !turns.give_back());
}

#[test]
fn nothing_is_filled_while_too_much_is_under_way() {
    let turns = filling(2);
    assert_eq!(turns.pass_on(0, MOST_BYTES), 0);
    assert_eq!(called(&turns, 2), [0, 1]);
    assert!(turns.try_fill());
    // One byte too many: no worker is called.
    assert!(turns.become_idle(1, false));
    assert_eq!(turns.pass_on(0, 1), 1);
    assert_eq!(called(&turns, 2), [0]);
    assert!(!turns.seems_free() && !turns.try_fill());
    turns.set_delivered();
    assert!(turns.seems_free() && turns.try_fill());
    assert!(turns.give_back());
    // The chunk was longer than expected.
    turns.correct_bytes(1, MOST_BYTES + 1);
    assert!(!turns.seems_free() && !turns.try_fill());
    // However long it was, the next one can be filled once nothing is under way.
    turns.set_delivered();
    assert!(turns.try_fill());
    assert_eq!(turns.pass_on(0, MOST_BYTES), 2);
    assert!(turns.try_fill());
}

#[test]
fn chunks_are_delivered_in_the_order_in_which_they_were_filled() {
    let turns = turns(2);
    for number in 0..2 {
        assert!(turns.try_fill());
        assert_eq!(turns.pass_on(number, 1), number as u64);
    }
    assert!(turns.is_next(0) && !turns.is_next(1));
    turns.set_delivered();
    assert!(turns.is_next(1));
    // Numbers go on over what is delivered.
    assert!(turns.try_fill());
    assert_eq!(turns.pass_on(0, 1), 2);
    turns.set_delivered();
    turns.set_delivered();
    assert!(turns.is_next(3));
}

#[test]
fn the_end_and_a_stop_call_all() {
    for (end, stops) in [(Turns::end as fn(&Turns), false), (Turns::stop, true)] {
        let turns = filling(3);
        end(&turns);
        assert_eq!(called(&turns, 3), [0, 1, 2]);
        assert!(turns.is_over() && turns.is_stopped() == stops);
        assert!(!turns.try_fill() && !turns.seems_free());
        // Nothing to wait for.
        assert!(turns.become_idle(1, false) && turns.is_called(1));
    }
}

#[test]
fn a_worker_that_cannot_begin_stops_all() {
    let turns = Turns::new(1, (0..2).map(|_| Parker::new().doorbell()));
    turns.begin();
    assert!(turns.become_idle(0, false) && !turns.is_called(0));
    turns.stop();
    assert!(turns.is_called(0) && turns.is_over());
}

/// Workers that wait as those of a run do, with nothing but the turns to wake them: a wake-up
/// that is lost would end in a deadlock.
#[test]
fn every_chunk_is_delivered_once_and_in_order() {
    const CHUNKS: usize = 2000;
    for workers in [1, 2, 5] {
        let parkers: Vec<Parker> = (0..workers).map(|_| Parker::new()).collect();
        let turns = Turns::new(1, parkers.iter().map(Parker::doorbell));
        let (filled, delivered) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for (worker, mut parker) in parkers.into_iter().enumerate() {
                let (turns, filled, delivered) = (&turns, &filled, &delivered);
                scope.spawn(move || {
                    turns.begin();
                    let mut found_no_data = false;
                    loop {
                        if !found_no_data && turns.try_fill() {
                            // Relaxed: changed by the worker that has the turn.
                            let chunk = filled.load(Ordering::Relaxed);
                            // The data of every third chunk is late.
                            if chunk % 3 == 0 && turns.give_back() {
                                found_no_data = true;
                                continue;
                            }
                            if chunk == CHUNKS {
                                turns.end();
                                continue;
                            }
                            filled.store(chunk + 1, Ordering::Relaxed);
                            let number = turns.pass_on(worker, 1);
                            parker.wait_until(Wait::Shared, || turns.is_next(number));
                            delivered.lock().unwrap().push((number, chunk));
                            turns.set_delivered();
                        } else if turns.is_over() {
                            break;
                        } else if turns.become_idle(worker, found_no_data) {
                            parker.wait_until(Wait::Shared, || turns.is_called(worker));
                        }
                        found_no_data = false;
                    }
                });
            }
        });
        let expected: Vec<(u64, usize)> = (0..CHUNKS).map(|chunk| (chunk as u64, chunk)).collect();
        assert_eq!(delivered.into_inner().unwrap(), expected);
    }
}
