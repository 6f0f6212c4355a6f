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
//! That depends on the times of frames only, so a ring is read as fast as it is filled.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use echoless_packets::writer::PcapngWriter;

use crate::interface::{Change, Interface, now};
use crate::options::{InterfaceCounts, InterfaceError, Notice, Options};
use crate::pcapng;

/// What a block may be late beyond its time-out: a tick of the system and the way to its timer.
const SLACK: Duration = Duration::from_millis(30);

/// A frame that could go for so long, in nanoseconds, waits for its turn and for no other one.
const LATE: u64 = 10_000_000;

/// The shortest wait for a frame that is held, so that those behind it are read together.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// How often the capture looks whether an interface that is down was removed, of which the kernel
/// tells only the first, and whether one that was removed is there again.
const LOOK_AT_DOWN: Duration = Duration::from_millis(200);

/// Frames of interfaces, as the bytes of a pcapng section.
#[derive(Debug)]
pub struct Capture {
    options: Options,
    interfaces: Vec<Interface>,
    snap_len: usize,
    hold: Duration,
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
        Ok(Self {
            options: options.clone(),
            interfaces,
            snap_len: options.snap_len as usize,
            hold: 2 * options.block_timeout + SLACK,
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
    /// # Errors
    /// That of the system.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        loop {
            let rest = &self.pending[self.read..];
            let len = rest.len().min(buffer.len() - filled);
            buffer[filled..filled + len].copy_from_slice(&rest[..len]);
            filled += len;
            self.read += len;
            if self.read < self.pending.len() {
                return Ok(filled);
            }
            self.pending.clear();
            self.read = 0;
            filled += self.read_frames(&mut buffer[filled..])?;
            let next = match self.left {
                0 => None,
                _ => self.next()?,
            };
            match next {
                // One that does not fit would come in parts, which is only worth it if there is
                // nothing else.
                Some(_) if filled > 0 => return Ok(filled),
                Some(next) => {
                    let mut pending = std::mem::take(&mut self.pending);
                    let place = &mut pending;
                    self.take(next, move |len| {
                        place.resize(len, 0);
                        Some(&mut place[..])
                    })?;
                    self.pending = pending;
                }
                None if self.is_over() && !self.has_ended => self.end()?,
                None => return Ok(filled),
            }
        }
    }

    /// Reads the frames that are there and fit.
    fn read_frames(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while self.left > 0
            && let Some(next) = self.next()?
        {
            let room = &mut buffer[filled..];
            let written = self.take(next, move |len| room.get_mut(..len))?;
            if written == 0 {
                break;
            }
            filled += written;
        }
        Ok(filled)
    }

    /// Writes the next frame of an interface to the place that `room` has for so many bytes, if it
    /// has one. Returns how many were written.
    fn take<'a>(
        &mut self,
        interface: usize,
        room: impl FnOnce(usize) -> Option<&'a mut [u8]>,
    ) -> io::Result<usize> {
        let snap_len = self.snap_len;
        let mut written = 0;
        self.interfaces[interface].take_frame(|frame| {
            let tag_len = frame.tag.map_or(0, |tag| tag.len());
            let captured = (frame.bytes.len() + tag_len).min(snap_len);
            let Some(room) = room(pcapng::packet_len(captured)) else {
                return false;
            };
            written = room.len();
            pcapng::write_packet(room, interface as u32, frame, captured);
            true
        })?;
        self.left -= u64::from(written > 0);
        Ok(written)
    }

    /// The interface whose frame comes next, if that is known.
    #[inline]
    fn next(&mut self) -> io::Result<Option<usize>> {
        let mut first: Option<(u64, usize)> = None;
        // When the empty rings were all seen so.
        let mut seen_empty = u64::MAX;
        let is_only = self.interfaces.len() == 1;
        for (at, interface) in self.interfaces.iter_mut().enumerate() {
            if interface.find()? {
                // Nothing is compared with the frames of one.
                let time = if is_only { 0 } else { interface.time()? };
                // Of equal times, that of the first interface.
                if first.is_none_or(|(earliest, _)| time < earliest) {
                    first = Some((time, at));
                }
            } else {
                seen_empty = seen_empty.min(interface.seen_empty);
            }
        }
        let due = |time: u64| time.saturating_add(self.hold.as_nanos() as u64);
        self.due = first.map(|(time, _)| due(time));
        // Behind a clock that was set back, nothing is compared: the wait could be long.
        let may_go = |time| due(time) <= seen_empty || time > now();
        Ok(first.filter(|(time, _)| may_go(*time)).map(|(_, at)| at))
    }

    /// Captures no more frames. Those before are still read.
    ///
    /// # Errors
    /// That of the system.
    pub fn stop(&mut self) -> io::Result<()> {
        if self.drained.is_none() {
            for interface in &self.interfaces {
                interface.stop()?;
            }
            self.drained = Some(Instant::now() + self.hold);
        }
        Ok(())
    }

    /// Whether no more frames come: `read` has found none that is due.
    fn is_over(&self) -> bool {
        let is_drained = self
            .drained
            .is_some_and(|drained| drained <= Instant::now());
        self.left == 0 || is_drained && self.interfaces.iter().all(Interface::is_idle)
    }

    /// Writes the statistics of the interfaces.
    fn end(&mut self) -> io::Result<()> {
        self.has_ended = true;
        // Changes are found behind a wait, and there may have been none since.
        self.check()?;
        let now = now();
        for (number, interface) in (0..).zip(&self.interfaces) {
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
            .filter_map(Interface::idle_socket)
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
        (sockets, [held, drained, look].into_iter().flatten().min())
    }

    /// Whether half of a buffer waits to be read, so that the kernel soon drops frames, and not
    /// because the first of them is held for those of another interface.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let is_late = |due: u64| due.saturating_add(LATE) < now();
        self.due.is_none_or(is_late) && self.interfaces.iter().any(Interface::is_behind)
    }

    /// Finds out, behind a wait, what has become of the interfaces.
    ///
    /// # Errors
    /// That of the system.
    pub fn check(&mut self) -> io::Result<()> {
        let waits = self.options.waits && self.drained.is_none();
        for interface in &mut self.interfaces {
            let name = interface.name.clone();
            match interface.check()? {
                None => {}
                Some(Change::Down) => self.notices.push(Notice::Down(name.clone())),
                Some(Change::Gone) => self.notices.push(Notice::Gone(name.clone())),
            }
            // The last block of the ring comes before that.
            let is_left = (interface.gone).is_some_and(|gone| gone.elapsed() > self.hold);
            if waits && is_left && interface.is_idle() && interface.reopen(&self.options)? {
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
