//! The chunks of a run on several threads, and how many bytes of them may be under way.
//!
//! Records of usual lengths fill chunks of equal length, and their number bounds the memory. A long
//! record makes its chunk as long as itself, and many short ones, such as empty lines, take more
//! memory for their hashes than for themselves. So that not every chunk becomes as large as the
//! largest, no chunk is filled while more than [`SPARE_BYTES`] beyond the usual are under way.

use crossbeam_channel::Receiver;

use crate::reading::CHUNK_BYTES;
use crate::records::chunk::Chunk;

/// The bytes that may be under way in addition to all chunks of the usual length. A few records of
/// a megabyte still keep all threads busy.
const SPARE_BYTES: usize = 32 << 20;

/// The usual bytes of a chunk, with the results of its records.
const USUAL_BYTES: usize = 4 * CHUNK_BYTES;

/// The chunks that are free to be filled, and the bytes of the others.
#[derive(Debug)]
pub(super) struct ChunkStock {
    free: Vec<Chunk>,
    recycled: Receiver<Chunk>,
    /// The bytes of the chunks that were sent and have not come back.
    under_way: usize,
    /// The chunks are filled while no more bytes than this are under way.
    most: usize,
}

impl ChunkStock {
    /// `chunks` empty chunks, which come back through `recycled` once they are delivered.
    pub(super) fn new(chunks: usize, recycled: Receiver<Chunk>) -> Self {
        Self {
            free: (0..chunks).map(|_| Chunk::default()).collect(),
            recycled,
            under_way: 0,
            most: chunks * USUAL_BYTES + SPARE_BYTES,
        }
    }

    /// Waits for a chunk that may be filled; `None` once no chunk comes back any more.
    pub(super) fn take(&mut self) -> Option<Chunk> {
        while let Ok(chunk) = self.recycled.try_recv() {
            self.accept(chunk);
        }
        loop {
            if self.under_way <= self.most
                && let Some(chunk) = self.free.pop()
            {
                return Some(chunk);
            }
            // The workers keep their ends of the channel until the stream ends.
            let chunk = self.recycled.recv().ok()?;
            self.accept(chunk);
        }
    }

    /// Counts a chunk that is sent to the workers.
    pub(super) fn note_sent(&mut self, chunk: &Chunk) {
        self.under_way += chunk.most_bytes();
    }

    fn accept(&mut self, mut chunk: Chunk) {
        self.under_way -= chunk.most_bytes();
        chunk.shrink();
        self.free.push(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(stock: &mut ChunkStock, bytes: usize) -> Chunk {
        let mut chunk = stock.take().unwrap();
        chunk.bytes.resize(bytes, 0);
        stock.note_sent(&chunk);
        chunk
    }

    #[test]
    fn all_chunks_of_the_usual_length_may_be_under_way() {
        let (_recycle, recycled) = crossbeam_channel::bounded(4);
        let mut stock = ChunkStock::new(4, recycled);
        let chunks: Vec<Chunk> = (0..4).map(|_| sent(&mut stock, CHUNK_BYTES)).collect();
        assert_eq!(chunks.len(), 4);
        assert!(stock.under_way <= stock.most);
    }

    #[test]
    fn a_long_chunk_must_come_back_before_the_next_is_filled_and_is_short_then() {
        let (recycle, recycled) = crossbeam_channel::bounded(4);
        let mut stock = ChunkStock::new(4, recycled);
        let bytes = 2 * stock.most;
        let long = sent(&mut stock, bytes);
        let short = sent_while_full(&mut stock, &recycle, long);
        assert_eq!(short.bytes.len(), CHUNK_BYTES);
        assert_eq!(stock.under_way, 0);
        drop(recycle);
        let left: Vec<Chunk> = std::iter::from_fn(|| stock.take()).collect();
        assert_eq!(left.len(), 3);
    }

    #[test]
    fn a_chunk_of_very_short_records_counts_as_a_long_one_and_keeps_little() {
        let (recycle, recycled) = crossbeam_channel::bounded(4);
        let mut stock = ChunkStock::new(4, recycled);
        let records = stock.most / 8;
        let mut many = stock.take().unwrap();
        many.bytes.resize(CHUNK_BYTES, 0);
        many.most_records = records;
        many.ends.resize(records, 0);
        stock.note_sent(&many);
        let short = sent_while_full(&mut stock, &recycle, many);
        assert!(short.ends.is_empty() && short.ends.capacity() < records);
        assert_eq!(stock.under_way, 0);
    }

    /// Takes a chunk while `long` is under way, which lets nothing else be filled: it is the one
    /// that comes back.
    fn sent_while_full(
        stock: &mut ChunkStock,
        recycle: &crossbeam_channel::Sender<Chunk>,
        long: Chunk,
    ) -> Chunk {
        assert!(stock.under_way > stock.most);
        recycle.send(long).unwrap();
        stock.take().unwrap()
    }
}
