//! Several interfaces as one stream of pcapng blocks, in the order of time.
//!
//! A quiet interface says nothing, so the next frame of another one waits until nothing earlier can
//! come. The kernel passes a block on at most [`hold`](Capture::hold) after its first frame, so a
//! ring that is empty has no frame that is older than that:
//!
//! ```text
//!                     a frame of another ring          the other ring is seen empty
//!   -----------------------|---------------------------------|------> time of the system
//!     may go  ->           .    <-  hold  ->                 .
//! ```
//!
//! That depends on the times of frames only, so a ring is read as fast as it is filled. Frames of
//! AF_XDP have the time of the poll, so a later poll has no earlier ones, and the hold is 0.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use echoless_packets::InterfaceId;
use echoless_packets::framing::PacketBlock;
use echoless_packets::writer::PcapngWriter;

use crate::interface::{self, Change, Interface, now};
use crate::options::{InterfaceCounts, InterfaceError, Notice, Options};
use crate::pcapng;

/// What a block may be late beyond its time-out: a tick of the system and the way to its timer.
const SLACK: Duration = Duration::from_millis(30);

/// A frame that could go for so long, in nanoseconds, waits for its turn and for no other one.
const LATE: u64 = 10_000_000;

/// The shortest wait for a frame that is held, so that those behind it are read together, and the
/// wait in which frames of AF_XDP gather, which would wake the reader one by one.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// How often the capture looks whether an interface that is down was removed, of which the kernel
/// tells only the first, and whether one that was removed is there again.
const LOOK_AT_DOWN: Duration = Duration::from_millis(200);

/// The frames that come next: of this interface, up to this time, so many at most.
#[derive(Debug, Clone, Copy)]
struct NextFrames {
    interface: usize,
    last: u64,
    most: u64,
}

/// Frames of interfaces, as the bytes of a pcapng section.
#[derive(Debug)]
pub struct Capture {
    options: Options,
    interfaces: Vec<Interface>,
    snap_len: usize,
    /// The longest time from a frame to the end of its block.
    lateness: Duration,
    hold: Duration,
    /// Whether frames gather in the next wait: some came since the last one.
    gathers: bool,
    /// When the next frame may go, in nanoseconds since 1970, if there is one.
    due: Option<u64>,
    /// The frames until the end.
    left: u64,
    /// Once no more frames come: when the last of them are in the rings.
    drained: Option<Instant>,
    /// Whether the last blocks are written.
    has_ended: bool,
    /// Writes the blocks that are no frames.
    writer: PcapngWriter,
    /// Bytes that did not fit, and how many of them are read.
    pending: Vec<u8>,
    read: usize,
    notices: Vec<Notice>,
}

impl Capture {
    /// Begins to capture on all interfaces. `counts` has one for each of them.
    ///
    /// # Errors
    /// [`InterfaceError`] of the first that cannot be captured.
    pub fn open(
        options: &Options,
        counts: &[Arc<InterfaceCounts>],
    ) -> Result<Self, InterfaceError> {
        let mut writer = pcapng::section();
        let mut interfaces: Vec<Interface> = Vec::new();
        // Before the frames of one are taken from the host, in vain if another is not there.
        for name in &options.interfaces {
            interface::find(name).map_err(|source| InterfaceError {
                interface: name.clone(),
                source,
            })?;
        }
        for (name, counts) in options.interfaces.iter().zip(counts) {
            let opened = Interface::open(name, options, Arc::clone(counts));
            let opened = opened.and_then(|opened| {
                let same = interfaces.iter().find(|it| it.index == opened.index);
                let also = |same: &Interface| format!("is also {}", same.name);
                same.map(also)
                    .map_or(Ok(opened), |also| Err(io::Error::other(also)))
            });
            let opened = opened.map_err(|source| InterfaceError {
                interface: name.clone(),
                source,
            })?;
            let (link, filter) = (opened.link_type, options.filter.as_deref());
            pcapng::describe(&mut writer, name, link, options.snap_len, filter);
            interfaces.push(opened);
        }
        let lateness = 2 * options.block_timeout + SLACK;
        Ok(Self {
            options: options.clone(),
            interfaces,
            snap_len: options.snap_len as usize,
            lateness,
            hold: match options.by_xdp {
                true => Duration::ZERO,
                false => lateness,
            },
            gathers: false,
            due: None,
            left: options.frames.unwrap_or(u64::MAX),
            drained: None,
            has_ended: false,
            pending: writer.take_bytes(),
            writer,
            read: 0,
            notices: Vec::new(),
        })
    }

    /// Reads the bytes that are there, without waiting: 0 if there are none, or if the section
    /// [has ended](Self::has_ended).
    ///
    /// They are either blocks of packets, each of which is also passed to `packet` with the offset
    /// of its end, so that the caller need not frame them, or others and parts of blocks, of which
    /// none is.
    ///
    /// # Errors
    /// That of the system.
    pub fn read(
        &mut self,
        buffer: &mut [u8],
        mut packet: impl FnMut(PacketBlock, usize),
    ) -> io::Result<usize> {
        loop {
            let rest = &self.pending[self.read..];
            if !rest.is_empty() {
                let len = rest.len().min(buffer.len());
                buffer[..len].copy_from_slice(&rest[..len]);
                self.read += len;
                return Ok(len);
            }
            self.pending.clear();
            self.read = 0;
            let filled = self.read_frames(buffer, &mut packet)?;
            if filled > 0 {
                return Ok(filled);
            }
            match self.next()? {
                // One that does not fit comes in parts.
                Some(next) => {
                    let len = self.interfaces[next.interface].source.next_frame()?;
                    let len = len.map_or(0, |frame| {
                        pcapng::packet_len(pcapng::captured(&frame, self.snap_len))
                    });
                    let mut whole = vec![0; len];
                    let one = NextFrames { most: 1, ..next };
                    self.take(one, &mut whole, 0, &mut |_, _| {})?;
                    self.pending = whole;
                }
                None if self.is_over() && !self.has_ended => self.end()?,
                None => return Ok(0),
            }
        }
    }

    /// Reads the frames that are there and fit.
    fn read_frames(
        &mut self,
        buffer: &mut [u8],
        packet: &mut impl FnMut(PacketBlock, usize),
    ) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(next) = self.next()? {
            let end = self.take(next, buffer, filled, packet)?;
            if end == filled {
                break;
            }
            filled = end;
        }
        Ok(filled)
    }

    /// Writes the blocks of the next frames behind the `filled` bytes of a buffer, as far as they
    /// fit. Returns how many are filled then.
    fn take(
        &mut self,
        next: NextFrames,
        buffer: &mut [u8],
        mut filled: usize,
        packet: &mut impl FnMut(PacketBlock, usize),
    ) -> io::Result<usize> {
        let (index, snap_len) = (next.interface as u32, self.snap_len);
        let interface = &mut self.interfaces[next.interface];
        let link = interface.link_type;
        let taken = interface.take_frames(next.last, next.most, |frame| {
            let captured = pcapng::captured(frame, snap_len);
            let end = filled + pcapng::packet_len(captured);
            let Some(room) = buffer.get_mut(filled..end) else {
                return false;
            };
            let original_len = pcapng::write_packet(room, index, frame, captured);
            let data = filled + pcapng::BEFORE_DATA;
            let block = PacketBlock {
                interface: InterfaceId { section: 0, index },
                link,
                data: data..data + captured,
                original_len,
                timestamp: i64::try_from(frame.time).ok(),
            };
            packet(block, end);
            filled = end;
            true
        })?;
        self.left -= taken;
        self.gathers = self.options.by_xdp && self.options.block_timeout > SHORTEST_WAIT;
        Ok(filled)
    }

    /// The frames that come next, if that is known.
    #[inline]
    fn next(&mut self) -> io::Result<Option<NextFrames>> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut first: Option<(u64, usize)> = None;
        // The time of the first frame that must come behind those of `first`, and when the empty
        // rings were all seen so.
        let (mut behind, mut seen_empty) = (u64::MAX, u64::MAX);
        let (is_only, mut look) = (self.interfaces.len() == 1, None);
        for (at, interface) in self.interfaces.iter_mut().enumerate() {
            if !interface.find(&mut look)? {
                seen_empty = seen_empty.min(interface.seen_empty);
                continue;
            }
            // Nothing is compared with the frames of one.
            let time = match is_only {
                true => 0,
                false => interface.source.next_frame()?.map_or(0, |frame| frame.time),
            };
            // Of equal times, that of the first interface.
            match first {
                Some((earliest, _)) if earliest <= time => behind = behind.min(time),
                earlier => {
                    behind = earlier.map_or(behind, |(time, _)| time.saturating_sub(1));
                    first = Some((time, at));
                }
            }
        }
        let hold = self.hold.as_nanos() as u64;
        let due = |time: u64| time.saturating_add(hold);
        self.due = first.map(|(time, _)| due(time));
        let Some((time, interface)) = first else {
            return Ok(None);
        };
        let frames = |last, most| {
            Ok(Some(NextFrames {
                interface,
                last,
                most,
            }))
        };
        let may_go = match seen_empty {
            u64::MAX => u64::MAX,
            seen_empty => seen_empty.saturating_sub(hold),
        };
        if time <= may_go {
            return frames(behind.min(may_go), self.left);
        }
        // Behind a clock that was set back, nothing is compared: the wait could be long.
        match time > now() {
            true => frames(time, 1),
            false => Ok(None),
        }
    }

    /// Captures no more frames. Those before are still read.
    ///
    /// # Errors
    /// That of the system.
    pub fn stop(&mut self) -> io::Result<()> {
        if self.drained.is_none() {
            for interface in &mut self.interfaces {
                interface.stop()?;
            }
            self.drained = Some(Instant::now() + self.lateness);
        }
        Ok(())
    }

    /// Whether no more frames come: `read` has found none that is due.
    fn is_over(&self) -> bool {
        let is_drained = self
            .drained
            .is_some_and(|drained| drained <= Instant::now());
        self.left == 0 || is_drained && self.interfaces.iter().all(|it| it.source.is_idle())
    }

    /// Writes the statistics of the interfaces.
    fn end(&mut self) -> io::Result<()> {
        self.has_ended = true;
        // Changes are found behind a wait, and there may have been none since.
        self.check()?;
        let now = now();
        for (number, interface) in (0..).zip(&mut self.interfaces) {
            interface.count()?;
            pcapng::count(&mut self.writer, number, now, &interface.counts);
        }
        self.pending.extend(self.writer.take_bytes());
        Ok(())
    }

    /// Whether the section has ended, and all of it is read.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended && self.read == self.pending.len()
    }

    /// The sockets of which one becomes readable with the next frames, and the longest wait for
    /// them; `None` is as long as it takes.
    #[must_use]
    pub fn awaited(&self) -> (Vec<BorrowedFd<'_>>, Option<Duration>) {
        let sockets: Vec<_> = self
            .interfaces
            .iter()
            .flat_map(|it| it.idle_sockets(self.gathers))
            .collect();
        let held = self
            .due
            .map(|due| Duration::from_nanos(due.saturating_sub(now())));
        let held = held.map(|held| held.max(SHORTEST_WAIT));
        // No frame is held for longer than that, and one that is may be held when that is over.
        let drained = self.drained.filter(|_| held.is_none());
        let drained = drained.map(|it| it.saturating_duration_since(Instant::now()));
        let waits = self.options.waits;
        let mut awaited = (self.interfaces.iter()).filter(|it| it.was_down);
        let may_change = awaited.any(|it| waits || it.gone.is_none());
        let look = may_change.then_some(LOOK_AT_DOWN);
        let gathered = self.gathers.then_some(SHORTEST_WAIT);
        let longest = [held, drained, look, gathered].into_iter().flatten().min();
        (sockets, longest)
    }

    /// Whether half of a buffer waits to be read, so that the kernel soon drops frames, and not
    /// because the first of them is held for those of another interface.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let is_late = |due: u64| due.saturating_add(LATE) < now();
        (self.hold.is_zero() || self.due.is_none_or(is_late))
            && self.interfaces.iter().any(|it| it.source.is_behind())
    }

    /// Finds out, behind a wait, what has become of the interfaces.
    ///
    /// # Errors
    /// That of the system.
    pub fn check(&mut self) -> io::Result<()> {
        let waits = self.options.waits && self.drained.is_none();
        self.gathers = false;
        for interface in &mut self.interfaces {
            let name = interface.name.clone();
            match interface.check()? {
                None => {}
                Some(Change::Down) => self.notices.push(Notice::Down(name.clone())),
                Some(Change::Gone) => self.notices.push(Notice::Gone(name.clone())),
            }
            // The last block of the ring comes before that.
            let is_left = (interface.gone).is_some_and(|gone| gone.elapsed() > self.lateness);
            if waits && is_left && interface.source.is_idle() && interface.reopen(&self.options)? {
                self.notices.push(Notice::Again(name));
            }
        }
        let mut gone = self.interfaces.iter().map(|it| it.gone.is_some());
        match !waits && gone.all(|is_gone| is_gone) {
            true => self.stop(),
            false => Ok(()),
        }
    }

    /// What is to be said since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let mut notices = std::mem::take(&mut self.notices);
        for interface in &mut self.interfaces {
            notices.extend(interface.take_offload_notices());
        }
        notices
    }
}
