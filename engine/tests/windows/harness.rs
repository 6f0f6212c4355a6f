//! Shared by the tests of windows: the promise of a window, the kinds of timed lines, and streams
//! whose clocks wrap around in them.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use echoless::{FilterSpec, KeyHash};
use proptest::prelude::*;

use crate::arrivals::arrivals;
pub(crate) use crate::arrivals::{Arrival, key_hash, observe};
pub(crate) use crate::promises::{assert_promise, observe_at};

/// Every kind of timed line without its window.
pub(crate) const KINDS: [Kind; 8] = [
    Kind::new("clocked", 16, 28, 5, 28),
    Kind::new("clocked", 32, 14, 5, 28),
    Kind::new("clocked", 64, 7, 5, 28),
    Kind::new("clocked", 16, 28, 5, 28).dense(),
    Kind::new("clocked", 32, 14, 5, 28).dense(),
    Kind::new("clocked", 64, 7, 5, 28).dense(),
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
    /// Whether a key has two lines of a page.
    dense: bool,
}

impl Kind {
    const fn new(name: &'static str, bits: u32, slots: usize, most: u64, time_bits: u32) -> Self {
        Self {
            name,
            bits,
            slots,
            most,
            time_bits,
            dense: false,
        }
    }

    const fn dense(mut self) -> Self {
        self.dense = true;
        self
    }

    /// The lines of a bucket: a page if a key has two lines.
    pub(crate) const fn bucket(self) -> usize {
        if self.dense { 64 } else { 1 }
    }

    /// The lines of a key, of so many: its home, and its partner if it has one.
    pub(crate) fn lines_of(self, key: KeyHash, lines: usize) -> Vec<usize> {
        let home = key.line(lines as u64) as usize;
        let step = (key.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58).max(1) as usize;
        if self.dense {
            vec![home, home ^ step]
        } else {
            vec![home]
        }
    }

    /// The same stream with other keys if a key has two lines: few streams fill a page, so all keys
    /// crowd into the first four lines of the first two pages.
    pub(crate) fn crowded(self, mut stream: Vec<Arrival>, lines: usize) -> Vec<Arrival> {
        if self.dense {
            let mut low_bits = HashSet::new();
            let keys = (0..).map(key_hash).filter(|key| {
                let all = self.lines_of(*key, lines);
                let low = key.get() & 0xffff;
                let crowded = |line: &usize| *line < 128 && line % 64 < 4;
                all.iter().all(crowded) && low != 0 && low_bits.insert(low)
            });
            // The fingerprints of all differ.
            let keys: Vec<KeyHash> = keys.take(self.slots * 8).collect();
            for arrival in &mut stream {
                arrival.key = keys[arrival.key.get() as usize % keys.len()];
            }
        }
        stream
    }

    /// The ticks of a unit.
    pub(crate) const fn unit(self, window: u64) -> u64 {
        window.div_ceil(self.most)
    }

    /// The ticks after which times in a line wrap around.
    const fn wrap(self, window: u64) -> u64 {
        self.unit(window) << self.time_bits
    }

    /// A filter of so many buckets.
    pub(crate) fn spec(self, window: u64, refresh: bool, buckets: usize) -> FilterSpec {
        let Self { name, bits, .. } = self;
        let dense = if self.dense { ",dense=true" } else { "" };
        let text = format!("{name}:window={window},refresh={refresh},bits={bits}{dense}");
        let spec: FilterSpec = text.parse().expect("valid");
        spec.memory((buckets * self.bucket()) as u64 * 64)
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

/// Streams of up to `keys` different keys, whose fingerprints differ.
pub(crate) fn streams(
    kind: Kind,
    window: u64,
    keys: RangeInclusive<u64>,
    count: usize,
) -> impl Strategy<Value = Vec<Arrival>> {
    // Jumps of half wraps and whole ones: into the next era, over eras, and to equal times in
    // lines.
    arrivals(window, kind.wrap(window) / 2, keys, count)
}
