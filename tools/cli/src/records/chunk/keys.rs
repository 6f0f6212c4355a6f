//! What is read from the records of a chunk.

use echoless::KeyHash;
use echoless_packets::framing::PacketBlock;
use echoless_packets::key::IgnoredFields;

use super::KEPT_RECORDS;
use crate::packets::conditions::ConditionCounts;

/// The key hashes and the times of the records of a chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkKeys {
    /// The key hash of every record that has one, in order, up to the fault.
    pub(crate) hashes: Vec<KeyHash>,
    /// The indices of the records without a key hash, ascending.
    pub(crate) unkeyed: Vec<usize>,
    /// The records among them that are the frame of a file, which every output needs: blocks of a
    /// capture that are no packets, or what is around records inside of elements.
    pub(crate) frame_blocks: Vec<usize>,
    /// Those among them that are comment lines.
    pub(crate) comments: Vec<usize>,
    /// The packet of every record that has a key hash, if the records are blocks of a capture.
    pub(crate) packets: Vec<PacketBlock>,
    /// How the packets were read.
    pub(crate) conditions: ConditionCounts,
    /// The ignored fields of every packet, if they are reported.
    pub(crate) ignored: Vec<IgnoredFields>,
    /// The time of every record that has a key hash, in ticks since 1970, if records have times.
    pub(crate) times: Vec<i64>,
    /// The records whose time is above those of all records before them in the chunk.
    pub(crate) steps: Vec<ClockStep>,
}

/// The clock moves here, unless it is at this time or beyond already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockStep {
    /// The index of the record's key hash.
    pub(crate) from: usize,
    pub(crate) time: i64,
}

impl ChunkKeys {
    /// Removes everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        let Self {
            hashes,
            unkeyed,
            frame_blocks,
            comments,
            packets,
            conditions,
            ignored,
            times,
            steps,
        } = self;
        hashes.clear();
        unkeyed.clear();
        frame_blocks.clear();
        comments.clear();
        packets.clear();
        *conditions = ConditionCounts::default();
        ignored.clear();
        times.clear();
        steps.clear();
    }

    /// Gives back the memory that only very many records need.
    pub(super) fn shrink(&mut self) {
        let Self {
            hashes,
            unkeyed,
            frame_blocks,
            comments,
            packets,
            conditions: _,
            ignored,
            times,
            steps,
        } = self;
        hashes.shrink_to(KEPT_RECORDS);
        unkeyed.shrink_to(KEPT_RECORDS);
        frame_blocks.shrink_to(KEPT_RECORDS);
        comments.shrink_to(KEPT_RECORDS);
        packets.shrink_to(KEPT_RECORDS);
        ignored.shrink_to(KEPT_RECORDS);
        times.shrink_to(KEPT_RECORDS);
        steps.shrink_to(KEPT_RECORDS);
    }
}
