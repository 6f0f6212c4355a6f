//! The memory of an AF_XDP socket: frames in chunks, and two rings of descriptors, by which a chunk
//! changes hands.
//!
//! ```text
//! frames | chunk 0 | chunk 1 | .. | chunk n-1 |
//! filled | producer 4 | .. | consumer 4 | .. | address 8, length 4, options 4 | ..
//! empty  | producer 4 | .. | consumer 4 | .. | address 8 | ..
//!
//!            empty: we produce                     filled: the kernel produces
//!   reader ------------------------> kernel ------------------------------------> reader
//! ```
//!
//! A chunk is the kernel's once its address is in front of the producer of `empty`, and the
//! reader's once a descriptor of it is in front of the producer of `filled`. Positions count
//! without end in 32 bits, and a ring has a power of two of entries.
#![allow(unsafe_code)]

use std::io;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{XDP_PKT_CONTD, xdp_desc, xdp_ring_offset};

use crate::memory::Mapping;

/// A ring of entries of one size.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
    entry_bytes: usize,
    /// A power of two.
    count: u32,
}

impl Ring {
    /// A ring in its memory, which begins at `offsets`.
    ///
    /// # Panics
    /// If the count is no power of two, or something is not aligned.
    pub(super) fn new(
        memory: Mapping,
        offsets: &xdp_ring_offset,
        entry_bytes: usize,
        count: u32,
    ) -> Self {
        assert!(count.is_power_of_two());
        let [producer, consumer, entries] =
            [offsets.producer, offsets.consumer, offsets.desc].map(|offset| offset as usize);
        assert!((producer | consumer).is_multiple_of(4) && entries.is_multiple_of(8));
        Self {
            memory,
            producer,
            consumer,
            entries,
            entry_bytes,
            count,
        }
    }

    /// The bytes of a ring.
    pub(super) fn bytes(offsets: &xdp_ring_offset, entry_bytes: usize, count: u32) -> usize {
        offsets.desc as usize + count as usize * entry_bytes
    }

    fn position(&self, offset: usize) -> &AtomicU32 {
        let place = self.memory.at(offset, size_of::<u32>());
        // SAFETY: the word is inside the mapping, aligned as the mapping and the offset are, and
        // the kernel accesses it as one word.
        unsafe { AtomicU32::from_ptr(place.cast()) }
    }

    #[inline]
    fn entry<T>(&self, position: u32) -> *mut T {
        debug_assert_eq!(size_of::<T>(), self.entry_bytes);
        let index = (position & (self.count - 1)) as usize;
        let offset = self.entries + index * self.entry_bytes;
        self.memory.at(offset, self.entry_bytes).cast()
    }
}

/// A frame, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether the next part is of the same frame.
    pub(super) continues: bool,
}

/// The chunks of a socket, and how far its rings are read and written.
#[derive(Debug)]
pub(super) struct Umem {
    frames: Mapping,
    /// A chunk has two to this power of bytes.
    chunk_shift: u32,
    chunks: u32,
    filled: Ring,
    empty: Ring,
    /// The position of the first descriptor that was not passed back, and the number of those from
    /// there on that the reader has.
    next: u32,
    found: u32,
    /// The position behind the last address that was passed back.
    emptied: u32,
}

/// Entries of the two rings.
pub(super) const FILLED_ENTRY: usize = size_of::<xdp_desc>();
pub(super) const EMPTY_ENTRY: usize = size_of::<u64>();

impl Umem {
    /// The chunks of this memory, which are all passed to the kernel.
    ///
    /// # Panics
    /// If a ring has not an entry for each, or the bytes of a chunk are no power of two.
    pub(super) fn new(frames: Mapping, chunk_bytes: usize, filled: Ring, empty: Ring) -> Self {
        assert!(chunk_bytes.is_power_of_two());
        let chunks = (frames.len() / chunk_bytes) as u32;
        let mut memory = Self {
            next: filled.position(filled.consumer).load(Ordering::Relaxed),
            emptied: empty.position(empty.producer).load(Ordering::Relaxed),
            chunk_shift: chunk_bytes.trailing_zeros(),
            chunks,
            frames,
            filled,
            empty,
            found: 0,
        };
        assert!(memory.filled.count >= chunks && memory.empty.count >= chunks);
        for chunk in 0..chunks {
            memory.pass_chunk(u64::from(chunk) * chunk_bytes as u64);
        }
        memory.publish();
        memory
    }

    /// The number of chunks.
    pub(super) const fn chunks(&self) -> u32 {
        self.chunks
    }

    /// The number of parts that wait to be read.
    pub(super) fn waiting(&self) -> u32 {
        let producer = self.filled.position(self.filled.producer);
        // Acquire: what the kernel has written before it moved the position.
        let waiting = producer.load(Ordering::Acquire).wrapping_sub(self.next);
        waiting.min(self.filled.count)
    }

    /// Takes the parts that wait: the reader has them from now on. Returns their number.
    pub(super) fn find(&mut self) -> u32 {
        self.found = self.waiting();
        self.found
    }

    /// One of the parts that were found, so many behind the first. Fails if its descriptor names
    /// bytes that are not in one chunk.
    ///
    /// # Panics
    /// If not so many were found.
    #[inline]
    pub(super) fn part(&self, behind: u32) -> io::Result<Part<'_>> {
        let descriptor = self.descriptor(behind);
        let chunk_bytes = 1 << self.chunk_shift;
        let (at, length) = (descriptor.addr, descriptor.len as usize);
        let fits = (at & (chunk_bytes - 1)) + u64::from(descriptor.len) <= chunk_bytes;
        let is_inside = at >> self.chunk_shift < u64::from(self.chunks);
        if !fits || !is_inside {
            return Err(contradiction());
        }
        let start = self.frames.at(at as usize, length);
        // SAFETY: the bytes are inside the mapping, which lives as long as `self`. The chunk is the
        // reader's, so the kernel does not write to it before `pass_back`, which needs
        // `&mut self`.
        let bytes = unsafe { slice::from_raw_parts(start, length) };
        Ok(Part {
            bytes,
            continues: descriptor.options & XDP_PKT_CONTD != 0,
        })
    }

    /// Passes the first parts that were found back to the kernel, which sees it behind
    /// [`publish`](Self::publish).
    ///
    /// # Panics
    /// If not so many were found.
    #[inline]
    pub(super) fn pass_back(&mut self, parts: u32) {
        for _ in 0..parts {
            self.pass_chunk(self.descriptor(0).addr);
            self.next = self.next.wrapping_add(1);
            self.found -= 1;
        }
    }

    fn pass_chunk(&mut self, address: u64) {
        let place = self.empty.entry::<u64>(self.emptied);
        // SAFETY: an entry of the ring, aligned as its offset is. The kernel does not read it
        // before `publish`: there are no more chunks than entries.
        unsafe { place.write(address >> self.chunk_shift << self.chunk_shift) };
        self.emptied = self.emptied.wrapping_add(1);
    }

    /// Publishes what was passed back to the kernel.
    pub(super) fn publish(&self) {
        let (consumer, producer) = (self.filled.consumer, self.empty.producer);
        // Release, of both: all reads of the entries and chunks, and the writes of addresses, come
        // before the kernel's next write there.
        let consumer = self.filled.position(consumer);
        consumer.store(self.next, Ordering::Release);
        let producer = self.empty.position(producer);
        producer.store(self.emptied, Ordering::Release);
    }

    #[inline]
    fn descriptor(&self, behind: u32) -> xdp_desc {
        assert!(behind < self.found, "a part that was found");
        let place = self
            .filled
            .entry::<xdp_desc>(self.next.wrapping_add(behind));
        // SAFETY: an entry of the ring, aligned as its offset is, which the kernel does not write
        // to between its producer and the consumer.
        unsafe { place.read() }
    }
}

#[cold]
pub(super) fn contradiction() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a descriptor of the ring contradicts itself",
    )
}
