//! An AF_XDP socket and its options.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libc::{
    SOL_XDP, XDP_COPY, XDP_OPTIONS_ZEROCOPY, XDP_USE_SG, XDP_ZEROCOPY, c_int, socklen_t,
    xdp_mmap_offsets, xdp_options, xdp_ring_offset, xdp_statistics, xdp_umem_reg,
};

use super::is_busy;
use super::umem::{EMPTY_ENTRY, FILLED_ENTRY, Ring, Umem};
use crate::memory::Mapping;
use crate::socket::{Plain, checked, get, raw_socket, set};

// SAFETY: two numbers of eight bytes, and four of four.
unsafe impl Plain for xdp_umem_reg {}
// SAFETY: 16 numbers of eight bytes.
unsafe impl Plain for xdp_mmap_offsets {}
// SAFETY: six numbers of eight bytes.
unsafe impl Plain for xdp_statistics {}
// SAFETY: a number.
unsafe impl Plain for xdp_options {}

const _: () = assert!(size_of::<xdp_umem_reg>() == 32);

/// Entries of the ring of frames that were sent, which a socket must have.
const SENT_ENTRIES: c_int = 1;

/// How a socket may be bound, the best first: the driver writes frames into the memory of the
/// socket, or the kernel copies them there; frames come in several chunks where they fit in none,
/// or are dropped.
const WAYS: [u16; 4] = [
    XDP_ZEROCOPY | XDP_USE_SG,
    XDP_ZEROCOPY,
    XDP_COPY | XDP_USE_SG,
    XDP_COPY,
];

/// The chunks of a socket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) chunk_bytes: u32,
    pub(super) chunks: u32,
    /// Whether every frame fits in a chunk.
    pub(super) fits: bool,
}

/// An AF_XDP socket.
#[derive(Debug)]
pub(super) struct XdpSocket {
    socket: OwnedFd,
    /// Whether it gets frames that fit in no chunk.
    pub(super) joins_parts: bool,
}

impl XdpSocket {
    /// A socket of a queue of an interface, which gets what a program passes to it, and its memory.
    /// Fails with [`io::ErrorKind::InvalidInput`] if there is no such queue,
    /// [`io::ErrorKind::ResourceBusy`] if another socket has it, and `ENOBUFS` if the limit of
    /// locked memory is too low.
    pub(super) fn open(index: u32, queue: u32, layout: Layout) -> io::Result<(Self, Umem)> {
        let socket = raw_socket(libc::AF_XDP)?;
        let frames = Mapping::of_zeros(layout.chunk_bytes as usize * layout.chunks as usize)?;
        let memory = xdp_umem_reg {
            addr: frames.at(0, frames.len()) as u64,
            len: frames.len() as u64,
            chunk_size: layout.chunk_bytes,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set(&socket, SOL_XDP, libc::XDP_UMEM_REG, memory)?;
        let entries = layout.chunks.next_power_of_two();
        for (ring, entries) in [
            (libc::XDP_UMEM_FILL_RING, entries as c_int),
            (libc::XDP_UMEM_COMPLETION_RING, SENT_ENTRIES),
            (libc::XDP_RX_RING, entries as c_int),
        ] {
            set(&socket, SOL_XDP, ring, entries)?;
        }
        // SAFETY: numbers, for which zeros are values.
        let none: xdp_mmap_offsets = unsafe { mem::zeroed() };
        let offsets = get(&socket, SOL_XDP, libc::XDP_MMAP_OFFSETS, none)?;
        let map = |place, offsets: &xdp_ring_offset, entry_bytes| {
            let bytes = Ring::bytes(offsets, entry_bytes, entries);
            let memory = Mapping::of_file(socket.as_fd(), place, bytes)?;
            io::Result::Ok(Ring::new(memory, offsets, entry_bytes, entries))
        };
        let filled = map(libc::XDP_PGOFF_RX_RING as u64, &offsets.rx, FILLED_ENTRY)?;
        let empty = map(libc::XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, EMPTY_ENTRY)?;
        let memory = Umem::new(frames, layout.chunk_bytes as usize, filled, empty);
        let joins_parts = bind(&socket, index, queue, layout.fits)? & XDP_USE_SG != 0;
        let socket = Self {
            socket,
            joins_parts,
        };
        Ok((socket, memory))
    }

    /// Whether the driver writes into the memory of the socket.
    pub(super) fn is_zero_copy(&self) -> io::Result<bool> {
        let none = xdp_options { flags: 0 };
        let options = get(&self.socket, SOL_XDP, libc::XDP_OPTIONS, none)?;
        Ok(options.flags & XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// What was counted since the socket was opened.
    pub(super) fn statistics(&self) -> io::Result<xdp_statistics> {
        // SAFETY: numbers, for which zeros are values.
        let none: xdp_statistics = unsafe { mem::zeroed() };
        get(&self.socket, SOL_XDP, libc::XDP_STATISTICS, none)
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Binds a socket to a queue of an interface by the first of [`WAYS`] that works. Returns its flags.
fn bind(socket: &OwnedFd, index: u32, queue: u32, fits: bool) -> io::Result<u16> {
    let length = size_of::<libc::sockaddr_xdp>() as socklen_t;
    let mut last = io::ErrorKind::Unsupported.into();
    for flags in WAYS {
        // The driver of such frames would drop them.
        if flags == XDP_ZEROCOPY && !fits {
            continue;
        }
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: index,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let place = (&raw const address).cast();
        // SAFETY: the address has this length.
        match checked(unsafe { libc::bind(socket.as_raw_fd(), place, length) }) {
            Ok(()) => return Ok(flags),
            Err(error) if is_busy(&error) => return Err(error),
            Err(error) => last = error,
        }
    }
    Err(last)
}
