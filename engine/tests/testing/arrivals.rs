//! Timed streams, whose clocks rest, jump, go back and wrap around.

use std::ops::RangeInclusive;

use echoless::{Filter, KeyHash, Verdicts};
use proptest::prelude::*;

/// A key and the largest event time so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) tick: u64,
    pub(crate) key: KeyHash,
}

/// How the event time of an arrival differs from the clock.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Not at all: a burst.
    None,
    /// A part of the window, in thousandths.
    Window(u64),
    /// By some ticks.
    Ticks(u64),
    /// By so many times the wrap, and by ticks more or less.
    Wraps(u64, i64),
    /// An event that is late by a part of the window, in thousandths.
    Late(u64),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => Just(Step::None),
        6 => (0_u64..3).prop_map(Step::Ticks),
        4 => (0_u64..300).prop_map(Step::Window),
        2 => (900_u64..1300).prop_map(Step::Window),
        2 => (0_u64..3000).prop_map(Step::Late),
        1 => (1_u64..5, -3_i64..3).prop_map(|(wraps, ticks)| Step::Wraps(wraps, ticks)),
    ]
}

/// Streams of up to `keys` different keys. Some jumps of the clock are a few times `wrap` long, and
/// some ticks more or less.
pub(crate) fn arrivals(
    window: u64,
    wrap: u64,
    keys: RangeInclusive<u64>,
    count: usize,
) -> impl Strategy<Value = Vec<Arrival>> {
    let arrivals =
        keys.prop_flat_map(move |keys| prop::collection::vec((steps(), 0..keys), 0..count));
    (0_u64..1 << 41, arrivals).prop_map(move |(start, arrivals)| {
        let mut clock = start;
        let timed = arrivals.into_iter().map(|(step, key)| {
            let event = match step {
                Step::None => clock,
                Step::Window(thousandths) => after(clock, window, thousandths),
                Step::Ticks(ticks) => clock.saturating_add(ticks),
                Step::Wraps(wraps, ticks) => clock
                    .saturating_add(wraps.saturating_mul(wrap))
                    .saturating_add_signed(ticks),
                Step::Late(thousandths) => clock.saturating_sub(window * thousandths / 1000),
            };
            clock = clock.max(event);
            Arrival {
                tick: event,
                key: key_hash(key),
            }
        });
        timed.collect()
    })
}

/// The tick a part of the window after the clock.
const fn after(clock: u64, window: u64, thousandths: u64) -> u64 {
    clock.saturating_add(window * thousandths / 1000)
}

/// A key with a fingerprint of its own in slots of any width, and a random line.
pub(crate) fn key_hash(key: u64) -> KeyHash {
    KeyHash::from_uniform(KeyHash::from_uniform(key).remix(1) & !0xffff | (key + 1))
}

/// The verdicts on a stream, observed in one batch for each tick.
pub(crate) fn observe(filter: &mut dyn Filter, stream: &[Arrival]) -> Vec<bool> {
    let mut verdicts = Verdicts::new();
    let mut all = Vec::new();
    for batch in stream.chunk_by(|left, right| left.tick == right.tick) {
        let keys: Vec<KeyHash> = batch.iter().map(|arrival| arrival.key).collect();
        filter.advance_to(batch[0].tick);
        filter.observe(&keys, &mut verdicts);
        all.extend((0..keys.len()).map(|index| verdicts.is_duplicate(index)));
    }
    all
}
