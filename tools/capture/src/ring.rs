//! The memory of a ring, which the kernel fills block by block.
//!
//! ```text
//! | block 0 | block 1 | .. | block n-1 |      each of `block_bytes` bytes
//!   kernel    reader         kernel           the owner, in the status word of the block
//! ```
//!
//! The kernel writes to a block only while its status says so. It passes a block to the reader by
//! setting [`TP_STATUS_USER`] behind its last write, and the reader passes it back by clearing the
//! word.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{TP_STATUS_KERNEL, TP_STATUS_USER};

use crate::block::BLOCK_STATUS;
use crate::memory::Mapping;

/// The mapped blocks of a ring.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: Mapping,
    block_bytes: usize,
    blocks: usize,
}

impl Ring {
    /// Maps so many blocks of `file`, the socket of the ring: all that it has.
    pub(crate) fn map(file: BorrowedFd<'_>, block_bytes: usize, blocks: usize) -> io::Result<Self> {
        debug_assert!(block_bytes > BLOCK_STATUS + size_of::<u32>());
        debug_assert!(block_bytes.is_multiple_of(align_of::<AtomicU32>()));
        let length = block_bytes
            .checked_mul(blocks)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            memory: Mapping::of_file(file, 0, length)?,
            block_bytes,
            blocks,
        })
    }

    /// The number of blocks.
    pub(crate) const fn blocks(&self) -> usize {
        self.blocks
    }

    /// A block, if it is the reader's. Its content is what the kernel, or any other writer of the
    /// file, has left there.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    pub(crate) fn ready(&self, block: usize) -> Option<&[u8]> {
        // Acquire: what the kernel has written before it set the status.
        if self.status(block).load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the block is inside the mapping, which lives as long as `self`. It is the
        // reader's, so the kernel does not write to it before `release`, for which nobody may
        // borrow it.
        Some(unsafe { slice::from_raw_parts(self.start(block), self.block_bytes) })
    }

    /// Passes a block back to the kernel.
    ///
    /// # Panics
    /// If there is no such block.
    pub(crate) fn release(&mut self, block: usize) {
        // Release: all reads of the block come before the kernel's next write.
        self.status(block)
            .store(TP_STATUS_KERNEL, Ordering::Release);
    }

    fn status(&self, block: usize) -> &AtomicU32 {
        // SAFETY: the word is inside the block, aligned as the mapping and the length of a block
        // are, and the kernel accesses it as one word.
        unsafe { AtomicU32::from_ptr(self.start(block).add(BLOCK_STATUS).cast()) }
    }

    fn start(&self, block: usize) -> *mut u8 {
        assert!(block < self.blocks, "a block of the ring");
        self.memory.at(block * self.block_bytes, self.block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const BLOCK: usize = 64;

    /// A file with these blocks, each with its status.
    fn file_of(blocks: &[(u32, u8)]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        for (status, fill) in blocks {
            let mut block = [*fill; BLOCK];
            block[BLOCK_STATUS..][..4].copy_from_slice(&status.to_ne_bytes());
            file.write_all(&block).unwrap();
        }
        file
    }

    proptest! {
        /// The twin without unsafe code reads the file.
        #[test]
        fn blocks_are_those_of_the_file(
            blocks in vec((prop_oneof![Just(0), Just(1), any::<u32>()], any::<u8>()), 1..9),
            released in vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let file = file_of(&blocks);
            let mut ring = Ring::map(file.as_fd(), BLOCK, blocks.len()).unwrap();
            for released in released {
                ring.release(released.index(blocks.len()));
            }
            for block in 0..blocks.len() {
                let mut bytes = [0; BLOCK];
                file.read_exact_at(&mut bytes, (block * BLOCK) as u64).unwrap();
                let is_readers = bytes[BLOCK_STATUS..][..4] != [0; 4]
                    && u32::from_ne_bytes(*bytes[BLOCK_STATUS..].first_chunk().unwrap()) & 1 == 1;
                prop_assert_eq!(ring.ready(block), is_readers.then_some(&bytes[..]));
            }
        }
    }

    #[test]
    #[should_panic(expected = "a block of the ring")]
    fn there_are_no_more_blocks() {
        let file = file_of(&[(1, 0)]);
        let _ = Ring::map(file.as_fd(), BLOCK, 1).unwrap().ready(1);
    }
}
