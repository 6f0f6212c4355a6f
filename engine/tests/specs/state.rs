//! Saved states: a filter that was saved and restored, in any number of partitions, goes on as if
//! nothing had happened, and bytes that are no such state are rejected.

use echoless::filters::lines::LineFilter;
use echoless::spec::{SavedState, StateError};
use echoless::{Filter, FilterSpec, KeyHasher};
use proptest::prelude::*;

use crate::arrivals::{Arrival, arrivals, observe};
use crate::{LINE_NAMES, parse};

/// Two pages of lines, which at most two partitions divide in `dense`.
const MEMORY: u64 = 8 << 10;

fn specs() -> Vec<FilterSpec> {
    let windows = [
        "clocked:window=1000,bits=16",
        "stamped:window=90000,bits=32",
    ];
    let names = LINE_NAMES.map(|name| parse(&format!("{name}:form=line")));
    names
        .into_iter()
        .chain(windows.map(parse))
        .map(|spec| spec.memory(MEMORY).seed(5))
        .collect()
}

type Parts = Vec<Box<dyn LineFilter>>;

fn build(spec: &FilterSpec, count: usize) -> Parts {
    spec.build_line_partitions(count).unwrap().into_parts().1
}

/// The verdicts of partitions, each of which hears only of the ticks of its own keys.
fn observe_parts(parts: &mut Parts, stream: &[Arrival]) -> Vec<bool> {
    let pages = parts[0].range().total / parts[0].bucket_lines();
    let partitioning = echoless::Partitioning::new(pages, parts.len()).unwrap();
    let one = |arrival: &Arrival| {
        let owner = &mut parts[partitioning.partition_of(arrival.key)];
        owner.advance_to(arrival.tick);
        owner.observe_one(arrival.key).is_duplicate()
    };
    stream.iter().map(one).collect()
}

fn save(spec: &FilterSpec, parts: &mut Parts) -> Vec<u8> {
    let mut bytes = Vec::new();
    spec.save(parts, 17, &mut bytes).unwrap();
    bytes
}

fn restore(bytes: &[u8], count: usize) -> Parts {
    let saved = SavedState::open(bytes).unwrap();
    saved.restore_partitions(count).unwrap().into_parts().1
}

/// The sum over partitions, without what the machine decides.
fn counts(parts: &Parts) -> [u64; 3] {
    parts.iter().fold([0; 3], |sum, part| {
        let progress = part.progress();
        [
            sum[0] + progress.observed,
            sum[1] + progress.fresh,
            sum[2] + progress.evictions,
        ]
    })
}

proptest! {
    #[test]
    fn a_restored_filter_goes_on_as_if_nothing_had_happened(
        stream in arrivals(1000, 1 << 16, 1..=3000, 1500),
        spec in prop::sample::select(specs()),
        cut in 0.0_f64..1.0,
        before in 1_usize..=2,
        after in 1_usize..=2,
    ) {
        // A partition hears the clock by its own keys, so the clock of the stream must not go back.
        let mut clock = 0;
        let stream: Vec<Arrival> = stream
            .into_iter()
            .map(|arrival| {
                clock = clock.max(arrival.tick);
                Arrival { tick: clock, ..arrival }
            })
            .collect();
        let (first, rest) = stream.split_at((stream.len() as f64 * cut) as usize);
        let mut whole = build(&spec, 1);
        let mut parts = build(&spec, before);
        prop_assert_eq!(observe(&mut *whole[0], first), observe_parts(&mut parts, first));

        let bytes = save(&spec, &mut parts);
        let mut parts = restore(&bytes, after);
        prop_assert_eq!(counts(&whole), counts(&parts));
        prop_assert_eq!(&save(&spec, &mut parts), &bytes, "saved again");
        if spec.window().is_none() {
            prop_assert_eq!(&save(&spec, &mut whole), &bytes, "whole");
        }
        prop_assert_eq!(observe(&mut *whole[0], rest), observe_parts(&mut parts, rest));
        prop_assert_eq!(counts(&whole), counts(&parts));
    }
}

/// A small filter with some keys, as bytes.
fn saved_bytes(spec: &FilterSpec) -> Vec<u8> {
    let mut filter = spec.build_lines().unwrap();
    for key in 0..100 {
        filter.observe_one(KeyHasher::seeded(0).hash_u64(key));
    }
    save(spec, &mut vec![filter])
}

#[test]
fn every_damaged_byte_is_found_and_a_state_that_ends_early() {
    let bytes = saved_bytes(&parse("rowlru:form=line,memory=512B"));
    let load = |bytes: &[u8]| SavedState::open(bytes).and_then(SavedState::restore);
    assert!(load(&bytes).is_ok());
    for at in 0..bytes.len() {
        for bit in [0, 7] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let error = load(&damaged).unwrap_err();
            assert!(
                matches!(error, StateError::Unreadable(_)),
                "byte {at}: {error}"
            );
        }
        let error = load(&bytes[..at]).unwrap_err();
        assert_eq!(error.to_string(), "not a saved state: it ends early");
    }
    // Bytes after the state are left to the caller.
    let mut input = &[&bytes[..], b"more"].concat()[..];
    SavedState::open(&mut input).unwrap().restore().unwrap();
    assert_eq!(input, b"more");
}

#[test]
fn other_bytes_are_rejected_with_the_reason() {
    let mut bytes = saved_bytes(&parse("rowlru:form=line,memory=512B"));
    bytes[8] = 2;
    let error = SavedState::open(&bytes[..]).unwrap_err();
    let text = "not a saved state: it has version 2, and this library reads 1";
    assert_eq!(error.to_string(), text);
    let error = SavedState::open(&[b'x'; 100][..]).unwrap_err();
    let text = "not a saved state: it does not begin with `echoless`";
    assert_eq!(error.to_string(), text);
}

#[test]
fn another_specification_or_hasher_is_told() {
    let spec = parse("rowlru:slots=16,bits=32,form=line,memory=512B");
    let bytes = saved_bytes(&spec);
    let saved = SavedState::open(&bytes[..]).unwrap();
    assert_eq!((saved.hasher(), saved.progress().observed), (17, 100));
    saved.check(&spec, 17).unwrap();
    saved
        .check(&spec.kernel(echoless::Kernel::Scalar), 17)
        .unwrap();
    let fingerprint = parse("fingerprint:bits=32,memory=512B");
    saved.check(&fingerprint, 17).unwrap();
    let error = saved.check(&spec.memory(1024), 17).unwrap_err().to_string();
    let text = "the saved state has another specification: \
                rowlru:slots=16,bits=32,rows=packed,form=line,memory=512B, expected \
                rowlru:slots=16,bits=32,rows=packed,form=line,memory=1KiB";
    assert_eq!(error, text);
    let error = saved.check(&spec, 18).unwrap_err().to_string();
    let text = "the saved state has another key hasher: id 0000000000000011, expected \
                id 0000000000000012";
    assert_eq!(error, text);
}

#[test]
fn filters_that_are_not_the_whole_are_not_saved() {
    let spec = parse("bloom:k=4,form=line").memory(MEMORY);
    let mut parts = build(&spec, 3);
    parts.swap(1, 2);
    let error = spec.save(&mut parts, 0, Vec::new()).unwrap_err();
    let text = "invalid partitions=line 86 of 128: expected line 43 of 128, the next in order";
    assert_eq!(error.to_string(), text);
    parts.swap(1, 2);
    parts.pop();
    let error = spec.save(&mut parts, 0, Vec::new()).unwrap_err();
    let text = "invalid partitions=86 lines: expected all 128 lines";
    assert_eq!(error.to_string(), text);
    let error = parse("bloom:k=4")
        .save(&mut parts, 0, Vec::new())
        .unwrap_err();
    assert!(matches!(error, StateError::Build(_)), "{error}");
}

#[test]
fn one_partition_alone_is_that_of_all() {
    for spec in specs() {
        let all = spec.build_partitions(2).unwrap().into_parts().1;
        for (index, part) in all.iter().enumerate() {
            let alone = spec.build_partition(index, 2).unwrap();
            assert_eq!(alone.memory_bytes(), part.memory_bytes(), "{spec}");
        }
        let error = spec.build_partition(2, 2).unwrap_err();
        assert_eq!(error.to_string(), "invalid partition=2: expected 0 to 1");
        assert!(spec.build_partition(0, 0).is_err());
    }
}
