//! How long a thread spins and yields before it parks: a matter of the cores that it may use, apart
//! from the protocol of parking ([`parker`](super::parker)).

use crate::sync::available_parallelism;

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
