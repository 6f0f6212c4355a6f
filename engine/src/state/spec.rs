//! What a state is of: the specification of its filter, in lines or shared.

use std::fmt;

use super::error::StateError;
use crate::error::BuildError;
use crate::filters::Form;
use crate::shared::SharedSpec;
use crate::spec::FilterSpec;

/// The specification of a saved filter: what determines its lines.
///
/// # Examples
/// ```
/// use echoless::state::StateSpec;
/// use echoless::{FilterSpec, SharedSpec};
/// let lines: FilterSpec = "dense:bits=32,memory=1MiB".parse()?;
/// let text = "dense:replacement=lru,bits=32,memory=1MiB";
/// assert_eq!(StateSpec::from(&lines).to_string(), text);
/// let shared: SharedSpec = "bloom:k=4,memory=1MiB".parse()?;
/// assert_eq!(StateSpec::from(&shared).to_string(), "bloom:k=4,memory=1MiB");
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "a state has one, and both specifications are `Copy`"
)]
pub enum StateSpec {
    /// A filter in lines.
    Lines(FilterSpec),
    /// A [`SharedFilter`](crate::SharedFilter).
    Shared(SharedSpec),
}

impl From<&FilterSpec> for StateSpec {
    /// Lines have one form, and [`FilterSpec::build_lines`] accepts a specification of the other.
    /// They do not depend on the kernel.
    fn from(spec: &FilterSpec) -> Self {
        Self::Lines(FilterSpec {
            form: Form::Line,
            kernel: None,
            ..*spec
        })
    }
}

impl From<&SharedSpec> for StateSpec {
    /// The memory is rounded down to whole lines, as that of the filter is.
    fn from(spec: &SharedSpec) -> Self {
        Self::Shared(spec.in_whole_lines())
    }
}

impl StateSpec {
    /// That of a filter in lines.
    ///
    /// # Errors
    /// [`StateError::Mismatch`] if the state is that of a shared filter.
    pub fn lines(&self) -> Result<&FilterSpec, StateError> {
        match self {
            Self::Lines(spec) => Ok(spec),
            Self::Shared(_) => Err(self.other_kind()),
        }
    }

    /// That of a shared filter.
    ///
    /// # Errors
    /// [`StateError::Mismatch`] if the state is that of a filter in lines.
    pub fn shared(&self) -> Result<&SharedSpec, StateError> {
        match self {
            Self::Shared(spec) => Ok(spec),
            Self::Lines(_) => Err(self.other_kind()),
        }
    }

    fn other_kind(&self) -> StateError {
        let (lines, shared) = ("a filter in lines", "a shared filter");
        let (saved, expected) = match self {
            Self::Lines(_) => (lines, shared),
            Self::Shared(_) => (shared, lines),
        };
        StateError::Mismatch {
            saved: saved.into(),
            expected: expected.into(),
        }
    }

    /// The number of lines of the filter, and how many of them a key selects: what is saved, or a
    /// part of it, is whole buckets.
    pub(super) fn lines_and_bucket(&self) -> Result<(u64, u64), BuildError> {
        match self {
            Self::Lines(spec) => {
                spec.check_bare()?;
                let plan = spec.needed_layers()?.plan()?;
                Ok((plan.lines, plan.bucket_lines))
            }
            Self::Shared(spec) => Ok((spec.checked_lines()?, 1)),
        }
    }

    /// # Errors
    /// [`StateError::Mismatch`] if they are different filters.
    pub(super) fn check_same(&self, expected: &Self) -> Result<(), StateError> {
        match (self, expected) {
            (Self::Lines(saved), Self::Lines(expected)) => {
                differ(line_options(saved), line_options(expected))
            }
            (Self::Shared(saved), Self::Shared(expected)) => {
                let options = |spec: &SharedSpec| {
                    let layout = ("layout", spec.name().to_owned());
                    [vec![layout], spec.options()].concat()
                };
                differ(options(saved), options(expected))
            }
            _ => Err(self.other_kind()),
        }
    }
}

impl fmt::Display for StateSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines(spec) => spec.fmt(formatter),
            Self::Shared(spec) => spec.fmt(formatter),
        }
    }
}

/// As the specification itself: a filter in lines is a table, and a shared one a text.
#[cfg(feature = "serde")]
impl serde::Serialize for StateSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Lines(spec) => spec.serialize(serializer),
            Self::Shared(spec) => serializer.collect_str(spec),
        }
    }
}

type OptionTexts = Vec<(&'static str, String)>;

/// The options of a specification, with its name and its seed.
fn line_options(spec: &FilterSpec) -> OptionTexts {
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
pub(super) fn differ(saved: OptionTexts, expected: OptionTexts) -> Result<(), StateError> {
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
            if ["filter", "layout"].contains(&key) {
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
