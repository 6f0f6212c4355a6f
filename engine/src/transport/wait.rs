//! Waiting: spin, yield, and in the end sleep, without lost wake-ups.
//!
//! One thread owns a [`Parker`] and waits with it for any condition, over any number of rings; whoever may make the condition
//! true holds a [`Doorbell`] and rings it afterwards. **No wake-up is lost**, because each side writes, fences, and then reads
//! what the other side wrote:
//!
//! ```text
//!   parker                          ringer
//!   asleep = true                    change what the condition reads
//!   fence(SeqCst)                    fence(SeqCst)
//!   condition true? -> stay awake    asleep? -> wake the parker
//!   sleep while asleep
//! ```
//!
//! One of the two fences comes first in the order of all SeqCst fences, and the other side then reads what was written before
//! it: the parker sees the change, or the ringer sees the parker. The fences alone carry this, so `asleep` is Relaxed
//! throughout. While the parker is awake, to ring is one fence and the load of a line that nobody writes.

use crossbeam_utils::CachePadded;

use crate::sync::{
    Arc, AtomicBool, Condvar, Mutex, Ordering, PoisonError, available_parallelism, fence,
    spin_loop, yield_now,
};

/// How a thread looks before it sleeps: rounds of spinning, each of which ends with an offer of the core to others.
///
/// Spinning between offers is kept short in both, so that more threads than cores are no disaster even under the wrong one.
///
/// # Examples
/// ```
/// use echoless::transport::Wait;
/// assert_eq!(Wait::auto(1), Wait::Dedicated);
/// assert_eq!(Wait::auto(1 << 20), Wait::Shared);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// The thread has a core to itself: about a microsecond of spinning between offers, a millisecond or so before it sleeps.
    Dedicated,
    /// The thread shares its core, perhaps with the very thread it waits for: it offers the core nearly at once, and soon sleeps.
    Shared,
}

impl Wait {
    /// The policy for `threads` threads that wait for one another: dedicated if each can have a core of those that this process
    /// may use now, else (or if their number is not known) shared.
    #[must_use]
    pub fn auto(threads: usize) -> Self {
        match available_parallelism() {
            Ok(cores) if threads <= cores.get() => Self::Dedicated,
            _ => Self::Shared,
        }
    }

    /// How often the condition is tested before the thread offers its core to another.
    ///
    /// A test and a pause take some 25 ns. An answer from another core is there in a few of them; where the peer needs this very
    /// core all are wasted, so that they must cost less than the switch of threads that follows.
    const fn spins(self) -> u32 {
        match self {
            Self::Dedicated => 32,
            Self::Shared => 4,
        }
    }

    /// How often the thread offers its core before it sleeps. None under loom, whose threads need no time.
    const fn yields(self) -> u32 {
        match self {
            _ if cfg!(loom) => 0,
            Self::Dedicated => 1024,
            Self::Shared => 64,
        }
    }
}

/// What a parker shares with its doorbells.
#[derive(Debug)]
struct Bell {
    /// Set by the parker before it sleeps, cleared by the one ringer that wakes it. It is read at every ring.
    asleep: CachePadded<AtomicBool>,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Bell {
    /// Wakes the parker, if no other ringer has done so since it was seen asleep.
    #[cold]
    fn wake(&self) {
        if self.asleep.swap(false, Ordering::Relaxed) {
            // With the lock, the parker is either before its test of `asleep`, which now fails, or in the wait.
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.woken.notify_one();
        }
    }

    #[cold]
    fn sleep(&self) {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while self.asleep.load(Ordering::Relaxed) {
            lock = self
                .woken
                .wait(lock)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The waiting side: one for each thread that waits.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use echoless::transport::{Parker, Wait};
///
/// static DONE: AtomicU64 = AtomicU64::new(0);
/// let mut parker = Parker::new();
/// let doorbell = parker.doorbell();
/// let worker = std::thread::spawn(move || {
///     DONE.store(7, Ordering::Release);
///     doorbell.ring();
/// });
/// parker.wait_until(Wait::Shared, || DONE.load(Ordering::Acquire) == 7);
/// # worker.join().unwrap();
/// ```
#[derive(Debug)]
pub struct Parker {
    bell: Arc<Bell>,
}

impl Parker {
    /// A parker without doorbells.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bell: Arc::new(Bell {
                asleep: CachePadded::new(AtomicBool::new(false)),
                lock: Mutex::new(()),
                woken: Condvar::new(),
            }),
        }
    }

    /// A doorbell that wakes this parker.
    #[must_use]
    pub fn doorbell(&self) -> Doorbell {
        Doorbell {
            bell: Arc::clone(&self.bell),
        }
    }

    /// Waits until the condition holds.
    ///
    /// It must be made true by this thread, or by one that rings a doorbell of this parker after it made it so; else the wait
    /// may last for ever. So it should also hold when the other side is gone, as [`Consumer::is_ready`] and
    /// [`Producer::is_ready`] do. It is called many times, and also when nothing has changed.
    ///
    /// [`Consumer::is_ready`]: super::Consumer::is_ready
    /// [`Producer::is_ready`]: super::Producer::is_ready
    #[inline]
    pub fn wait_until(&mut self, wait: Wait, mut condition: impl FnMut() -> bool) {
        for _ in 0..wait.yields() {
            for _ in 0..wait.spins() {
                if condition() {
                    return;
                }
                spin_loop();
            }
            yield_now();
        }
        while !condition() {
            // Swaps, not stores: with those of the ringers they form one order of modification.
            self.bell.asleep.swap(true, Ordering::Relaxed);
            // Pairs with the fence in `Doorbell::ring`.
            fence(Ordering::SeqCst);
            if condition() {
                self.bell.asleep.swap(false, Ordering::Relaxed);
                return;
            }
            self.bell.sleep();
        }
    }
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

/// The waking side of a [`Parker`]; clones wake the same one.
#[derive(Debug, Clone)]
pub struct Doorbell {
    bell: Arc<Bell>,
}

impl Doorbell {
    /// Wakes the parker if it sleeps. Call it after what the parker may wait for.
    #[inline]
    pub fn ring(&self) {
        // Pairs with the fence in `Parker::wait_until`.
        fence(Ordering::SeqCst);
        if self.bell.asleep.load(Ordering::Relaxed) {
            self.bell.wake();
        }
    }
}
