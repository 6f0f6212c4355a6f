//! One interface that is captured: its socket, and where its frames come from.

use std::io::{self, ErrorKind};
use std::iter;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use echoless_packets::LinkType;

use crate::block::Frame;
use crate::filter::{self, FrameFilter};
use crate::options::{InterfaceCounts, Notice, Options, is_absent};
use crate::reader::RingReader;
use crate::ring::Ring;
use crate::socket::{Hardware, PacketSocket, pass};
use crate::source::Source;
use crate::xdp::XdpReader;

/// Frames that begin with an IP header.
const ARPHRD_RAWIP: u16 = 519;

/// The bytes that a frame may have beside the MTU: an Ethernet header and two tags.
const LINK_BYTES: u32 = 14 + 8;

/// Blocks of a large buffer, and of a small one, in bytes. One frame of 64 KiB fits in either. A
/// block has the frames of its time-out, and a buffer needs blocks for as long as frames are held.
const LARGEST_BLOCK: u64 = 256 << 10;
const SMALLEST_BLOCK: u64 = 128 << 10;
/// A buffer has so many blocks, unless they would be too small.
const USUAL_BLOCKS: u64 = 8;

/// What became of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is down. Frames come again once it is up.
    Down,
    /// It was removed.
    Gone,
}

/// What this machine makes of frames, so that they may be no copies of others.
#[derive(Debug, Clone, Copy, Default)]
struct Offloads {
    /// Frames longer than the MTU.
    joined_frames: bool,
    /// Frames without their checksum.
    partial_checksums: bool,
    /// Frames without their VLAN tag.
    lost_tags: bool,
}

/// An interface, and how far its ring is read.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) link_type: LinkType,
    /// Dropped before the socket, which owns the memory of a ring.
    pub(crate) source: Source,
    /// Reports errors and state changes of the interface, also where frames come by other sockets.
    socket: PacketSocket,
    mtu: u32,
    /// When the ring was last seen empty, in nanoseconds since 1970.
    pub(crate) seen_empty: u64,
    /// Whether it was down once, so that it may be removed without another word of the kernel.
    pub(crate) was_down: bool,
    /// Since when it is removed.
    pub(crate) gone: Option<Instant>,
    /// What it has that copies elsewhere do not, and what of that is said.
    has: Offloads,
    told: Offloads,
    pub(crate) counts: Arc<InterfaceCounts>,
}

impl Interface {
    /// Begins to capture. Fails without the permission, an interface of this name that is up, a
    /// link header that is known, or memory for the ring; with [`ErrorKind::InvalidInput`] if the
    /// filter is none.
    pub(crate) fn open(
        name: &str,
        options: &Options,
        counts: Arc<InterfaceCounts>,
    ) -> io::Result<Self> {
        let (socket, hardware, link_type) = find(name)?;
        let Hardware { index, mtu, .. } = hardware;
        // It may have been removed meanwhile.
        let there = |error| find(name).err().unwrap_or(error);
        let mut frame_filter = None;
        match (&options.filter, options.by_xdp) {
            (Some(filter), false) => {
                let program = filter::compile(name, link_type, options.snap_len, filter);
                socket.attach(&program.map_err(there)?)?;
            }
            (None, false) => socket.attach(&pass(options.snap_len))?,
            (filter, true) => {
                if link_type != LinkType::ETHERNET {
                    let problem = "AF_XDP has Ethernet frames only: expected --capture af-packet";
                    return Err(io::Error::new(ErrorKind::Unsupported, problem));
                }
                // Its members run the program, and their frames would reach no socket.
                if hardware.is_bond {
                    let problem = "is a bond, which AF_XDP cannot capture: expected its members";
                    return Err(io::Error::new(ErrorKind::Unsupported, problem));
                }
                let filter = filter.as_ref().map(|it| FrameFilter::new(link_type, it));
                frame_filter = filter.transpose()?;
                // Its frames come by other sockets.
                socket.attach(&pass(0))?;
            }
        }
        let begin = || {
            let source = match options.by_xdp {
                false => Source::Ring(RingReader::new(open_ring(&socket, options)?)),
                true => {
                    let longest = longest_frame(mtu);
                    let of = (&socket, &hardware);
                    let queues = XdpReader::open(of, name, options, frame_filter, longest)?;
                    counts.set_method(queues.method()?);
                    Source::Queues(Box::new(queues))
                }
            };
            if options.promiscuous {
                socket.set_promiscuous(index)?;
            }
            // By any of its names.
            let to = options.sends_to.as_ref();
            let to = to.map(|to| socket.hardware(to)).transpose()?;
            if to.is_some_and(|to| to.index == index) {
                socket.ignore_outgoing()?;
            }
            socket.bind(index, true)?;
            Ok(source)
        };
        let source = begin().map_err(|error: io::Error| match error.kind() {
            ErrorKind::InvalidInput => io::Error::other(error),
            _ if [libc::ENODEV, libc::ENXIO]
                .map(Some)
                .contains(&error.raw_os_error()) =>
            {
                io::Error::new(ErrorKind::NotFound, "was removed while it was opened")
            }
            _ => error,
        })?;
        let has = Offloads {
            lost_tags: options.by_xdp && socket.takes_tags_out(name),
            ..Offloads::default()
        };
        Ok(Self {
            name: name.into(),
            index,
            link_type,
            source,
            socket,
            mtu,
            seen_empty: 0,
            was_down: false,
            gone: None,
            has,
            told: Offloads::default(),
            counts,
        })
    }

    /// Captures again, now that there may be an interface of this name. Returns whether there is.
    /// What is left in the ring is lost. Fails if it has another link header than before.
    pub(crate) fn reopen(&mut self, options: &Options) -> io::Result<bool> {
        let opened = match Self::open(&self.name, options, Arc::clone(&self.counts)) {
            Ok(opened) => opened,
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        if opened.link_type != self.link_type {
            let problem = format!("{}: came again with another link header", self.name);
            return Err(io::Error::new(ErrorKind::Unsupported, problem));
        }
        self.count()?;
        self.counts.add_reopened();
        let told = self.told;
        *self = Self { told, ..opened };
        Ok(true)
    }

    /// Looks for the next frame, at a time that is read into `look` by the first that needs it.
    /// Returns whether there is one.
    #[inline]
    pub(crate) fn find(&mut self, look: &mut Option<u64>) -> io::Result<bool> {
        if self.source.has_frame() {
            return Ok(true);
        }
        // Before the look: what came in between is not seen.
        let (now, before) = (*look.get_or_insert_with(now), self.source.released());
        let has_frame = self.source.find(now)?;
        self.count_behind(before)?;
        if !has_frame {
            self.seen_empty = now;
        }
        Ok(has_frame)
    }

    /// Passes the next frames to `take`, at most so many, up to one that is later than `last` or is
    /// not taken: that stays the next one. Returns how many were taken.
    #[inline(always)]
    pub(crate) fn take_frames(
        &mut self,
        last: u64,
        most: u64,
        mut take: impl FnMut(&Frame<'_>) -> bool,
    ) -> io::Result<u64> {
        let longest = match self.link_type {
            LinkType::ETHERNET => longest_frame(self.mtu),
            _ => u32::MAX,
        };
        let (mut has, before) = (self.has, self.source.released());
        let taken = self.source.take_frames(most, |frame| {
            let is_taken = frame.time <= last && take(frame);
            if is_taken {
                has.joined_frames |= frame.original_len > longest;
                has.partial_checksums |= frame.has_partial_checksum;
            }
            is_taken
        })?;
        self.has = has;
        self.counts.add_frames(taken);
        self.count_behind(before)?;
        Ok(taken)
    }

    /// Adds up the counts of the kernel once it has got a block back, so that each of them is read
    /// before it overflows.
    fn count_behind(&mut self, released: u64) -> io::Result<()> {
        match self.source.released() == released {
            true => Ok(()),
            false => self.count(),
        }
    }

    /// Adds up the counts of the kernel.
    pub(crate) fn count(&mut self) -> io::Result<()> {
        self.counts
            .add_kernel(self.source.take_counts(&self.socket)?);
        Ok(())
    }

    /// Gets no frames from now on. Those before are in the ring.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        match &mut self.source {
            Source::Ring(_) => self.socket.attach(&pass(0)),
            Source::Queues(queues) => {
                queues.stop();
                Ok(())
            }
        }
    }

    /// Finds out what has become of the interface since the last call. Fails with an error of the
    /// socket that no interface explains.
    pub(crate) fn check(&mut self) -> io::Result<Option<Change>> {
        let error = self.socket.take_error();
        let is_down = (error.as_ref()).is_err_and(|error| error.kind() == ErrorKind::NetworkDown);
        self.was_down |= is_down;
        if self.was_down && self.gone.is_none() && self.socket.is_orphaned() {
            self.gone = Some(Instant::now());
            return Ok(Some(Change::Gone));
        }
        match error {
            _ if is_down => Ok(Some(Change::Down)),
            other => other.map(|()| None),
        }
    }

    /// What came for the first time since the last call.
    pub(crate) fn take_offload_notices(&mut self) -> impl Iterator<Item = Notice> {
        let (has, told) = (self.has, self.told);
        self.told = has;
        let joined = Notice::JoinedFrames as fn(String) -> Notice;
        let named = [
            (has.joined_frames && !told.joined_frames, joined),
            (
                has.partial_checksums && !told.partial_checksums,
                Notice::PartialChecksums,
            ),
            (has.lost_tags && !told.lost_tags, Notice::LostTags),
        ];
        let begun = named.into_iter().filter(|(begins, _)| *begins);
        begun.map(|(_, notice)| notice(self.name.clone()))
    }

    /// The sockets of which one becomes readable with the next frames, without those of AF_XDP if
    /// it `gathers` frames. While frames are read, they are readable all the time.
    pub(crate) fn idle_sockets(&self, gathers: bool) -> impl Iterator<Item = BorrowedFd<'_>> {
        let more = self.source.sockets().filter(move |_| !gathers);
        let all = iter::once(self.socket.as_fd()).chain(more);
        all.filter(|_| !self.source.has_frame())
    }
}

/// The bytes of the longest frame of an Ethernet interface with this MTU.
const fn longest_frame(mtu: u32) -> u32 {
    mtu.saturating_add(LINK_BYTES)
}

/// The time of the clock that frames are stamped with, in nanoseconds since 1970; until 2554.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_nanos() as u64
}

/// A socket for an interface of this name, and the link header of its frames. Fails without the
/// permission, an interface that is up, or a link header that is known.
pub(crate) fn find(name: &str) -> io::Result<(PacketSocket, Hardware, LinkType)> {
    let socket = PacketSocket::open().map_err(unpermitted)?;
    let hardware = socket.hardware(name)?;
    if !hardware.is_up {
        let problem = format!("is down (ip link set {name} up)");
        return Err(io::Error::new(ErrorKind::NetworkDown, problem));
    }
    let kind = hardware.kind;
    let link = link_type(kind).ok_or_else(|| {
        let problem = format!(
            "frames of hardware type {kind} are not read: expected Ethernet, IEEE 802.11 or \
             tunnels of IP"
        );
        io::Error::new(ErrorKind::Unsupported, problem)
    })?;
    Ok((socket, hardware, link))
}

/// The link header of frames of an `ARPHRD_` type.
fn link_type(kind: u16) -> Option<LinkType> {
    match kind {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(LinkType::ETHERNET),
        libc::ARPHRD_NONE
        | ARPHRD_RAWIP
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT => Some(LinkType::RAW),
        libc::ARPHRD_IEEE80211 => Some(LinkType::IEEE802_11),
        libc::ARPHRD_IEEE80211_PRISM => Some(LinkType::PRISM),
        libc::ARPHRD_IEEE80211_RADIOTAP => Some(LinkType::RADIOTAP),
        _ => None,
    }
}

/// The ring of a socket.
fn open_ring(socket: &PacketSocket, options: &Options) -> io::Result<Ring> {
    let (block_bytes, blocks) = layout(options.buffer);
    let ring = u32::try_from(blocks).map_err(|_| ErrorKind::OutOfMemory.into());
    let ring = ring.and_then(|blocks| {
        let timeout = options.block_timeout.as_millis() as u32;
        socket.set_ring(block_bytes as u32, blocks, timeout)?;
        Ring::map(socket.as_fd(), block_bytes as usize, blocks as usize)
    });
    ring.map_err(|error: io::Error| match error.kind() {
        ErrorKind::OutOfMemory => {
            let bytes = options.buffer;
            let problem = format!("no memory for a ring of {bytes} bytes (--buffer): {error}");
            io::Error::new(error.kind(), problem)
        }
        _ => error,
    })
}

/// The length of a block and the number of blocks of a buffer, rounded up to whole blocks.
fn layout(buffer: u64) -> (u64, u64) {
    let block = (buffer / USUAL_BLOCKS).clamp(SMALLEST_BLOCK, LARGEST_BLOCK);
    // A power of two.
    let block = 1 << block.ilog2();
    (block, buffer.div_ceil(block))
}

fn unpermitted(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            let problem = "no permission to capture: expected root, or the capability that \
                           `sudo setcap cap_net_raw+ep $(command -v echoless)` gives to the command";
            io::Error::new(error.kind(), problem)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_a_lack_of_memory_is_called_one() {
        let options = Options {
            by_xdp: false,
            interfaces: vec!["lo".into()],
            snap_len: 1,
            promiscuous: false,
            // The kernel counts frames in 32 bits.
            buffer: 1 << 44,
            block_timeout: Duration::from_millis(1),
            filter: None,
            sends_to: None,
            frames: None,
            waits: false,
        };
        let error = Interface::open("lo", &options, Arc::default()).unwrap_err();
        match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::NetworkDown | ErrorKind::NotFound => {
                eprintln!("skipped: {error}");
            }
            kind => {
                assert_eq!(kind, ErrorKind::Other, "{error}");
                assert!(!error.to_string().contains("no memory"), "{error}");
            }
        }
    }

    #[test]
    fn a_buffer_is_at_least_as_large_as_asked_for() {
        for (buffer, expected) in [
            (256 << 10, (128 << 10, 2)),
            ((256 << 10) + 1, (128 << 10, 3)),
            (1 << 20, (128 << 10, 8)),
            (3 << 20, (256 << 10, 12)),
            (64 << 20, (256 << 10, 256)),
            (100_000_000, (256 << 10, 382)),
        ] {
            assert_eq!(layout(buffer), expected, "{buffer}");
        }
    }
}
