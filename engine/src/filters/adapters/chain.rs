//! The adapters of a specification, outermost first: a bounded list, so that specifications stay
//! `Copy`, and its text `name:key=value/name:key=value`.

use std::fmt;
use std::str::FromStr;

use super::AdapterSpec;
use crate::error::SpecError;
use crate::options::{Options, write_named};

/// The most adapters around one filter.
pub const MOST_ADAPTERS: usize = 4;

/// The adapters around a filter, outermost first; at most [`MOST_ADAPTERS`].
///
/// # Examples
/// ```
/// use echoless::spec::AdapterChain;
/// let chain: AdapterChain = "horizontal:slices=4/vertical:slices=8".parse()?;
/// let names: Vec<&str> = chain.iter().map(|adapter| adapter.name()).collect();
/// assert_eq!(names, ["horizontal", "vertical"]);
/// let five = ["growing"; 5].join("/").parse::<AdapterChain>().unwrap_err();
/// assert_eq!(five.to_string(), "invalid adapters=5: expected at most 4 around a filter");
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AdapterChain {
    /// The adapters, then `None` up to the end.
    adapters: [Option<AdapterSpec>; MOST_ADAPTERS],
}

impl AdapterChain {
    /// A chain of these adapters, outermost first.
    ///
    /// # Errors
    /// [`SpecError`] if there are more than [`MOST_ADAPTERS`].
    pub fn new(adapters: &[AdapterSpec]) -> Result<Self, SpecError> {
        if adapters.len() > MOST_ADAPTERS {
            let allowed = format!("at most {MOST_ADAPTERS} around a filter");
            return Err(SpecError::new(
                "adapters",
                adapters.len().to_string(),
                allowed,
            ));
        }
        let mut chain = Self::default();
        for (slot, adapter) in chain.adapters.iter_mut().zip(adapters) {
            *slot = Some(*adapter);
        }
        Ok(chain)
    }

    /// The adapters, outermost first.
    pub fn iter(&self) -> impl Iterator<Item = &AdapterSpec> {
        self.adapters.iter().flatten()
    }

    /// Whether there is no adapter.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.adapters[0].is_none()
    }

    /// The adapters as a slice, each of them `Some`.
    pub(crate) fn as_slice(&self) -> &[Option<AdapterSpec>] {
        &self.adapters[..self.iter().count()]
    }

    /// The same adapters for a stream `scale` times shorter.
    pub(crate) fn scaled(mut self, scale: f64) -> Self {
        for adapter in self.adapters.iter_mut().flatten() {
            *adapter = adapter.scaled(scale);
        }
        self
    }
}

impl fmt::Display for AdapterChain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, adapter) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { "/" };
            write!(formatter, "{separator}{adapter}")?;
        }
        Ok(())
    }
}

impl FromStr for AdapterChain {
    type Err = SpecError;

    /// Parses adapters separated by `/`; an empty text has none.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let parts = (!text.is_empty()).then(|| text.split('/'));
        let adapters: Result<Vec<AdapterSpec>, _> =
            parts.into_iter().flatten().map(str::parse).collect();
        Self::new(&adapters?)
    }
}

impl fmt::Display for AdapterSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_named(formatter, self.name(), &self.options())
    }
}

impl FromStr for AdapterSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let mut options = Options::parse(options)?;
        let adapter = Self::parse(name.trim(), &mut options)?;
        options.finish()?;
        Ok(adapter)
    }
}
