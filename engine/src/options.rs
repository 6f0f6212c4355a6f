//! The `key=value` options of a specification in text. A parser takes the options that it supports
//! one by one; any option left over is an unknown key.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::error::SpecError;
use crate::size::parse_bytes;

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

    /// Removes an option and returns it as a whole number; `default` if it is not given.
    ///
    /// # Errors
    /// [`SpecError`] if the text is not a whole number in `range`. Where the exact range depends on
    /// other options, `range` is the widest one, and the code that builds rejects what is left.
    pub fn integer<T: FromStr + Display + PartialOrd>(
        &mut self,
        key: &'static str,
        default: T,
        range: RangeInclusive<T>,
    ) -> Result<T, SpecError> {
        Ok(self.optional_integer(key, range)?.unwrap_or(default))
    }

    /// As [`integer`](Self::integer), without a default.
    pub(crate) fn optional_integer<T: FromStr + Display + PartialOrd>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Result<Option<T>, SpecError> {
        let (start, end) = (range.start(), range.end());
        let number = self.number(key, &format!("a whole number from {start} to {end}"))?;
        match number {
            // In the form in which building rejects it.
            Some(number) if !range.contains(&number) => Err(SpecError::new(
                key,
                number.to_string(),
                format!("{start} to {end}"),
            )),
            number => Ok(number),
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
        let allowed = format!("a number from {} to {}", range.start(), range.end());
        let number = self.checked(key, &allowed, |number| range.contains(number))?;
        Ok(number.unwrap_or(default))
    }

    /// Removes the option `memory`, which must be given, and returns it in bytes.
    pub(crate) fn memory(&mut self) -> Result<u64, SpecError> {
        match self.take("memory") {
            Some(text) => parse_bytes(&text),
            None => Err(SpecError::missing("memory", "a size such as 64MiB")),
        }
    }

    /// Removes an option and returns it as a rate, above 0 and below 1.
    pub(crate) fn rate(&mut self, key: &'static str) -> Result<Option<f64>, SpecError> {
        let allowed = "a number between 0 and 1 (exclusive)";
        self.checked(key, allowed, |rate| *rate > 0.0 && *rate < 1.0)
    }

    /// Removes an option and returns it as one of the listed numbers; `None` if it is not given.
    pub(crate) fn listed(
        &mut self,
        key: &'static str,
        numbers: &[u32],
    ) -> Result<Option<u32>, SpecError> {
        let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
        let (last, others) = texts.split_last().expect("at least one number");
        let allowed = format!("{} or {last}", others.join(", "));
        self.checked(key, &allowed, |number| numbers.contains(number))
    }

    /// Removes an option and returns it as a number that `is_allowed`; `None` if it is not given.
    pub(crate) fn checked<T: FromStr>(
        &mut self,
        key: &'static str,
        allowed: &str,
        is_allowed: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, SpecError> {
        let check = |text: String| match text.parse() {
            Ok(number) if is_allowed(&number) => Ok(number),
            // As it was typed: a small rate would have hundreds of digits.
            _ => Err(SpecError::of_text(key, text, allowed)),
        };
        self.take(key).map(check).transpose()
    }

    /// Removes an option and returns the value of its name; the first choice if it is not given.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<T, SpecError> {
        match self.take(key) {
            Some(text) => value_of(key, choices, &text),
            None => Ok(choices[0].1),
        }
    }

    /// Removes an option and returns it as `true` or `false`; `default` if it is not given.
    pub(crate) fn flag(&mut self, key: &'static str, default: bool) -> Result<bool, SpecError> {
        let choices = [("true", true), ("false", false)];
        let [yes, no] = choices;
        // The error lists the default first.
        self.choice(key, &if default { [yes, no] } else { [no, yes] })
    }

    /// The options that `parse` takes, by what it does without options, with each choice of each,
    /// and with invalid values. `parse` returns the defaults as text.
    pub(crate) fn describe(
        parse: impl Fn(&mut Self) -> Result<Vec<(&'static str, String)>, SpecError>,
    ) -> Vec<OptionInfo> {
        let mut infos = Vec::new();
        describe_beside(&[], &parse, &mut infos);
        // Some options are taken only beside some values of others.
        for OptionInfo { name, allowed, .. } in infos.clone() {
            let choices = allowed.strip_prefix("one of ").unwrap_or_default();
            for choice in choices.split(", ").filter(|choice| !choice.is_empty()) {
                describe_beside(&[(name, choice)], &parse, &mut infos);
            }
        }
        infos
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
            Some((key, _)) => Err(SpecError::new("option", key, one_of(&self.known))),
        }
    }
}

/// Appends the options that `parse` takes beside `given` ones and that are not in `infos` yet.
fn describe_beside(
    given: &[(&'static str, &str)],
    parse: &impl Fn(&mut Options) -> Result<Vec<(&'static str, String)>, SpecError>,
    infos: &mut Vec<OptionInfo>,
) {
    let with = |more: &[(&str, &str)]| {
        let pairs = given.iter().chain(more);
        Options::new(
            pairs
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect(),
        )
    };
    let mut options = with(&[]);
    let defaults = parse(&mut options).unwrap_or_default();
    for name in options.known {
        if infos.iter().any(|info| info.name == name) {
            continue;
        }
        let allowed = match parse(&mut with(&[(name, "?")])) {
            Err(error) if error.field == name => error.allowed,
            _ => String::new(),
        };
        let default = defaults.iter().find(|(key, _)| *key == name);
        infos.push(OptionInfo {
            name,
            default: default.map(|(_, text)| text.clone()),
            allowed,
        });
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

/// The name of `value`; empty if it is not among the choices.
pub(crate) fn name_of<T: PartialEq>(choices: &[(&'static str, T)], value: &T) -> String {
    let found = choices.iter().find(|(_, choice)| choice == value);
    found.map_or(String::new(), |(name, _)| (*name).to_owned())
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
        SpecError::new(field, name, one_of(&names))
    })
}

/// The `allowed` text of a [`SpecError`] about an unknown name.
pub(crate) fn one_of(names: &[&str]) -> String {
    format!("one of {}", names.join(", "))
}
