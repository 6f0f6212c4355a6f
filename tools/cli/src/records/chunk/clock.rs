//! A chunk on the clock of the stream.

use super::KEPT_RECORDS;

/// The clock before and after a chunk, and at each of its keys.
#[derive(Debug, Default)]
pub(crate) struct ChunkClock {
    /// The tick at which each key hash is judged, ascending, counted from the first of the stream.
    /// Empty without a window, or if the filter counts its keys itself.
    pub(crate) ticks: Vec<u64>,
    /// The clock before the chunk; `None` before the first record with a time.
    pub(crate) before: Option<i64>,
    /// The first time of the stream, if the clock has moved by the end of the chunk.
    pub(crate) first: i64,
    /// The clock after the chunk.
    pub(crate) after: Option<i64>,
    /// The number of records that are later than the window and the lateness allow.
    pub(crate) late: u64,
    /// Whether the first record with a time is one of them.
    pub(crate) begins_late: bool,
}

impl ChunkClock {
    /// Removes everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        let mut ticks = std::mem::take(&mut self.ticks);
        ticks.clear();
        *self = Self {
            ticks,
            ..Self::default()
        };
    }

    /// Gives back the memory that only very many records need.
    pub(super) fn shrink(&mut self) {
        self.ticks.shrink_to(KEPT_RECORDS);
    }
}
