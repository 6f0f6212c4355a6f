//! A filter for one thread at a time.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use echoless::spec::Form;
use echoless::{BuildError, FilterSpec, KeyHasher, LineFilter, Partitioned, Report, SpecError};
use echoless_durable::replace_file;

use crate::failure::{Code, Failure};
use crate::keys::{Keys, observe_blocks};

/// Any filter by its specification, with the hasher of its keys. It knows both, so it can be saved.
#[derive(Debug)]
pub struct Filter {
    judge: Judge,
    pub(crate) spec: FilterSpec,
    pub(crate) hasher: KeyHasher,
    /// The hashes of a block of keys.
    hashes: Vec<echoless::KeyHash>,
}

/// The filter itself.
#[derive(Debug)]
enum Judge {
    /// With access to its lines, which are what is saved.
    Lines(Box<dyn LineFilter>),
    Whole(Box<dyn echoless::Filter>),
}

impl Filter {
    /// Builds the filter of a specification such as `fingerprint:fpr=1e-8,memory=64MiB`; see
    /// [`FilterSpec`].
    ///
    /// # Errors
    /// [`Failure`] as [`FilterSpec::build`] has them.
    pub fn new(spec: &str, hasher: KeyHasher) -> Result<Self, Failure> {
        let spec = spec_of(spec)?;
        let judge = match spec.form {
            Form::Line => match spec.build_lines() {
                Ok(filter) => Judge::Lines(filter),
                // Something lies between the caller and the lines.
                Err(BuildError::Spec(error)) if ["adapters", "tracked"].contains(&error.field) => {
                    Judge::Whole(spec.build()?)
                }
                Err(error) => return Err(error.into()),
            },
            _ => Judge::Whole(spec.build()?),
        };
        Ok(Self {
            judge,
            spec,
            hasher,
            hashes: Vec::new(),
        })
    }

    /// Probes and inserts each key in order, at the clock as it is or each at its own tick. Bit
    /// `i % 64` of `duplicates[i / 64]` is set if key `i` is a duplicate; bits past the last key
    /// are zero. Returns the number of duplicates.
    ///
    /// # Errors
    /// As [`check_masks`](crate::check_masks); nothing was judged then.
    pub fn observe(
        &mut self,
        keys: &dyn Keys,
        ticks: Option<&[u64]>,
        duplicates: &mut [u64],
    ) -> Result<u64, Failure> {
        let Self {
            judge,
            hasher,
            hashes,
            ..
        } = self;
        let filter = judge.filter_mut();
        observe_blocks(keys, ticks, hasher, hashes, duplicates, |batch, words| {
            filter.observe_batch(batch, words);
        })
    }

    /// Whether each key would be a duplicate now. Changes nothing in the filter.
    ///
    /// # Errors
    /// As [`check_masks`](crate::check_masks).
    pub fn contains(&mut self, keys: &dyn Keys, duplicates: &mut [u64]) -> Result<u64, Failure> {
        let filter = self.judge.filter();
        let mut verdicts = echoless::Verdicts::new();
        let (hasher, hashes) = (&self.hasher, &mut self.hashes);
        observe_blocks(keys, None, hasher, hashes, duplicates, |batch, words| {
            filter.contains_each(batch.keys(), &mut verdicts);
            words.copy_from_slice(verdicts.words());
        })
    }

    /// Moves the clock of a window to `tick`. An earlier tick has no effect.
    pub fn advance_to(&mut self, tick: u64) {
        self.judge.filter_mut().advance_to(tick);
    }

    /// Removes all keys, and resets the counters and the clock.
    pub fn clear(&mut self) {
        self.judge.filter_mut().clear();
    }

    /// Counters and error estimates. This may read the whole memory of the filter.
    #[must_use]
    pub fn report(&self) -> Report {
        self.judge.filter().report()
    }

    /// The memory of the filter's state, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.judge.filter().memory_bytes()
    }

    /// The number of lines; the parts of a state are ranges of them.
    ///
    /// # Errors
    /// [`Code::Unsupported`] if the filter has no lines, or not all of its state is in them.
    pub fn lines(&self) -> Result<u64, Failure> {
        match &self.judge {
            Judge::Lines(filter) => Ok(filter.range().total),
            Judge::Whole(_) => Err(no_lines(&self.spec)),
        }
    }

    /// Writes the state of all lines, or of a range of them, with `bytes` of the caller. The secret
    /// of the hasher is not in it.
    ///
    /// # Errors
    /// [`Code::Unsupported`] as [`lines`](Self::lines), [`Code::InvalidSpec`] if the range is not
    /// one of whole buckets, [`Code::Io`] if `output` fails.
    pub fn save(
        &mut self,
        lines: Option<Range<u64>>,
        bytes: &[u8],
        output: impl Write,
    ) -> Result<(), Failure> {
        let all = self.lines()?;
        let Judge::Lines(filter) = &mut self.judge else {
            return Err(no_lines(&self.spec));
        };
        let filters = std::slice::from_mut(filter);
        let lines = lines.unwrap_or(0..all);
        self.spec
            .save_part(filters, lines, &self.hasher, bytes, output)?;
        Ok(())
    }

    /// The filter of one partition.
    pub(crate) fn of_restored(
        filter: Partitioned<Box<dyn LineFilter>>,
        spec: FilterSpec,
        hasher: KeyHasher,
    ) -> Self {
        let Some(filter) = filter.into_parts().1.pop() else {
            unreachable!("one partition");
        };
        Self {
            judge: Judge::Lines(filter),
            spec,
            hasher,
            hashes: Vec::new(),
        }
    }
}

/// The memory of filters, in bytes.
pub(crate) fn memory_of<F: echoless::Filter>(filters: &[F]) -> u64 {
    filters.iter().map(F::memory_bytes).sum()
}

/// Reads a file; an error names it.
pub(crate) fn read_file<T>(
    path: &Path,
    read: impl FnOnce(File) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let value = File::open(path).map_err(Failure::from).and_then(read);
    value.map_err(|failure| failure.of_path(path))
}

/// Replaces a file as a whole.
pub(crate) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failure = None;
    let saved = replace_file(path, |file| {
        write(file).map_err(|error| {
            let io = std::io::Error::other(error.text.clone());
            failure = Some(error);
            io
        })
    });
    match (saved, failure) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(failure)) => Err(failure),
        (Err(error), None) => Err(Failure::from(error).of_path(path)),
    }
}

impl Judge {
    fn filter(&self) -> &dyn echoless::Filter {
        match self {
            Self::Lines(filter) => &**filter,
            Self::Whole(filter) => &**filter,
        }
    }

    fn filter_mut(&mut self) -> &mut dyn echoless::Filter {
        match self {
            Self::Lines(filter) => &mut **filter,
            Self::Whole(filter) => &mut **filter,
        }
    }
}

fn no_lines(spec: &FilterSpec) -> Failure {
    let text = format!(
        "cannot save {spec}: expected a filter in lines (form=line) without adapters, with all \
         keys tracked"
    );
    Failure::new(Code::Unsupported, text)
}

/// The specification of a filter. With the feature `papers` it may name the filters as published.
pub(crate) fn spec_of(text: &str) -> Result<FilterSpec, SpecError> {
    know_papers();
    text.parse()
}

/// Makes the filters as published known to specifications, if the library is built with them.
pub(crate) fn know_papers() {
    #[cfg(feature = "papers")]
    echoless_papers::register();
}
