//! The specification of the timing Bloom filter: how wide its timers are, and what they count.

use super::sweep::is_worth_sweeping;
use super::timers::TimerBloom;
use crate::error::{BuildError, SpecError};
use crate::filters::cell_table::CellTable;
use crate::filters::kind::KindSpec;
use crate::filters::scattered::storage::PackedCells;
use crate::filters::units::{DEFAULT_WINDOW, LONGEST_WINDOW, Units, scaled_window};
use crate::filters::{Filter, Form, Workload};
use crate::limits::{HASHES, MOST_HASHES, within};
use crate::options::Options;
use crate::theory::RateModel;
use crate::window::Window;

/// The parameters of a timing Bloom filter, except its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimerSpec {
    /// W: the window in ticks, 1 to 2^63 - 1.
    pub window: u64,
    /// k: the timers of a key (1 to 64).
    pub hashes: u32,
    /// k': the timers of a key that must be equal (1 to k). 1 is the filter without the heuristic.
    pub equal: u32,
    /// Whether a duplicate sets its timers again.
    pub refresh: bool,
    /// b: the bits of a timer (2 to 32). `None` takes as many as stamps of a tick need, at most 32.
    pub bits: Option<u32>,
}

/// The widths of a timer.
const TIMER_BITS: std::ops::RangeInclusive<u32> = 2..=PackedCells::MOST_BITS;

/// The most units of a window in timers of `bits`: a quarter of the values is left for the slack,
/// and one for an empty cell.
const fn most_alive(bits: u32) -> u64 {
    (1 << bits) - (1 << (bits - 2)) - 1
}

impl TimerSpec {
    /// Four timers a key, without the heuristic; duplicates set no timers, as published.
    #[must_use]
    pub const fn new(window: u64) -> Self {
        Self {
            window,
            hashes: 4,
            equal: 1,
            refresh: false,
            bits: None,
        }
    }

    /// k: the timers of a key.
    #[must_use]
    pub const fn hashes(mut self, hashes: u32) -> Self {
        self.hashes = hashes;
        self
    }

    /// k': the timers that must be equal.
    #[must_use]
    pub const fn equal(mut self, equal: u32) -> Self {
        self.equal = equal;
        self
    }

    /// Whether a duplicate sets its timers again.
    #[must_use]
    pub const fn refresh(mut self, refresh: bool) -> Self {
        self.refresh = refresh;
        self
    }

    /// b: the bits of a timer.
    #[must_use]
    pub const fn bits(mut self, bits: u32) -> Self {
        self.bits = Some(bits);
        self
    }

    /// b: the bits of a timer: the given ones, or the fewest whose stamps count the window in
    /// single ticks, at most 32.
    ///
    /// # Errors
    /// [`SpecError`] if the window or the bits are out of their range.
    pub fn timer_bits(self) -> Result<u32, SpecError> {
        let window = within("window", self.window, 1..=LONGEST_WINDOW)?;
        match self.bits {
            Some(bits) => within("bits", bits, TIMER_BITS),
            None => Ok(TIMER_BITS
                .into_iter()
                .find(|bits| window <= most_alive(*bits))
                .unwrap_or(PackedCells::MOST_BITS)),
        }
    }

    pub(super) fn units(self) -> Result<Units, SpecError> {
        let bits = self.timer_bits()?;
        Ok(Units::new(self.window, most_alive(bits)))
    }

    /// Builds the filter in `memory_bytes`. It draws no random numbers and ignores the seed.
    ///
    /// # Errors
    /// [`BuildError`] if a parameter is out of its range, the memory holds fewer than k timers, or
    /// it cannot be allocated.
    pub fn build(self, memory_bytes: u64, _seed: u64) -> Result<TimerBloom, BuildError> {
        let units = self.units()?;
        let hashes = within("k", self.hashes, 1..=MOST_HASHES)?;
        within("equal", self.equal, 1..=hashes)?;
        let bits = self.timer_bits()?;
        let reason = "k timers and a word";
        let len = PackedCells::len_within(memory_bytes, bits, hashes, reason)?;
        Ok(TimerBloom::new(PackedCells::new(len, bits)?, units, self))
    }

    /// Builds the filter as a table of cells, which are set or not and have no ages.
    fn build_table(self, memory_bytes: u64) -> Result<Box<dyn CellTable>, BuildError> {
        if self.equal != 1 {
            let allowed = "1 under vertical slices and growth";
            return Err(SpecError::new("equal", self.equal.to_string(), allowed).into());
        }
        if self.refresh {
            let allowed = "false under vertical slices and growth";
            return Err(SpecError::new("refresh", "true", allowed).into());
        }
        Ok(Box::new(self.build(memory_bytes, 0)?))
    }
}

impl KindSpec for TimerSpec {
    const NAMES: &'static [&'static str] = &["tbf"];

    fn parse(_name: &str, _form: Form, options: &mut Options) -> Result<Self, SpecError> {
        let window = options.integer("window", DEFAULT_WINDOW, 1..=LONGEST_WINDOW)?;
        let spec = Self::new(window);
        Ok(Self {
            hashes: options.integer("k", spec.hashes, HASHES)?,
            equal: options.integer("equal", spec.equal, HASHES)?,
            refresh: options.flag("refresh", false)?,
            bits: options.optional_integer("bits", TIMER_BITS)?,
            ..spec
        })
    }

    fn name(&self) -> &'static str {
        "tbf"
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = vec![
            ("window", self.window.to_string()),
            ("k", self.hashes.to_string()),
            ("equal", self.equal.to_string()),
            ("refresh", self.refresh.to_string()),
        ];
        options.extend(self.bits.map(|bits| ("bits", bits.to_string())));
        options
    }

    fn build_scattered(&self, memory_bytes: u64, seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        Ok(Box::new(self.build(memory_bytes, seed)?))
    }

    fn build_cells(&self, memory_bytes: u64) -> Option<Result<Box<dyn CellTable>, BuildError>> {
        Some(self.build_table(memory_bytes))
    }

    fn cache_lines(&self, _memory_bytes: u64) -> f64 {
        f64::from(self.hashes)
    }

    fn rate_model(&self, _form: Form, _memory_bytes: u64) -> Option<RateModel> {
        None
    }

    fn fpr_limit(&self, _form: Form, _memory_bytes: u64) -> Option<f64> {
        None
    }

    fn window(&self) -> Option<Window> {
        Some(self.units().ok()?.window())
    }

    fn renews_keys(&self) -> bool {
        self.refresh
    }

    fn settles(&self) -> bool {
        true
    }

    fn scaled(mut self, scale: f64) -> Self {
        self.window = scaled_window(self.window, scale);
        self
    }

    /// Duplicates renew their keys, as in the line forms: for a planner, a key is a duplicate if it
    /// was last seen at most a window ago.
    fn grid(workload: &Workload) -> Vec<String> {
        if !is_worth_sweeping(workload) {
            return Vec::new();
        }
        let window = workload.span;
        let mut settings = Vec::new();
        // Narrow stamps leave more of the memory to keys, at the price of a coarser window.
        for bits in [4, 6, 8] {
            settings.extend([1, 2, 3, 4, 6, 8].map(|k| format!("k={k},bits={bits}")));
        }
        settings.push("k=4,equal=2,bits=8".into());
        let text = |setting| format!("tbf:window={window},refresh=true,{setting}");
        settings.into_iter().map(text).collect()
    }
}
