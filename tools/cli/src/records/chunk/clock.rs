//! A chunk on the clock of the stream.

use super::KEPT_RECORDS;

/// The clock before and after a chunk, and the batches that the clock cuts it into.
#[derive(Debug, Default)]
pub(crate) struct ChunkClock {
    /// The batches that the key hashes are judged in, in order.
    pub(crate) batches: Vec<TickBatch>,
    /// The number of the first of them in the stream.
    pub(crate) first_batch: u64,
    /// The clock before the chunk; `None` before the first record with a time.
    pub(crate) before: Option<i64>,
    /// The first tick of the stream, if the clock has moved by the end of the chunk.
    pub(crate) first_tick: i64,
    /// The clock after the chunk.
    pub(crate) after: Option<i64>,
    /// The number of records that are later than the window and the lateness allow.
    pub(crate) late: u64,
    /// Whether the first record with a time is one of them.
    pub(crate) begins_late: bool,
    /// The tick of the batch of every key hash, filled where a filter gets all batches at once.
    ticks_of_keys: Vec<u64>,
}

/// Adjacent key hashes that are judged at one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TickBatch {
    /// The tick that the filter advances to, counted from the first of the stream; 0 leaves its
    /// clock as it is.
    pub(crate) tick: u64,
    /// The index after the last key hash.
    pub(crate) end: usize,
}

impl ChunkClock {
    /// Removes everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        let Self {
            batches,
            first_batch,
            before,
            first_tick,
            after,
            late,
            begins_late,
            ticks_of_keys,
        } = self;
        batches.clear();
        *first_batch = 0;
        *before = None;
        *first_tick = 0;
        *after = None;
        *late = 0;
        *begins_late = false;
        ticks_of_keys.clear();
    }

    /// Gives back the memory that only very many records need.
    pub(super) fn shrink(&mut self) {
        self.batches.shrink_to(KEPT_RECORDS);
        self.ticks_of_keys.shrink_to(KEPT_RECORDS);
    }

    /// The tick of the batch of every key hash.
    pub(super) fn ticks_of_keys(&mut self) -> &[u64] {
        self.ticks_of_keys.clear();
        for batch in &self.batches {
            self.ticks_of_keys.resize(batch.end, batch.tick);
        }
        &self.ticks_of_keys
    }
}
