//! The `key=value` options of a specification in text. A parser takes the options that it supports
//! one by one; any option left over is an unknown key.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::error::SpecError;
use crate::limits::{rate_text, within};
use crate::size::{SIZES, format_bytes, parse_bytes};

/// The options that are not taken yet.
///
/// Other things that are named in text, such as streams, use this parser too, so that all of them
/// have one syntax and one form of errors.
///
/// # Examples
/// ```
/// use echoless::spec::Options;
/// let mut options = Options::parse("k=3,seed=x")?;
/// assert_eq!(options.integer("k", 2, 1..=64)?, 3);
/// assert_eq!(options.decimal("tracked", 0.5, 0.0..=1.0)?, 0.5);
/// let error = options.finish().unwrap_err();
/// assert_eq!(error.to_string(), "invalid option=seed: expected one of k, tracked");
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[derive(Debug)]
pub struct Options {
    pairs: Vec<(String, String)>,
    /// The keys taken so far, given or not: the accepted keys in the error about any other.
    known: Vec<&'static str>,
}

/// An option of a specification in text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionInfo {
    /// The key.
    pub name: &'static str,
    /// The default; `None` if there is none, because the option replaces another one, or if it is
    /// computed from other options.
    pub default: Option<String>,
    /// The accepted values, as a phrase. With some values of other options, fewer are accepted.
    pub allowed: String,
}

/// The values that an option accepts. Each kind of values is parsed, checked and described here
/// alone.
#[derive(Debug, Clone, Copy)]
pub enum Allowed {
    /// Whole numbers from the first to the second.
    Whole(u64, u64),
    /// As [`Whole`](Self::Whole), described by a phrase, because some filters accept fewer.
    Described(u64, u64, &'static str),
    /// These whole numbers.
    Listed(&'static [u64]),
    /// Numbers from the first to the second.
    Decimal(f64, f64),
    /// Numbers with a property that a phrase describes.
    Number(fn(f64) -> bool, &'static str),
    /// Rates, above 0 and below 1.
    Rate,
    /// Sizes in bytes.
    Size,
    /// These names.
    Choice(&'static [&'static str]),
}

/// A value of an option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// Neither given nor a default.
    Unset,
    /// A whole number.
    Whole(u64),
    /// A number with a fraction.
    Decimal(f64),
    /// The index of a name.
    Choice(usize),
}

impl Allowed {
    /// Parses the value of the option `key`.
    fn parse(self, key: &'static str, text: &str) -> Result<Value, SpecError> {
        let whole = || text.parse::<u64>().ok();
        let decimal = || text.parse::<f64>().ok();
        let value = match self {
            Self::Whole(least, most) => match whole() {
                // In the form in which building rejects it, unless it is absurd.
                Some(number) if number <= u32::MAX.into() || most > u32::MAX.into() => {
                    return within(key, number, least..=most).map(Value::Whole);
                }
                _ => None,
            },
            Self::Described(least, most, _) => whole()
                .filter(|number| (least..=most).contains(number))
                .map(Value::Whole),
            Self::Listed(numbers) => whole()
                .filter(|number| numbers.contains(number))
                .map(Value::Whole),
            Self::Decimal(least, most) => decimal()
                .filter(|number| (least..=most).contains(number))
                .map(Value::Decimal),
            Self::Number(is_allowed, _) => decimal()
                .filter(|number| is_allowed(*number))
                .map(Value::Decimal),
            Self::Rate => decimal()
                .filter(|rate| *rate > 0.0 && *rate < 1.0)
                .map(Value::Decimal),
            Self::Size => {
                let of_key = |error| SpecError {
                    field: key,
                    ..error
                };
                return parse_bytes(text).map(Value::Whole).map_err(of_key);
            }
            Self::Choice(names) => {
                let index = names.iter().position(|name| *name == text);
                let rejected = || SpecError::of_text(key, text, one_of(names));
                return index.map(Value::Choice).ok_or_else(rejected);
            }
        };
        // As it was typed: a small rate would have hundreds of digits.
        value.ok_or_else(|| SpecError::of_text(key, text, self.to_string()))
    }

    /// The text that is parsed back to the value; `None` if it is unset.
    pub(crate) fn text(self, value: Value) -> Option<String> {
        Some(match (self, value) {
            (_, Value::Unset) => return None,
            (Self::Size, Value::Whole(bytes)) => format_bytes(bytes),
            (_, Value::Whole(number)) => number.to_string(),
            (Self::Rate, Value::Decimal(rate)) => rate_text(rate),
            (_, Value::Decimal(number)) => number.to_string(),
            (_, Value::Choice(index)) => self.names()[index].to_owned(),
        })
    }

    /// The names to choose from.
    pub(crate) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Choice(names) => names,
            _ => &[],
        }
    }
}

/// The accepted values, as a phrase that follows "expected".
impl fmt::Display for Allowed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(least, most) => write!(formatter, "a whole number from {least} to {most}"),
            Self::Described(_, _, text) | Self::Number(_, text) => formatter.write_str(text),
            Self::Listed(numbers) => {
                let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
                let (last, others) = texts.split_last().expect("at least one number");
                write!(formatter, "{} or {last}", others.join(", "))
            }
            Self::Decimal(least, most) => write!(formatter, "a number from {least} to {most}"),
            Self::Rate => formatter.write_str("a number between 0 and 1 (exclusive)"),
            Self::Size => formatter.write_str(SIZES),
            Self::Choice(names) => formatter.write_str(&one_of(names)),
        }
    }
}

impl Options {
    pub(crate) const fn new(pairs: Vec<(String, String)>) -> Self {
        Self {
            pairs,
            known: Vec::new(),
        }
    }

    /// Parses `key=value,key=value`. An empty text has no options.
    ///
    /// # Errors
    /// [`SpecError`] if an option is empty (as on both sides of `,,`) or has no `=`.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut pairs = Vec::new();
        let options = (!text.is_empty()).then(|| text.split(','));
        for option in options.into_iter().flatten() {
            let Some((key, value)) = option.split_once('=') else {
                return Err(match option.trim() {
                    "" => SpecError::missing("option", "key=value on both sides of a comma"),
                    option => SpecError::new("option", option, "key=value"),
                });
            };
            pairs.push((key.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(Self::new(pairs))
    }

    /// Whether an option is given and not taken yet.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|(name, _)| name == key)
    }

    /// Removes an option and returns its text; `None` if it is not given.
    pub fn take(&mut self, key: &'static str) -> Option<String> {
        self.known.push(key);
        let index = self.pairs.iter().position(|(name, _)| name == key)?;
        Some(self.pairs.remove(index).1)
    }

    /// Removes an option and returns it as a number; `None` if it is not given.
    ///
    /// # Errors
    /// [`SpecError`] if the text is not a `T`. `allowed` describes the accepted numbers and follows
    /// the word "expected" in the message.
    pub fn number<T: FromStr>(
        &mut self,
        key: &'static str,
        allowed: &str,
    ) -> Result<Option<T>, SpecError> {
        let parse = |text: String| {
            let parsed = text.parse();
            parsed.map_err(|_| SpecError::of_text(key, text, allowed))
        };
        self.take(key).map(parse).transpose()
    }

    /// Removes an option and returns its value; `None` if it is not given.
    pub(crate) fn value(
        &mut self,
        key: &'static str,
        allowed: Allowed,
    ) -> Result<Option<Value>, SpecError> {
        let text = self.take(key);
        text.map(|text| allowed.parse(key, &text)).transpose()
    }

    /// Removes an option and returns it as a whole number; `default` if it is not given.
    ///
    /// # Errors
    /// [`SpecError`] if the text is not a whole number in `range`. Where the exact range depends on
    /// other options, `range` is the widest one, and the code that builds rejects what is left.
    pub fn integer(
        &mut self,
        key: &'static str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, SpecError> {
        match self.value(key, Allowed::Whole(*range.start(), *range.end()))? {
            Some(Value::Whole(number)) => Ok(number),
            _ => Ok(default),
        }
    }

    /// Removes an option and returns it as a number with a fraction; `default` if it is not given.
    ///
    /// # Errors
    /// [`SpecError`] if the text is not a number in `range`.
    pub fn decimal(
        &mut self,
        key: &'static str,
        default: f64,
        range: RangeInclusive<f64>,
    ) -> Result<f64, SpecError> {
        match self.value(key, Allowed::Decimal(*range.start(), *range.end()))? {
            Some(Value::Decimal(number)) => Ok(number),
            _ => Ok(default),
        }
    }

    /// Removes the option `memory`, which must be given, and returns it in bytes.
    pub(crate) fn memory(&mut self) -> Result<u64, SpecError> {
        match self.take("memory") {
            Some(text) => parse_bytes(&text),
            None => Err(SpecError::missing("memory", "a size such as 64MiB")),
        }
    }

    /// Checks that every option was taken.
    ///
    /// # Errors
    /// [`SpecError`] if an option is left over: its key is unknown, or was given twice.
    pub fn finish(self) -> Result<(), SpecError> {
        match self.pairs.into_iter().next() {
            None => Ok(()),
            Some((key, value)) if self.known.contains(&key.as_str()) => Err(SpecError::new(
                "option",
                format!("{key}={value}"),
                "each key once",
            )),
            Some((key, _)) => Err(SpecError::of_text("option", key, one_of(&self.known))),
        }
    }
}

/// Writes `name:key=value,key=value`, the text that is parsed back to the options.
pub(crate) fn write_named(
    formatter: &mut fmt::Formatter<'_>,
    name: &str,
    options: &[(&'static str, String)],
) -> fmt::Result {
    formatter.write_str(name)?;
    for (index, (key, value)) in options.iter().enumerate() {
        let separator = if index == 0 { ':' } else { ',' };
        write!(formatter, "{separator}{key}={value}")?;
    }
    Ok(())
}

/// The names of a table of choices.
pub const fn names<T: Copy, const N: usize>(choices: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = choices[index].0;
        index += 1;
    }
    names
}

/// The value called `name`. `field` names the option in the error about an unknown name.
pub(crate) fn value_of<T: Copy>(
    field: &'static str,
    choices: &[(&'static str, T)],
    name: &str,
) -> Result<T, SpecError> {
    let found = choices.iter().find(|(choice, _)| *choice == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        SpecError::of_text(field, name, one_of(&names))
    })
}

/// The `allowed` text of a [`SpecError`] about an unknown name.
pub(crate) fn one_of(names: &[&str]) -> String {
    format!("one of {}", names.join(", "))
}
