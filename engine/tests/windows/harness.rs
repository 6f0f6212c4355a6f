//! Shared by the models: timed streams, and filters that observe them.

use std::ops::RangeInclusive;

use echoless::{Filter, FilterSpec, KeyHash, Verdicts};
use proptest::prelude::*;

/// Every kind of timed line without its window.
pub(crate) const KINDS: [Kind; 5] = [
    Kind::new("clocked", 16, 28, 5, 28),
    Kind::new("clocked", 32, 14, 5, 28),
    Kind::new("clocked", 64, 7, 5, 28),
    Kind::new("stamped", 32, 16, 1 << 12, 16),
    Kind::new("stamped", 64, 8, 1 << 20, 24),
];

/// A kind of timed line, as its documentation describes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    name: &'static str,
    bits: u32,
    /// The keys of a full line.
    pub(crate) slots: usize,
    /// The most units of a window.
    most: u64,
    /// The bits after which times in a line wrap around.
    time_bits: u32,
}

impl Kind {
    const fn new(name: &'static str, bits: u32, slots: usize, most: u64, time_bits: u32) -> Self {
        Self {
            name,
            bits,
            slots,
            most,
            time_bits,
        }
    }

    /// The ticks of a unit.
    pub(crate) const fn unit(self, window: u64) -> u64 {
        window.div_ceil(self.most)
    }

    /// The ticks after which times in a line wrap around.
    const fn wrap(self, window: u64) -> u64 {
        self.unit(window) << self.time_bits
    }

    pub(crate) fn spec(self, window: u64, refresh: bool, lines: usize) -> FilterSpec {
        let Self { name, bits, .. } = self;
        let text = format!("{name}:window={window},refresh={refresh},bits={bits}");
        let spec: FilterSpec = text.parse().expect("valid");
        spec.memory(lines as u64 * 64)
    }
}

pub(crate) fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(KINDS.to_vec())
}

/// Windows that are exact for every kind, that none divides evenly, and long ones.
pub(crate) fn windows() -> impl Strategy<Value = u64> {
    prop_oneof![
        1_u64..30,
        Just(1000_u64),
        4000_u64..5000,
        1_000_000_u64..3_000_000,
        Just(1_u64 << 40),
    ]
}

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
    /// By so many wraps of the times in lines, and by ticks more or less.
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

/// Streams of up to `keys` different keys, whose fingerprints differ.
pub(crate) fn streams(
    kind: Kind,
    window: u64,
    keys: RangeInclusive<u64>,
    count: usize,
) -> impl Strategy<Value = Vec<Arrival>> {
    let arrivals =
        keys.prop_flat_map(move |keys| prop::collection::vec((steps(), 0..keys), 0..count));
    // Half of the wraps are eras, so that odd numbers of eras are jumped over, too.
    let half_wrap = kind.wrap(window) / 2;
    (0_u64..1 << 41, arrivals).prop_map(move |(start, arrivals)| {
        let mut clock = start;
        let timed = arrivals.into_iter().map(|(step, key)| {
            let event = match step {
                Step::None => clock,
                Step::Window(thousandths) => after(clock, window, thousandths),
                Step::Ticks(ticks) => clock.saturating_add(ticks),
                Step::Wraps(wraps, ticks) => clock
                    .saturating_add(wraps.saturating_mul(half_wrap))
                    .saturating_add_signed(ticks),
                Step::Late(thousandths) => clock.saturating_sub(window / 1000 * thousandths),
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
    KeyHash(KeyHash(key).remix(1) & !0xffff | (key + 1))
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
