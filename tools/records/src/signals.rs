//! SIGINT, SIGTERM and SIGHUP end the stream after the data read so far, and the run completes
//! normally. One that this process was started to ignore, as `nohup` does, stays ignored.
//!
//! A reader waits for its file and for a signal at once. That also makes it wait for a non-blocking
//! file. SIGUSR1 requests a report and ends nothing.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::{SigId, flag, low_level};

/// Whether a reader waits for data that is not there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// It waits.
    Wait,
    /// There is other work to do.
    Try,
}

/// What a reader finds at its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Data, or the end: a read does not block.
    Data,
    /// Nothing, and the time is over.
    NotYet,
    /// A signal has arrived.
    Signal,
}

/// Why a wait for a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A signal has arrived.
    BySignal,
    /// The time is over.
    ByTime,
    /// The other end is gone.
    ToStop,
}

/// How long signals are one request. `timeout` sends its signal to its child and then to the group,
/// and a closed terminal is told to a shell and by it.
const ONE_REQUEST: Duration = Duration::from_millis(200);

/// Access to the handlers of the signals, which stay for the rest of the process. A signal that
/// comes later than 0.2 seconds after the first ends the process at once, as if it were not caught.
#[derive(Debug, Clone, Copy)]
pub struct Signals {
    handlers: &'static Handlers,
    /// Whether the file that is read ends where one arrived.
    ends_file: bool,
}

#[derive(Debug)]
struct Handlers {
    caught: Vec<(i32, Arc<AtomicBool>)>,
    /// Becomes readable when a signal arrives, and stays so.
    wakeup: UnixStream,
    /// Whether the signals that arrived have ended what they end. Relaxed: nothing else depends on
    /// it.
    is_handled: AtomicBool,
}

impl Signals {
    /// Installs the handlers, unless they are there.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn catch() -> io::Result<Self> {
        static HANDLERS: OnceLock<io::Result<Handlers>> = OnceLock::new();
        match HANDLERS.get_or_init(Handlers::install) {
            Ok(handlers) => Ok(Self {
                handlers,
                ends_file: false,
            }),
            Err(error) => Err(error.kind().into()),
        }
    }

    /// The same for a file whose end is where a signal has arrived, not that of its records.
    pub(crate) fn at_end(mut self) -> Self {
        self.ends_file = true;
        self
    }

    /// Whether the end of the file, which was just found, is that of a signal.
    pub(crate) fn end_file(&self) -> bool {
        self.ends_file || self.caught().is_some()
    }

    /// The number of the signal that arrived, if one did.
    pub fn caught(&self) -> Option<u8> {
        if self.is_handled() {
            return None;
        }
        // Relaxed: the flag is all that the handler publishes.
        let arrived = |(_, flag): &&(i32, Arc<AtomicBool>)| flag.load(Ordering::Relaxed);
        let (signal, _) = self.handlers.caught.iter().find(arrived)?;
        u8::try_from(*signal).ok()
    }

    /// As [`caught`](Self::caught), for the only thread. What comes from now on is not ended by a
    /// signal, unless that ends the process.
    pub fn take(&self) -> Option<u8> {
        let signal = self.caught()?;
        self.handlers.is_handled.store(true, Ordering::Relaxed);
        Some(signal)
    }

    fn is_handled(&self) -> bool {
        self.handlers.is_handled.load(Ordering::Relaxed)
    }

    /// Waits until `file` has data or ends, or a signal arrives.
    pub(crate) fn wait_for(&self, file: &File, patience: Patience) -> io::Result<Readiness> {
        let longest = match patience {
            Patience::Wait => None,
            Patience::Try => Some(Duration::ZERO),
        };
        self.wait_for_any(&[file.as_fd()], longest, true)
    }

    /// Waits until one of the files has data or ends, but at most so long, or until a signal
    /// arrives, if it `heeds_signals`.
    ///
    /// # Errors
    /// That of the system.
    pub fn wait_for_any(
        &self,
        files: &[BorrowedFd<'_>],
        longest: Option<Duration>,
        heeds_signals: bool,
    ) -> io::Result<Readiness> {
        let heeds_signals = heeds_signals && !self.is_handled();
        let wakeup = PollFd::new(&self.handlers.wakeup, PollFlags::IN);
        let files = files.iter().map(|file| PollFd::new(file, PollFlags::IN));
        let mut all: Vec<_> = [wakeup].into_iter().chain(files).collect();
        let awaited = &mut all[usize::from(!heeds_signals)..];
        let ready = poll_within(awaited, longest)?;
        Ok(if heeds_signals && !awaited[0].revents().is_empty() {
            Readiness::Signal
        } else if ready == 0 {
            Readiness::NotYet
        } else {
            Readiness::Data
        })
    }

    /// Waits so long, or until a signal arrives. Returns whether one did.
    pub(crate) fn arrives_within(&self, pause: Duration) -> io::Result<bool> {
        let readiness = self.wait_for_any(&[], Some(pause), true)?;
        Ok(readiness == Readiness::Signal)
    }
}

/// Waits for one of the files, at most so long, also if other signals interrupt that. Returns how
/// many are ready.
fn poll_within(files: &mut [PollFd<'_>], longest: Option<Duration>) -> io::Result<usize> {
    // A span that does not fit is as good as none.
    let end = longest.and_then(|longest| Instant::now().checked_add(longest));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(files, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            polled => return Ok(polled?),
        }
    }
}

/// Lets a write beyond the limit on file lengths fail, in place of the signal that would end
/// the process: the command then ends with an error after whole records.
pub fn fail_at_file_limit() {
    // Without a handler, the signal ends the process at the limit.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Requests for reports.
#[derive(Debug)]
pub struct Requests {
    /// Has a byte for each SIGUSR1.
    signals: UnixStream,
    handler: Option<SigId>,
    /// Ends when the [`Stop`] is dropped.
    stop: UnixStream,
}

/// Ends the wait for requests when it is dropped.
#[derive(Debug)]
pub struct Stop {
    _other_end: UnixStream,
}

impl Requests {
    /// Catches SIGUSR1, unless it is ignored, until this is dropped.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn catch() -> io::Result<(Self, Stop)> {
        let (signals, sender) = UnixStream::pair()?;
        let (stop, other_end) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        let ignored = ignored_signals() >> (SIGUSR1 - 1) & 1 == 1;
        let handler = if ignored {
            None
        } else {
            Some(low_level::pipe::register(SIGUSR1, sender)?)
        };
        let requests = Self {
            signals,
            handler,
            stop,
        };
        let stop = Stop {
            _other_end: other_end,
        };
        Ok((requests, stop))
    }

    /// Waits for a request, at most so long.
    pub fn wait(&self, longest: Option<Duration>) -> Asked {
        let mut both = [
            PollFd::new(&self.stop, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        match poll_within(&mut both, longest) {
            Ok(0) => Asked::ByTime,
            Ok(_) if both[0].revents().is_empty() => {
                // Signals that came together are one request.
                let _ = (&self.signals).read(&mut [0; 64]);
                Asked::BySignal
            }
            Ok(_) | Err(_) => Asked::ToStop,
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        if let Some(handler) = self.handler.take() {
            low_level::unregister(handler);
        }
    }
}

/// The signals that this process was started to ignore, one bit each from signal 1 on; none
/// where the system does not report them.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap_or(0))
}

impl Handlers {
    fn install() -> io::Result<Self> {
        let (wakeup, sender) = UnixStream::pair()?;
        let (mut requests, request) = UnixStream::pair()?;
        let ends_at_once = Arc::new(AtomicBool::new(false));
        let ignored = ignored_signals();
        let ends = [SIGINT, SIGTERM, SIGHUP].into_iter();
        let caught: Vec<_> = ends
            .filter(|signal| ignored >> (signal - 1) & 1 == 0)
            .map(|signal| (signal, Arc::default()))
            .collect();
        for (signal, arrived) in &caught {
            flag::register_conditional_default(*signal, Arc::clone(&ends_at_once))?;
            flag::register(*signal, Arc::clone(arrived))?;
            low_level::pipe::register(*signal, sender.try_clone()?)?;
            low_level::pipe::register(*signal, request.try_clone()?)?;
        }
        let later = Arc::clone(&ends_at_once);
        let wait = move || {
            while requests.read_exact(&mut [0]).is_ok() {
                thread::sleep(ONE_REQUEST);
                // Relaxed: it is all that a handler reads.
                later.store(true, Ordering::Relaxed);
            }
        };
        let waiting = thread::Builder::new().name("signals".into()).spawn(wait);
        if waiting.is_err() {
            // Then any second signal ends the process at once.
            for (signal, _) in &caught {
                flag::register(*signal, Arc::clone(&ends_at_once))?;
            }
        }
        Ok(Self {
            caught,
            wakeup,
            is_handled: AtomicBool::new(false),
        })
    }
}
