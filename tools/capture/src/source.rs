//! Where the frames of an interface come from: the ring of its packet socket, or the queues of
//! AF_XDP. Both are read in the same way.

use std::io;
use std::os::fd::BorrowedFd;

use crate::block::Frame;
use crate::options::KernelCounts;
use crate::reader::RingReader;
use crate::socket::PacketSocket;
use crate::xdp::XdpReader;

/// What the kernel fills, and how far it is read.
#[derive(Debug)]
pub(crate) enum Source {
    Ring(RingReader),
    Queues(Box<XdpReader>),
}

/// Calls the one that there is.
macro_rules! either {
    ($self:ident, $source:ident => $call:expr) => {
        match $self {
            Source::Ring($source) => $call,
            Source::Queues($source) => $call,
        }
    };
}

impl Source {
    /// Looks for the next frame, which has the time `now` if the kernel has none of it.
    /// Returns whether there is one.
    #[inline]
    pub(crate) fn find(&mut self, now: u64) -> io::Result<bool> {
        match self {
            Self::Ring(ring) => ring.find(),
            Self::Queues(queues) => queues.find(now),
        }
    }

    /// Whether there is a frame that was found and not taken.
    pub(crate) const fn has_frame(&self) -> bool {
        either!(self, source => source.has_frame())
    }

    /// The frame that was found.
    pub(crate) fn next_frame(&self) -> io::Result<Option<Frame<'_>>> {
        either!(self, source => source.next_frame())
    }

    /// Passes the next frames of a block or a burst to `take`, at most so many, up to one that it
    /// does not take: that stays the next one. Returns how many were taken.
    #[inline(always)]
    pub(crate) fn take_frames(
        &mut self,
        most: u64,
        take: impl FnMut(&Frame<'_>) -> bool,
    ) -> io::Result<u64> {
        either!(self, source => source.take_frames(most, take))
    }

    /// A number that grows with what was passed back to the kernel.
    pub(crate) const fn released(&self) -> u64 {
        either!(self, source => source.released())
    }

    /// Whether half of it or more waits to be read.
    pub(crate) fn is_behind(&self) -> bool {
        either!(self, source => source.is_behind())
    }

    /// Whether it has no frame.
    pub(crate) fn is_idle(&self) -> bool {
        either!(self, source => source.is_idle())
    }

    /// The sockets that are readable while frames wait, beside that of the interface.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let queues = match self {
            Self::Ring(_) => None,
            Self::Queues(queues) => Some(queues.sockets()),
        };
        queues.into_iter().flatten()
    }

    /// The counts of the kernel since the last call. A ring is that of `socket`.
    pub(crate) fn take_counts(&mut self, socket: &PacketSocket) -> io::Result<KernelCounts> {
        match self {
            Self::Ring(_) => {
                let since = socket.take_statistics()?;
                Ok(KernelCounts {
                    received: since.tp_packets.into(),
                    dropped: since.tp_drops.into(),
                    freezes: since.tp_freeze_q_cnt.into(),
                })
            }
            Self::Queues(queues) => queues.take_counts(),
        }
    }
}
