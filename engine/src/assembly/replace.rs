//! The replacement of a lost partition: a new filter for it, or the error that returns the filter.

use std::error::Error;
use std::fmt;

use super::partition_state::PartitionState;

/// A rejected replacement of a partition. It returns the filter.
///
/// # Examples
/// ```
/// use echoless::{Engine, FingerprintSpec, NotReplaceable};
/// let spec = FingerprintSpec::new(1 << 20);
/// let (engine, _ports) = Engine::builder(spec.build_partitions(2)?).build()?;
/// let rejected = engine.replace(1, spec.build_partition(1, 2)?).unwrap_err();
/// assert_eq!(rejected.reason, NotReplaceable::NotLost);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[non_exhaustive]
pub struct ReplaceError<F> {
    /// The partition that was to be replaced.
    pub partition: usize,
    /// The number of partitions.
    pub partitions: usize,
    /// Why it was not replaced.
    pub reason: NotReplaceable,
    /// The filter that was to take its place.
    pub filter: F,
}

/// Why a partition cannot be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotReplaceable {
    /// There is no partition with this number.
    NoSuchPartition,
    /// Its filter did not panic, or was replaced before.
    NotLost,
    /// No thread would use the new filter: the worker of the engine panicked outside its filter, it
    /// was shut down, or this process is a fork of theirs.
    Ended,
}

impl fmt::Display for NotReplaceable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::NoSuchPartition => "there is no such partition",
            Self::NotLost => "the partition is not lost",
            Self::Ended => "no thread would use the new filter",
        })
    }
}

/// Leaves `filter` for the owner of partition `partition` of `partitions`. `state` is that of the
/// partition, or why there is none that can take it.
pub(super) fn replace<F>(
    state: Result<&PartitionState<F>, NotReplaceable>,
    partition: usize,
    partitions: usize,
    filter: F,
) -> Result<(), ReplaceError<F>> {
    let restored = match state {
        Ok(state) => state.restore(filter),
        Err(reason) => Err((filter, reason)),
    };
    restored.map_err(|(filter, reason)| ReplaceError {
        partition,
        partitions,
        reason,
        filter,
    })
}

impl<F> fmt::Debug for ReplaceError<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ReplaceError")
            .field("partition", &self.partition)
            .field("partitions", &self.partitions)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl<F> fmt::Display for ReplaceError<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            partition,
            partitions,
            reason,
            filter: _,
        } = self;
        match reason {
            NotReplaceable::NoSuchPartition => write!(
                out,
                "invalid partition={partition}: expected 0 to {}",
                partitions - 1
            ),
            NotReplaceable::NotLost => write!(
                out,
                "partition {partition} is not lost: expected a partition whose filter panicked"
            ),
            NotReplaceable::Ended => write!(
                out,
                "partition {partition} cannot be replaced: its worker panicked outside the filter, \
                 it was shut down, or this process is a fork of its own"
            ),
        }
    }
}

impl<F> Error for ReplaceError<F> {}
