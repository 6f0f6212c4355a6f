//! The header of a state: which filter it is of, which part of it, and which keys it holds.

use std::ops::Range;

use super::error::StateError;
use super::section::{HEADER_HEAD, LONGEST_NAME, LONGEST_SPEC, u32_at, u64_at};
use super::spec::{StateSpec, differ};
use crate::error::{BuildError, SpecError};
use crate::hash::KeyHasher;
use crate::shared::SharedSpec;
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
    /// The specification of the filter.
    pub spec: StateSpec,
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
const SHARED: u32 = 2;

impl Header {
    /// The header of a whole filter: that of a [`FilterSpec`] in lines, or of a [`SharedSpec`].
    ///
    /// # Errors
    /// [`StateError::Build`] if [`FilterSpec::build_lines`] would reject the specification, or
    /// that of a shared filter is invalid.
    pub fn new(spec: impl Into<StateSpec>, hasher: &KeyHasher) -> Result<Self, StateError> {
        let spec = spec.into();
        if let StateSpec::Lines(spec) = &spec {
            line_parameters(spec)?;
        }
        let (lines, _) = spec.lines_and_bucket()?;
        Ok(Self {
            spec,
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
    /// [`StateError::Mismatch`], with the options that differ, if one is a shared filter and the
    /// other is not, or if another hasher made the keys;
    /// [`StateError::Build`] if only the seed differs, and the filter cannot be built.
    pub fn check(&self, spec: impl Into<StateSpec>, hasher: &KeyHasher) -> Result<(), StateError> {
        let mut spec = spec.into();
        // Compared only where it matters.
        if let (StateSpec::Lines(saved), StateSpec::Lines(expected)) = (&self.spec, &mut spec)
            && saved.seed != expected.seed
            && line_parameters(saved)? == line_parameters(&saved.seed(expected.seed))?
        {
            expected.seed = saved.seed;
        }
        let expected = Self {
            spec,
            algorithm: hasher.algorithm().to_owned(),
            hasher: hasher.id(),
            ..self.clone()
        };
        self.check_same(&expected)
    }

    /// # Errors
    /// [`StateError::Mismatch`] if a filter or a hasher differs from the expected one.
    pub(super) fn check_same(&self, expected: &Self) -> Result<(), StateError> {
        self.spec.check_same(&expected.spec)?;
        let hasher = |header: &Self| {
            let id = format!("{} {:016x}", header.algorithm, header.hasher);
            vec![("key hasher", id)]
        };
        differ(hasher(self), hasher(expected))
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
        let is_shared = matches!(self.spec, StateSpec::Shared(_));
        let flags = u32::from(self.starts_empty) * STARTS_EMPTY + u32::from(is_shared) * SHARED;
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
        let flags = u32_at(head, 40);
        let [name, text] = [44, 48].map(|at| u32_at(head, at) as usize);
        if texts.len() != name.saturating_add(text) || name > LONGEST_NAME || text > LONGEST_SPEC {
            return Err(invalid("its length".into()));
        }
        if ![0, STARTS_EMPTY, SHARED].contains(&flags) {
            return Err(invalid(format!("flags {flags:#x} are not known")));
        }
        let (algorithm, text) = texts.split_at(name);
        let [algorithm, text] = [algorithm, text].map(String::from_utf8_lossy);
        let unknown = |error: &dyn std::fmt::Display| {
            invalid(format!("its specification is not known: {error}"))
        };
        let spec = if flags == SHARED {
            text.parse::<SharedSpec>().map(|spec| (&spec).into())
        } else {
            text.parse::<FilterSpec>().map(|spec| (&spec).into())
        };
        let spec: StateSpec = spec.map_err(|error| unknown(&error))?;
        let shape = spec.lines_and_bucket();
        let (all, bucket) = shape.map_err(|error| unknown(&error))?;
        if all != lines {
            let reason = format!("{lines} lines, and its specification has {all}");
            return Err(invalid(reason));
        }
        let part = first..first.saturating_add(count);
        let is_whole_buckets = first % bucket == 0 && count % bucket == 0;
        let is_part = if flags == SHARED {
            part == (0..lines)
        } else {
            count > 0 && part.end <= lines && is_whole_buckets
        };
        if !is_part {
            let reason = format!("{count} lines from line {first} of {lines} are no part");
            return Err(invalid(reason));
        }
        Ok(Self {
            spec,
            lines,
            part,
            algorithm: algorithm.into_owned(),
            hasher,
            segment,
            starts_empty: flags == STARTS_EMPTY,
        })
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
