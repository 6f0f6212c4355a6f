//! The specification of a shared filter.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::filter::SharedFilter;
use crate::error::{BuildError, SpecError};
use crate::filters::units::{DEFAULT_WINDOW, LONGEST_WINDOW};
use crate::limits::within;
use crate::memory::LINE_BYTES;
use crate::options::{Options, value_of, write_named};
use crate::size::format_bytes;

/// The specification of a [`SharedFilter`].
///
/// The text form is the layout and its options: `row4x16:memory=64MiB`, `row2x32:memory=1GiB`,
/// `stamped:window=600,refresh=true,memory=64MiB`, `bloom:k=4,memory=64MiB` or
/// `ageing:k=4,memory=64MiB`. `window` and `refresh` are those of the filters in lines, with the
/// same defaults; `k` is 4 if it is not given. Values are checked when a text is parsed.
///
/// # Examples
/// ```
/// use echoless::{SharedLayout, SharedSpec};
/// let spec = SharedSpec::new(1 << 20).layout(SharedLayout::Bloom { k: 4 });
/// assert_eq!(spec.build()?.memory_bytes(), 1 << 20);
/// assert_eq!(spec.to_string(), "bloom:k=4,memory=1MiB");
/// assert_eq!("bloom:k=4,memory=1MiB".parse(), Ok(spec));
///
/// let error = "bloom:k=0,memory=1MiB".parse::<SharedSpec>().unwrap_err();
/// assert_eq!(error.to_string(), "invalid k=0: expected 1 to 10");
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SharedSpec {
    memory_bytes: u64,
    layout: SharedLayout,
}

impl SharedSpec {
    /// A filter of [`SharedLayout::Row4x16`] in `memory_bytes`, rounded down to whole lines of 64
    /// bytes.
    #[must_use]
    pub const fn new(memory_bytes: u64) -> Self {
        Self {
            memory_bytes,
            layout: SharedLayout::Row4x16,
        }
    }

    /// The layout of the words.
    #[must_use]
    pub const fn layout(mut self, layout: SharedLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] if the memory is less than a line, `k` or `window` is out of range, or
    /// the machine lacks the memory.
    pub fn build(&self) -> Result<SharedFilter, BuildError> {
        let lines = self.checked_lines()?;
        SharedFilter::new(lines, self.layout)
    }

    /// Builds a filter that does not count the keys that it records: its memory is that of its
    /// words.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_uncounted(&self) -> Result<SharedFilter, BuildError> {
        let lines = self.checked_lines()?;
        SharedFilter::uncounted(lines, self.layout)
    }

    /// The specification of the same filter whose memory is whole lines.
    pub(crate) const fn in_whole_lines(mut self) -> Self {
        self.memory_bytes -= self.memory_bytes % LINE_BYTES;
        self
    }

    /// The name of the layout.
    pub(crate) const fn name(&self) -> &'static str {
        self.layout.name()
    }

    /// The options of the text form.
    pub(crate) fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = Vec::new();
        if let SharedLayout::Stamped { window, refresh } = self.layout {
            options.push(("window", window.to_string()));
            options.push(("refresh", refresh.to_string()));
        }
        options.extend(self.layout.k().map(|(k, _)| ("k", k.to_string())));
        options.push(("memory", format_bytes(self.memory_bytes)));
        options
    }

    /// The number of lines.
    pub(crate) fn checked_lines(&self) -> Result<u64, SpecError> {
        let lines = self.memory_bytes / LINE_BYTES;
        if lines == 0 {
            let asked = format!("{} B", self.memory_bytes);
            return Err(SpecError::new("memory", asked, "at least 64 B (one line)"));
        }
        if let Some((k, allowed)) = self.layout.k()
            && !allowed.contains(&k)
        {
            let allowed = format!("{} to {}", allowed.start(), allowed.end());
            return Err(SpecError::new("k", k.to_string(), allowed));
        }
        if let SharedLayout::Stamped { window, .. } = self.layout {
            within("window", window, 1..=LONGEST_WINDOW)?;
        }
        Ok(lines)
    }
}

/// The layout with a window, with the defaults of filters in lines.
const STAMPED: SharedLayout = SharedLayout::Stamped {
    window: DEFAULT_WINDOW,
    refresh: true,
};

impl SharedLayout {
    /// The layouts by name, with the defaults of their options.
    const NAMES: [(&str, Self); 5] = [
        ("row4x16", Self::Row4x16),
        ("row2x32", Self::Row2x32),
        ("bloom", Self::Bloom { k: 4 }),
        ("ageing", Self::Ageing { k: 4 }),
        ("stamped", STAMPED),
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Row4x16 => "row4x16",
            Self::Row2x32 => "row2x32",
            Self::Stamped { .. } => "stamped",
            Self::Bloom { .. } => "bloom",
            Self::Ageing { .. } => "ageing",
        }
    }

    /// The number of bits for each key and its range, if the layout has bits.
    const fn k(self) -> Option<(u32, RangeInclusive<u32>)> {
        match self {
            Self::Row4x16 | Self::Row2x32 | Self::Stamped { .. } => None,
            Self::Bloom { k } => Some((k, 1..=10)),
            Self::Ageing { k } => Some((k, 2..=10)),
        }
    }

    /// The same layout with another `k`, if it has one.
    const fn with_k(self, k: u32) -> Self {
        match self {
            Self::Row4x16 | Self::Row2x32 | Self::Stamped { .. } => self,
            Self::Bloom { .. } => Self::Bloom { k },
            Self::Ageing { .. } => Self::Ageing { k },
        }
    }
}

impl fmt::Display for SharedSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_named(formatter, self.name(), &self.options())
    }
}

impl FromStr for SharedSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let mut layout = value_of("layout", &SharedLayout::NAMES, name.trim())?;
        let mut options = Options::parse(options)?;
        if let Some((k, range)) = layout.k() {
            let range = u64::from(*range.start())..=u64::from(*range.end());
            layout = layout.with_k(options.integer("k", k.into(), range)? as u32);
        }
        if let SharedLayout::Stamped { window, refresh } = &mut layout {
            *window = options.integer("window", *window, 1..=LONGEST_WINDOW)?;
            *refresh = match options.take("refresh") {
                Some(text) => value_of("refresh", &[("true", true), ("false", false)], &text)?,
                None => *refresh,
            };
        }
        let memory = options.memory()?;
        options.finish()?;
        let spec = Self::new(memory).layout(layout);
        spec.checked_lines().map(|_| spec)
    }
}

/// The layout of a 64-bit word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SharedLayout {
    /// Four fingerprints of 16 bits; a new one evicts the oldest. False positive rate 6e-5, for
    /// endless streams.
    Row4x16,
    /// Two fingerprints of 32 bits; a new one evicts the oldest. False positive rate 5e-10, for
    /// endless streams.
    Row2x32,
    /// Two fingerprints of 20 bits, each with the time of its key in 12 bits: a filter with a
    /// window. A key is a duplicate if it was recorded at most `window` ticks before; a new one
    /// evicts the older of two that are younger than that. False positive rate 1.9e-6, for endless
    /// streams.
    Stamped {
        /// The window in ticks of the caller's clock, 1 to 2^63 - 1. A longer one than 256 ticks is
        /// counted in units of 1/256 of it, rounded up to whole ticks.
        window: u64,
        /// Whether a duplicate renews its key: the window then counts from when the key was last
        /// seen, else from when it was recorded.
        refresh: bool,
    },
    /// A Bloom filter with `k` bits for each key (register-blocked). It never misses a duplicate,
    /// and its false positive rate rises to 1 as it fills.
    Bloom {
        /// Bits for each key, 1 to 10.
        k: u32,
    },
    /// A Bloom filter that clears bits as it fills, for endless streams: RLBSBF (paper 000) in a
    /// word.
    Ageing {
        /// Bits for each key, 2 to 10; with a single bit the words would fill up.
        k: u32,
    },
}
