//! What is asked of an engine or an ordered filter in use: reports, lookups, waits with a time-out,
//! and a second shutdown.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use echoless::{
    Engine, ExchangeError, FilterSpec, KeyHash, LineFilter, LossPolicy, NotReplaceable,
    OrderedFilter, Report, Verdicts,
};
use proptest::prelude::*;

use crate::breakable::Exact;

/// A report without what depends on the machine.
fn comparable(mut report: Report) -> Report {
    report.look_ahead = None;
    report
}

fn specs() -> impl Strategy<Value = FilterSpec> {
    prop::sample::select(vec![
        "fingerprint:fpr=1e-8,memory=16KiB",
        "dense:memory=64KiB",
        "stamped:window=300,refresh=false,memory=16KiB",
    ])
    .prop_map(|text: &str| text.parse().unwrap())
}

/// What a port does with some keys.
#[derive(Debug, Clone, Copy)]
enum Call {
    Observe,
    LookUp,
    Report,
}

fn calls() -> impl Strategy<Value = Vec<(Call, Vec<KeyHash>)>> {
    let call = prop::sample::select(vec![Call::Observe, Call::LookUp, Call::Report]);
    let key =
        (0_u64..500).prop_map(|key| KeyHash::from_uniform(KeyHash::from_uniform(key).remix(0)));
    prop::collection::vec((call, prop::collection::vec(key, 0..200)), 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Lookups and reports between the batches of a port are those of the undivided filter, also
    /// while another port looks up.
    #[test]
    fn an_engine_in_use_answers_as_the_undivided_filter(
        spec in specs(), calls in calls(), parts in 1_usize..5,
    ) {
        let parts = parts.min(spec.most_partitions() as usize);
        let mut whole = spec.build_lines().unwrap();
        let halves = spec.build_line_partitions(parts).unwrap();
        let (engine, mut ports) = Engine::builder(halves).ports(2).build().unwrap();
        let mut other = ports.pop().unwrap();
        let port = &mut ports[0];
        let (mut verdicts, mut expected) = (Verdicts::new(), Verdicts::new());
        thread::scope(|scope| {
            let keys = [KeyHash::from_uniform(0), KeyHash::from_uniform(u64::MAX)];
            scope.spawn(move || {
                for _ in 0..20 {
                    other.contains_each(&keys, &mut Verdicts::new()).unwrap();
                }
            });
            for (call, keys) in &calls {
                match call {
                    Call::Observe => {
                        whole.observe(keys, &mut expected);
                        port.observe(keys, &mut verdicts).unwrap();
                    }
                    Call::LookUp => {
                        whole.contains_each(keys, &mut expected);
                        port.contains_each(keys, &mut verdicts).unwrap();
                    }
                    Call::Report => {
                        let report = comparable(engine.report().unwrap());
                        assert_eq!(report, comparable(whole.report()));
                        continue;
                    }
                }
                assert_eq!(verdicts.to_bools(), expected.to_bools());
            }
        });
        prop_assert_eq!(Some(engine.counts().judged), whole.report().tally.observed);
    }
}

fn small() -> FilterSpec {
    "fingerprint:fpr=1e-8,memory=16KiB".parse().unwrap()
}

const LOW: KeyHash = KeyHash::from_uniform(1);
const HIGH: KeyHash = KeyHash::from_uniform(u64::MAX - 1);

#[test]
fn reports_and_lookups_of_lost_partitions_are_errors() {
    for policy in [LossPolicy::Error, LossPolicy::AsDuplicate] {
        let (engine, mut ports) = Engine::builder(Exact::partitions(2, Some(1)))
            .on_loss(policy)
            .build()
            .unwrap();
        let mut verdicts = Verdicts::new();
        ports[0].observe(&[LOW, HIGH], &mut verdicts).unwrap();
        assert!(engine.report().is_ok());
        let observed = ports[0].observe(&[HIGH], &mut verdicts);
        assert_eq!(observed.is_err(), policy == LossPolicy::Error);
        ports[0].take_partial(&mut verdicts);
        assert_eq!(engine.report(), Err(ExchangeError::Panicked(1)));
        let found = ports[0].contains_each(&[HIGH, LOW], &mut verdicts);
        if policy == LossPolicy::Error {
            assert_eq!(found, Err(ExchangeError::Panicked(1)));
        } else {
            assert_eq!(verdicts.to_bools(), [true, true]);
            assert!(verdicts.is_unknown(0) && !verdicts.is_unknown(1));
        }
        engine.replace(1, Exact::default()).unwrap();
        assert!(engine.report().is_ok());
        ports[0].contains_each(&[HIGH, LOW], &mut verdicts).unwrap();
        assert_eq!(verdicts.to_bools(), [false, true]);
    }
}

#[test]
fn a_second_shutdown_is_an_error() {
    let (engine, mut ports) = Engine::builder(Exact::partitions(2, None)).build().unwrap();
    let ordered = OrderedFilter::builder(Exact::partitions(2, None)).build();
    let mut handle = ordered.handle();
    assert_eq!(engine.shutdown().unwrap().filters().len(), 2);
    assert_eq!(ordered.shutdown().unwrap().filters().len(), 2);
    for error in [engine.shutdown(), ordered.shutdown()].map(|again| again.err().unwrap()) {
        assert!(error.repeated && error.lost.is_empty() && error.survivors.is_empty());
        assert_eq!(error.to_string(), "it was shut down before");
    }
    assert_eq!(engine.report(), Err(ExchangeError::Disconnected(0)));
    let (gone, mut verdicts) = (Err(ExchangeError::Disconnected(0)), Verdicts::new());
    assert_eq!(ports[0].contains_each(&[LOW], &mut verdicts), gone);
    assert_eq!(handle.ticket().wait(Duration::ZERO), Ok(()));
    assert_eq!(handle.observe(&[LOW], &mut verdicts), gone);
}

/// A filter for a partition that has no owner any more comes back to the caller.
#[test]
fn a_partition_is_not_replaced_after_the_shutdown() {
    let (engine, mut ports) = Engine::builder(Exact::partitions(2, Some(0)))
        .build()
        .unwrap();
    let ordered = OrderedFilter::builder(Exact::partitions(2, Some(0))).build();
    let mut verdicts = Verdicts::new();
    ports[0].observe(&[LOW], &mut verdicts).unwrap_err();
    ordered.handle().observe(&[LOW], &mut verdicts).unwrap_err();
    assert_eq!(engine.shutdown().err().unwrap().lost[0].0, 0);
    assert_eq!(ordered.shutdown().err().unwrap().lost[0].0, 0);
    let rejected = engine.replace(0, Exact::default()).err().unwrap();
    assert_eq!(rejected.reason, NotReplaceable::Ended);
    let rejected = ordered.replace(0, Exact::default()).err().unwrap();
    assert_eq!(rejected.reason, NotReplaceable::Ended);
    assert_eq!(engine.lost().len(), 1);
}

/// Of threads that shut one filter down, one gets all partitions.
#[test]
fn one_of_many_shutdowns_has_the_filter() {
    let (engine, _ports) = Engine::builder(Exact::partitions(3, None)).build().unwrap();
    let ordered = OrderedFilter::builder(Exact::partitions(3, None)).build();
    let ended = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (engine.shutdown().is_ok(), ordered.shutdown().is_ok())))
            .collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.collect::<Vec<_>>()
    });
    assert_eq!(ended.iter().filter(|(engine, _)| *engine).count(), 1);
    assert_eq!(ended.iter().filter(|(_, ordered)| *ordered).count(), 1);
}

#[test]
fn a_port_that_times_out_keeps_its_batches() {
    let (engine, mut ports) = Engine::builder(Exact::partitions(2, None))
        .ring_depth(1)
        .build()
        .unwrap();
    let port = &mut ports[0];
    assert_eq!(port.wait(Duration::ZERO), Ok(()), "nothing to wait for");
    let keys: Vec<KeyHash> = (0..5000)
        .map(|key| KeyHash::from_uniform(key << 50))
        .collect();
    let mut verdicts = Verdicts::new();
    for expected in [false, true] {
        while !port.try_submit(&keys).unwrap() {}
        let mut waits = 0_u64;
        while !port.poll(&mut verdicts).unwrap() {
            let polls = waits.is_multiple_of(2);
            let timeout = if polls { Duration::ZERO } else { Duration::MAX };
            let waited = port.wait(timeout);
            assert!(matches!(waited, Ok(()) | Err(ExchangeError::TimedOut)));
            assert!(polls || waited.is_ok());
            assert_eq!(port.in_flight(), 1);
            waits += 1;
        }
        assert_eq!(verdicts.to_bools(), vec![expected; keys.len()]);
    }
    drop(engine);
}

/// The batch of a ticket that timed out is observed in its place, or nowhere.
#[test]
fn a_ticket_that_times_out_stays_in_its_place() {
    let filter =
        Arc::new(OrderedFilter::builder(small().build_line_partitions(2).unwrap()).build());
    let [mut one, mut two, mut three] = [(); 3].map(|()| filter.handle());
    let mut verdicts = Verdicts::new();
    let (first, mut second, mut third) = (one.ticket(), two.ticket(), three.ticket());
    for _ in 0..3 {
        assert_eq!(second.wait(Duration::ZERO), Err(ExchangeError::TimedOut));
        assert_eq!(
            third.wait(Duration::from_millis(1)),
            Err(ExchangeError::TimedOut)
        );
    }
    let waiting = thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            assert_eq!(second.wait(Duration::MAX), Ok(()));
            // Twice is once.
            assert_eq!(second.wait(Duration::ZERO), Ok(()));
            let mut verdicts = Verdicts::new();
            second.contains_each(&[LOW, HIGH], &mut verdicts).unwrap();
            let found = verdicts.to_bools();
            second.observe(&[LOW, HIGH], &mut verdicts).unwrap();
            (found, verdicts.to_bools())
        });
        first.observe(&[LOW], &mut verdicts).unwrap();
        waiting.join().unwrap()
    });
    assert_eq!(waiting, (vec![true, false], vec![true, false]));
    // Dropped after its wait, it is left out.
    assert_eq!(third.wait(Duration::MAX), Ok(()));
    drop(third);
    one.observe(&[HIGH], &mut verdicts).unwrap();
    assert_eq!(verdicts.to_bools(), [true]);
    let halves = filter.shutdown().unwrap();
    let held: u64 = halves
        .filters()
        .iter()
        .map(|half| half.progress().observed)
        .sum();
    assert_eq!(held, 4);
}
