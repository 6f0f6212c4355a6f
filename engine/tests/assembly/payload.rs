//! Batches with payloads: each comes back with its own verdicts, or with what is known.

use echoless::{Engine, ExchangeError, KeyHash, KeyHasher, Rejected, Verdicts};

use crate::streams::spec;
use crate::stub::{BAD_KEY, fragile};

const GOOD_KEY: KeyHash = KeyHash::from_uniform(0);

#[test]
fn payloads_come_back_in_order_with_their_verdicts() {
    let (engine, mut ports) = Engine::builder(spec().build_partitions(2).unwrap())
        .build()
        .unwrap();
    let mut port = ports.remove(0).with_payloads().unwrap();
    let hasher = KeyHasher::seeded(0);
    let mut keys = Vec::new();
    // Every second record of a batch repeats one of the batch before.
    let records_of = |batch: u32| -> Vec<u32> { (0..batch % 150).map(|n| batch / 2 + n).collect() };
    for batch in 0..200 {
        hasher.hash_all(records_of(batch).iter().map(|n| n.to_le_bytes()), &mut keys);
        port.submit(&keys, batch).unwrap();
    }
    assert_eq!(port.in_flight(), 200);
    let all: usize = (0..200).map(|batch| records_of(batch).len()).sum();
    assert_eq!(port.in_flight_keys(), all);
    let mut verdicts = Verdicts::new();
    let mut seen = std::collections::HashSet::new();
    for batch in 0..200 {
        assert_eq!(port.drain(&mut verdicts), Ok(Some(batch)));
        let records = records_of(batch);
        let expected: Vec<bool> = records.iter().map(|record| !seen.insert(*record)).collect();
        assert_eq!(verdicts.to_bools(), expected, "batch {batch}");
    }
    assert_eq!((port.in_flight(), port.in_flight_keys()), (0, 0));
    assert_eq!(port.drain(&mut verdicts), Ok(None));
    assert_eq!(port.poll(&mut verdicts), Ok(None));
    // The counts are complete once the verdicts are.
    let counts = engine.counts();
    assert_eq!((counts.judged, counts.unknown), (all as u64, 0));
    assert_eq!(counts.judged - counts.duplicates, seen.len() as u64);
}

#[test]
fn a_payload_comes_back_although_its_batch_fails() {
    let (engine, mut ports) = Engine::builder(fragile(2)).build().unwrap();
    let mut port = ports.remove(0).with_payloads().unwrap();
    let mut verdicts = Verdicts::new();
    port.submit(&[GOOD_KEY, BAD_KEY], "first").unwrap();
    let lost = ExchangeError::Panicked(1);
    assert_eq!(port.drain(&mut verdicts), Err(lost));
    assert_eq!(port.in_flight_keys(), 2);
    let rejected = Rejected {
        cause: lost,
        payload: "second",
    };
    assert_eq!(rejected.to_string(), lost.to_string());
    assert_eq!(port.submit(&[GOOD_KEY], "second"), Err(rejected));
    assert_eq!(port.take_partial(&mut verdicts), Some("first"));
    assert!(!verdicts.is_unknown(0) && verdicts.is_unknown(1));
    assert_eq!(port.take_partial(&mut verdicts), None);
    assert_eq!(port.in_flight_keys(), 0);
    let counts = engine.counts();
    assert_eq!((counts.judged, counts.unknown), (1, 1));
}

#[test]
fn batches_in_flight_are_an_error_where_none_may_be() {
    let (_engine, mut ports) = Engine::builder(spec().build_partitions(2).unwrap())
        .build()
        .unwrap();
    let mut verdicts = Verdicts::new();
    let mut port = ports.remove(0);
    port.submit(&[GOOD_KEY]).unwrap();
    let in_flight = Err(ExchangeError::InFlight(1));
    assert_eq!(port.observe(&[GOOD_KEY], &mut verdicts), in_flight);
    // Nothing was sent, and the batch before is still there.
    assert_eq!(port.drain(&mut verdicts), Ok(true));
    assert_eq!(port.observe(&[GOOD_KEY], &mut verdicts), Ok(()));
    assert_eq!(verdicts.to_bools(), [true]);
    port.submit(&[GOOD_KEY]).unwrap();
    let refused = port.with_payloads::<()>().unwrap_err();
    assert_eq!(Err(refused.cause), in_flight);
    // The port and its batch are not lost.
    assert_eq!(refused.payload.in_flight(), 1);
}

#[test]
fn a_port_is_returned_with_the_payloads_in_flight() {
    let (_engine, mut ports) = Engine::builder(spec().build_partitions(1).unwrap())
        .build()
        .unwrap();
    let mut port = ports.remove(0).with_payloads().unwrap();
    port.submit(&[GOOD_KEY], 'a').unwrap();
    port.submit(&[GOOD_KEY], 'b').unwrap();
    let (mut port, payloads) = port.into_parts();
    assert_eq!(payloads, ['a', 'b']);
    let mut verdicts = Verdicts::new();
    for duplicate in [false, true] {
        assert_eq!(port.drain(&mut verdicts), Ok(true));
        assert_eq!(verdicts.to_bools(), [duplicate]);
    }
}
