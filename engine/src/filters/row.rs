//! Rows of the tables of filters and adapters: what the text form, the catalogue, building and
//! planning know of each of them.

use std::fmt;
use std::str::FromStr;

use super::lines::{LineAllocation, LineFilter, MOST_LINES};
use super::{Filter, lines};
use crate::error::{BuildError, SpecError};
use crate::extend;
use crate::limits::MOST_HASHES;
use crate::memory::LINE_BYTES;
use crate::options::{Allowed, OptionInfo, Options, Value, value_of, write_named};
use crate::report::Window;
use crate::theory::RateModel;

/// Where the bits of a key lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Scattered over the whole memory, as published.
    #[default]
    Scattered,
    /// In one cache line, which the key's hash selects. Such a filter can be cut into partitions.
    Line,
}

impl Form {
    /// Every form.
    pub const ALL: &'static [Self] = &[Self::Scattered, Self::Line];
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Scattered => "scattered",
            Self::Line => "line",
        })
    }
}

impl FromStr for Form {
    type Err = SpecError;

    fn from_str(name: &str) -> Result<Self, SpecError> {
        let forms = [("scattered", Self::Scattered), ("line", Self::Line)];
        value_of("form", &forms, name)
    }
}

/// What is known of a filter before it is built.
///
/// # Examples
/// ```
/// use echoless::spec::Facts;
/// use echoless::{FilterSpec, Window};
/// let facts = |text: &str| -> Facts { text.parse::<FilterSpec>().unwrap().facts() };
/// assert_eq!(facts("rowlru:form=line,memory=1MiB").cache_lines, 1.0);
/// assert_eq!(facts("dense:memory=1MiB").cache_lines, 2.0);
/// assert_eq!(facts("clocked:window=1000").window, Some(Window::new(1000, 200)));
/// assert_eq!(facts("rowlru:form=line").most_memory, 256 << 30);
/// assert!(facts("clocked").renews_keys && !facts("clocked:refresh=false").renews_keys);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// The mean number of cache lines that a fresh key touches at most. Keys that are not tracked
    /// touch none and do not count in the mean. A row counts as the lines that it lies in, a cell
    /// of at most 32 bits as one, although a few cells cross the end of a line.
    pub cache_lines: f64,
    /// The formula for the error rates on a uniform stream of the tracked keys, if there is one and
    /// the memory is set.
    pub rate_model: Option<RateModel>,
    /// The false positive rate that the filter never exceeds on any stream; `None` if there is no
    /// such limit below 1, or the memory is not set.
    ///
    /// For fingerprints it is the number of slots searched times the probability that a fingerprint
    /// equals that of another key, and for a buffer that guesses, the rate of its guesses. A
    /// simulation of a million records cannot measure a rate of one in a billion, so a planner
    /// needs this limit. In the line form it accounts for the hash bits that select the line
    /// ([`FingerprintGeometry::full_fpr`](crate::FingerprintGeometry::full_fpr)). Exact buffers
    /// confuse only keys of equal hashes, which do not count here.
    pub fpr_limit: Option<f64>,
    /// The most memory that the filter can have, in bytes, on a machine that has as much.
    pub most_memory: u64,
    /// The unit of the memory of a line form, in bytes: a line, or a page of lines in a dense
    /// filter, that holds all that a key reads and writes. Memory beyond whole units is not used. 1
    /// for other forms.
    pub memory_unit: u64,
    /// How long the filter remembers a key, if it has a window in ticks and its parameters are
    /// valid. (`bdbf` counts its window in records by itself.)
    pub window: Option<Window>,
    /// Whether a duplicate renews its key, in a filter with a [`window`](Self::window): the window
    /// then counts from when the key was last seen, else from when it was recorded.
    pub renews_keys: bool,
    /// Whether a key leaves the filter only because its [`window`](Self::window) is over, so that
    /// no duplicate in it is missed. Unless the filter [renews keys](Self::renews_keys), that
    /// window counts from when the key was recorded: a duplicate soon after another one may be
    /// fresh.
    pub forgets_by_time: bool,
    /// Whether the error rates settle on an endless stream of which some records are always fresh.
    /// The rates of a filter that does not settle drift until they add up to 1: its verdicts are
    /// those of a coin, and it is for streams of known length.
    ///
    /// Bloom filters fill up, and so do BSBFSD (paper 000), although it clears bits, and ageing
    /// filters with one hash; RSBF with `as=tabled` inserts ever fewer keys; FP-SBF with
    /// `refill=xor` (paper 003), or repaired without evictions, loses its fingerprints.
    pub settles: bool,
    /// Whether the number of rows is a power of two: then a filter of half the memory has half the
    /// rows, but one of a little less memory may also have half the rows, or as many.
    pub power_of_two_rows: bool,
}

impl Facts {
    /// A filter of any memory of which only this is known: a fresh key touches so many cache lines,
    /// and the error rates settle.
    #[must_use]
    pub const fn touching(cache_lines: f64) -> Self {
        Self {
            cache_lines,
            rate_model: None,
            fpr_limit: None,
            most_memory: MOST_SCATTERED,
            memory_unit: LINE_BYTES,
            window: None,
            renews_keys: false,
            forgets_by_time: false,
            settles: true,
            power_of_two_rows: false,
        }
    }
}

/// The most memory of a scattered form whose parts have no limit of their own: less than 2^64 bits.
const MOST_SCATTERED: u64 = u64::MAX / 8;

/// An option of a row.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    key: &'static str,
    allowed: Allowed,
    default: Value,
    /// The option is taken only while an option before it has one of these names.
    beside: Option<(&'static str, &'static [&'static str])>,
}

impl OptionRow {
    /// An option without a default.
    pub const fn new(key: &'static str, allowed: Allowed) -> Self {
        Self {
            key,
            allowed,
            default: Value::Unset,
            beside: None,
        }
    }

    /// A whole number from `least` to `most`.
    pub const fn whole(key: &'static str, least: u64, most: u64, default: u64) -> Self {
        Self::new(key, Allowed::Whole(least, most)).or(Value::Whole(default))
    }

    /// `k`, the number of positions of a key.
    pub const fn hashes(default: u64) -> Self {
        Self::whole("k", 1, MOST_HASHES as u64, default)
    }

    /// One of some whole numbers.
    pub const fn listed(key: &'static str, of: &'static [u64], default: u64) -> Self {
        Self::new(key, Allowed::Listed(of)).or(Value::Whole(default))
    }

    /// A number from 0 to 1.
    pub const fn fraction(key: &'static str, default: f64) -> Self {
        Self::new(key, Allowed::Decimal(0.0, 1.0)).or(Value::Decimal(default))
    }

    /// One of some names; the first is the default.
    pub const fn choice(key: &'static str, names: &'static [&'static str]) -> Self {
        Self::new(key, Allowed::Choice(names)).or(Value::Choice(0))
    }

    /// `true` or `false`. The error lists the default first.
    pub const fn flag(key: &'static str, default: bool) -> Self {
        Self::choice(
            key,
            if default {
                &["true", "false"]
            } else {
                &["false", "true"]
            },
        )
    }

    /// Sets the default.
    pub const fn or(self, default: Value) -> Self {
        Self { default, ..self }
    }

    /// What the option is taken with, if not with all values of the others.
    fn condition(&self) -> Option<String> {
        let (key, names) = self.beside?;
        Some(format!("only with {key}={}", names.join(" or ")))
    }

    /// Takes the option only beside one of these names of an option before it.
    pub const fn beside(self, key: &'static str, names: &'static [&'static str]) -> Self {
        let beside = Some((key, names));
        Self { beside, ..self }
    }
}

/// The most options of a row.
const MOST_OPTIONS: usize = 7;

/// What filters and adapters have in common: a name and options.
#[derive(Debug)]
pub struct Head {
    /// The name in text.
    pub name: &'static str,
    /// The options in the order of the text. Their keys are the same in every form.
    pub options: fn(Form) -> &'static [OptionRow],
    /// Fills in the defaults that depend on other options, and checks what several options decide.
    pub complete: fn(&mut Named, Form) -> Result<(), SpecError>,
}

/// A name with a value for each of its options.
#[derive(Clone, Copy)]
pub struct Named {
    head: &'static Head,
    values: [Value; MOST_OPTIONS],
}

impl Named {
    /// Takes the options of a row from `options`.
    pub fn parse(
        head: &'static Head,
        form: Form,
        options: &mut Options,
    ) -> Result<Self, SpecError> {
        let values = [Value::Unset; MOST_OPTIONS];
        let mut named = Self { head, values };
        for (index, row) in (head.options)(form).iter().enumerate() {
            if named.takes(row) {
                let given = options.value(row.key, row.allowed)?;
                named.values[index] = given.unwrap_or(row.default);
            } else if let Some(condition) = row.condition().filter(|_| options.has(row.key)) {
                return Err(SpecError::new("option", row.key, condition));
            }
        }
        (head.complete)(&mut named, form)?;
        Ok(named)
    }

    /// The row without options.
    pub fn default_of(head: &'static Head, form: Form) -> Self {
        let parsed = Self::parse(head, form, &mut Options::new(Vec::new()));
        parsed.expect("defaults are accepted")
    }

    /// The [`complete`](Head::complete) of rows whose options do not depend on each other.
    pub const fn as_given(&mut self, _form: Form) -> Result<(), SpecError> {
        Ok(())
    }

    /// Whether an option is taken, by the values of those before it.
    fn takes(&self, row: &OptionRow) -> bool {
        row.beside
            .is_none_or(|(key, names)| names.contains(&self.choice_name(key)))
    }

    /// The name in text.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.head.name
    }

    /// The options. What differs between the forms is of no use for values that were accepted.
    fn rows(&self) -> &'static [OptionRow] {
        (self.head.options)(Form::Scattered)
    }

    fn index(&self, key: &str) -> usize {
        let index = self.rows().iter().position(|row| row.key == key);
        index.expect("an option of the row")
    }

    fn value(&self, key: &str) -> Value {
        self.values[self.index(key)]
    }

    /// Sets the value of an option.
    pub fn set(&mut self, key: &str, value: Value) {
        self.values[self.index(key)] = value;
    }

    /// The whole number of an option; `None` if it is unset.
    pub fn given(&self, key: &str) -> Option<u64> {
        match self.value(key) {
            Value::Whole(number) => Some(number),
            _ => None,
        }
    }

    /// The whole number of an option that is always set.
    pub fn whole(&self, key: &str) -> u64 {
        self.given(key).expect("a whole number")
    }

    /// As [`whole`](Self::whole), of an option that accepts no number of more than 32 bits.
    pub fn small(&self, key: &str) -> u32 {
        u32::try_from(self.whole(key)).expect("a number of 32 bits")
    }

    /// The number of an option; `None` if it is unset.
    pub fn decimal(&self, key: &str) -> Option<f64> {
        match self.value(key) {
            Value::Decimal(number) => Some(number),
            _ => None,
        }
    }

    /// The name that is the value of an option.
    pub fn choice_name(&self, key: &str) -> &'static str {
        let index = self.index(key);
        match self.values[index] {
            Value::Choice(name) => self.rows()[index].allowed.names()[name],
            _ => "",
        }
    }

    /// The value of the name, from the table whose names the option accepts.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&'static str, T)]) -> T {
        let name = self.choice_name(key);
        let found = choices.iter().find(|(choice, _)| *choice == name);
        found.expect("a name of the table").1
    }

    /// Whether an option is `true`.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.choice_name(key) == "true"
    }

    /// All options that are set, as text.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let text = |(row, value): (&OptionRow, Value)| Some((row.key, row.allowed.text(value)?));
        let rows = self.rows().iter().zip(self.values);
        rows.filter_map(text).collect()
    }

    /// The options of a row. Those that are taken only beside other values come last.
    pub fn infos(head: &'static Head, form: Form) -> Vec<OptionInfo> {
        let defaults = Self::default_of(head, form);
        let rows = (head.options)(form).iter().zip(defaults.values);
        let (taken, others): (Vec<_>, Vec<_>) = rows.partition(|(row, _)| defaults.takes(row));
        let others = others.into_iter().map(|(row, _)| (row, row.default));
        let info = |(row, default): (&OptionRow, Value)| OptionInfo {
            name: row.key,
            default: row.allowed.text(default),
            allowed: match row.condition() {
                Some(condition) => format!("{}, {condition}", row.allowed),
                None => row.allowed.to_string(),
            },
        };
        taken.into_iter().chain(others).map(info).collect()
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.values == other.values
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_named(formatter, self.name(), &self.options())
    }
}

/// Builds the scattered form from its memory and seed.
pub type BuildScattered = fn(&Named, u64, u64) -> Result<Box<dyn Filter>, BuildError>;

/// Builds the line form in the given lines.
pub type BuildLines = fn(&Named, LineAllocation) -> Result<Box<dyn LineFilter>, BuildError>;

/// A filter, in all of its forms.
#[derive(Debug)]
pub struct FilterRow {
    /// Its name and options.
    pub head: Head,
    /// The form of a specification that names none.
    pub default_form: Form,
    /// Builds the scattered form, if there is one.
    pub scattered: Option<BuildScattered>,
    /// Builds the line form, if there is one.
    pub lines: Option<BuildLines>,
    /// What is known of a form in so much memory. The cache lines and the most memory are those of
    /// the scattered form, the unit of the memory is that of the line form.
    pub facts: fn(&Named, Form, u64) -> Facts,
}

impl FilterRow {
    /// All filters: those that were registered, and those in lines. A registered one takes the
    /// place of the one in lines that has its name.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        let registered = || extend::registered().flat_map(|rows| rows.families.iter().copied());
        let is_registered =
            move |name: &str| registered().flatten().any(|row| row.head.name == name);
        let own = lines::FAMILIES.iter().copied().flatten();
        let own = own.filter(move |row| !is_registered(row.head.name));
        registered().flatten().chain(own)
    }

    /// The row of a filter.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::all().find(|row| row.head.name == name)
    }

    /// The row of a filter.
    pub fn of(filter: &Named) -> &'static Self {
        Self::find(filter.name()).expect("a filter")
    }

    /// The names of the rows that satisfy the predicate.
    pub fn names_of(is_one: impl Fn(&Self) -> bool) -> Vec<&'static str> {
        let rows = Self::all().filter(|row| is_one(row));
        rows.map(|row| row.head.name).collect()
    }

    /// What is known of the filter in this form and so much memory.
    pub fn facts(&self, filter: &Named, form: Form, memory: u64) -> Facts {
        let facts = (self.facts)(filter, form, memory);
        match form {
            Form::Scattered => Facts {
                memory_unit: 1,
                ..facts
            },
            Form::Line => Facts {
                // In a page, a key has two lines.
                cache_lines: if facts.memory_unit > LINE_BYTES {
                    2.0
                } else {
                    1.0
                },
                most_memory: MOST_LINES * LINE_BYTES,
                ..facts
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::filters::adapters::AdapterRow;
    use crate::spec::FilterSpec;

    #[test]
    fn every_row_has_the_same_options_in_every_form() {
        let adapters = AdapterRow::all().map(|row| &row.head);
        for head in FilterRow::all().map(|row| &row.head).chain(adapters) {
            let (name, options) = (head.name, (head.options)(Form::Scattered));
            assert!(options.len() <= MOST_OPTIONS, "{name}");
            let keys: BTreeSet<&str> = options.iter().map(|option| option.key).collect();
            assert_eq!(keys.len(), options.len(), "{name}: a key twice");
            let lines = (head.options)(Form::Line);
            assert_eq!(lines.len(), options.len(), "{name}");
            for (option, line) in options.iter().zip(lines) {
                assert_eq!(option.key, line.key, "{name}");
                // A choice is the index of its name in both.
                let (names, in_lines) = (option.allowed.names(), line.allowed.names());
                assert!(names.starts_with(in_lines), "{name}: {}", option.key);
                for (before, _) in [option.beside, line.beside].into_iter().flatten() {
                    let mut earlier = options.iter().take_while(|other| other.key != option.key);
                    let found = earlier.any(|other| other.key == before);
                    assert!(found, "{name}: {before} before {}", option.key);
                }
            }
        }
    }

    #[test]
    fn the_largest_number_of_every_option_is_kept_whole() {
        let mut numbers = 0;
        for row in FilterRow::all() {
            for option in (row.head.options)(Form::Scattered) {
                let (Allowed::Whole(_, most) | Allowed::Described(_, most, _)) = option.allowed
                else {
                    continue;
                };
                let text = format!("{}:{}={most},memory=1KiB", row.head.name, option.key);
                let spec: FilterSpec = text.parse().expect("accepted");
                assert_eq!(spec.kind.given(option.key), Some(most), "{text}");
                // What does not fit in it is an error of building, and no panic.
                let _ = spec.facts();
                drop(spec.build());
                numbers += 1;
            }
        }
        assert!(numbers > 5);
    }
}
