//! What threads that share a filter report when a batch has no verdicts, and what happens to the keys
//! of a lost partition: the choice of the caller.

use std::error::Error;
use std::fmt;

use crate::verdicts::Verdicts;

/// What happens to the keys of a partition whose filter panicked.
///
/// The partitions are the horizontal slices of paper 001, and the last two policies are its answers
/// for slices that failed. With `f` of `S` equal partitions lost, a filter whose false positive
/// rate is `p` has the false positive rate `f/S + (1 - f/S) p` with
/// [`AsDuplicate`](Self::AsDuplicate), and the additional false negative rate `f/S` with
/// [`AsFresh`](Self::AsFresh). The verdicts of the other partitions are those of the undivided
/// filter with every policy.
///
/// A worker that is gone (it was shut down or dropped) is an error with every policy, and so is a
/// [fork](crate::ExchangeError::Forked) of its process.
///
/// A policy needs a panic that unwinds: see [panics and forks](crate#panics-and-forks).
///
/// # Examples
/// A filter that panics at one key; half of the keys belong to its partition.
/// ```
/// use echoless::{
///     Batch, Engine, Filter, KeyHash, LossPolicy, Partitioned, Partitioning, Verdicts,
/// };
/// # use echoless::Tally;
/// #[derive(Clone)]
/// struct Brittle;
/// impl Filter for Brittle {
///     fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
///         let bad = KeyHash::from_uniform(u64::MAX);
///         assert!(!batch.keys().contains(&bad), "a bug of this filter");
///         duplicates.fill(0);
///     }
/// #   fn contains(&self, _: KeyHash) -> bool { false }
/// #   fn clear(&mut self) {}
/// #   fn tally(&self) -> Tally { Tally::default() }
/// }
/// let halves = Partitioned::new(Partitioning::new(2, 2)?, vec![Brittle; 2])?;
/// let (engine, mut ports) =
///     Engine::builder(halves).on_loss(LossPolicy::AsDuplicate).build()?;
/// let mut verdicts = Verdicts::new();
/// let keys = [1, u64::MAX, 2].map(KeyHash::from_uniform);
/// ports[0].observe(&keys, &mut verdicts)?;
/// // Key 1 is a duplicate by the policy.
/// assert_eq!((verdicts.words(), verdicts.unknown_words()), (&[0b010][..], &[0b010][..]));
/// assert_eq!(engine.counts().unknown, 1);
/// assert_eq!(engine.lost(), [(1, "a bug of this filter".to_owned())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossPolicy {
    /// Batches with keys of a lost partition are errors, and later batches are rejected until the
    /// partition is replaced. An ordered filter rejects only the batches with keys of the
    /// partition, and the others record their keys.
    #[default]
    Error,
    /// Keys of a lost partition are duplicates: no duplicate passes, and new keys are dropped.
    AsDuplicate,
    /// Keys of a lost partition are fresh: no new key is dropped, and duplicates pass.
    AsFresh,
}

/// Why keys of a batch have no verdict.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unanswered {
    /// Their partition is lost.
    Lost(ExchangeError),
    /// The owner of the partition is gone.
    Closed(ExchangeError),
}

impl LossPolicy {
    /// The error of a batch with such keys, if it is one.
    pub(super) fn error_of(self, unanswered: Unanswered) -> Option<ExchangeError> {
        match unanswered {
            Unanswered::Lost(error) => (self == Self::Error).then_some(error),
            Unanswered::Closed(error) => Some(error),
        }
    }

    /// Judges the keys without a verdict.
    pub(super) fn judge(self, verdicts: &mut Verdicts) {
        match self {
            Self::AsDuplicate => verdicts.set_unknown_duplicate(),
            Self::AsFresh | Self::Error => {}
        }
    }
}

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
