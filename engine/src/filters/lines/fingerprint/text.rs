//! The text of a specification of fingerprint lines.

use std::fmt;
use std::str::FromStr;

use super::FingerprintSpec;
use crate::error::SpecError;
use crate::filters::replacement::Replacement;
use crate::options::{Options, value_of, write_named};
use crate::size::format_bytes;
use crate::theory::fingerprints::SlotWidth;

impl fmt::Display for FingerprintSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = match self.width {
            Some(width) => ("bits", width.bits().to_string()),
            None => ("fpr", format!("{:e}", self.max_fpr)),
        };
        let replacement = ("replacement", self.replacement.to_string());
        let memory = ("memory", format_bytes(self.memory_bytes));
        write_named(formatter, Self::NAME, &[size, replacement, memory])
    }
}

impl FromStr for FingerprintSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        value_of("filter", &[(Self::NAME, ())], name.trim())?;
        Self::from_options(Options::parse(options)?)
    }
}

impl FingerprintSpec {
    /// What precedes the options.
    pub(crate) const NAME: &'static str = "fingerprint";

    pub(crate) fn from_options(mut options: Options) -> Result<Self, SpecError> {
        let bits = options.listed("bits", &[8, 16, 32, 64])?;
        let rate = options.rate("fpr")?;
        let replacement = match options.take("replacement") {
            Some(name) => name.parse()?,
            None => Replacement::Lru,
        };
        let memory = options.memory()?;
        options.finish()?;
        let spec = Self::new(memory).replacement(replacement);
        let spec = match (bits, rate) {
            (Some(_), Some(rate)) => {
                let allowed = "either bits or fpr";
                return Err(SpecError::new("fpr", format!("{rate:e}"), allowed));
            }
            (Some(bits), None) => spec.slot_width(SlotWidth::from_bits(bits)?),
            (None, Some(rate)) => spec.max_fpr(rate),
            (None, None) => spec,
        };
        spec.geometry().map(|_| spec)
    }
}
