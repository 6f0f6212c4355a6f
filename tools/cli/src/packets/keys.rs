//! From the packets of a chunk to key hashes and ticks.

use std::sync::Arc;

use echoless::KeyHasher;

use crate::config::{PacketConfig, WindowConfig};
use crate::records::chunk::{Chunk, ClockStep, NO_TIME};

/// Hashes the keys of the packets of chunks. A chunk depends on no other chunk, so clones work in
/// parallel.
#[derive(Debug, Clone)]
pub(crate) struct PacketKeys {
    config: Arc<PacketConfig>,
    hasher: KeyHasher,
    /// The length of a tick in nanoseconds, if the window is a time.
    resolution: Option<i64>,
    /// The encoded headers of the current packet.
    scratch: Vec<u8>,
}

impl PacketKeys {
    pub(crate) fn new(
        config: &Arc<PacketConfig>,
        window: Option<&WindowConfig>,
        hasher: KeyHasher,
    ) -> Self {
        let timed = window.filter(|window| window.clock.is_time());
        Self {
            config: Arc::clone(config),
            hasher,
            // A time is at most `i64::MAX` long, and so is a tick of it.
            resolution: timed.map(|window| window.resolution as i64),
            scratch: Vec::new(),
        }
    }

    /// Whether duplicates are marked instead of dropped.
    pub(super) fn tags(&self) -> bool {
        self.config.tag
    }

    /// Hashes the key of every packet of the chunk.
    pub(crate) fn read(&mut self, chunk: &mut Chunk) {
        let bytes = &chunk.bytes[..chunk.filled];
        let keys = &self.config.keys;
        chunk.keys.hashes.reserve(chunk.keys.packets.len());
        for block in &chunk.keys.packets {
            let packet = block.packet(bytes);
            let key = keys.key(&packet, &mut self.scratch);
            chunk.keys.conditions.count(key.conditions);
            // The head holds the lengths of the other parts, so an empty one adds nothing.
            let parts = key.parts();
            let parts = parts.iter().filter(|part| !part.is_empty());
            let hash = self.hasher.hash_fields(parts.map(|part| Some(*part)));
            chunk.keys.hashes.push(hash);
            if self.config.report {
                chunk.keys.ignored.push(keys.ignored_fields(&packet));
            }
        }
        if let Some(resolution) = self.resolution {
            let mut latest = NO_TIME;
            for (from, block) in chunk.keys.packets.iter().enumerate() {
                let tick = block
                    .timestamp
                    .map_or(NO_TIME, |time| time.div_euclid(resolution));
                if tick > latest {
                    latest = tick;
                    chunk.keys.steps.push(ClockStep { from, tick });
                }
                chunk.keys.ticks.push(tick);
            }
        }
    }
}
