//! Random choices of verdicts, independent of each other and of the keys.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Chooses each verdict with the same probability, 1 in `2^halvings`, independently of all others.
/// Nothing but the sequence of keys and verdicts decides the choices.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    random: SplitMix64,
    /// One verdict in `2^halvings` is chosen on average.
    halvings: u32,
    /// The number of verdicts before the next chosen one.
    skipped: u64,
}

impl Choices {
    /// Chooses every verdict. The seed need not be secret, only independent of the stream.
    pub(super) fn all(seed: u64) -> Self {
        Self {
            random: SplitMix64::seed_from_u64(seed),
            halvings: 0,
            skipped: 0,
        }
    }

    /// Passes over `verdicts` verdicts, unless one of them is chosen. Returns whether it did.
    #[inline]
    pub(super) fn pass(&mut self, verdicts: u64) -> bool {
        let passes = verdicts <= self.skipped;
        if passes {
            self.skipped -= verdicts;
        }
        passes
    }

    /// Passes over one verdict. Returns whether it is chosen.
    #[inline]
    pub(super) fn choose(&mut self) -> bool {
        if self.pass(1) {
            return false;
        }
        self.skipped = self.gap();
        true
    }

    /// Passes over the verdicts at the set bits, up to the one before the next chosen one. Returns
    /// all bits below that of the chosen one; all bits if none of these is chosen.
    pub(super) fn before_chosen(&mut self, verdicts: u64) -> u64 {
        let mut left = verdicts;
        while self.skipped > 0 && left != 0 {
            self.skipped -= 1;
            left &= left - 1;
        }
        match left {
            0 => u64::MAX,
            left => (left & left.wrapping_neg()) - 1,
        }
    }

    pub(super) const fn halvings(&self) -> u32 {
        self.halvings
    }

    /// The number of verdicts that a chosen one stands for.
    pub(super) const fn weight(&self) -> u64 {
        1 << self.halvings
    }

    /// From now on, chooses 1 verdict in `2^halvings`.
    ///
    /// The choices depend on the stream, of which the `keys` were held: a sequence that every run
    /// shares would be wrong about the same part of every stream.
    pub(super) fn set_halvings(&mut self, halvings: u32, keys: impl Iterator<Item = u64>) {
        let content = keys.fold(0, u64::wrapping_add);
        self.halvings = halvings;
        self.random = SplitMix64::seed_from_u64(self.random.next_u64() ^ content);
        self.skipped = self.gap();
    }

    /// A random number.
    pub(super) fn draw(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// Draws the number of verdicts before the next chosen one.
    ///
    /// It uses bits, because the last digits of a logarithm differ between machines: each bit of
    /// `halvings` random words AND-ed together is set with the probability of a choice. After 7
    /// words on average all 64 bits are clear, so a verdict costs 0.1 draws.
    fn gap(&mut self) -> u64 {
        let mut gap = 0;
        loop {
            let mut chosen = u64::MAX;
            for _ in 0..self.halvings {
                chosen &= self.random.next_u64();
                if chosen == 0 {
                    break;
                }
            }
            if chosen != 0 {
                return gap + u64::from(chosen.trailing_zeros());
            }
            gap += 64;
        }
    }
}
