//! The `key=value` options of a specification in text: taken one by one, so that what is left over is an unknown key.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::error::SpecError;

/// Options not taken yet.
///
/// Whatever else is named in text (a stream, say) reads its options with this too, so that all names look and fail alike.
///
/// # Examples
/// ```
/// use echoless::spec::Options;
/// let mut options = Options::parse("k=3,seed=x")?;
/// assert_eq!(options.integer("k", 2, 1..=64)?, 3);
/// assert_eq!(options.decimal("share", 0.5)?, 0.5);
/// let error = options.finish().unwrap_err();
/// assert_eq!(error.to_string(), "invalid option=seed: expected one of k, share");
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[derive(Debug)]
pub struct Options {
    pairs: Vec<(String, String)>,
    /// The keys that were asked for, for the error about a key that was not.
    known: Vec<&'static str>,
}

impl Options {
    pub(crate) const fn new(pairs: Vec<(String, String)>) -> Self {
        Self {
            pairs,
            known: Vec::new(),
        }
    }

    /// Reads `key=value,key=value`, or nothing at all.
    ///
    /// # Errors
    /// [`SpecError`] if between two commas, or beside one, there is nothing, or something without `=`.
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

    /// Takes an option in its text form, if it was given.
    pub fn take(&mut self, key: &'static str) -> Option<String> {
        self.known.push(key);
        let place = self.pairs.iter().position(|(name, _)| name == key)?;
        Some(self.pairs.remove(place).1)
    }

    /// Takes a number, if it was given.
    ///
    /// # Errors
    /// [`SpecError`] if it is no `T`; `allowed` says in words which numbers are possible.
    pub fn number<T: FromStr>(
        &mut self,
        key: &'static str,
        allowed: &str,
    ) -> Result<Option<T>, SpecError> {
        let parse = |text: String| {
            let parsed = text.parse();
            parsed.map_err(|_| SpecError::new(key, text, allowed))
        };
        self.take(key).map(parse).transpose()
    }

    /// Takes a whole number or its default.
    ///
    /// # Errors
    /// [`SpecError`] if it is no `T`: not a whole number, or far outside its range, which the error names. A `T` outside the range is taken: what is
    /// built from it refuses it, and knows the range best.
    pub fn integer<T: FromStr + Display>(
        &mut self,
        key: &'static str,
        default: T,
        range: RangeInclusive<T>,
    ) -> Result<T, SpecError> {
        Ok(self.optional_integer(key, range)?.unwrap_or(default))
    }

    /// Takes a whole number, if it was given, as [`integer`](Self::integer) does.
    pub(crate) fn optional_integer<T: FromStr + Display>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Result<Option<T>, SpecError> {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        self.number(key, &allowed)
    }

    /// Takes a number with a fraction or its default.
    ///
    /// # Errors
    /// [`SpecError`] if it is not a number.
    pub fn decimal(&mut self, key: &'static str, default: f64) -> Result<f64, SpecError> {
        Ok(self.number(key, "a number")?.unwrap_or(default))
    }

    /// Takes one of several named values; the first is the default.
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

    /// Refuses what nobody took.
    ///
    /// # Errors
    /// [`SpecError`] if a key was given that nobody asked for, or twice.
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

/// The name of a value among its choices.
pub(crate) fn name_of<T: PartialEq>(choices: &[(&'static str, T)], value: &T) -> String {
    let found = choices.iter().find(|(_, choice)| choice == value);
    found.map_or(String::new(), |(name, _)| (*name).to_owned())
}

/// The value of a name among its choices.
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

/// The `allowed` text of a choice among names.
pub(crate) fn one_of(names: &[&str]) -> String {
    format!("one of {}", names.join(", "))
}
