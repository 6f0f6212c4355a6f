//! The error of ports and ordered filters: why a batch has no verdicts, or was not accepted.

use std::error::Error;
use std::fmt;

/// A port or a ticket cannot go on, or not before a partition is replaced: the owner of a partition
/// is gone, its filter panicked, batches are in flight, or the process was forked.
///
/// # Examples
/// ```
/// use echoless::{ExchangeError, FingerprintSpec, KeyHasher, OrderedFilter, Verdicts};
/// let key = KeyHasher::seeded(0).hash_u64(7);
/// let whole = FingerprintSpec::new(1 << 20).build_partitions(1)?;
/// let filter = OrderedFilter::builder(whole).build();
/// let mut handle = filter.handle();
/// filter.shutdown()?;
/// let error = handle.observe(&[key], &mut Verdicts::new()).unwrap_err();
/// assert_eq!(error, ExchangeError::Disconnected(0));
/// assert!(error.to_string().starts_with("partition 0 is disconnected"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The filter of this partition panicked, or the thread that owns it did. See
    /// [`LossPolicy`](crate::LossPolicy).
    Panicked(usize),
    /// The owner of this partition is gone.
    Disconnected(usize),
    /// So many batches are in flight, and the call needs a port without any.
    InFlight(usize),
    /// The time of a wait is over. Nothing has changed: the call can be repeated.
    TimedOut,
    /// This process is a fork of the one that built the engine or ordered filter. The other
    /// threads stayed there, so nothing is judged here: build another one after the fork.
    Forked,
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(partition) => {
                write!(f, "partition {partition} is lost: its owner panicked")
            }
            Self::Disconnected(partition) => write!(
                f,
                "partition {partition} is disconnected: its owner was shut down or dropped"
            ),
            Self::InFlight(batches) => write!(
                f,
                "{batches} batches are in flight: drain them, or take what is known of a failed \
                 one, first"
            ),
            Self::TimedOut => write!(f, "the time to wait is over; nothing has changed"),
            Self::Forked => write!(
                f,
                "this process is a fork of the one with the threads of the filter: build the \
                 filter after the fork"
            ),
        }
    }
}

impl Error for ExchangeError {}
