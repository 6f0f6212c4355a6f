//! An ordered filter: batches apply in the order of their tickets at every partition.

#![cfg(loom)]

use echoless::state::StateReader;
use echoless::transport::Wait;
use echoless::{
    ExchangeError, Filter, FilterSpec, KeyHash, KeyHasher, LineFilter, LossPolicy, OrderedFilter,
    OrderedHandle, Partitioned, Ticket, Verdicts,
};
use echoless_loom::{
    Exact, PANICS, Preemptions, Sometimes, check, duplicates, expected, key, unknown,
};
use loom::sync::{Arc, Mutex};
use loom::thread;

const LOW: KeyHash = key(0, 1);
const LOWER: KeyHash = key(0, 2);
const HIGH: KeyHash = key(1, 1);

/// A filter of two partitions, one line each.
fn ordered() -> OrderedFilter<Exact> {
    OrderedFilter::builder(Exact::partitions(2))
        .on_loss(LossPolicy::Error)
        .wait(Wait::Shared)
        .build()
}

fn observe(mut handle: OrderedHandle<Exact>, batch: &[KeyHash]) -> Vec<bool> {
    let mut verdicts = Verdicts::new();
    handle.observe(batch, &mut verdicts).unwrap();
    duplicates(&verdicts)
}

/// The number of keys in each partition.
fn held(halves: &Partitioned<Exact>) -> Vec<usize> {
    let filters = halves.filters().iter();
    filters.map(|half| half.0.len()).collect()
}

/// Observes one new key with the first ticket.
fn observe_first(ticket: Ticket<'_, Exact>, key: KeyHash) {
    let mut verdicts = Verdicts::new();
    ticket.observe(&[key], &mut verdicts).unwrap();
    assert_eq!(duplicates(&verdicts), [false]);
}

/// Checks what a second thread observes while this one has the first ticket and uses it up.
fn check_behind_a_ticket(
    property: &str,
    preemptions: usize,
    first: impl Fn(Ticket<'_, Exact>) + Send + Sync + 'static,
    second: fn(OrderedHandle<Exact>) -> Vec<bool>,
    expected: [bool; 2],
) {
    check(property, Preemptions::AtMost(preemptions), move || {
        let filter = ordered();
        let mut handle = filter.handle();
        let ticket = handle.ticket();
        let behind = filter.handle();
        let peer = thread::spawn(move || second(behind));
        first(ticket);
        assert_eq!(peer.join().unwrap(), expected);
    });
}

/// The tickets have a known order, so the verdicts are known, however the threads run. A wake-up
/// that is lost is a deadlock. Batches have the keys of the partitions in another order than they
/// pass them, and more keys of one than a message has.
#[test]
fn ordered_by_tickets() {
    const BATCHES: [&[KeyHash]; 3] = [&[HIGH, LOW], &[LOW, HIGH, LOWER, LOW], &[LOWER, HIGH]];
    check("ordered_by_tickets", Preemptions::AtMost(6), || {
        let filter = ordered();
        let mut first = filter.handle();
        let ticket = first.ticket();
        let second = filter.handle();
        let peer = thread::spawn(move || observe(second, BATCHES[1]));
        let mut verdicts = Verdicts::new();
        ticket.observe(BATCHES[0], &mut verdicts).unwrap();
        let mut answers = vec![duplicates(&verdicts), peer.join().unwrap()];
        answers.push(observe(first, BATCHES[2]));
        assert_eq!(answers, *expected(&BATCHES));
        let halves = filter.shutdown().unwrap();
        assert_eq!(held(&halves), [2, 1]);
    });
}

/// Two threads wait for a third, each with a ticket of its own: a turn that ends wakes the thread
/// that is next, while the other one may be parked at another partition or not waiting yet.
#[test]
fn ordered_three_threads() {
    check("ordered_three_threads", Preemptions::AtMost(2), || {
        let filter = ordered();
        let mut first = filter.handle();
        let ticket = first.ticket();
        let peers = [filter.handle(), filter.handle()]
            .map(|handle| thread::spawn(move || observe(handle, &[LOW, HIGH])));
        observe_first(ticket, HIGH);
        let answers = peers.map(|peer| peer.join().unwrap());
        // HIGH came first, and one of the two came first with LOW.
        let fresh = answers.iter().filter(|answer| !answer[0]).count();
        assert_eq!(fresh, 1);
        assert!(answers.iter().all(|answer| answer[1]));
    });
}

/// Two threads race for the lower ticket. The one that gets it is first at both partitions.
#[test]
fn ordered_alike_at_all_partitions() {
    static FIRST: Sometimes = Sometimes::new();
    static SECOND: Sometimes = Sometimes::new();
    check(
        "ordered_alike_at_all_partitions",
        Preemptions::AtMost(5),
        || {
            let filter = ordered();
            let (first, second) = (filter.handle(), filter.handle());
            let peer = thread::spawn(move || observe(second, &[LOW, HIGH]));
            let answer = observe(first, &[HIGH, LOW]);
            let fresh = answer == [false, false];
            assert_eq!(peer.join().unwrap(), [fresh, fresh]);
            assert!(fresh || answer == [true, true]);
            FIRST.note(fresh);
            SECOND.note(!fresh);
        },
    );
    FIRST.assert();
    SECOND.assert();
}

/// A ticket that has looked up keeps its turns: nothing of the thread that waits behind it comes in
/// between, and that thread goes on once the ticket is used or dropped.
#[test]
fn ordered_looked_up_before() {
    for dropped in [false, true] {
        let look_up = move |mut ticket: Ticket<'_, Exact>| {
            let mut verdicts = Verdicts::new();
            ticket.contains_each(&[HIGH, LOW], &mut verdicts).unwrap();
            assert_eq!(duplicates(&verdicts), [false, false]);
            if !dropped {
                observe_first(ticket, HIGH);
            }
        };
        let second = |handle| observe(handle, &[LOW, HIGH]);
        check_behind_a_ticket(
            "ordered_looked_up_before",
            4,
            look_up,
            second,
            [false, !dropped],
        );
    }
}

/// A ticket that is dropped lets the thread that waits behind it go on, whether it is parked, about
/// to park, or has no ticket yet.
#[test]
fn ordered_without_a_dropped_ticket() {
    let second = |handle| observe(handle, &[LOW, HIGH]);
    check_behind_a_ticket(
        "ordered_without_a_dropped_ticket",
        6,
        |ticket| drop(ticket),
        second,
        [false, false],
    );
}

/// A ticket is dropped while the turn of the one before it ends: one of the two threads leaves it
/// out, at each partition, and the ticket behind it is next.
#[test]
fn ordered_dropped_while_a_turn_ends() {
    check_behind_a_ticket(
        "ordered_dropped_while_a_turn_ends",
        5,
        |ticket| observe_first(ticket, LOW),
        |mut handle| {
            drop(handle.ticket());
            observe(handle, &[LOW, HIGH])
        },
        [true, false],
    );
}

/// Two tickets in a row are dropped while the turn of the one before them ends: whichever thread
/// settles the queue leaves out both, and the ticket behind them is next.
#[test]
fn ordered_two_dropped_in_a_row() {
    check_behind_a_ticket(
        "ordered_two_dropped_in_a_row",
        4,
        |ticket| observe_first(ticket, LOW),
        |mut handle| {
            drop(handle.ticket());
            drop(handle.ticket());
            observe(handle, &[LOW, HIGH])
        },
        [true, false],
    );
}

/// The filter of a partition panics in the turn of one thread, while another one waits for its
/// turn: the panic ends the turn, all keys of other partitions have verdicts, and the waiting
/// thread finds the partition lost, or restored.
#[test]
fn ordered_loss_and_replacement() {
    static LOST: Sometimes = Sometimes::new();
    static RESTORED: Sometimes = Sometimes::new();
    check(
        "ordered_loss_and_replacement",
        Preemptions::AtMost(5),
        || {
            let filter = Arc::new(ordered());
            let mut first = filter.handle();
            let ticket = first.ticket();
            let mut second = filter.handle();
            let peer = thread::spawn(move || {
                let mut verdicts = Verdicts::new();
                let observed = second.observe(&[LOW, HIGH], &mut verdicts);
                if observed.is_err() {
                    assert_eq!(observed, Err(ExchangeError::Panicked(0)));
                    assert!(second.take_partial(&mut verdicts));
                }
                assert_eq!(unknown(&verdicts), [observed.is_err(), false]);
                // HIGH was in the batch before.
                assert_eq!(duplicates(&verdicts), [false, true]);
                observed.is_ok()
            });
            let mut verdicts = Verdicts::new();
            let lost = ticket.observe(&[HIGH, PANICS], &mut verdicts);
            assert_eq!(lost, Err(ExchangeError::Panicked(0)));
            assert!(first.take_partial(&mut verdicts));
            assert_eq!(unknown(&verdicts), [false, true]);
            filter.replace(0, Exact::default()).unwrap();
            let restored = peer.join().unwrap();
            LOST.note(!restored);
            RESTORED.note(restored);
            assert_eq!(observe(first, &[LOW, HIGH]), [restored, true]);
        },
    );
    LOST.assert();
    RESTORED.assert();
}

/// A batch that races with the shutdown is judged by all partitions or by none: the shutdown has a
/// ticket as well.
#[test]
fn ordered_shutdown_vs_observe() {
    static JUDGED: Sometimes = Sometimes::new();
    static REJECTED: Sometimes = Sometimes::new();
    check(
        "ordered_shutdown_vs_observe",
        Preemptions::AtMost(5),
        || {
            let filter = ordered();
            let mut handle = filter.handle();
            let peer = thread::spawn(move || {
                let mut verdicts = Verdicts::new();
                handle.observe(&[LOW, HIGH], &mut verdicts)
            });
            let halves = filter.shutdown().unwrap();
            let held = held(&halves);
            match peer.join().unwrap() {
                Ok(()) => assert_eq!(held, [1, 1]),
                Err(error) => {
                    assert_eq!(error, ExchangeError::Disconnected(0));
                    assert_eq!(held, [0, 0]);
                }
            }
            JUDGED.note(held == [1, 1]);
            REJECTED.note(held == [0, 0]);
        },
    );
    JUDGED.assert();
    REJECTED.assert();
}

/// A filter is saved while another thread observes two batches: the state is that of the batches
/// before the cut, wherever they come between the copies of the two partitions.
///
/// Catches a recorder that begins in a later turn than that of the copy: keys of the turns between
/// them are lost.
#[test]
fn ordered_saved_while_observing() {
    const BATCHES: [&[KeyHash]; 2] = [&[HIGH, LOW], &[LOWER, HIGH]];
    static NONE: Sometimes = Sometimes::new();
    static ONE: Sometimes = Sometimes::new();
    static BOTH: Sometimes = Sometimes::new();
    check(
        "ordered_saved_while_observing",
        Preemptions::AtMost(2),
        || {
            let spec: FilterSpec = "qqht:slots=8,bits=64,form=line,memory=128B"
                .parse()
                .unwrap();
            let hasher = KeyHasher::seeded(0);
            let filter = OrderedFilter::builder(spec.build_line_partitions(2).unwrap())
                .wait(Wait::Shared)
                .saver_rest(0)
                .build();
            // The number of batches with a ticket.
            let input = Arc::new(Mutex::new(0));
            let (mut handle, shared) = (filter.handle(), Arc::clone(&input));
            let peer = thread::spawn(move || {
                for batch in BATCHES {
                    let mut taken = shared.lock().unwrap();
                    *taken += 1;
                    let ticket = handle.ticket();
                    drop(taken);
                    ticket.observe(batch, &mut Verdicts::new()).unwrap();
                }
            });
            let mut file = Vec::new();
            let saved = filter.save(&spec, &hasher, &mut file, |saver| {
                let taken = input.lock().unwrap();
                Ok((saver.ticket(), vec![*taken]))
            });
            saved.unwrap();
            peer.join().unwrap();
            let restored = StateReader::open(&file[..]).unwrap().restore().unwrap();
            let before = restored.bytes[0];
            let mut expected = spec.build_lines().unwrap();
            for batch in &BATCHES[..before.into()] {
                expected.observe(batch, &mut Verdicts::new());
            }
            assert_eq!(restored.filter.lines(), expected.lines());
            assert_eq!(restored.progress, expected.progress());
            NONE.note(before == 0);
            ONE.note(before == 1);
            BOTH.note(before == 2);
        },
    );
    NONE.assert();
    ONE.assert();
    BOTH.assert();
}
