//! Live capture: what the feed reads in the place of a file, and what is told of it.
//!
//! A signal and the end of `--duration` stop the interfaces. What they had passed on before is
//! still read, so the outputs are whole, and no packet is lost that is not counted.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use echoless::SpecError;
use echoless_capture::{Capture, InterfaceCounts, Notice, Options, Sender, is_absent};
use echoless_packets::LinkType;
use echoless_packets::framing::PacketBlock;
use echoless_records::chunk::Chunk;
use echoless_records::failure::{self, Failure, lock};
use echoless_records::files::Source;
use echoless_records::number::grouped;
use echoless_records::reading::Read;
use echoless_records::signals::{Patience, Signals};
use serde::Serialize;

use crate::config::{DedupConfig, PacketConfig, RunConfig};
use crate::dedup::{Fields, Observer, RunCounts, Words};
use crate::packets::skew::Skew;
use crate::packets::user::User;

/// Between two looks for interfaces that are awaited.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// A capture that the options ask for.
#[derive(Debug)]
pub(crate) struct LiveCapture {
    options: Options,
    duration: Option<Duration>,
    fail_on_loss: bool,
    /// Whether packets pass without a verdict while the run is behind.
    passes_unjudged: bool,
    /// Whose the process is once the interfaces are open.
    user: Option<User>,
    counts: Vec<Arc<InterfaceCounts>>,
    /// From the begin of the run to the first read.
    opened: Mutex<Option<Capture>>,
    /// Sends the packets that pass, from the begin of the run on.
    sender: OnceLock<Sender>,
    sent: AtomicU64,
    unsent: AtomicU64,
}

impl LiveCapture {
    pub(crate) fn new(
        options: Options,
        duration: Option<Duration>,
        fail_on_loss: bool,
        passes_unjudged: bool,
        user: Option<User>,
    ) -> Self {
        Self {
            counts: InterfaceCounts::of(&options),
            options,
            duration,
            fail_on_loss,
            passes_unjudged,
            user,
            opened: Mutex::default(),
            sender: OnceLock::new(),
            sent: AtomicU64::new(0),
            unsent: AtomicU64::new(0),
        }
    }

    /// The input of a run that captures.
    pub(crate) fn source(&self) -> Source {
        Source::Interfaces(self.options.interfaces.join(", "))
    }

    /// Whether packets are sent.
    pub(crate) const fn sends(&self) -> bool {
        self.options.sends_to.is_some()
    }

    /// Begins to capture, once all interfaces are there if the run waits for them.
    pub(crate) fn open(&self, is_quiet: bool) -> Result<(), Failure> {
        if let Some(name) = &self.options.sends_to {
            let sender = Sender::open(name);
            let sender = sender.map_err(|error| Failure::file(error.interface)(error.source))?;
            self.sender.get_or_init(|| sender);
        }
        let mut awaited = String::new();
        let capture = loop {
            let error = match Capture::open(&self.options, &self.counts) {
                Ok(capture) => break capture,
                Err(error) => error,
            };
            if !self.options.waits || !is_absent(&error.source) {
                return Err(match (&self.options.filter, error.source.kind()) {
                    (Some(filter), ErrorKind::InvalidInput) => {
                        let allowed = format!("an expression of libpcap ({})", error.source);
                        SpecError::new("--filter", filter, allowed).into()
                    }
                    _ => Failure::file(error.interface)(error.source),
                });
            }
            if !is_quiet && awaited != error.interface {
                failure::warn(&format!(
                    "{}: {}, and is awaited",
                    error.interface, error.source
                ));
                awaited = error.interface;
            }
            thread::sleep(BETWEEN_LOOKS);
        };
        *lock(&self.opened) = Some(capture);
        self.user.as_ref().map_or(Ok(()), User::drop_privileges)
    }

    /// What the feed reads, once.
    pub(crate) fn input(&self, run: &RunConfig) -> Option<LiveInput> {
        Some(LiveInput {
            capture: lock(&self.opened).take()?,
            ends: self
                .duration
                .and_then(|duration| Instant::now().checked_add(duration)),
            bytes: 0,
            gone: Vec::new(),
            is_quiet: run.quiet,
            is_strict: run.strict,
            waits: self.options.waits,
            passes_unjudged: self.passes_unjudged,
            is_behind: false,
        })
    }

    /// The packets that the kernel has dropped.
    fn dropped(&self) -> u64 {
        self.counts.iter().map(|counts| counts.dropped()).sum()
    }

    /// The packets that could not be sent.
    fn unsent(&self) -> u64 {
        // Relaxed: the number publishes nothing else.
        self.unsent.load(Ordering::Relaxed)
    }

    /// Whether packets were lost, and that is a failure.
    pub(crate) fn fails(&self) -> bool {
        self.fail_on_loss && self.dropped() + self.unsent() > 0
    }

    /// What is told of copies between the interfaces, if they are several.
    pub(crate) fn skew(&self) -> Option<Skew> {
        Skew::of(&self.options.interfaces)
    }

    /// What the run does with the packets, and what it tells of them.
    pub(crate) fn observer(
        &self,
        config: &DedupConfig,
        packets: &PacketConfig,
    ) -> LiveObserver<'_> {
        LiveObserver {
            live: self,
            all_pass: packets.reading.tag,
            inverts: config.run.invert,
        }
    }
}

/// The bytes of a capture.
#[derive(Debug)]
pub(crate) struct LiveInput {
    capture: Capture,
    /// When it ends.
    ends: Option<Instant>,
    /// The bytes that were read so far.
    pub(super) bytes: u64,
    /// The interfaces that were removed since the last call of `take_gone`.
    gone: Vec<String>,
    is_quiet: bool,
    /// Whether the removal of an interface ends the capture.
    is_strict: bool,
    /// Whether one that was removed is awaited.
    waits: bool,
    /// Whether packets pass without a verdict while they come faster than they are judged, and
    /// whether those of the last read do.
    passes_unjudged: bool,
    pub(super) is_behind: bool,
}

impl LiveInput {
    /// The interfaces that were removed since the last call. One that ends the capture comes behind
    /// its packets.
    pub(crate) fn take_gone(&mut self) -> Vec<String> {
        match self.is_strict && !self.capture.has_ended() {
            true => Vec::new(),
            false => std::mem::take(&mut self.gone),
        }
    }

    /// Reads the data that is there, or waits for some, or for an interface that is removed: 0 bytes
    /// at the end. The bytes are blocks of packets, each of which is passed to `packet` with the
    /// offset of its end, or others.
    pub(crate) fn read(
        &mut self,
        signals: Signals,
        patience: Patience,
        buffer: &mut [u8],
        mut packet: impl FnMut(PacketBlock, usize),
    ) -> io::Result<Read> {
        loop {
            let has_signal = signals.caught().is_some();
            let is_over = has_signal || self.ends.is_some_and(|ends| ends <= Instant::now());
            if is_over {
                self.capture.stop()?;
            }
            self.is_behind = self.passes_unjudged && self.capture.is_behind();
            let read = self.capture.read(buffer, &mut packet)?;
            self.take_notices()?;
            self.bytes += read as u64;
            if read > 0 {
                return Ok(Read::Bytes(read));
            }
            if self.capture.has_ended() {
                return Ok(if has_signal {
                    Read::Signal
                } else {
                    Read::Bytes(0)
                });
            }
            let tells_gone = !self.is_strict && !self.gone.is_empty();
            if patience == Patience::Try || tells_gone {
                return Ok(Read::NotYet);
            }
            let (sockets, longest) = self.capture.awaited();
            let left = |ends: Instant| ends.saturating_duration_since(Instant::now());
            let until_end = self.ends.filter(|_| !is_over).map(left);
            let longest = [longest, until_end].into_iter().flatten().min();
            // A signal that has arrived would end the wait at once.
            signals.wait_for_any(&sockets, longest, !is_over)?;
            self.capture.check()?;
        }
    }

    fn take_notices(&mut self) -> io::Result<()> {
        for notice in self.capture.take_notices() {
            let warning = match notice {
                Notice::Gone(name) if self.waits => {
                    format!("{name}: was removed, and is captured again once it is there")
                }
                Notice::Again(name) => format!("{name}: is there again, and captured"),
                Notice::Gone(name) => {
                    self.gone.push(name);
                    if self.is_strict {
                        self.capture.stop()?;
                    }
                    continue;
                }
                Notice::Down(name) => format!("{name}: is down, and captured again once it is up"),
                Notice::LostTags(name) => format!(
                    "{name}: takes VLAN tags out of packets, which are lost by AF_XDP: ethtool -K \
                     {name} rxvlan off"
                ),
                Notice::JoinedFrames(name) => format!(
                    "{name}: has packets longer than its MTU, which this machine has joined or not \
                     yet divided, so that they may be no copies of others: ethtool -K {name} gro \
                     off lro off tso off gso off"
                ),
                Notice::PartialChecksums(name) => format!(
                    "{name}: has packets whose checksums this machine has not computed yet, so that \
                     they differ from copies elsewhere, unless checksums are ignored: ethtool -K \
                     {name} tx off"
                ),
            };
            if !self.is_quiet {
                failure::warn(&warning);
            }
        }
        Ok(())
    }
}

/// The counts of an interface in the JSON of `--stats`.
#[derive(Debug, Serialize)]
struct InterfaceStats<'a> {
    name: &'a str,
    capture: &'static str,
    packets: u64,
    dropped: u64,
    freezes: u64,
    reopened: u64,
}

/// Sends the packets that pass, and tells of all of them.
#[derive(Debug)]
pub(crate) struct LiveObserver<'a> {
    live: &'a LiveCapture,
    all_pass: bool,
    /// Whether duplicates pass.
    inverts: bool,
}

impl LiveObserver<'_> {
    fn interfaces(&self) -> impl Iterator<Item = InterfaceStats<'_>> {
        let interfaces = self.live.options.interfaces.iter().zip(&self.live.counts);
        interfaces.map(|(name, counts)| InterfaceStats {
            name,
            capture: counts.method().name(),
            packets: counts.frames(),
            dropped: counts.dropped(),
            freezes: counts.freezes(),
            reopened: counts.reopened(),
        })
    }
}

impl Observer for LiveObserver<'_> {
    fn on_chunk(&mut self, chunk: &mut Chunk, _: &mut RunCounts) -> Result<(), Failure> {
        let Some(sender) = self.live.sender.get() else {
            return Ok(());
        };
        let bytes = chunk.bytes.all();
        let packets = &chunk.keys.packets;
        let judged = packets.blocks.iter().enumerate().map(|(index, packet)| {
            let is_duplicate = chunk.verdicts.of_keys.is_duplicate(index);
            (packet, self.all_pass || is_duplicate == self.inverts)
        });
        let unjudged = packets.unjudged.iter();
        let unjudged = unjudged.map(|packet| (packet, self.all_pass || !self.inverts));
        let mut all: Vec<_> = judged.chain(unjudged).collect();
        // Nearly always sorted.
        all.sort_by_key(|(packet, _)| packet.data.start);
        for (packet, passes) in all {
            if !passes {
                continue;
            }
            let frame = &bytes[packet.data.clone()];
            // A part of a packet is another packet.
            let is_whole = frame.len() == packet.original_len as usize;
            let is_frame = is_whole && packet.link == LinkType::ETHERNET;
            let is_sent = is_frame && sender.send(frame).is_ok();
            let count = if is_sent {
                &self.live.sent
            } else {
                &self.live.unsent
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn stats(&self, _: &RunCounts, fields: &mut Fields) {
        fields.add("captured", self.interfaces().collect::<Vec<_>>());
        fields.add("dropped", self.live.dropped());
        if self.live.sends() {
            fields.add("sent", self.live.sent.load(Ordering::Relaxed));
            fields.add("unsent", self.live.unsent());
        }
    }

    fn words(&self, _: &RunCounts, words: &mut Words) {
        let (dropped, unsent) = (self.live.dropped(), self.live.unsent());
        if dropped > 0 {
            words.records += &format!(
                ", {} lost before they were read ({})",
                grouped(dropped),
                match self.live.options.by_xdp {
                    true => "--buffer helps",
                    false => "--buffer, --filter and --snap-length help",
                }
            );
        }
        if unsent > 0 {
            words.records += &format!(", {} not sent", grouped(unsent));
        }
        let counts = self.interfaces().map(|it| {
            let [packets, dropped, freezes] = [it.packets, it.dropped, it.freezes].map(grouped);
            let again = match it.reopened {
                0 => String::new(),
                times => format!(", opened again {} times", grouped(times)),
            };
            format!(
                "{} by {}: {packets} packets, {dropped} lost in {freezes} overflows{again}",
                it.name, it.capture
            )
        });
        let mut line = format!("captured on {}", counts.collect::<Vec<_>>().join("; "));
        if let Some(name) = &self.live.options.sends_to {
            let sent = grouped(self.live.sent.load(Ordering::Relaxed));
            line += &format!(
                "; sent by {name}: {sent} packets, {} not sent",
                grouped(unsent)
            );
        }
        words.lines.push(line);
    }
}
