//! Kinds of filters: the trait that the specification of a kind implements, and the macro that
//! generates [`FilterKind`](super::FilterKind) from the list of all kinds.

use std::fmt;
use std::str::FromStr;

use super::Filter;
use super::cell_table::CellTable;
use super::lines::{LineAllocation, LineFilter};
use crate::error::{BuildError, SpecError};
use crate::options::{Options, name_of, one_of, value_of};
use crate::theory::RateModel;
use crate::window::Window;

/// Where the bits of a key lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Form {
    /// Scattered over the whole memory, as published.
    #[default]
    Scattered,
    /// In one cache line, which the key's hash selects. Such a filter can be cut into partitions.
    Line,
}

/// The forms and their names.
const FORMS: [(&str, Form); 2] = [("scattered", Form::Scattered), ("line", Form::Line)];

impl Form {
    /// Every form.
    pub const ALL: &'static [Self] = &[Self::Scattered, Self::Line];
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&name_of(&FORMS, self))
    }
}

impl FromStr for Form {
    type Err = SpecError;

    fn from_str(name: &str) -> Result<Self, SpecError> {
        value_of("form", &FORMS, name)
    }
}

/// The conditions that a planner selects a filter for.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Workload {
    /// The memory of the filter, in bytes.
    pub memory_bytes: u64,
    /// The largest distance between two duplicates, in records.
    pub span: u64,
}

impl Workload {
    /// Duplicates at most `span` records apart, in a filter of `memory_bytes`.
    #[must_use]
    pub const fn new(memory_bytes: u64, span: u64) -> Self {
        Self { memory_bytes, span }
    }
}

/// The specification of a kind of filters: its own parameters, without memory and seed.
///
/// All methods are required, so a new kind cannot omit one, except for what only some kinds have: a
/// table of cells, a bound on the memory, a window, no scattered form, buckets of more lines.
/// [`FilterKind`](super::FilterKind) is the list of the types that implement this.
pub(crate) trait KindSpec: Copy + PartialEq + fmt::Debug {
    /// Every name that [`parse`](Self::parse) takes.
    const NAMES: &'static [&'static str];

    /// The form of a specification that names none.
    const DEFAULT_FORM: Form = Form::Scattered;

    /// Whether the number of rows is a power of two, so that memory up to the next one is of no
    /// use.
    const POWER_OF_TWO_ROWS: bool = false;

    /// Takes the options of the filter `name` from `options`. Some defaults depend on the form.
    fn parse(name: &str, form: Form, options: &mut Options) -> Result<Self, SpecError>;

    /// The name of the filter.
    fn name(&self) -> &'static str;

    /// All options that [`parse`](Self::parse) takes, as text.
    fn options(&self) -> Vec<(&'static str, String)>;

    /// Builds the scattered form.
    fn build_scattered(&self, memory_bytes: u64, seed: u64) -> Result<Box<dyn Filter>, BuildError>;

    /// Builds the scattered form as a table of cells, if it is one: a key is a duplicate if and
    /// only if its k cells are set, and only a fresh key sets them.
    fn build_cells(&self, _memory_bytes: u64) -> Option<Result<Box<dyn CellTable>, BuildError>> {
        None
    }

    /// The mean number of cache lines that a fresh key touches at most in the scattered form.
    fn cache_lines(&self, memory_bytes: u64) -> f64;

    /// The lines of a bucket of the line form, which no partition divides: 1, or a page of 64. A
    /// key touches one line of it, or two of a page.
    fn bucket_lines(&self) -> u64 {
        1
    }

    /// The formula for the error rates on uniform streams, if there is one.
    fn rate_model(&self, form: Form, memory_bytes: u64) -> Option<RateModel>;

    /// The false positive rate that the filter never exceeds on any stream, if one below 1 exists.
    fn fpr_limit(&self, form: Form, memory_bytes: u64) -> Option<f64>;

    /// The most memory of the scattered form, in bytes, where less than 2^64 bits is addressed.
    fn most_memory(&self) -> u64 {
        u64::MAX / 8
    }

    /// How long a key is remembered, if the filter has a window in ticks and its parameters are
    /// valid.
    fn window(&self) -> Option<Window> {
        None
    }

    /// Whether a duplicate renews its key, so that the window counts from when it was last seen.
    fn renews_keys(&self) -> bool {
        false
    }

    /// Whether the error rates settle on an endless stream, below 1.
    fn settles(&self) -> bool;

    /// The same filter for a stream `scale` times shorter: what counts records shrinks.
    fn scaled(self, scale: f64) -> Self;

    /// The parameters that a planner tries, as specifications in text.
    fn grid(workload: &Workload) -> Vec<String>;
}

/// The error about a name that no filter has, or none of a kind.
pub(super) fn unknown_name(name: &str, names: &[&str]) -> SpecError {
    SpecError::new("filter", name, one_of(names))
}

/// A function that builds the line form of a kind.
pub(super) type BuildLines<S> = fn(&S, LineAllocation) -> Result<Box<dyn LineFilter>, BuildError>;

/// Generates [`FilterKind`](super::FilterKind) from a list of specifications and their line forms:
/// the enum, a conversion from each specification, and methods that forward to it.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($spec:ty), line: $lines:expr;)*) => {
        /// A filter's mechanism and policy; memory, seed and form are in
        /// [`FilterSpec`](crate::FilterSpec).
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[non_exhaustive]
        pub enum FilterKind {
            $($(#[$doc])* $kind($spec),)*
        }

        $(impl From<$spec> for FilterKind {
            fn from(spec: $spec) -> Self {
                Self::$kind(spec)
            }
        })*

        impl FilterKind {
            /// The names of all filters, in the order of the list.
            pub fn names() -> impl Iterator<Item = &'static str> {
                let names: &[&[&str]] = &[$(<$spec as KindSpec>::NAMES),*];
                names.iter().copied().flatten().copied()
            }

            /// Parses the filter `name`; takes its options from `options`.
            pub(crate) fn parse(
                name: &str,
                form: Form,
                options: &mut Options,
            ) -> Result<Self, SpecError> {
                $(if <$spec as KindSpec>::NAMES.contains(&name) {
                    return <$spec as KindSpec>::parse(name, form, options).map(Self::$kind);
                })*
                let names: Vec<&str> = Self::names().collect();
                Err(unknown_name(name, &names))
            }

            /// The form of a specification of the filter `name` that names no form.
            pub(crate) fn default_form_of(name: &str) -> Form {
                $(if <$spec as KindSpec>::NAMES.contains(&name) {
                    return <$spec as KindSpec>::DEFAULT_FORM;
                })*
                Form::default()
            }

            /// The form of a specification that names none: scattered, if the filter has that form.
            #[must_use]
            pub const fn default_form(&self) -> Form {
                match self {
                    $(Self::$kind(_) => <$spec as KindSpec>::DEFAULT_FORM,)*
                }
            }

            /// Whether the number of rows is a power of two.
            pub(crate) const fn has_power_of_two_rows(&self) -> bool {
                match self {
                    $(Self::$kind(_) => <$spec as KindSpec>::POWER_OF_TWO_ROWS,)*
                }
            }

            /// The most memory of the scattered form, in bytes.
            pub(crate) fn most_memory(&self) -> u64 {
                match self {
                    $(Self::$kind(spec) => spec.most_memory(),)*
                }
            }

            /// How long the filter remembers a key, if it has a window in ticks and its parameters
            /// are valid.
            #[must_use]
            pub fn window(&self) -> Option<Window> {
                match self {
                    $(Self::$kind(spec) => spec.window(),)*
                }
            }

            /// Whether a duplicate renews its key, in a filter with a window in ticks.
            #[must_use]
            pub(crate) fn renews_keys(&self) -> bool {
                match self {
                    $(Self::$kind(spec) => spec.renews_keys(),)*
                }
            }

            /// Whether the error rates settle on an endless stream.
            #[must_use]
            pub(crate) fn settles(&self) -> bool {
                match self {
                    $(Self::$kind(spec) => spec.settles(),)*
                }
            }

            /// The name of the filter.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(spec) => spec.name(),)*
                }
            }

            /// All options of this filter, as text, defaults included.
            pub(crate) fn options(&self) -> Vec<(&'static str, String)> {
                match self {
                    $(Self::$kind(spec) => spec.options(),)*
                }
            }

            /// Builds the scattered form.
            pub(crate) fn build_scattered(
                &self,
                memory_bytes: u64,
                seed: u64,
            ) -> Result<Box<dyn Filter>, BuildError> {
                match self {
                    $(Self::$kind(spec) => spec.build_scattered(memory_bytes, seed),)*
                }
            }

            /// Builds the scattered form as a table of cells; `None` if it is none.
            pub(crate) fn build_cells(
                &self,
                memory_bytes: u64,
            ) -> Option<Result<Box<dyn CellTable>, BuildError>> {
                match self {
                    $(Self::$kind(spec) => spec.build_cells(memory_bytes),)*
                }
            }

            /// The names of the filters whose defaults in this form satisfy the predicate.
            pub(crate) fn names_of(
                form: Form,
                is_one: impl Fn(&Self) -> bool,
            ) -> Vec<&'static str> {
                let default = |name| Self::parse(name, form, &mut Options::new(Vec::new())).ok();
                let names = Self::names();
                names.filter(|name| default(name).is_some_and(|kind| is_one(&kind))).collect()
            }

            /// Builds the line form in the given lines; `None` if the kind has no line form.
            pub(crate) fn build_lines(
                &self,
                allocation: LineAllocation,
            ) -> Option<Result<Box<dyn LineFilter>, BuildError>> {
                match self {
                    $(Self::$kind(spec) => {
                        let build: Option<BuildLines<$spec>> = $lines;
                        build.map(|build| build(spec, allocation))
                    })*
                }
            }

            /// Whether the filter has a line form.
            #[must_use]
            pub const fn has_line_form(&self) -> bool {
                match self {
                    $(Self::$kind(_) => {
                        let build: Option<BuildLines<$spec>> = $lines;
                        build.is_some()
                    })*
                }
            }

            /// The lines of a bucket of the line form, which no partition divides.
            pub(crate) fn bucket_lines(&self) -> u64 {
                match self {
                    $(Self::$kind(spec) => spec.bucket_lines(),)*
                }
            }

            /// The mean number of cache lines that a fresh key touches at most.
            #[must_use]
            pub fn cache_lines(&self, form: Form, memory_bytes: u64) -> f64 {
                match (form, self) {
                    (Form::Line, _) if self.bucket_lines() > 1 => 2.0,
                    (Form::Line, _) => 1.0,
                    $((Form::Scattered, Self::$kind(spec)) => spec.cache_lines(memory_bytes),)*
                }
            }

            /// The formula for the error rates on uniform streams, if there is one.
            #[must_use]
            pub fn rate_model(&self, form: Form, memory_bytes: u64) -> Option<RateModel> {
                match self {
                    $(Self::$kind(spec) => spec.rate_model(form, memory_bytes),)*
                }
            }

            /// The false positive rate that the filter never exceeds on any stream, if one below 1
            /// exists.
            #[must_use]
            pub fn fpr_limit(&self, form: Form, memory_bytes: u64) -> Option<f64> {
                match self {
                    $(Self::$kind(spec) => spec.fpr_limit(form, memory_bytes),)*
                }
            }

            /// The same filter for a stream `scale` times shorter.
            #[must_use]
            pub fn scaled(self, scale: f64) -> Self {
                match self {
                    $(Self::$kind(spec) => Self::$kind(spec.scaled(scale)),)*
                }
            }

            /// The parameters of all kinds that a planner tries, as specifications in text.
            #[must_use]
            pub fn grid(workload: &Workload) -> Vec<String> {
                let grids = [$(<$spec as KindSpec>::grid(workload)),*];
                grids.into_iter().flatten().collect()
            }
        }
    };
}
pub(super) use kinds;
