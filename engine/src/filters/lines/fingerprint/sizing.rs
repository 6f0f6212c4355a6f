//! What a fingerprint line filter of a given shape can promise: false positive rate, age at which misses begin.
//!
//! Keys fall on lines at random, so after `n` pushes a line has seen a Poisson number of them with mean `n / lines`.

use crate::error::SpecError;
use crate::memory::LINE_BYTES;

/// The probability of a miss at the age that [`FingerprintGeometry::miss_age_keys`] gives.
const MISS_ONSET: f64 = 1e-3;

/// The width of a slot.
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
    pub const ALL: [Self; 4] = [Self::Bits8, Self::Bits16, Self::Bits32, Self::Bits64];

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

    /// How many slots a line has.
    #[must_use]
    pub const fn slots(self) -> u32 {
        512 / self.bits()
    }

    /// The width of that many bits.
    ///
    /// # Errors
    /// [`SpecError`] if there is no such width.
    pub fn from_bits(bits: u32) -> Result<Self, SpecError> {
        Self::ALL
            .into_iter()
            .find(|width| width.bits() == bits)
            .ok_or_else(|| SpecError::new("slot bits", bits.to_string(), "8, 16, 32 or 64"))
    }
}

/// What the slots of a line hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entries {
    /// Each fingerprint once.
    Distinct,
    /// A fingerprint for each arrival: of distinct keys they are independent draws, of keys that come back copies, which match even less.
    Repeated,
}

/// The shape of a filter: how many lines, and what a slot is.
///
/// # Examples
/// ```
/// use echoless::{FingerprintGeometry, SlotWidth};
/// let shape = FingerprintGeometry { lines: 1 << 20, width: SlotWidth::Bits32 };
/// assert_eq!(shape.capacity(), 16 << 20);
/// // 16 full slots of 32 bits: 16 chances in 2^32.
/// assert!((shape.full_fpr() - 3.7e-9).abs() < 1e-10);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintGeometry {
    /// The number of lines.
    pub lines: u64,
    /// The width of a slot.
    pub width: SlotWidth,
}

impl FingerprintGeometry {
    /// How many fingerprints fit.
    #[must_use]
    pub const fn capacity(self) -> u64 {
        self.lines * self.width.slots() as u64
    }

    /// The memory of the lines, in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.lines * LINE_BYTES
    }

    /// The probability that a new key equals one given fingerprint of its line.
    ///
    /// Fingerprints are uniform but for 1, which stands for 0 too. The line already uses `log2(lines)` bits of the 64-bit hash,
    /// so no slot, however wide, can do better than `lines / 2^64`.
    #[must_use]
    pub fn match_probability(self) -> f64 {
        let values = 2f64.powi(self.width.bits() as i32);
        let by_width = (values + 2.0) / (values * values);
        let by_hash = self.lines as f64 / 2f64.powi(64);
        by_width.max(by_hash)
    }

    /// The false positive rate once every slot is taken: the highest it ever gets.
    #[must_use]
    pub fn full_fpr(self) -> f64 {
        f64::from(self.width.slots()) * self.match_probability()
    }

    /// The false positive rate with `occupied` slots taken in the whole filter.
    #[must_use]
    pub fn fpr_at(self, occupied: u64) -> f64 {
        self.fpr_with(Entries::Distinct, occupied as f64 / self.lines as f64)
    }

    /// The false positive rate with so many slots of each line taken.
    pub(super) fn fpr_with(self, entries: Entries, taken: f64) -> f64 {
        let one = self.match_probability();
        match entries {
            Entries::Distinct => taken * one,
            Entries::Repeated => -(taken * (-one).ln_1p()).exp_m1(),
        }
    }

    /// The expected number of false duplicates by the time that `pushed` keys were called fresh and recorded.
    ///
    /// At a rate of `f` there are `f / (1 - f)` false duplicates for each fresh key; the sum runs while the lines fill up.
    #[must_use]
    pub fn false_duplicates(self, pushed: u64) -> f64 {
        self.false_duplicates_with(Entries::Distinct, pushed)
    }

    pub(super) fn false_duplicates_with(self, entries: Entries, pushed: u64) -> f64 {
        const STEPS: u32 = 1000;
        let slots = self.width.slots();
        let odds = |occupied: f64| {
            let rate = self.fpr_with(entries, occupied);
            rate / (1.0 - rate)
        };
        let end = pushed as f64 / self.lines as f64;
        // Past this load every line is full but for a part in a billion.
        let filling = end.min(f64::from(slots) * 3.0 + 60.0);
        let step = filling / f64::from(STEPS);
        let sum: f64 = (0..STEPS)
            .map(|index| odds(mean_capped_poisson((f64::from(index) + 0.5) * step, slots)))
            .sum();
        (sum * step + (end - filling) * odds(f64::from(slots))) * self.lines as f64
    }

    /// The age, in distinct keys since a key was last pushed, at which 1 in 1000 duplicates is missed; younger ones are safer.
    ///
    /// A key is forgotten when its line has taken as many other keys as it has slots.
    #[must_use]
    pub fn miss_age_keys(self) -> f64 {
        let slots = self.width.slots();
        let (mut low, mut high) = (0.0, f64::from(slots) * 2.0);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if poisson_at_least(middle, slots) < MISS_ONSET {
                low = middle;
            } else {
                high = middle;
            }
        }
        low * self.lines as f64
    }

    /// The probability that a key is missed once `age` other keys were pushed after it (paper 002, section 4, for FIFO rows).
    #[must_use]
    pub fn miss_probability(self, age: f64) -> f64 {
        let forgotten = poisson_at_least(age / self.lines as f64, self.width.slots());
        forgotten * (1.0 - self.full_fpr()).max(0.0)
    }
}

/// The probability that a Poisson variable of this mean is at least `count`.
fn poisson_at_least(mean: f64, count: u32) -> f64 {
    let mut term = (-mean).exp();
    let mut below = 0.0;
    for index in 0..count {
        below += term;
        term *= mean / f64::from(index + 1);
    }
    (1.0 - below).clamp(0.0, 1.0)
}

/// The mean of `min(count, cap)` for a Poisson count of this mean.
fn mean_capped_poisson(mean: f64, cap: u32) -> f64 {
    let mut term = (-mean).exp();
    let mut shortfall = 0.0;
    for index in 0..cap {
        shortfall += term * f64::from(cap - index);
        term *= mean / f64::from(index + 1);
    }
    f64::from(cap) - shortfall
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
    fn full_rates_are_slots_over_values() {
        let expected = [0.25, 4.9e-4, 3.7e-9];
        for (width, rate) in SlotWidth::ALL.into_iter().zip(expected) {
            let measured = shape(width).full_fpr();
            assert!(
                (measured / rate - 1.0).abs() < 0.02,
                "{width:?}: {measured}"
            );
        }
        // 64-bit slots are limited by the hash: 2^20 lines leave 44 bits.
        assert_eq!(shape(SlotWidth::Bits64).full_fpr(), 8.0 / 2f64.powi(44));
    }

    #[test]
    fn poisson_sums_match_known_values() {
        assert!((poisson_at_least(1.0, 1) - (1.0 - (-1f64).exp())).abs() < 1e-12);
        assert!((poisson_at_least(2.0, 3) - 0.323_323_583_816_936).abs() < 1e-12);
        assert!((mean_capped_poisson(0.5, 64) - 0.5).abs() < 1e-12);
        assert!((mean_capped_poisson(500.0, 8) - 8.0).abs() < 1e-12);
        assert!((mean_capped_poisson(1.0, 1) - (1.0 - (-1f64).exp())).abs() < 1e-12);
    }

    #[test]
    fn misses_begin_below_the_capacity() {
        for width in SlotWidth::ALL {
            let shape = shape(width);
            let age = shape.miss_age_keys();
            assert!(age > 0.0 && age < shape.capacity() as f64);
            let missed = shape.miss_probability(age);
            assert!((missed - 1e-3 * (1.0 - shape.full_fpr())).abs() < 1e-6);
            assert!(shape.miss_probability(shape.capacity() as f64 * 4.0) > 0.7);
        }
    }

    #[test]
    fn false_duplicates_are_the_sum_of_the_rate() {
        let shape = shape(SlotWidth::Bits16);
        // Few keys: the filter is nearly empty, every earlier key is one chance, so n^2 / 2 pairs.
        let few = 10_000f64;
        let pairs = few * few / 2.0 / shape.lines as f64 * shape.match_probability();
        assert!((shape.false_duplicates(10_000) / pairs - 1.0).abs() < 1e-3);
        // Many keys: nearly all of them meet full lines.
        let many = shape.capacity() * 1000;
        let full = many as f64 * shape.full_fpr() / (1.0 - shape.full_fpr());
        assert!((shape.false_duplicates(many) / full - 1.0).abs() < 1e-3);
        assert_eq!(shape.false_duplicates(0), 0.0);
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
