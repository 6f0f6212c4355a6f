//! Tests of the [order of the chunks](super::chunk_order) on one thread. They are no part of that
//! file, which the model checks include.

use echoless::transport::Parker;

use super::chunk_order::ChunkOrder;

const MOST_BYTES: usize = 100;

/// The order of the chunks of workers that have begun.
fn chunk_order(workers: usize) -> ChunkOrder {
    let order = ChunkOrder::new(MOST_BYTES, (0..workers).map(|_| Parker::new().doorbell()));
    for _ in 0..workers {
        assert!(!order.try_fill());
        order.begin();
    }
    order
}

/// The workers that are busy or called.
fn called(order: &ChunkOrder, workers: usize) -> Vec<usize> {
    (0..workers)
        .filter(|worker| order.is_called(*worker))
        .collect()
}

/// Worker 0 has the turn, and the others are idle.
fn filling(workers: usize) -> ChunkOrder {
    let order = chunk_order(workers);
    assert!(order.try_fill());
    for worker in 1..workers {
        assert!(!order.try_fill());
        assert!(order.become_idle(worker, false));
    }
    order
}

#[test]
fn the_turn_passes_to_the_worker_that_became_idle_last() {
    let order = filling(3);
    assert_eq!(called(&order, 3), [0]);
    assert_eq!(order.pass_on(0, 1), 0);
    assert_eq!(called(&order, 3), [0, 2]);
    // A busy worker takes the turn of the called one, which finds nothing to do.
    assert!(order.try_fill());
    assert!(!order.try_fill() && !order.seems_free());
    assert!(order.become_idle(2, false));
    assert_eq!(called(&order, 3), [0]);
    assert_eq!(order.pass_on(0, 1), 1);
    assert_eq!(called(&order, 3), [0, 2]);
}

#[test]
fn a_worker_does_not_become_idle_while_it_can_fill() {
    let order = chunk_order(2);
    assert!(!order.become_idle(1, false));
    // It has just found no data: but no chunk is under way, so no other worker would.
    assert!(!order.become_idle(1, true));
    assert!(order.try_fill());
    assert_eq!(order.pass_on(0, 1), 0);
    assert!(!order.become_idle(1, false));
    // Now worker 0 is: it tries again once it has delivered its chunk.
    assert!(order.become_idle(1, true));
}

#[test]
fn only_a_worker_that_is_alone_waits_for_data() {
    let order = filling(2);
    assert!(order.is_alone() && !order.give_back());
    assert_eq!(order.pass_on(0, 1), 0);
    assert!(order.try_fill());
    assert!(!order.is_alone() && order.give_back());
    assert!(order.seems_free() && order.try_fill());
    order.set_delivered();
    assert!(order.is_alone() && !order.give_back());
}

#[test]
fn nothing_is_filled_while_too_much_is_under_way() {
    let order = filling(2);
    assert_eq!(order.pass_on(0, MOST_BYTES), 0);
    assert_eq!(called(&order, 2), [0, 1]);
    assert!(order.try_fill());
    // One byte too many: no worker is called.
    assert!(order.become_idle(1, false));
    assert_eq!(order.pass_on(0, 1), 1);
    assert_eq!(called(&order, 2), [0]);
    assert!(!order.seems_free() && !order.try_fill());
    order.set_delivered();
    assert!(order.seems_free() && order.try_fill());
    assert!(order.give_back());
    // The chunk was longer than expected.
    order.correct_bytes(1, MOST_BYTES + 1);
    assert!(!order.seems_free() && !order.try_fill());
    // However long it was, the next one can be filled once nothing is under way.
    order.set_delivered();
    assert!(order.try_fill());
    assert_eq!(order.pass_on(0, MOST_BYTES), 2);
    assert!(order.try_fill());
}

#[test]
fn chunks_are_delivered_in_the_order_in_which_they_were_filled() {
    let order = chunk_order(2);
    for number in 0..2 {
        assert!(order.try_fill());
        assert_eq!(order.pass_on(number, 1), number as u64);
    }
    assert!(order.is_next(0) && !order.is_next(1));
    order.set_delivered();
    assert!(order.is_next(1));
    // Numbers go on over what is delivered.
    assert!(order.try_fill());
    assert_eq!(order.pass_on(0, 1), 2);
    order.set_delivered();
    order.set_delivered();
    assert!(order.is_next(3));
}

#[test]
fn the_end_and_a_stop_call_all() {
    for (end, stops) in [
        (ChunkOrder::end as fn(&ChunkOrder), false),
        (ChunkOrder::stop, true),
    ] {
        let order = filling(3);
        end(&order);
        assert_eq!(called(&order, 3), [0, 1, 2]);
        assert!(order.is_over() && order.is_stopped() == stops);
        assert!(!order.try_fill() && !order.seems_free());
        // Nothing to wait for.
        assert!(order.become_idle(1, false) && order.is_called(1));
    }
}

#[test]
fn a_worker_that_leaves_ends_all() {
    let order = filling(3);
    assert_eq!(order.pass_on(0, 1), 0);
    assert!(!order.is_abandoned());
    order.abandon();
    assert_eq!(called(&order, 3), [0, 1, 2]);
    assert!(order.is_abandoned() && order.is_over() && order.is_stopped());
}

#[test]
fn a_worker_that_cannot_begin_stops_all() {
    let order = ChunkOrder::new(1, (0..2).map(|_| Parker::new().doorbell()));
    order.begin();
    assert!(order.become_idle(0, false) && !order.is_called(0));
    order.stop();
    assert!(order.is_called(0) && order.is_over());
}
