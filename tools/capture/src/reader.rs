//! Reads the frames of a ring in the order of its blocks. It knows nothing of sockets, so tests
//! read rings that they have filled themselves.

use std::io;

use crate::block::{Filled, Frame, Position};
use crate::ring::Ring;

/// How far a ring is read.
#[derive(Debug)]
pub(crate) struct RingReader {
    ring: Ring,
    /// The block that is read, or comes next.
    block: usize,
    /// The next frame, if the block is there.
    head: Option<Position>,
    /// The blocks that were passed back to the kernel.
    released: u64,
}

impl RingReader {
    /// A reader in front of the first block.
    pub(crate) const fn new(ring: Ring) -> Self {
        Self {
            ring,
            block: 0,
            head: None,
            released: 0,
        }
    }

    /// Looks for the next frame. Returns whether there is one.
    #[inline]
    pub(crate) fn find(&mut self) -> io::Result<bool> {
        while self.head.is_none()
            && let Some(block) = self.ring.ready(self.block)
        {
            self.head = Position::first(block)?;
            if self.head.is_none() {
                self.release();
            }
        }
        Ok(self.has_frame())
    }

    /// Whether there is a frame that was found and not taken.
    pub(crate) const fn has_frame(&self) -> bool {
        self.head.is_some()
    }

    /// The frame that was found.
    pub(crate) fn next_frame(&self) -> io::Result<Option<Frame<'_>>> {
        let Some((position, block)) = self.head.zip(self.ring.ready(self.block)) else {
            return Ok(None);
        };
        let (frame, _) = position.frame(Filled::of(block)?)?;
        Ok(Some(frame))
    }

    /// Passes the next frames of the block that is read to `take`, at most so many, up to one that
    /// it does not take: that stays the next one. Returns how many were taken.
    #[inline(always)]
    pub(crate) fn take_frames(
        &mut self,
        most: u64,
        mut take: impl FnMut(&Frame<'_>) -> bool,
    ) -> io::Result<u64> {
        let Some((position, block)) = self.head.zip(self.ring.ready(self.block)) else {
            return Ok(0);
        };
        let block = Filled::of(block)?;
        let (mut head, mut taken) = (Some(position), 0);
        while taken < most
            && let Some(position) = head
        {
            let (frame, next) = position.frame(block)?;
            if !take(&frame) {
                break;
            }
            head = next;
            taken += 1;
        }
        self.head = head;
        if head.is_none() {
            self.release();
        }
        Ok(taken)
    }

    /// Passes the block back to the kernel.
    fn release(&mut self) {
        self.ring.release(self.block);
        self.block = (self.block + 1) % self.ring.blocks();
        self.released += 1;
    }

    /// The blocks that were passed back to the kernel.
    pub(crate) const fn released(&self) -> u64 {
        self.released
    }

    /// Whether half of the ring or more waits to be read.
    pub(crate) fn is_behind(&self) -> bool {
        // The kernel fills the blocks one after the other.
        let blocks = self.ring.blocks();
        let middle = (self.block + blocks / 2) % blocks;
        self.ring.ready(middle).is_some()
    }

    /// Whether the ring has no frame.
    pub(crate) fn is_idle(&self) -> bool {
        self.head.is_none() && self.ring.ready(self.block).is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::block::{BLOCK_STATUS, tests as made};
    use crate::pcapng;

    const BLOCK: usize = 4096;

    /// What is read of a ring that has these blocks: the bytes of its frames as packets with this
    /// snap length, in the order of the ring, and whether all of them could be read.
    fn read(blocks: &[Vec<u8>], snap_len: usize, most: u64) -> (Vec<Vec<u8>>, bool) {
        let mut file = tempfile::tempfile().unwrap();
        for block in blocks {
            let mut block = block.clone();
            block.resize(BLOCK, 0xee);
            block[BLOCK_STATUS..][..4].copy_from_slice(&libc::TP_STATUS_USER.to_ne_bytes());
            file.write_all(&block).unwrap();
        }
        let ring = Ring::map(file.as_fd(), BLOCK, blocks.len()).unwrap();
        let (mut reader, mut found) = (RingReader::new(ring), Vec::new());
        let mut read_all = || {
            while reader.find()? {
                let next = reader.next_frame()?.unwrap().bytes.to_vec();
                let before = found.len();
                let taken = reader.take_frames(most, |frame| {
                    let captured = pcapng::captured(frame, snap_len);
                    let mut packet = vec![0xee; pcapng::packet_len(captured)];
                    pcapng::write_packet(&mut packet, 0, frame, captured);
                    found.push(packet[pcapng::BEFORE_DATA..][..captured].to_vec());
                    true
                })?;
                assert_eq!(taken as usize, found.len() - before);
                assert!(snap_len < next.len() || found[before].len() >= next.len());
            }
            io::Result::Ok(())
        };
        let is_whole = read_all().is_ok();
        assert!(!is_whole || reader.released() as usize == blocks.len());
        (found, is_whole)
    }

    proptest! {
        /// The frames of all blocks come in order, however many are taken at a time.
        #[test]
        fn a_ring_is_read_block_by_block(
            frames in vec(vec(made::made(), 0..6), 2..5),
            snap_len in 0..120_usize,
            most in 1..5_u64,
        ) {
            let blocks: Vec<_> = frames.iter().map(|frames| made::block_of(frames, 0).0).collect();
            let expected = frames.iter().flatten().map(|frame| {
                let mut whole = frame.whole();
                whole.truncate(snap_len);
                whole
            });
            let (found, is_whole) = read(&blocks, snap_len, most);
            prop_assert!(is_whole);
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        }

        /// Damage in one block ends the reading there, and what is in front of it is whole.
        #[test]
        fn damaged_blocks_are_read_up_to_the_damage(
            frames in vec(vec(made::made(), 1..5), 3),
            lies in vec((any::<prop::sample::Index>(), made::lie()), 1..4),
            snap_len in prop_oneof![Just(0), 1..100_usize, Just(1 << 18)],
        ) {
            let blocks: Vec<_> = frames.iter().map(|frames| made::block_of(frames, 0)).collect();
            let mut damaged: Vec<_> = blocks.iter().map(|(block, _)| block.clone()).collect();
            made::lie_in(&mut damaged[1], &blocks[1].1, &lies);
            let (whole, _) = read(&[blocks[0].0.clone(), blocks[0].0.clone()], snap_len, u64::MAX);
            let (found, _) = read(&damaged, snap_len, u64::MAX);
            let first = frames[0].len();
            prop_assert!(found.len() >= first);
            prop_assert_eq!(&found[..first], &whole[..first]);
            // A frame never has more bytes than its block.
            prop_assert!(found.iter().all(|frame| frame.len() <= BLOCK + 4));
        }

        /// Any bytes at all.
        #[test]
        fn any_memory_ends(blocks in vec(vec(any::<u8>(), 0..BLOCK), 2), snap_len in 0..100_usize) {
            let mut blocks = blocks;
            for block in &mut blocks {
                block.resize(BLOCK, 0);
                made::bound_frames(block);
            }
            read(&blocks, snap_len, u64::MAX);
        }
    }
}
