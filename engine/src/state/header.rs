//! The header of a state: which filter it is of, which part of it, and which keys it holds.

use std::ops::Range;

use super::error::StateError;
use super::section::{HEADER_HEAD, LONGEST_NAME, LONGEST_SPEC, u32_at, u64_at};
use crate::error::{BuildError, SpecError};
use crate::filters::Form;
use crate::filters::adapters::layers::Layers;
use crate::filters::lines::LinePlan;
use crate::hash::KeyHasher;
use crate::memory::LINE_BYTES;
use crate::size::format_bytes;
use crate::spec::FilterSpec;

/// What a state, or a segment of a journal, is of.
///
/// # Examples
/// ```
/// use echoless::state::Header;
/// use echoless::{FilterSpec, KeyHasher};
/// let spec: FilterSpec = "dense:memory=1MiB".parse()?;
/// let header = Header::new(&spec, &KeyHasher::seeded(0))?;
/// assert_eq!((header.lines, header.part), (16_384, 0..16_384));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Header {
    /// The specification of the filter, in lines.
    pub spec: FilterSpec,
    /// The number of lines of the whole filter.
    pub lines: u64,
    /// The lines whose content follows: all of them, or a part.
    pub part: Range<u64>,
    /// The [name of the algorithm](KeyHasher::algorithm) that hashed the keys.
    pub algorithm: String,
    /// The [id of the hasher](KeyHasher::id) of the keys.
    pub hasher: u64,
    /// The number of a segment of a journal; 0 in a state.
    pub segment: u64,
    /// Whether the filter was empty at the beginning, so that the keys alone lead to its content.
    pub starts_empty: bool,
}

const STARTS_EMPTY: u32 = 1;

impl Header {
    /// The header of a whole filter that [`FilterSpec::build_lines`] builds from `spec`.
    ///
    /// # Errors
    /// [`StateError::Build`] if it would reject the specification.
    pub fn new(spec: &FilterSpec, hasher: &KeyHasher) -> Result<Self, StateError> {
        let (lines, _) = line_parameters(spec)?;
        Ok(Self {
            spec: in_lines(spec),
            lines,
            part: 0..lines,
            algorithm: hasher.algorithm().to_owned(),
            hasher: hasher.id(),
            segment: 0,
            starts_empty: false,
        })
    }

    /// Sets the lines whose content follows.
    #[must_use]
    pub fn part(mut self, lines: Range<u64>) -> Self {
        self.part = lines;
        self
    }

    /// Sets the number of the segment.
    #[must_use]
    pub fn segment(mut self, number: u64) -> Self {
        self.segment = number;
        self
    }

    /// Sets whether the filter was empty at the beginning.
    #[must_use]
    pub fn starts_empty(mut self, empty: bool) -> Self {
        self.starts_empty = empty;
        self
    }

    /// Whether all lines of the filter follow.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.part == (0..self.lines)
    }

    /// Checks that the filter is the one that a program would build. A forced kernel, the form, and
    /// a seed that the lines do not use do not matter.
    ///
    /// # Errors
    /// [`StateError::Mismatch`], with the options that differ, or if another hasher made the keys;
    /// [`StateError::Build`] if only the seed differs, and the filter cannot be built.
    pub fn check(&self, spec: &FilterSpec, hasher: &KeyHasher) -> Result<(), StateError> {
        let mut expected = in_lines(spec);
        // Compared only where it matters.
        if self.spec.seed != expected.seed
            && line_parameters(&self.spec)? == line_parameters(&self.spec.seed(expected.seed))?
        {
            expected.seed = self.spec.seed;
        }
        let expected = Self {
            spec: expected,
            algorithm: hasher.algorithm().to_owned(),
            hasher: hasher.id(),
            ..self.clone()
        };
        self.check_same(&expected)
    }

    /// # Errors
    /// [`StateError::Mismatch`] if a filter or a hasher differs from the expected one.
    pub(super) fn check_same(&self, expected: &Self) -> Result<(), StateError> {
        differ(options(&self.spec), options(&expected.spec))?;
        let hasher = |header: &Self| {
            let id = format!("{} {:016x}", header.algorithm, header.hasher);
            vec![("key hasher", id)]
        };
        differ(hasher(self), hasher(expected))
    }

    /// Checks that the filter, or the part of it, takes no more memory than `bytes`.
    ///
    /// # Errors
    /// [`StateError::Build`] if it does.
    pub fn check_memory(&self, bytes: u64) -> Result<(), StateError> {
        let memory = (self.part.end - self.part.start) * LINE_BYTES;
        if memory <= bytes {
            return Ok(());
        }
        let allowed = format!("a state of at most {}", format_bytes(bytes));
        Err(SpecError::new("memory", format_bytes(memory), allowed).into())
    }

    /// The lines of the filter, and how they are divided.
    pub(super) fn plan(&self) -> Result<LinePlan, StateError> {
        Ok(self.spec.needed_layers()?.plan()?)
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, StateError> {
        let spec = self.spec.to_string();
        let algorithm = &self.algorithm;
        for (name, text, most) in [
            ("specification", &spec, LONGEST_SPEC),
            ("algorithm", algorithm, LONGEST_NAME),
        ] {
            if text.len() > most {
                let asked = format!("{} bytes", text.len());
                return Err(SpecError::new(name, asked, format!("at most {most} bytes")).into());
            }
        }
        let mut bytes = Vec::with_capacity(HEADER_HEAD + algorithm.len() + spec.len());
        for number in [
            self.lines,
            self.part.start,
            self.part.end - self.part.start,
            self.segment,
            self.hasher,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        let flags = if self.starts_empty { STARTS_EMPTY } else { 0 };
        for number in [flags, algorithm.len() as u32, spec.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(algorithm.as_bytes());
        bytes.extend(spec.as_bytes());
        Ok(bytes)
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Self, StateError> {
        let invalid = |reason: String| StateError::invalid("the header", reason);
        let Some((head, texts)) = payload.split_at_checked(HEADER_HEAD) else {
            return Err(invalid("it is too short".into()));
        };
        let [lines, first, count, segment, hasher] = [0, 8, 16, 24, 32].map(|at| u64_at(head, at));
        let [flags, name, text] = [40, 44, 48].map(|at| u32_at(head, at) as usize);
        if texts.len() != name.saturating_add(text) || name > LONGEST_NAME || text > LONGEST_SPEC {
            return Err(invalid("its length".into()));
        }
        if flags & !(STARTS_EMPTY as usize) != 0 {
            return Err(invalid(format!("flags {flags:#x} are not known")));
        }
        let (algorithm, text) = texts.split_at(name);
        let [algorithm, text] = [algorithm, text].map(String::from_utf8_lossy);
        let unknown = |error: &dyn std::fmt::Display| {
            invalid(format!("its specification is not known: {error}"))
        };
        let spec: FilterSpec = text.parse().map_err(|error| unknown(&error))?;
        spec.check_bare().map_err(|error| unknown(&error))?;
        let plan = spec.needed_layers().and_then(Layers::plan);
        let plan = plan.map_err(|error| unknown(&error))?;
        if plan.lines != lines {
            let reason = format!("{lines} lines, and its specification has {}", plan.lines);
            return Err(invalid(reason));
        }
        let part = first..first.saturating_add(count);
        let is_whole_buckets =
            part.start % plan.bucket_lines == 0 && count % plan.bucket_lines == 0;
        if count == 0 || part.end > lines || !is_whole_buckets {
            let reason = format!("{count} lines from line {first} of {lines} are no part");
            return Err(invalid(reason));
        }
        Ok(Self {
            spec: in_lines(&spec),
            lines,
            part,
            algorithm: algorithm.into_owned(),
            hasher,
            segment,
            starts_empty: flags != 0,
        })
    }
}

/// What determines the lines: they have one form, and [`FilterSpec::build_lines`] accepts a
/// specification of the other.
fn in_lines(spec: &FilterSpec) -> FilterSpec {
    FilterSpec {
        form: Form::Line,
        kernel: None,
        ..*spec
    }
}

/// The number of lines, and the [parameters](crate::LineFilter::parameters) that a filter of this
/// specification has.
pub(super) fn line_parameters(spec: &FilterSpec) -> Result<(u64, String), BuildError> {
    spec.check_bare()?;
    let layers = spec.needed_layers()?;
    let plan = layers.plan()?;
    let first = plan.range(0..plan.bucket_lines, |lines| layers.build_lines(lines))?;
    Ok((plan.lines, first.parameters()))
}

type OptionTexts = Vec<(&'static str, String)>;

/// The options of a specification, with its name and its seed.
fn options(spec: &FilterSpec) -> OptionTexts {
    let mut options = vec![("filter", spec.name().to_owned())];
    if !spec.adapters.is_empty() {
        options.push(("adapters", spec.adapters.to_string()));
    }
    let others = spec.options().into_iter();
    options.extend(others.filter(|(key, _)| *key != "seed"));
    options.push(("seed", spec.seed.to_string()));
    options
}

/// # Errors
/// The options that differ. Filters of different names have no options to compare.
fn differ(saved: OptionTexts, expected: OptionTexts) -> Result<(), StateError> {
    let different = |key: &str| {
        let of = |options: &OptionTexts| {
            let found = options.iter().find(|(other, _)| *other == key);
            found.map(|(_, value)| value.clone())
        };
        let [saved, expected] = [&saved, &expected].map(of);
        (saved != expected).then_some([saved, expected])
    };
    let mut keys: Vec<&str> = saved.iter().map(|(key, _)| *key).collect();
    let more = expected.iter().map(|(key, _)| *key);
    keys.extend(more.filter(|key| saved.iter().all(|(other, _)| other != key)));
    let mut texts = [Vec::new(), Vec::new()];
    for key in keys {
        if let Some(values) = different(key) {
            for (texts, value) in texts.iter_mut().zip(values) {
                texts.push(value.map_or(format!("no {key}"), |value| format!("{key}={value}")));
            }
            if key == "filter" {
                break;
            }
        }
    }
    let [saved, expected] = texts.map(|texts| texts.join(","));
    if saved.is_empty() {
        return Ok(());
    }
    Err(StateError::Mismatch { saved, expected })
}
