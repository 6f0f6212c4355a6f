//! A filter for all threads at the same time.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::path::Path;

use echoless::state::SavedState;
use echoless::{KeyHash, KeyHasher, Report, SharedFilter, SharedSpec, Verdicts};

use crate::failure::Failure;
use crate::filter::{read_file, write_file};
use crate::keys::{Keys, check_masks, give_back_verdicts, observe_blocks};

/// A filter that any number of threads use at the same time; see [`SharedFilter`]. No call waits
/// for another one.
#[derive(Debug)]
pub struct Shared {
    filter: SharedFilter,
    spec: SharedSpec,
    hasher: KeyHasher,
}

thread_local! {
    /// The hashes and verdicts of a block of keys, of this thread.
    static BUFFERS: RefCell<(Vec<KeyHash>, Verdicts)> = const {
        RefCell::new((Vec::new(), Verdicts::new()))
    };
}

impl Shared {
    /// Builds the filter of a specification such as `row4x16:memory=64MiB`; see [`SharedSpec`].
    ///
    /// # Errors
    /// [`Failure`] as [`SharedSpec::build`] has them.
    pub fn new(spec: &str, hasher: KeyHasher) -> Result<Self, Failure> {
        let spec: SharedSpec = spec.parse()?;
        let filter = spec.build()?;
        Ok(Self {
            filter,
            spec,
            hasher,
        })
    }

    /// The specification.
    #[must_use]
    pub const fn spec(&self) -> &SharedSpec {
        &self.spec
    }

    /// Probes and inserts each key. Of equal keys of several threads, exactly one is fresh. The
    /// bits of `duplicates` and the result are those of [`Filter::observe`](crate::Filter).
    ///
    /// # Errors
    /// As [`check_masks`]; nothing was judged then.
    pub fn observe(
        &self,
        keys: &(impl Keys + ?Sized),
        duplicates: &mut [u64],
    ) -> Result<u64, Failure> {
        BUFFERS.with_borrow_mut(|(hashes, verdicts)| {
            let hasher = &self.hasher;
            observe_blocks(keys, None, hasher, hashes, duplicates, |batch, words| {
                self.filter.observe(batch.keys(), verdicts);
                words.copy_from_slice(verdicts.words());
                give_back_verdicts(verdicts);
            })
        })
    }

    /// Whether each key would be a duplicate now. Changes nothing.
    ///
    /// # Errors
    /// As [`check_masks`].
    pub fn contains(
        &self,
        keys: &(impl Keys + ?Sized),
        duplicates: &mut [u64],
    ) -> Result<u64, Failure> {
        check_masks(keys.len(), None, duplicates.len())?;
        BUFFERS.with_borrow_mut(|(hashes, _)| {
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

    /// As [`save`](Self::save), into a file that is replaced as a whole.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn save_file(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        write_file(path, |file| self.save(bytes, file))
    }

    /// Restores the filter of a state, and the bytes of the caller in it.
    ///
    /// # Errors
    /// As [`Filter::load`](crate::Filter::load); [`Code::StateMismatch`](crate::Code::StateMismatch) also if the state is not
    /// that of a shared filter.
    pub fn load(
        input: impl Read,
        hasher: KeyHasher,
        memory_limit: u64,
    ) -> Result<(Self, Vec<u8>), Failure> {
        let state = SavedState::open(input)?.limit_memory(memory_limit)?;
        let spec = *state.spec().shared()?;
        state.check(&spec, &hasher)?;
        let restored = state.restore_shared()?;
        let shared = Self {
            filter: restored.filter,
            spec,
            hasher,
        };
        Ok((shared, restored.bytes))
    }

    /// As [`load`](Self::load), from a file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_file(
        path: &Path,
        hasher: KeyHasher,
        memory_limit: u64,
    ) -> Result<(Self, Vec<u8>), Failure> {
        read_file(path, |file| Self::load(file, hasher, memory_limit))
    }
}
