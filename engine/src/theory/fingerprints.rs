//! The error rates of a fingerprint line filter of a given shape: its false positive rate, and the
//! age at which it begins to miss duplicates.
//!
//! Keys fall on lines at random, so after `n` pushes a line has received a Poisson number of keys
//! with mean `n / lines`. Rates are fractions of 1.

use crate::error::SpecError;
use crate::memory::LINE_BYTES;
use crate::theory::{binomial, poisson};

/// The probability of a miss at the age that [`FingerprintGeometry::miss_age_keys`] returns.
const MISS_ONSET: f64 = 1e-3;

/// The width of a slot, which holds one fingerprint.
///
/// Narrow slots hold more keys in the same memory, wide ones have a lower false positive rate.
///
/// # Examples
/// ```
/// use echoless::SlotWidth;
/// assert_eq!(SlotWidth::from_bits(16), Ok(SlotWidth::Bits16));
/// assert_eq!(SlotWidth::Bits16.slots(), 32);
/// let error = SlotWidth::from_bits(12).unwrap_err();
/// assert_eq!(error.to_string(), "invalid slot bits=12: expected 8, 16, 32 or 64");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotWidth {
    /// 64 slots of 8 bits in a line.
    Bits8,
    /// 32 slots of 16 bits in a line.
    Bits16,
    /// 16 slots of 32 bits in a line.
    Bits32,
    /// 8 slots of 64 bits in a line.
    Bits64,
}

impl SlotWidth {
    /// Every width, narrowest first.
    pub const ALL: &'static [Self] = &[Self::Bits8, Self::Bits16, Self::Bits32, Self::Bits64];

    /// The width of a slot of 1, 2, 4 or 8 bytes.
    pub const fn from_bytes(bytes: usize) -> Self {
        match bytes {
            1 => Self::Bits8,
            2 => Self::Bits16,
            4 => Self::Bits32,
            _ => Self::Bits64,
        }
    }

    /// The width in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bits8 => 8,
            Self::Bits16 => 16,
            Self::Bits32 => 32,
            Self::Bits64 => 64,
        }
    }

    /// The number of slots of a line, 8 to 64.
    #[must_use]
    pub const fn slots(self) -> u32 {
        512 / self.bits()
    }

    /// The width of a slot of `bits` bits.
    ///
    /// # Errors
    /// [`SpecError`] if `bits` is not 8, 16, 32 or 64.
    pub fn from_bits(bits: u32) -> Result<Self, SpecError> {
        let found = Self::ALL.iter().find(|width| width.bits() == bits);
        found
            .copied()
            .ok_or_else(|| SpecError::new("slot bits", bits.to_string(), "8, 16, 32 or 64"))
    }
}

/// The shape of a fingerprint line filter: the number of its lines and the width of its slots.
///
/// # Examples
/// ```
/// use echoless::{FingerprintGeometry, SlotWidth};
/// let shape = FingerprintGeometry::new(1 << 20, SlotWidth::Bits32);
/// assert_eq!(shape.capacity(), 16 << 20);
/// // 16 fingerprints of 32 bits to match: 16 / 2^32.
/// assert!((shape.full_fpr() - 3.7e-9).abs() < 1e-10);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FingerprintGeometry {
    /// The number of lines, at least 1.
    pub lines: u64,
    /// The width of a slot.
    pub width: SlotWidth,
}

impl FingerprintGeometry {
    /// A filter of `lines` lines with slots of `width`.
    #[must_use]
    pub const fn new(lines: u64, width: SlotWidth) -> Self {
        Self { lines, width }
    }

    /// The fewest lines with slots of `width` that miss a duplicate with probability `miss`, at
    /// most 1/2, once its key is `keys` distinct keys old; see
    /// [`miss_probability`](Self::miss_probability).
    #[must_use]
    pub fn for_keys(keys: u64, miss: f64, width: SlotWidth) -> Self {
        let keys_per_line = mean_at_miss(miss, width.slots(), width.bits());
        let lines = (keys as f64 / keys_per_line).ceil().max(1.0);
        // Above 2^64 lines this is the largest number, which no memory holds.
        Self::new(lines as u64, width)
    }

    /// The number of fingerprints that fit, or the largest number if there are more.
    #[must_use]
    pub const fn capacity(self) -> u64 {
        self.lines.saturating_mul(self.width.slots() as u64)
    }

    /// The memory of the lines, in bytes, or the largest number if they have more.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.lines.saturating_mul(LINE_BYTES)
    }

    /// The probability that a new key matches a given fingerprint of its line.
    ///
    /// Fingerprints are uniform, except that 1 also stands for 0 and is twice as likely. The
    /// selection of the line uses `log2(lines)` bits of the 64-bit hash, so the probability is at
    /// least `lines / 2^64` for slots of any width.
    #[must_use]
    pub fn match_probability(self) -> f64 {
        match_probability(self.lines, self.width.bits())
    }

    /// The false positive rate with every slot occupied, which is the highest.
    #[must_use]
    pub fn full_fpr(self) -> f64 {
        f64::from(self.width.slots()) * self.match_probability()
    }

    /// The false positive rate with `occupied` slots occupied in each line. A line holds each
    /// fingerprint once or, `with_copies`, once for each arrival.
    pub(crate) fn fpr_with(self, with_copies: bool, occupied: f64) -> f64 {
        let one = self.match_probability();
        if with_copies {
            // 1 - (1 - one)^occupied, as for independent fingerprints. Copies of one key match no
            // other value, so the rate is lower still.
            -(occupied * (-one).ln_1p()).exp_m1()
        } else {
            occupied * one
        }
    }

    /// The expected number of false duplicates until `pushed` keys were reported as fresh and
    /// pushed.
    ///
    /// At a rate of `f` there are `f / (1 - f)` false duplicates for each fresh key. The sum
    /// follows the rate while the lines fill.
    pub(crate) fn false_duplicates(self, with_copies: bool, pushed: u64) -> f64 {
        /// The steps of the integral over the phase in which lines fill.
        const STEPS: u32 = 1000;
        let slots = self.width.slots();
        let odds = |occupied: f64| {
            let rate = self.fpr_with(with_copies, occupied);
            rate / (1.0 - rate)
        };
        let end = pushed as f64 / self.lines as f64;
        // The number of pushes per line after which all but one in 10^9 lines are full. From there
        // on the rate is constant.
        let filling = end.min(f64::from(slots) * 3.0 + 60.0);
        let step = filling / f64::from(STEPS);
        let sum: f64 = (0..STEPS)
            .map(|index| odds(poisson::mean_capped((f64::from(index) + 0.5) * step, slots)))
            .sum();
        (sum * step + (end - filling) * odds(f64::from(slots))) * self.lines as f64
    }

    /// The age at which 1 in 1000 duplicates is missed, in distinct keys since the key was last
    /// seen (LRU) or recorded (FIFO). Younger duplicates are missed less often.
    #[must_use]
    pub fn miss_age_keys(self) -> f64 {
        miss_age_keys(self.lines, self.width.slots(), self.width.bits())
    }

    /// The probability that a duplicate is missed after `age` other keys since its key was last
    /// seen (LRU) or recorded (FIFO; there it is a bound, because keys that are in the line already
    /// push nothing).
    ///
    /// A line evicts a key once as many other fingerprints were pushed into it as it has slots
    /// (paper 002, section 4). Keys of equal fingerprints push one, and a key of the fingerprint
    /// that was evicted brings it back.
    #[must_use]
    pub fn miss_probability(self, age: f64) -> f64 {
        let mean = age / self.lines as f64;
        miss_probability(mean, self.width.slots(), self.width.bits())
    }
}

/// The probability that a new key equals one given fingerprint of `bits` bits in its line, of so
/// many lines; see [`FingerprintGeometry::match_probability`].
pub(crate) fn match_probability(lines: u64, bits: u32) -> f64 {
    let values = 2f64.powi(bits as i32);
    let by_width = (values + 2.0) / (values * values);
    let by_hash = lines as f64 / 2f64.powi(64);
    by_width.max(by_hash)
}

/// The probability of a miss after a Poisson number of other keys with this mean in the line.
fn miss_probability(mean: f64, slots: u32, bits: u32) -> f64 {
    // Each fingerprint appears with the same probability, independently of the others.
    let values = 2f64.powi(bits as i32) - 1.0;
    let appears = -(-mean / values).exp_m1();
    let evicted = if bits <= 8 {
        binomial::at_least(slots, values as u64 - 1, appears)
    } else {
        // Hardly two keys of a line have equal fingerprints.
        poisson::at_least(mean, u64::from(slots))
    };
    evicted * (1.0 - appears)
}

/// The age in distinct keys at which 1 in 1000 duplicates is missed, in lines of so many slots with
/// fingerprints of so many bits; see [`FingerprintGeometry::miss_age_keys`].
pub(crate) fn miss_age_keys(lines: u64, slots: u32, bits: u32) -> f64 {
    mean_at_miss(MISS_ONSET, slots, bits) * lines as f64
}

/// The mean number of other keys in a line after which a key is missed with probability `miss`, at
/// most 1/2.
fn mean_at_miss(miss: f64, slots: u32, bits: u32) -> f64 {
    let (mut low, mut high) = (0.0, f64::from(slots) * 2.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if miss_probability(middle, slots, bits) < miss {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(width: SlotWidth) -> FingerprintGeometry {
        FingerprintGeometry {
            lines: 1 << 20,
            width,
        }
    }

    #[test]
    fn the_full_rate_is_slots_over_fingerprint_values() {
        let expected = [0.25, 4.9e-4, 3.7e-9];
        for (width, rate) in SlotWidth::ALL.iter().zip(expected) {
            let measured = shape(*width).full_fpr();
            assert!(
                (measured / rate - 1.0).abs() < 0.02,
                "{width:?}: {measured}"
            );
        }
        // Slots of 64 bits are limited by the hash: 2^20 lines leave 44 bits of it.
        assert_eq!(shape(SlotWidth::Bits64).full_fpr(), 8.0 / 2f64.powi(44));
    }

    #[test]
    fn misses_begin_below_the_capacity() {
        for width in SlotWidth::ALL {
            let shape = shape(*width);
            let age = shape.miss_age_keys();
            assert!(age > 0.0 && age < shape.capacity() as f64);
            let missed = shape.miss_probability(age);
            assert!((missed - 1e-3).abs() < 1e-6);
            // With 8 bits, a key of the same fingerprint often comes in between.
            assert!(shape.miss_probability(shape.capacity() as f64 * 2.0) > 0.5);
        }
    }

    #[test]
    fn false_duplicates_are_the_sum_of_the_rate() {
        let shape = shape(SlotWidth::Bits16);
        // Few keys: the filter is nearly empty, and each key can match every earlier key of its
        // line. There are n^2 / 2 pairs of keys.
        let few = 10_000f64;
        let pairs = few * few / 2.0 / shape.lines as f64 * shape.match_probability();
        assert!((shape.false_duplicates(false, 10_000) / pairs - 1.0).abs() < 1e-3);
        // Many keys: nearly all of them fall on full lines.
        let many = shape.capacity() * 1000;
        let full = many as f64 * shape.full_fpr() / (1.0 - shape.full_fpr());
        assert!((shape.false_duplicates(false, many) / full - 1.0).abs() < 1e-3);
        assert_eq!(shape.false_duplicates(false, 0), 0.0);
    }

    #[test]
    fn widths_are_found_by_their_bits() {
        assert_eq!(SlotWidth::from_bits(32), Ok(SlotWidth::Bits32));
        assert!(
            SlotWidth::from_bits(12)
                .unwrap_err()
                .to_string()
                .contains("8, 16, 32 or 64")
        );
    }
}
