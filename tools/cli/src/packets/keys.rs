//! From the packets of a chunk to key hashes and times.

use std::sync::Arc;

use echoless::{KeyHash, KeyHasher};
use echoless_packets::key::{Key, KeyReader};
use echoless_records::chunk::{Chunk, ClockStep, NO_TIME};

/// Packets, and the parts of them that are compared.
#[derive(Debug)]
pub(crate) struct PacketReading {
    pub(crate) keys: KeyReader,
    /// Whether the ignored fields are reported.
    pub(crate) report: bool,
    /// Whether duplicates are marked instead of dropped.
    pub(crate) tag: bool,
}

/// Hashes the keys of the packets of chunks. A chunk depends on no other chunk, so clones work in
/// parallel.
#[derive(Debug, Clone)]
pub(crate) struct PacketKeys {
    reading: Arc<PacketReading>,
    hasher: KeyHasher,
    resolution: Option<i64>,
    /// The encoded headers of the current packet.
    scratch: Vec<u8>,
}

impl PacketKeys {
    /// `resolution` is the length of a tick in nanoseconds, if the window is a time.
    pub(crate) fn new(
        reading: Arc<PacketReading>,
        resolution: Option<i64>,
        hasher: KeyHasher,
    ) -> Self {
        Self {
            reading,
            hasher,
            resolution,
            scratch: Vec::new(),
        }
    }

    /// Whether duplicates are marked instead of dropped.
    pub(super) fn tags(&self) -> bool {
        self.reading.tag
    }

    /// Hashes the key of every packet of the chunk.
    pub(crate) fn read(&mut self, chunk: &mut Chunk) {
        let bytes = chunk.bytes.all();
        let keys = &self.reading.keys;
        chunk.keys.hashes.reserve(chunk.keys.packets.blocks.len());
        for block in &chunk.keys.packets.blocks {
            let packet = block.packet(bytes);
            let key = keys.key(&packet, &mut self.scratch);
            chunk.keys.packets.conditions.count(key.conditions);
            chunk.keys.hashes.push(hash_of(&key, &self.hasher));
            if self.reading.report {
                chunk
                    .keys
                    .packets
                    .ignored
                    .push(keys.ignored_fields(&packet));
            }
        }
        if let Some(resolution) = self.resolution {
            let mut latest = NO_TIME;
            let mut ticks = Ticks::new(resolution);
            for (from, block) in chunk.keys.packets.blocks.iter().enumerate() {
                let time = block.timestamp.map_or(NO_TIME, |time| ticks.of(time));
                if time > latest {
                    latest = time;
                    chunk.keys.steps.push(ClockStep { from, time });
                }
                chunk.keys.times.push(time);
            }
        }
    }
}

/// The hash of a key.
#[inline]
pub(super) fn hash_of(key: &Key<'_>, hasher: &KeyHasher) -> KeyHash {
    // The head holds the lengths of the other parts, so an empty one adds nothing.
    let parts = key.parts();
    let parts = parts.iter().filter(|part| !part.is_empty());
    hasher.hash_fields(parts.map(|part| Some(*part)))
}

/// Turns times into ticks. Most packets have the tick of the packet before, which takes no
/// division.
struct Ticks {
    resolution: i64,
    tick: i64,
    /// Times from the first to the last of these, of which there are none in the beginning, have
    /// that tick.
    start: i64,
    end: i64,
}

impl Ticks {
    const fn new(resolution: i64) -> Self {
        Self {
            resolution,
            tick: 0,
            start: 0,
            end: -1,
        }
    }

    #[inline]
    fn of(&mut self, time: i64) -> i64 {
        if !(self.start..=self.end).contains(&time) {
            self.tick = time.div_euclid(self.resolution);
            self.start = self.tick.saturating_mul(self.resolution);
            let next = self.tick.saturating_add(1);
            self.end = next.saturating_mul(self.resolution) - 1;
        }
        self.tick
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ticks_are_those_of_a_division(
            resolution in prop_oneof![1..100_i64, 1..=i64::MAX, Just(i64::MAX)],
            times in vec(prop_oneof![-300..300_i64, any::<i64>(), Just(i64::MIN)], 0..50),
        ) {
            let mut ticks = Ticks::new(resolution);
            for time in times {
                prop_assert_eq!(ticks.of(time), time.div_euclid(resolution));
            }
        }
    }
}
