//! The error rates of dense lines: a key in one of two lines of its page.

use super::fingerprints::{SlotWidth, match_probability};
use crate::error::SpecError;
use crate::limits::within;
use crate::memory::LINE_BYTES;

/// The shape of dense lines: the number of lines and the width of a slot.
///
/// # Examples
/// ```
/// use echoless::theory::dense::DenseGeometry;
/// let shape = DenseGeometry::new(1 << 20, 32)?;
/// assert_eq!(shape.capacity(), 16 << 20);
/// // Two lines, each with 11 fingerprints of 32 bits and 5 of 31.
/// assert!((shape.full_fpr() - 9.8e-9).abs() < 1e-10);
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenseGeometry {
    lines: u64,
    width: SlotWidth,
}

/// What depends on the width of a slot.
struct Layout {
    /// The fingerprints of a line.
    slots: u32,
    /// How many of them, the oldest, lack their highest bit.
    shortened: u32,
    /// The age at which 1 in 1000 keys is missed, in distinct keys for each line.
    age_per_line: f64,
    /// The part of that age at which at most 1 in 1000 was missed with LRU, on all streams that
    /// were measured.
    lru_part: f64,
}

impl DenseGeometry {
    /// The widths of slots, narrowest first.
    pub const WIDTHS: &'static [SlotWidth] =
        &[SlotWidth::Bits16, SlotWidth::Bits32, SlotWidth::Bits64];

    /// A filter of `lines` lines with slots of `bits` bits.
    ///
    /// # Errors
    /// [`SpecError`] if `lines` is 0 or they have 2^64 bytes or more, or `bits` is not 16, 32 or
    /// 64.
    pub fn new(lines: u64, bits: u32) -> Result<Self, SpecError> {
        within("lines", lines, 1..=u64::MAX / LINE_BYTES)?;
        let mut widths = Self::WIDTHS.iter().copied();
        let width = widths.find(|width| width.bits() == bits);
        width
            .map(|width| Self::of_width(lines, width))
            .ok_or_else(|| SpecError::new("bits", bits.to_string(), "16, 32 or 64"))
    }

    /// As [`new`](Self::new), of a width in [`WIDTHS`](Self::WIDTHS).
    pub(crate) const fn of_width(lines: u64, width: SlotWidth) -> Self {
        Self { lines, width }
    }

    /// The ages are fitted: `dense_ages` in `engine/tests/dense/theory.rs` measures them, within
    /// 2 % from 2^10 lines up, and `engine/tests/ages/ages.rs` the parts for LRU.
    const fn layout(self) -> Layout {
        let (slots, shortened, age_per_line, lru_part) = match self.width {
            SlotWidth::Bits16 => (31, 0, 26.80, 0.82),
            SlotWidth::Bits32 => (16, 5, 11.89, 0.82),
            SlotWidth::Bits8 | SlotWidth::Bits64 => (8, 8, 4.87, 0.74),
        };
        Layout {
            slots,
            shortened,
            age_per_line,
            lru_part,
        }
    }

    /// The number of fingerprints that fit.
    #[must_use]
    pub const fn capacity(self) -> u64 {
        self.lines * self.layout().slots as u64
    }

    /// The false positive rate with every slot occupied, which is the highest: that of both lines.
    #[must_use]
    pub fn full_fpr(self) -> f64 {
        self.fpr_with(f64::from(self.layout().slots))
    }

    /// The false positive rate with a mean of `occupied` slots occupied in each line.
    ///
    /// A key is compared with the fingerprints of two lines; those without their highest bit match
    /// twice as often. All 64 bits of two hashes are equal with at least the probability
    /// `lines / 2^64`, given that they select the same line, and then they share both lines.
    #[must_use]
    pub fn fpr_with(self, occupied: f64) -> f64 {
        let layout = self.layout();
        let whole = f64::from(layout.slots - layout.shortened);
        let compared = occupied + (occupied - whole).max(0.0);
        rate_in_pair(occupied, compared, self.lines, self.width.bits())
    }

    /// The expected number of false positives among the keys of which `pushed` were recorded, if
    /// all of them were new.
    ///
    /// Lines fill evenly up to the last slots, so the fill is taken as the number of keys until the
    /// filter is full.
    #[must_use]
    pub fn false_duplicates(self, pushed: u64) -> f64 {
        /// The steps of the integral over the phase in which lines fill.
        const STEPS: u32 = 1000;
        let slots = f64::from(self.layout().slots);
        let odds = |occupied: f64| {
            let rate = self.fpr_with(occupied);
            rate / (1.0 - rate)
        };
        let end = pushed as f64 / self.lines as f64;
        let filling = end.min(slots);
        let step = filling / f64::from(STEPS);
        let middle = |index: u32| odds((f64::from(index) + 0.5) * step);
        let sum: f64 = (0..STEPS).map(middle).sum();
        (sum * step + (end - filling) * odds(slots)) * self.lines as f64
    }

    /// The age at which 1 in 1000 duplicates is missed on streams of distinct keys, in distinct
    /// keys since the key was recorded. Younger duplicates are missed less often.
    ///
    /// It is proportional to the number of lines: a choice of two lines levels their loads within
    /// each page, and only the numbers of keys of pages differ. Within 2 % of measurements from
    /// 2^10 lines up.
    #[must_use]
    pub fn miss_age_keys(self) -> f64 {
        self.lines as f64 * self.layout().age_per_line
    }

    /// The age at which at most 1 in 1000 duplicates is missed with LRU, in distinct keys since the
    /// key was last seen: 0.82 of [`miss_age_keys`](Self::miss_age_keys), and 0.74 of it with
    /// 64-bit slots, a bound from measurements on uniform streams, Zipf's law with exponents up to
    /// 1.7, gaps and few hot keys. The worst are endless uniform streams of about twice as many
    /// keys, and with 16-bit and 64-bit slots the steepest ones. On streams steeper than these,
    /// duplicates of that age are too rare to measure.
    ///
    /// A duplicate counts in the load of its line, but less exactly than an insertion. Therefore
    /// lines fill less evenly where many keys are duplicates, and misses begin earlier.
    #[must_use]
    pub fn lru_miss_age_keys(self) -> f64 {
        self.miss_age_keys() * self.layout().lru_part
    }
}

/// The probability that a new key matches one of `occupied` fingerprints in each of two lines. Some
/// of them match more often, and together as often as `compared` of `bits` bits.
fn rate_in_pair(occupied: f64, compared: f64, lines: u64, bits: u32) -> f64 {
    // The rate of the width alone: one line leaves the whole hash to the fingerprint.
    let by_width = 2.0 * compared * match_probability(1, bits);
    let by_hash = occupied * lines as f64 / 2f64.powi(64);
    by_width.max(by_hash)
}

/// The shape of dense lines with a window: clocked lines, of which a key has two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockedGeometry {
    lines: u64,
    bits: u32,
}

impl ClockedGeometry {
    /// A filter of `lines` lines with slots of `bits` bits: 16, 32 or 64.
    pub(crate) const fn new(lines: u64, bits: u32) -> Self {
        Self { lines, bits }
    }

    /// The part of the age without recurring keys at which at most 1 in 1000 is missed.
    const SAFE_PART: f64 = 0.95;

    /// The false positive rate with a mean of `live` slots alive in each line.
    pub(crate) fn fpr_with(self, live: f64) -> f64 {
        rate_in_pair(live, live, self.lines, self.bits)
    }

    /// The age at which at most 1 in 1000 duplicates is missed, in distinct keys, if that is the
    /// number of keys in a window: 0.95 of the age at which 1 in 1000 is missed if no key recurs.
    /// A missed duplicate is recorded again and takes a second slot, and a page that misses many
    /// soon misses most: at 0.98 of that age and more, some do if every key recurs.
    ///
    /// Fitted: `engine/tests/dense/theory.rs` measures the age, within 2 % from 2^10 lines up, and
    /// `engine/tests/ages/window_ages.rs` the part of it.
    pub(crate) fn miss_age_keys(self) -> f64 {
        let age_per_line = match self.bits {
            16 => 24.03,
            32 => 10.83,
            _ => 4.47,
        };
        self.lines as f64 * age_per_line * Self::SAFE_PART
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes() -> impl Iterator<Item = DenseGeometry> {
        let widths = DenseGeometry::WIDTHS.iter();
        widths.map(|width| DenseGeometry::of_width(1 << 20, *width))
    }

    #[test]
    fn the_full_rate_is_that_of_two_lines() {
        let expected = [2.0 * 31.0 / 65_536.0, 42.0 / 2f64.powi(32), 2f64.powi(-41)];
        for (shape, rate) in shapes().zip(expected) {
            assert!((shape.full_fpr() / rate - 1.0).abs() < 1e-4, "{shape:?}");
        }
    }

    #[test]
    fn half_full_lines_have_no_shortened_fingerprints() {
        let shape = DenseGeometry::new(1 << 20, 32).unwrap();
        assert_eq!(shape.fpr_with(11.0), 22.0 * match_probability(1, 32));
        assert_eq!(shape.fpr_with(0.0), 0.0);
    }

    #[test]
    fn false_duplicates_are_the_sum_of_the_rate() {
        for shape in shapes() {
            assert_eq!(shape.false_duplicates(0), 0.0);
            let many = shape.capacity() * 1000;
            let full = many as f64 * shape.full_fpr() / (1.0 - shape.full_fpr());
            assert!((shape.false_duplicates(many) / full - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn other_widths_are_rejected() {
        for bits in [0, 8, 24, 128] {
            let error = DenseGeometry::new(64, bits).unwrap_err();
            assert_eq!(
                error,
                SpecError::new("bits", bits.to_string(), "16, 32 or 64")
            );
        }
    }
}
