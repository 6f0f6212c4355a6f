//! A filter for all threads at the same time.

use std::cell::RefCell;
use std::io::Write;

use echoless::{KeyHash, KeyHasher, Report, SharedFilter, SharedSpec};

use crate::failure::Failure;
use crate::keys::{Keys, observe_blocks};

/// A filter that any number of threads use at the same time; see [`SharedFilter`]. No call waits
/// for another one.
#[derive(Debug)]
pub struct Shared {
    filter: SharedFilter,
    spec: SharedSpec,
    hasher: KeyHasher,
}

thread_local! {
    /// The hashes of a block of keys, of this thread.
    static HASHES: RefCell<Vec<KeyHash>> = const { RefCell::new(Vec::new()) };
}

impl Shared {
    /// Builds the filter of a specification such as `row4x16:memory=64MiB`; see [`SharedSpec`].
    ///
    /// # Errors
    /// [`Failure`] as [`SharedSpec::build`] has them.
    pub fn new(spec: &str, hasher: KeyHasher) -> Result<Self, Failure> {
        let spec: SharedSpec = spec.parse()?;
        Ok(Self::of_restored(spec.build()?, spec, hasher))
    }

    /// The specification.
    #[must_use]
    pub const fn spec(&self) -> &SharedSpec {
        &self.spec
    }

    /// Probes and inserts each key, with a window at its tick. Of equal keys of several threads,
    /// exactly one is fresh. The bits of `duplicates` and the result are those of
    /// [`Filter::observe`](crate::Filter).
    ///
    /// # Errors
    /// As [`check_masks`](crate::check_masks); nothing was judged then.
    pub fn observe(
        &self,
        keys: &dyn Keys,
        ticks: Option<&[u64]>,
        duplicates: &mut [u64],
    ) -> Result<u64, Failure> {
        HASHES.with_borrow_mut(|hashes| {
            let hasher = &self.hasher;
            observe_blocks(keys, ticks, hasher, hashes, duplicates, |batch, words| {
                self.filter.observe_batch(batch, words);
            })
        })
    }

    /// Moves the clock of a window; see [`SharedFilter::advance_to`].
    pub fn advance_to(&self, tick: u64) {
        self.filter.advance_to(tick);
    }

    /// Whether each key would be a duplicate now. Changes nothing.
    ///
    /// # Errors
    /// As [`check_masks`](crate::check_masks).
    pub fn contains(&self, keys: &dyn Keys, duplicates: &mut [u64]) -> Result<u64, Failure> {
        HASHES.with_borrow_mut(|hashes| {
            observe_blocks(
                keys,
                None,
                &self.hasher,
                hashes,
                duplicates,
                |batch, words| {
                    words.fill(0);
                    for (index, key) in batch.keys().iter().enumerate() {
                        words[index / 64] |= u64::from(self.filter.contains(*key)) << (index % 64);
                    }
                },
            )
        })
    }

    /// Removes all keys. If threads observe keys or save meanwhile, some of these are forgotten.
    pub fn clear(&self) {
        self.filter.clear();
    }

    /// The memory of the filter's state, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.filter.memory_bytes()
    }

    /// Counters and error estimates. This may read the memory of the filter.
    #[must_use]
    pub fn report(&self) -> Report {
        self.filter.report()
    }

    /// Writes the state with `bytes` of the caller, while other calls use the filter, of which none
    /// waits, also if `output` does, or calls the filter itself. The state has the keys of all
    /// calls that had ended before; see [`SharedFilter::save`]. The secret of the hasher is not in
    /// it.
    ///
    /// # Errors
    /// [`Code::Io`](crate::Code::Io) if `output` fails.
    pub fn save(&self, bytes: &[u8], output: impl Write) -> Result<(), Failure> {
        Ok(self.filter.save(&self.hasher, bytes, output)?)
    }

    /// The hasher of the keys.
    pub(crate) const fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    pub(crate) const fn of_restored(
        filter: SharedFilter,
        spec: SharedSpec,
        hasher: KeyHasher,
    ) -> Self {
        Self {
            filter,
            spec,
            hasher,
        }
    }
}
