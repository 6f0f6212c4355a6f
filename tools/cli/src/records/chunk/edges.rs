//! Where elements around records begin and end.

use super::Chunk;

/// The begin or the end of an element around records, whose length is that of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ElementEdge {
    /// The index of the piece, a record or a part of the frame, that has the begin, or behind which
    /// the end is.
    pub(crate) piece: usize,
    pub(crate) edge: Edge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// The piece consists of the tag and the length of the element.
    Opens {
        /// The offset of the length in the bytes of the chunk.
        length_at: usize,
        /// The length of the content in the input; `None` if it is indefinite.
        length: Option<u64>,
    },
    Closes,
}

impl Chunk {
    /// Removes the pieces behind this end of one, which were handed over with the chunk.
    pub(crate) fn cut_pieces(&mut self, end: usize) {
        let pieces = self.ends.partition_point(|piece_end| *piece_end <= end);
        self.ends.truncate(pieces);
        self.keys.frame_blocks.retain(|block| *block < pieces);
        self.edges.retain(|edge| edge.piece < pieces);
    }

    /// The numbers, from 0, of the records without a key hash, if neither the frame around records
    /// nor comment lines are counted.
    pub(crate) fn unkeyed_own_records(&self) -> Vec<usize> {
        let is_among = |records: &[usize], record| records.binary_search(record).is_ok();
        let (frame, comments) = (&self.keys.frame_blocks, &self.keys.comments);
        let mut before = 0;
        let own = self.keys.unkeyed.iter().filter_map(|record| {
            if is_among(frame, record) || is_among(comments, record) {
                before += 1;
                return None;
            }
            Some(record - before)
        });
        own.collect()
    }
}
