//! What is read from the records of a chunk: key hashes and times, the clock of the stream at
//! them, and packets.

use std::fmt::Write as _;
use std::ops::AddAssign;

use echoless::KeyHash;
use echoless::hash::KeyDigest;
use echoless_packets::framing::PacketBlock;
use echoless_packets::key::{Conditions, IgnoredFields};
use echoless_stream::AheadRun;
use serde::{Deserialize, Serialize};

use super::parts::clear_list;
use crate::number::grouped;
use crate::time::recurring::Unroller;

/// The time of a record that has none: it is earlier than every other, so the record is judged at
/// the clock.
pub const NO_TIME: i64 = i64::MIN;

/// The key hashes and the times of the records of a chunk.
#[derive(Debug, Default)]
pub struct ChunkKeys {
    /// The key hash of every record that has one, in order, up to the fault.
    pub hashes: Vec<KeyHash>,
    /// The numbers that a filter gets in place of the hashes, if any: equal ones for equal keys and
    /// others for other keys, as far as it has to tell them apart.
    pub names: Vec<KeyHash>,
    /// The digest of each key, if a run stores those of fresh keys.
    pub digests: Vec<KeyDigest>,
    /// The time of every record that has a key hash, in ticks since 1970, if records have times.
    pub times: Vec<i64>,
    /// The records whose time is above those of all records before them in the chunk.
    pub steps: Vec<ClockStep>,
    /// The packets of the records, if these are blocks of a capture.
    pub packets: ChunkPackets,
}

/// The clock moves here, unless it is at this time or beyond already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// The index of the record's key hash.
    pub from: usize,
    /// The time, in ticks since 1970.
    pub time: i64,
}

impl ChunkKeys {
    /// Removes everything and keeps the memory of `kept` records.
    pub(super) fn clear(&mut self, kept: usize) {
        let Self {
            hashes,
            names,
            digests,
            times,
            steps,
            packets,
        } = self;
        clear_list(hashes, kept);
        clear_list(names, kept);
        clear_list(digests, kept);
        clear_list(times, kept);
        clear_list(steps, kept);
        clear_list(&mut packets.blocks, kept);
        clear_list(&mut packets.unjudged, kept);
        clear_list(&mut packets.ignored, kept);
        packets.conditions = ConditionCounts::default();
    }

    /// Removes the keys from this one on.
    pub(super) fn truncate(&mut self, keys: usize) {
        self.hashes.truncate(keys);
        self.names.truncate(keys);
        self.digests.truncate(keys);
        self.times.truncate(keys);
        self.steps.retain(|step| step.from < keys);
        self.packets.blocks.truncate(keys);
        self.packets.ignored.truncate(keys);
    }

    /// Removes the keys with these indices, ascending.
    pub(super) fn remove(&mut self, removed: &[usize]) {
        retain_others(&mut self.hashes, removed);
        retain_others(&mut self.names, removed);
        retain_others(&mut self.digests, removed);
        retain_others(&mut self.times, removed);
        let ChunkPackets {
            blocks, unjudged, ..
        } = &mut self.packets;
        unjudged.extend(removed.iter().filter_map(|key| blocks.get(*key).cloned()));
        retain_others(blocks, removed);
        retain_others(&mut self.packets.ignored, removed);
        self.find_steps();
    }

    /// What a filter gets: the names, or the hashes if there are none.
    pub fn judged(&self) -> &[KeyHash] {
        if self.names.is_empty() {
            &self.hashes
        } else {
            &self.names
        }
    }

    /// Finds the steps from the times.
    pub fn find_steps(&mut self) {
        self.steps.clear();
        let mut latest = NO_TIME;
        for (from, &time) in self.times.iter().enumerate() {
            if time > latest {
                latest = time;
                self.steps.push(ClockStep { from, time });
            }
        }
    }
}

/// Keeps the items whose indices are not in `removed`, which ascends.
pub(super) fn retain_others<T>(items: &mut Vec<T>, removed: &[usize]) {
    let mut removed = removed.iter().copied().peekable();
    let mut index = 0;
    items.retain(|_| {
        let keep = removed.next_if_eq(&index).is_none();
        index += 1;
        keep
    });
}

/// The clock before and after a chunk, and at each of its keys.
#[derive(Debug, Default)]
pub struct ChunkClock {
    /// The tick at which each key hash is judged, ascending, counted from the first of the stream.
    /// Empty without a window, or if the filter counts its keys itself.
    pub ticks: Vec<u64>,
    /// The clock before the chunk; `None` before the first record with a time.
    pub before: Option<i64>,
    /// The first time of the stream, if the clock has moved by the end of the chunk.
    pub first: i64,
    /// The clock after the chunk.
    pub after: Option<i64>,
    /// What determines the years or the days after the chunk, where times leave them out.
    pub unroller: Option<Unroller>,
    /// The number of records that are too far ahead, and the last ones of them in a row.
    pub ahead: u64,
    pub ahead_run: AheadRun,
    /// The number of records that are later than the window and the lateness allow.
    pub late: u64,
    /// Whether the first record with a time is one of them.
    pub begins_late: bool,
}

impl ChunkClock {
    /// Removes everything and keeps the memory of `kept` records.
    pub(super) fn clear(&mut self, kept: usize) {
        let mut ticks = std::mem::take(&mut self.ticks);
        clear_list(&mut ticks, kept);
        *self = Self {
            ticks,
            ..Self::default()
        };
    }
}

/// The packets of a chunk.
#[derive(Debug, Default)]
pub struct ChunkPackets {
    /// The packet of every record that has a key hash.
    pub blocks: Vec<PacketBlock>,
    /// Those that have none, and pass all the same.
    pub unjudged: Vec<PacketBlock>,
    /// The ignored fields of every packet, if they are reported.
    pub ignored: Vec<IgnoredFields>,
    /// How the packets were read.
    pub conditions: ConditionCounts,
}

/// Packets by what the reader of keys met. A packet may be counted more than once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionCounts {
    /// Packets without the layer that the comparison begins at.
    compared_whole: u64,
    /// Packets of which the capture, or something before it, cut a part.
    truncated: u64,
    /// Packets with a header that contradicts itself or the lengths around it.
    malformed: u64,
    /// Packets with fewer bytes than `--snap-safe` compares.
    short: u64,
}

impl ConditionCounts {
    /// Counts a packet.
    #[inline]
    pub fn count(&mut self, conditions: Conditions) {
        self.compared_whole += u64::from(conditions.whole);
        self.truncated += u64::from(conditions.truncated);
        self.malformed += u64::from(conditions.malformed);
        self.short += u64::from(conditions.short);
    }

    /// The counts that are not zero, in words; `None` if all are.
    pub fn words(&self) -> Option<String> {
        let mut text = String::new();
        for (count, what) in [
            (self.compared_whole, "without the layer of --from"),
            (self.truncated, "truncated"),
            (self.malformed, "malformed"),
            (self.short, "shorter than --snap-safe"),
        ] {
            if count > 0 {
                let comma = if text.is_empty() { "" } else { ", " };
                let _ = write!(text, "{comma}{} {what}", grouped(count));
            }
        }
        (!text.is_empty()).then(|| format!("packets that were not compared as usual: {text}"))
    }
}

impl AddAssign for ConditionCounts {
    fn add_assign(&mut self, other: Self) {
        self.compared_whole += other.compared_whole;
        self.truncated += other.truncated;
        self.malformed += other.malformed;
        self.short += other.short;
    }
}
