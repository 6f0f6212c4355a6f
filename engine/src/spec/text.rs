//! The text form of a specification, and the options that text and files have in common.

use std::fmt;
use std::str::FromStr;

use super::filter::FilterSpec;
use super::fingerprint::FingerprintSpec;
use crate::error::SpecError;
use crate::filters::Form;
use crate::filters::adapters::tracked::TrackedFraction;
use crate::filters::adapters::{AdapterChain, AdapterRow};
use crate::filters::row::{FilterRow, Named};
use crate::options::{Options, one_of, write_named};
use crate::size::{format_bytes, parse_bytes};

impl FilterSpec {
    pub(super) fn from_options(
        adapters: AdapterChain,
        name: &str,
        mut options: Options,
    ) -> Result<Self, SpecError> {
        if name == FingerprintSpec::NAME {
            let spec = FingerprintSpec::from_options(options)?;
            return Ok(Self {
                adapters,
                ..Self::try_from(&spec)?
            });
        }
        if AdapterRow::find(name).is_some() {
            let allowed = format!("a filter after {name}, as in {name}/bloom");
            return Err(SpecError::missing("filter", allowed));
        }
        let memory = options.take("memory");
        let row = FilterRow::find(name);
        let form = match options.take("form") {
            Some(form) => form.parse()?,
            None => row.map_or(Form::default(), |row| row.default_form),
        };
        let row = row.ok_or_else(|| {
            let names: Vec<&str> = Self::names().chain([FingerprintSpec::NAME]).collect();
            SpecError::new("filter", name, one_of(&names))
        })?;
        let spec = Self {
            adapters,
            kind: Named::parse(&row.head, form, &mut options)?,
            form,
            memory: memory.map(|text| parse_bytes(&text)).transpose()?,
            seed: options.integer("seed", 0, 0..=u64::MAX)?,
            tracked: TrackedFraction::new(
                options
                    .number("tracked", TrackedFraction::ALLOWED)?
                    .unwrap_or(1.0),
            )?,
            kernel: None,
        };
        options.finish()?;
        Ok(spec)
    }

    /// The options of the text form: those of the kind, then the common ones that differ from their
    /// defaults.
    pub(crate) fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = self.kind.options();
        if self.form != FilterRow::of(&self.kind).default_form {
            options.push(("form", self.form.to_string()));
        }
        options.extend(self.memory.map(|bytes| ("memory", format_bytes(bytes))));
        if self.seed != 0 {
            options.push(("seed", self.seed.to_string()));
        }
        if self.tracked != TrackedFraction::ALL {
            options.push(("tracked", self.tracked.get().to_string()));
        }
        options
    }
}

impl fmt::Display for FilterSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.adapters.is_empty() {
            write!(formatter, "{}/", self.adapters)?;
        }
        write_named(formatter, self.name(), &self.options())
    }
}

impl FromStr for FilterSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (adapters, filter) = text.rsplit_once('/').unwrap_or(("", text));
        let adapters = if text.contains('/') && adapters.is_empty() {
            return Err(SpecError::missing("adapter", "a name before each /"));
        } else {
            adapters.parse()?
        };
        let (name, options) = filter.split_once(':').unwrap_or((filter, ""));
        Self::from_options(adapters, name.trim(), Options::parse(options)?)
    }
}
