//! Restoring: a saved state, read and checked piece by piece.

use std::io::{ErrorKind, Read};

use super::error::StateError;
use super::format::{
    CHUNK, FIXED_BYTES, LINE, LONGEST_TEXT, MAGIC, VERSION, line_of, u32_at, u64_at,
};
use crate::filters::Form;
use crate::filters::lines::{LineFilter, Progress};
use crate::hash::{KeyHasher, checksum};
use crate::memory::Line;
use crate::partition::Partitioned;
use crate::spec::FilterSpec;

/// A saved state whose header was read and whose lines were not yet.
///
/// Checksums find damage. They do not protect from states that were forged.
///
/// # Examples
/// ```
/// use echoless::spec::SavedState;
/// use echoless::{Filter, FilterSpec, KeyHasher, Verdict};
/// let hasher = KeyHasher::seeded(0);
/// let spec: FilterSpec = "fingerprint:fpr=1e-8,memory=1MiB".parse()?;
/// let mut filter = spec.build_lines()?;
/// filter.observe_one(hasher.hash(b"call 17"));
/// let mut bytes = Vec::new();
/// spec.save(&mut [filter], &hasher, &mut bytes)?;
///
/// // After a restart, on two threads now.
/// let saved = SavedState::open(&bytes[..])?;
/// saved.check(&spec, &hasher)?;
/// let mut halves = saved.restore_partitions(2)?;
/// let key = hasher.hash(b"call 17");
/// let owner = halves.partitioning().partition_of(key);
/// assert_eq!(halves.filters_mut()[owner].observe_one(key), Verdict::Duplicate);
///
/// // With another seed, no key of the state would be found.
/// let error = SavedState::open(&bytes[..])?.check(&spec, &KeyHasher::seeded(1));
/// let text = error.unwrap_err().to_string();
/// assert!(text.starts_with("the key hasher of the saved state differs"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SavedState<R> {
    spec: FilterSpec,
    hasher: u64,
    progress: Progress,
    /// The checksum of the header.
    sum: u64,
    input: R,
}

impl<R: Read> SavedState<R> {
    /// Reads and checks the header. Reads in small pieces, so files should be buffered.
    ///
    /// # Errors
    /// [`StateError::Unreadable`] if the bytes are not a saved state, are damaged, or come from
    /// another version; [`StateError::Io`] if `input` fails.
    pub fn open(mut input: R) -> Result<Self, StateError> {
        let mut header = vec![0; FIXED_BYTES];
        read_exact(&mut input, &mut header)?;
        if header[..8] != MAGIC {
            return Err(StateError::Unreadable(
                "it does not begin with `echoless`".into(),
            ));
        }
        let [version, length] = [8, 12].map(|at| u32_at(&header, at));
        if version != VERSION {
            let reason = format!("it has version {version}, and this library reads {VERSION}");
            return Err(StateError::Unreadable(reason));
        }
        let length = length as usize;
        if length > LONGEST_TEXT {
            let reason = format!("its specification has {length} bytes, more than {LONGEST_TEXT}");
            return Err(StateError::Unreadable(reason));
        }
        header.resize(FIXED_BYTES + length, 0);
        read_exact(&mut input, &mut header[FIXED_BYTES..])?;
        let sum = checksum(0, &header);
        if read_u64(&mut input)? != sum {
            return Err(StateError::damaged());
        }
        let text = String::from_utf8_lossy(&header[FIXED_BYTES..]);
        let spec = text.parse().map_err(|error| {
            StateError::Unreadable(format!("its specification is not known: {error}"))
        })?;
        let [hasher, observed, fresh, evictions, tick] =
            [16, 24, 32, 40, 48].map(|at| u64_at(&header, at));
        Ok(Self {
            spec,
            hasher,
            progress: Progress {
                observed,
                fresh,
                evictions,
                tick,
            },
            sum,
            input,
        })
    }

    /// The specification of the saved filter.
    #[must_use]
    pub const fn spec(&self) -> &FilterSpec {
        &self.spec
    }

    /// The [id of the hasher](crate::KeyHasher::id) of its keys.
    #[must_use]
    pub const fn hasher_id(&self) -> u64 {
        self.hasher
    }

    /// Its counts and its clock.
    #[must_use]
    pub const fn progress(&self) -> Progress {
        self.progress
    }

    /// Checks that the saved filter is the one that a program would build. A forced kernel, the
    /// form, and a seed that the lines do not use do not matter.
    ///
    /// # Errors
    /// [`StateError::Mismatch`] if the specification or the hasher differs; [`StateError::Build`]
    /// if only the seed does, and `spec` cannot be built.
    pub fn check(&self, spec: &FilterSpec, hasher: &KeyHasher) -> Result<(), StateError> {
        // Lines have one form, and `build_lines` accepts a specification of the other.
        let plain = |spec: &FilterSpec| FilterSpec {
            form: Form::Line,
            kernel: None,
            seed: 0,
            ..*spec
        };
        let same = plain(&self.spec) == plain(spec)
            && (self.spec.seed == spec.seed
                || self.spec.line_parameters()? == spec.line_parameters()?);
        if !same {
            return Err(StateError::mismatch("specification", self.spec, spec));
        }
        if self.hasher != hasher.id() {
            let id = |id: u64| format!("id {id:016x}");
            return Err(StateError::mismatch(
                "key hasher",
                id(self.hasher),
                id(hasher.id()),
            ));
        }
        Ok(())
    }

    /// Builds the filter and reads its lines. Reads no byte after the state.
    ///
    /// # Errors
    /// [`StateError::Build`] if this machine cannot build the filter, [`StateError::Unreadable`] if
    /// the state is damaged or ends early, [`StateError::Io`] if the input fails.
    pub fn restore(self) -> Result<Box<dyn LineFilter>, StateError> {
        let mut filter = self.spec.build_lines()?;
        self.fill(std::slice::from_mut(&mut filter))?;
        Ok(filter)
    }

    /// As [`restore`](Self::restore), in `count` partitions, which need not be as many as there
    /// were.
    ///
    /// The first partition has all counts, so only the [report of all](crate::report_of) is right.
    /// If that one is lost, the evictions before the restart are no longer counted.
    /// [`FilterSpec::build_line_partition`] replaces one.
    ///
    /// # Errors
    /// As for [`restore`](Self::restore); [`StateError::Build`] also if `count` is not 1 to the
    /// number of lines.
    pub fn restore_partitions(
        self,
        count: usize,
    ) -> Result<Partitioned<Box<dyn LineFilter>>, StateError> {
        let mut filters = self.spec.build_line_partitions(count)?;
        self.fill(filters.filters_mut())?;
        Ok(filters)
    }

    /// Reads the lines of all partitions and the last checksum.
    fn fill(mut self, partitions: &mut [Box<dyn LineFilter>]) -> Result<(), StateError> {
        let mut sum = self.sum;
        let mut progress = self.progress;
        let mut bytes = Vec::with_capacity(CHUNK * LINE);
        for part in partitions {
            for lines in part.resume(progress).chunks_mut(CHUNK) {
                bytes.resize(lines.len() * LINE, 0);
                read_exact(&mut self.input, &mut bytes)?;
                for (line, bytes) in lines.iter_mut().zip(bytes.chunks_exact(LINE)) {
                    sum = checksum(sum, bytes);
                    let saved = line_of(bytes);
                    // A page without keys takes no memory, as long as nothing is written to it.
                    if saved.differs_from(&Line::EMPTY) {
                        *line = saved;
                    }
                }
            }
            progress = Progress {
                tick: progress.tick,
                ..Progress::default()
            };
        }
        if read_u64(&mut self.input)? == sum {
            Ok(())
        } else {
            Err(StateError::damaged())
        }
    }
}

fn read_exact(input: &mut impl Read, bytes: &mut [u8]) -> Result<(), StateError> {
    input.read_exact(bytes).map_err(|error| {
        if error.kind() == ErrorKind::UnexpectedEof {
            StateError::Unreadable("it ends early".into())
        } else {
            StateError::Io(error)
        }
    })
}

fn read_u64(input: &mut impl Read) -> Result<u64, StateError> {
    let mut bytes = [0; 8];
    read_exact(input, &mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
