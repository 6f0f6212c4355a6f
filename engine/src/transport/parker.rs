//! Waiting without lost wake-ups: spin, then yield, then park. [`Wait`] determines how long each
//! of the first two lasts.
//!
//! One thread owns a [`Parker`] and blocks on it until a condition holds, over any number of rings.
//! Every thread that can make the condition true holds a [`Doorbell`] of the parker, and wakes it
//! afterwards. **No wake-up is lost**, because each side writes, fences, and then reads what the
//! other side wrote:
//!
//! ```text
//!   parker                            waker
//!   P1  parked = true                 W1  change what the condition reads
//!   P2  fence(SeqCst)                 W2  fence(SeqCst)
//!   P3  condition true? -> return     W3  parked? -> unpark
//!   P4  block while parked
//! ```
//!
//! All SeqCst fences have one total order. If P2 comes before W2, then W3 reads the `true` of P1
//! and unparks; if W2 comes before P2, then P3 reads the change of W1 and returns. The fences alone
//! carry this, so every access to `parked` is Relaxed. While the parker is not parked, a wake costs
//! one fence and one load of a cache line that no thread writes.
//!
//! Waking a parked thread costs microseconds on both sides, and some changes matter only to some
//! parkers. Therefore `parked` also holds what the parker is to be woken for ([`Attention`]), and a
//! [hint](Doorbell::hint) does not wake a parker that waits for wakes only. The parker stores its
//! attention at P1 and computes it again at P3, so the same argument holds: either P3 reads the
//! change, or the hint reads the attention of P1.
//!
//! A task of an executor waits by the same protocol: it leaves its [`Waker`] before P1, and returns
//! in place of P4; the thread that unparks it wakes the task. A waker is code of the executor. If
//! it panics, only its own task can miss the wake-up: the thread that wakes it serves others as
//! well.

use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::sync::{
    Arc, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, available_parallelism, contain, fence,
    spin_loop, unpoisoned, yield_now,
};

/// The end of a wait that begins now. One that no clock can express is a century away.
pub(crate) fn deadline_after(timeout: Duration) -> Instant {
    let now = Instant::now();
    let century = Duration::from_secs(100 * 365 * 24 * 3600);
    now.checked_add(timeout).unwrap_or_else(|| now + century)
}

/// What a parked thread is woken for.
#[doc(hidden)] // public only for the model checks
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// [`Doorbell::wake`].
    Wakes,
    /// [`Doorbell::wake`] and [`Doorbell::hint`].
    WakesAndHints,
}

impl Attention {
    /// The value of `parked` of a thread with this attention.
    const fn parked(self) -> usize {
        match self {
            Self::Wakes => 1,
            Self::WakesAndHints => 2,
        }
    }
}

/// The value of `parked` of a thread that runs.
const RUNNING: usize = 0;

/// The state that a parker shares with its doorbells.
#[derive(Debug)]
struct ParkState {
    /// [`RUNNING`], or the attention of the parked thread. Set by the parker before it blocks;
    /// cleared by the one waker that unparks it, or by the parker itself if it does not block after
    /// all. Padded, because every wake reads it, while the lock and the condition variable are
    /// written.
    parked: CachePadded<AtomicUsize>,
    /// The task that waits in place of a blocked thread. The lock also orders the parker's last
    /// test of `parked` before a notification.
    task: Mutex<Option<Waker>>,
    unparked: Condvar,
}

impl ParkState {
    /// Unparks the parker, unless another waker did so after this one read `parked`.
    #[cold]
    fn unpark(&self) {
        // Relaxed: what the condition reads is ordered by the fences of `Doorbell` and
        // `Parker::park_unless`. The swap only elects one waker.
        if self.parked.swap(RUNNING, Ordering::Relaxed) != RUNNING {
            // While this thread holds the lock, the parker is either before its test of `parked`,
            // which then reads `RUNNING`, or in the wait, where the notification reaches it.
            // Without the lock the notification could fall between the test and the wait, and be
            // lost.
            let task = self.lock().take();
            self.unparked.notify_one();
            // Without the lock, because an executor may run the task at once.
            if let Some(task) = task {
                contain(|| task.wake());
            }
        }
    }

    /// Blocks until a waker clears `parked`, or the deadline has passed. The flag is clear then.
    #[cold]
    fn park(&self, deadline: Option<Instant>) {
        let mut lock = self.lock();
        // A loop, because condition variables wake spuriously. Relaxed: a waker clears the flag
        // before it takes the lock, so the flag that is read after that critical section is the
        // cleared one.
        while self.parked.load(Ordering::Relaxed) != RUNNING {
            let Some(deadline) = deadline else {
                lock = unpoisoned(self.unparked.wait(lock));
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // Relaxed: as in `park_unless`. A waker that was first notifies no thread.
                self.parked.swap(RUNNING, Ordering::Relaxed);
                return;
            }
            lock = unpoisoned(self.unparked.wait_timeout(lock, left)).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        unpoisoned(self.task.lock())
    }
}

/// The waiting side. Each thread that waits owns one.
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
///     doorbell.wake();
/// });
/// parker.wait_until(Wait::Shared, || DONE.load(Ordering::Acquire) == 7);
/// # worker.join().unwrap();
/// ```
#[derive(Debug)]
pub struct Parker {
    state: Arc<ParkState>,
    /// The rounds of the next wait before it parks, unless [`Wait::yields`] is less.
    ///
    /// Fewer after a wait that ended in parking, or nearly: threads that spin for long keep each
    /// other from their cores, and make each other's waits longer. More after a short one.
    rounds: u32,
    /// A task was left to be woken.
    has_task: bool,
}

impl Parker {
    /// A parker without doorbells.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: Arc::new(ParkState {
                parked: CachePadded::new(AtomicUsize::new(RUNNING)),
                task: Mutex::new(None),
                unparked: Condvar::new(),
            }),
            rounds: u32::MAX,
            has_task: false,
        }
    }

    /// A doorbell that wakes this parker.
    #[must_use]
    pub fn doorbell(&self) -> Doorbell {
        Doorbell {
            state: Arc::clone(&self.state),
        }
    }

    /// Blocks until the condition holds.
    ///
    /// A thread that makes the condition true must afterwards wake a doorbell of this parker, or
    /// the call may block forever. The condition should therefore also hold once the other side is
    /// gone, as the `is_ready` of both ends of a ring does. It is called many times, also when
    /// nothing has changed.
    #[inline]
    pub fn wait_until(&mut self, wait: Wait, mut condition: impl FnMut() -> bool) {
        self.wait_while(None, wait, || (!condition()).then_some(Attention::Wakes));
    }

    /// Blocks while there is something to wait for, until `attention` returns `None`, but not beyond
    /// the deadline: returns false if there is still something to wait for then. `attention`
    /// returns what this thread is to be woken for, which may differ from one call to the next.
    ///
    /// As for [`wait_until`](Self::wait_until); but a [hint](Doorbell::hint) is enough after a
    /// change, if every thread that waits for it returns [`Attention::WakesAndHints`].
    #[doc(hidden)] // public only for the model checks
    #[inline]
    pub fn wait_while(
        &mut self,
        deadline: Option<Instant>,
        wait: Wait,
        mut attention: impl FnMut() -> Option<Attention>,
    ) -> bool {
        self.spin_while(wait, &mut attention) || self.park_while(deadline, wait, attention)
    }

    /// The first part of [`wait_while`](Self::wait_while): spins and yields, and returns whether
    /// there is nothing to wait for any more. If not, [`park_while`](Self::park_while) must follow.
    #[inline]
    pub(crate) fn spin_while(
        &mut self,
        wait: Wait,
        mut attention: impl FnMut() -> Option<Attention>,
    ) -> bool {
        let rounds = self.rounds.min(wait.yields());
        for round in 0..rounds {
            for _ in 0..wait.spins() {
                if attention().is_none() {
                    self.rounds = if round <= rounds / 4 {
                        rounds.saturating_mul(2)
                    } else {
                        (rounds / 2).max(wait.fewest_rounds())
                    };
                    return true;
                }
                spin_loop();
            }
            yield_now();
        }
        false
    }

    /// The second part of [`wait_while`](Self::wait_while), or all of a wait that is expected to take
    /// longer than parking: parks until there is nothing to wait for, and returns true, or until the
    /// deadline.
    pub(crate) fn park_while(
        &mut self,
        deadline: Option<Instant>,
        wait: Wait,
        mut attention: impl FnMut() -> Option<Attention>,
    ) -> bool {
        let rounds = self.rounds.min(wait.yields());
        let mut wanted = attention();
        while let Some(first) = wanted {
            if !self.park_unless(first, &mut attention) {
                return true;
            }
            // P4.
            self.state.park(deadline);
            self.rounds = (rounds / 16).max(wait.fewest_rounds());
            wanted = attention();
            if wanted.is_some() && deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return false;
            }
        }
        true
    }

    /// Waits in a task, by the same protocol: `Ready` once `attention` returns `None`; else
    /// `Pending`, and a doorbell wakes the task. Only the task of the last call is woken, and it
    /// may be woken without a cause. Its waker stays until then, or until the parker is dropped.
    #[doc(hidden)] // public only for the model checks
    pub fn poll_while(
        &mut self,
        context: &Context<'_>,
        mut attention: impl FnMut() -> Option<Attention>,
    ) -> Poll<()> {
        let Some(wanted) = attention() else {
            return Poll::Ready(());
        };
        // Wakers are code of the executor: they are cloned and dropped without the lock. A panic of
        // the clone is this task's own; nothing has changed yet.
        let task = context.waker().clone();
        // Before P1: a thread that clears `parked` as set there takes the lock after this thread,
        // so it finds this task, or none. None, if a thread that cleared the flag of an earlier
        // poll takes the lock only now: it takes this task in place of the earlier one and wakes
        // it. That is enough, because the task polls again.
        let earlier = self.state.lock().replace(task);
        self.has_task = true;
        contain(|| drop(earlier));
        if self.park_unless(wanted, &mut attention) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    /// P1 to P3. Returns whether there is still something to wait for; this parker then counts as
    /// parked until a doorbell wakes it, with what `attention` returned last.
    fn park_unless(
        &self,
        mut wanted: Attention,
        attention: &mut impl FnMut() -> Option<Attention>,
    ) -> bool {
        loop {
            // P1. A swap rather than a store, here and below: loom reports lost wake-ups that
            // cannot occur where a plain store races with the swap in `unpark`. Relaxed: the fence
            // below orders it.
            self.state.parked.swap(wanted.parked(), Ordering::Relaxed);
            // P2. SeqCst: pairs with the fences in `Doorbell`.
            fence(Ordering::SeqCst);
            // P3.
            match attention() {
                None => {
                    // Relaxed: at worst a waker has read that it is parked, and notifies while no
                    // thread waits.
                    self.state.parked.swap(RUNNING, Ordering::Relaxed);
                    return false;
                }
                Some(now) if now != wanted => wanted = now,
                Some(_) => return true,
            }
        }
    }
}

impl Drop for Parker {
    fn drop(&mut self) {
        // Doorbells may live on, and a waker keeps its task.
        if self.has_task {
            // In two statements, so that it is dropped without the lock.
            let task = self.state.lock().take();
            contain(|| drop(task));
        }
    }
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

/// The waking side of a [`Parker`]. Clones wake the same parker.
#[derive(Debug, Clone)]
pub struct Doorbell {
    state: Arc<ParkState>,
}

impl Doorbell {
    /// Wakes the parker if it is parked. Call it after the change that its condition reads.
    #[inline]
    pub fn wake(&self) {
        // W2. SeqCst: pairs with the fence in `Parker::park_unless`.
        fence(Ordering::SeqCst);
        // W3. Relaxed: the fence above orders it.
        if self.state.parked.load(Ordering::Relaxed) != RUNNING {
            self.state.unpark();
        }
    }

    /// As [`wake`](Self::wake), for a change that the parker may not wait for: `is_awaited` reads
    /// what the parker stored before it called [`Parker::wait_while`] or
    /// [`Parker::poll_while`].
    ///
    /// The argument of the [module](self) holds: that store comes before P1, so a waker that reads
    /// the flag of P1 because of the fences reads this store, or a later one. A later one belongs
    /// to a later wait, which has its own P1 to P3.
    #[inline]
    pub(crate) fn wake_if(&self, is_awaited: impl FnOnce() -> bool) {
        // W2 and W3, as in `wake`.
        fence(Ordering::SeqCst);
        if self.state.parked.load(Ordering::Relaxed) != RUNNING && is_awaited() {
            self.state.unpark();
        }
    }

    /// Wakes the parker if it is parked with [`Attention::WakesAndHints`]. Call it after the change
    /// that its condition reads.
    #[doc(hidden)] // public only for the model checks
    #[inline]
    pub fn hint(&self) {
        // W2 and W3, as in `wake`.
        fence(Ordering::SeqCst);
        if self.state.parked.load(Ordering::Relaxed) == Attention::WakesAndHints.parked() {
            self.state.unpark();
        }
    }
}

/// How long a thread spins and yields before it parks. It tests its condition in rounds of
/// spinning, and yields its core after each round.
///
/// Rounds are short in both variants, so that oversubscribed cores stay usable even with the wrong
/// variant.
///
/// # Examples
/// ```
/// use echoless::transport::Wait;
/// assert_eq!(Wait::auto(1), Wait::Dedicated);
/// assert_eq!(Wait::auto(1 << 20), Wait::Shared);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wait {
    /// The thread has a core of its own: it spins for about a microsecond between yields, and parks
    /// after at most a millisecond, or some microseconds where waits have been long.
    Dedicated,
    /// The thread shares its core, possibly with the thread it waits for: it yields almost at once,
    /// and soon parks.
    Shared,
}

impl Wait {
    /// The variant for `threads` threads that wait for one another: [`Dedicated`](Self::Dedicated)
    /// if this process may use at least as many cores now, else [`Shared`](Self::Shared), also if
    /// the number of cores is unknown.
    #[must_use]
    pub fn auto(threads: usize) -> Self {
        match available_parallelism() {
            Ok(cores) if threads <= cores.get() => Self::Dedicated,
            _ => Self::Shared,
        }
    }

    /// How often the condition is tested between yields.
    ///
    /// A test and a pause take some 25 ns. An answer from another core arrives within a few of
    /// them. If the peer needs this very core, all of them are wasted, so together they must cost
    /// less than the thread switch that follows.
    pub(super) const fn spins(self) -> u32 {
        match self {
            Self::Dedicated => 32,
            Self::Shared => 4,
        }
    }

    /// How often the thread yields at most before it parks. 0 under loom, where time does not pass:
    /// models go straight to the parking protocol.
    pub(super) const fn yields(self) -> u32 {
        match self {
            _ if cfg!(loom) => 0,
            Self::Dedicated => 1024,
            Self::Shared => 16,
        }
    }

    /// The fewest rounds of spinning and yielding before a thread parks. Without any, a thread that
    /// parked once would never observe that its peers have become fast. On a core of its own they
    /// last as long as a wake-up, so a peer that was parked, too, can still answer in time.
    pub(super) const fn fewest_rounds(self) -> u32 {
        match self {
            Self::Dedicated => 16,
            Self::Shared => 2,
        }
    }
}
