//! Saved states: a filter in lines as bytes, for a program that goes on after a restart, with any
//! number of partitions.
//!
//! ```text
//!  bytes  8 "echoless"   4 version   4 length of the text   8 id of the key hasher
//!         8 observed     8 fresh     8 evictions            8 tick
//!         the specification as text                         8 checksum of all above
//!         all lines, 64 bytes each, in the order of key hashes
//!         8 checksum of everything, chained from line to line
//! ```
//!
//! Numbers and lines have the byte order of the machine: a state of the other byte order has a
//! version that is not known. Threads and kernels do not affect it, nor do partitions, except with
//! a window: a partition without keys for a while drops expired keys later. That changes no
//! verdict.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};

use super::FilterSpec;
use crate::error::{BuildError, SpecError};
use crate::filters::Form;
use crate::filters::lines::{LineFilter, Progress};
use crate::hash::{KeyHasher, checksum};
use crate::memory::Line;
use crate::partition::Partitioned;

/// The first bytes of a state.
const MAGIC: [u8; 8] = *b"echoless";

/// The version of the format. It must rise with every change of what a line form keeps in its
/// lines, or of the line and the fingerprint that a hash selects: `engine/tests/specs/state.rs` has
/// the hashes of states of every line form.
const VERSION: u32 = 1;

/// The bytes before the specification.
const FIXED_BYTES: usize = 56;

/// The longest specification, in bytes: several times that of the longest one in use.
const LONGEST_TEXT: usize = 4096;

/// The bytes of a line.
const LINE: usize = size_of::<Line>();

/// The lines that are written and read at once: 64 KiB.
const CHUNK: usize = 1024;

impl FilterSpec {
    /// Writes the state of a filter that [`build_lines`](Self::build_lines) built from this
    /// specification, or of all its partitions in their order. [`SavedState`] reads it.
    ///
    /// The state contains the [id](KeyHasher::id) of the hasher of the keys, and not its seed or
    /// secret key. The clocks of the partitions advance to the latest one; nothing else changes.
    /// Writes in pieces of 64 KiB, as many bytes as the filter has memory, and flushes `output`.
    ///
    /// A crash in the middle leaves half a state, so write to a file beside the old state, call
    /// [`File::sync_all`](std::fs::File::sync_all) and rename it over the old one; the rename
    /// itself is safe from a power failure once the folder is synchronised, too.
    ///
    /// # Errors
    /// [`StateError::Build`] if [`build_lines`](Self::build_lines) would reject the specification,
    /// or the filters have another one, or are not all of its lines in their order;
    /// [`StateError::Io`] if `output` fails.
    ///
    /// # Examples
    /// ```
    /// use std::fs::{self, File};
    /// use std::io::BufReader;
    ///
    /// use echoless::spec::SavedState;
    /// use echoless::{FilterSpec, KeyHasher};
    ///
    /// let hasher = KeyHasher::seeded(0);
    /// let spec: FilterSpec = "fingerprint:fpr=1e-8,memory=1MiB".parse()?;
    /// // Two partitions, such as an engine returns when it is shut down.
    /// let mut partitions = spec.build_line_partitions(2)?;
    /// let state = std::env::temp_dir().join(format!("{}.state", std::process::id()));
    /// let fresh = state.with_extension("new");
    /// let file = File::create(&fresh)?;
    /// spec.save(partitions.filters_mut(), &hasher, &file)?;
    /// file.sync_all()?;
    /// fs::rename(&fresh, &state)?;
    ///
    /// let saved = SavedState::open(BufReader::new(File::open(&state)?))?;
    /// saved.check(&spec, &hasher)?;
    /// assert_eq!(saved.restore_partitions(3)?.partitioning().count(), 3);
    /// # fs::remove_file(state)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save<F: LineFilter>(
        &self,
        partitions: &mut [F],
        hasher: &KeyHasher,
        mut output: impl Write,
    ) -> Result<(), StateError> {
        self.check_bare()?;
        let layers = self.needed_layers()?;
        let plan = layers.plan()?;
        let lines = plan.lines;
        let expected = plan.first_bucket(|first| layers.build_lines(first))?;
        let parameters = expected.parameters();
        let mut next = 0;
        for part in &*partitions {
            let range = part.range();
            if (range.total, range.first) != (lines, next) {
                let asked = format!("line {} of {}", range.first, range.total);
                let allowed = format!("line {next} of {lines}, the next in order");
                return Err(SpecError::new("partitions", asked, allowed).into());
            }
            if part.parameters() != parameters {
                let asked = "filters of another specification";
                return Err(SpecError::new("partitions", asked, self.to_string()).into());
            }
            next += part.lines().len() as u64;
        }
        if next != lines {
            let asked = format!("{next} lines");
            let allowed = format!("all {lines} lines");
            return Err(SpecError::new("partitions", asked, allowed).into());
        }
        let tick = partitions.iter().map(|part| part.progress().tick).max();
        let mut whole = Progress::default();
        for part in &mut *partitions {
            // Sweeps the lines of a partition whose clock is in an earlier era.
            part.advance_to(tick.unwrap_or(0));
            let progress = part.progress();
            whole.observed += progress.observed;
            whole.fresh += progress.fresh;
            whole.evictions += progress.evictions;
            whole.tick = progress.tick;
        }
        let header = self.header(hasher.id(), whole);
        let mut sum = checksum(0, &header);
        output.write_all(&header)?;
        output.write_all(&sum.to_ne_bytes())?;
        let mut bytes = Vec::with_capacity(CHUNK * LINE);
        for part in &*partitions {
            for chunk in part.lines().chunks(CHUNK) {
                bytes.clear();
                for line in chunk {
                    let line = bytes_of(*line);
                    sum = checksum(sum, &line);
                    bytes.extend(line);
                }
                output.write_all(&bytes)?;
            }
        }
        output.write_all(&sum.to_ne_bytes())?;
        Ok(output.flush()?)
    }

    /// The bytes before the first checksum.
    fn header(&self, hasher: u64, progress: Progress) -> Vec<u8> {
        let text = self.to_string();
        assert!(
            text.len() <= LONGEST_TEXT,
            "the text of a specification exceeds {LONGEST_TEXT} bytes"
        );
        let mut header = Vec::with_capacity(FIXED_BYTES + text.len());
        header.extend(MAGIC);
        header.extend(VERSION.to_ne_bytes());
        header.extend((text.len() as u32).to_ne_bytes());
        for number in [
            hasher,
            progress.observed,
            progress.fresh,
            progress.evictions,
            progress.tick,
        ] {
            header.extend(number.to_ne_bytes());
        }
        header.extend(text.as_bytes());
        header
    }
}

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
            return Err(StateError::Unreadable("it is damaged".into()));
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
    pub const fn hasher(&self) -> u64 {
        self.hasher
    }

    /// Its counts and its clock.
    #[must_use]
    pub const fn progress(&self) -> Progress {
        self.progress
    }

    /// Checks that the saved filter is the one that a program would build. A forced kernel and the
    /// form do not matter.
    ///
    /// # Errors
    /// [`StateError::Mismatch`] if the specification or the hasher differs.
    pub fn check(&self, spec: &FilterSpec, hasher: &KeyHasher) -> Result<(), StateError> {
        // Lines have one form, and `build_lines` accepts a specification of the other.
        let plain = |spec: &FilterSpec| FilterSpec {
            form: Form::Line,
            kernel: None,
            ..*spec
        };
        if plain(&self.spec) != plain(spec) {
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

/// The bytes of a line as they are in memory.
fn bytes_of(line: Line) -> [u8; LINE] {
    bytemuck::must_cast(line.0)
}

/// The line of [`LINE`] bytes.
fn line_of(bytes: &[u8]) -> Line {
    let (words, _) = bytes.as_chunks();
    let mut line = Line::EMPTY;
    for (word, bytes) in line.0.iter_mut().zip(words) {
        *word = u64::from_ne_bytes(*bytes);
    }
    line
}

/// The number that begins at byte `at` of a header.
fn u64_at(header: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&header[at..at + 8]);
    u64::from_ne_bytes(bytes)
}

/// As [`u64_at`], for 4 bytes.
fn u32_at(header: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&header[at..at + 4]);
    u32::from_ne_bytes(bytes)
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

/// The reason why a state could not be saved or restored.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateError {
    /// The bytes are not a saved state that this library can read: the reason.
    Unreadable(String),
    /// The state differs from what the program expects.
    Mismatch {
        /// What differs, such as `key hasher`.
        what: &'static str,
        /// That of the state.
        saved: String,
        /// That of the program.
        expected: String,
    },
    /// The filter could not be built.
    Build(BuildError),
    /// Reading or writing failed.
    Io(io::Error),
}

impl StateError {
    fn damaged() -> Self {
        Self::Unreadable("it is damaged: a checksum is wrong".into())
    }

    fn mismatch(what: &'static str, saved: impl ToString, expected: impl ToString) -> Self {
        Self::Mismatch {
            what,
            saved: saved.to_string(),
            expected: expected.to_string(),
        }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(reason) => write!(f, "cannot read the saved state: {reason}"),
            Self::Mismatch {
                what,
                saved,
                expected,
            } => write!(
                f,
                "the {what} of the saved state differs: {saved}, expected {expected}"
            ),
            Self::Build(error) => error.fmt(f),
            Self::Io(error) => write!(f, "cannot read or write the saved state: {error}"),
        }
    }
}

impl Error for StateError {}

impl From<BuildError> for StateError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<SpecError> for StateError {
    fn from(error: SpecError) -> Self {
        Self::Build(error.into())
    }
}

impl From<io::Error> for StateError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
