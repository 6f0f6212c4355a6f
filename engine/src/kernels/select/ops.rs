//! The operations, and the plain loops that say what they mean.

use crate::hash::KeyHash;
use crate::kernels::isa::TargetIsa;
use crate::kernels::scalar::Scalar;

/// How many keys are looked at together.
pub(crate) const GROUP: usize = 8;

/// What a kernel can do to a group of keys and to the bits that stand for keys. All of it is `#[inline(always)]`.
pub(crate) trait SelectOps: TargetIsa {
    /// A bit for each key: set where its hash is `border` or more.
    fn at_least(self, keys: &[KeyHash; GROUP], border: u64) -> u8;

    /// The keys whose bit is set, moved together at the front, in their order; what comes behind them means nothing.
    fn pick(self, keys: &[KeyHash; GROUP], set: u8) -> [KeyHash; GROUP];

    /// The lowest bits of `bits`, each moved to where the next bit of `mask` is set.
    fn deposit(self, bits: u64, mask: u64) -> u64;
}

impl SelectOps for Scalar {
    #[inline(always)]
    fn at_least(self, keys: &[KeyHash; GROUP], border: u64) -> u8 {
        // From below, the last first: to shift in a comparison costs an add with carry.
        keys.iter()
            .rev()
            .fold(0, |bits, key| bits << 1 | u8::from(key.0 >= border))
    }

    #[inline(always)]
    fn pick(self, keys: &[KeyHash; GROUP], set: u8) -> [KeyHash; GROUP] {
        let mut picked = [KeyHash(0); GROUP];
        let mut count = 0;
        for (index, key) in keys.iter().enumerate() {
            // Written in any case, and overwritten by the next if it does not count.
            picked[count] = *key;
            count += usize::from(set >> index & 1);
        }
        picked
    }

    #[inline(always)]
    fn deposit(self, mut bits: u64, mut mask: u64) -> u64 {
        if mask == u64::MAX {
            // All keys of a word have one owner, as all have where there is one partition.
            return bits;
        }
        let mut moved = 0;
        while bits != 0 && mask != 0 {
            let lowest = mask & mask.wrapping_neg();
            moved |= lowest * (bits & 1);
            mask ^= lowest;
            bits >>= 1;
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::kernels::avx512::Avx512;
    use crate::kernels::isa::tested::kernels;
    use crate::kernels::isa::{HotLoop, Kernel};
    use proptest::prelude::*;

    /// What the operations give, out of a loop that a kernel can enter.
    struct All<'a, O> {
        ops: O,
        keys: &'a [KeyHash; GROUP],
        border: u64,
        set: u8,
        bits: u64,
        mask: u64,
    }

    impl<O: SelectOps> HotLoop for All<'_, O> {
        type Output = (u8, Vec<KeyHash>, u64);

        #[inline(always)]
        fn run(self) -> Self::Output {
            let at_least = self.ops.at_least(self.keys, self.border);
            let picked = self.ops.pick(self.keys, self.set);
            let picked = picked[..self.set.count_ones() as usize].to_vec();
            (at_least, picked, self.ops.deposit(self.bits, self.mask))
        }
    }

    proptest! {
        #[test]
        fn operations_do_what_they_do_one_by_one(
            hashes: [u64; GROUP],
            border in prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)],
            of_keys: Option<prop::sample::Index>,
            set: u8,
            bits: u64,
            mask in prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)],
        ) {
            let border = of_keys.map_or(border, |index| hashes[index.index(GROUP)]);
            let keys = &hashes.map(KeyHash);
            let at_least = (0..GROUP).fold(0, |bits, index| bits | u8::from(hashes[index] >= border) << index);
            let picked: Vec<KeyHash> =
                (0..GROUP).filter(|index| set >> index & 1 == 1).map(|index| keys[index]).collect();
            let places = (0..64).filter(|place| mask >> place & 1 == 1);
            let deposited = (0..64).zip(places).fold(0, |moved, (index, place)| moved | (bits >> index & 1) << place);
            let expected = (at_least, picked, deposited);
            let ops = Scalar;
            prop_assert_eq!(&ops.run(All { ops, keys, border, set, bits, mask }), &expected);
            #[cfg(target_arch = "x86_64")]
            if kernels().contains(&Kernel::Avx512) {
                let ops = Avx512::new(Kernel::Avx512.detect().unwrap()).unwrap();
                prop_assert_eq!(&ops.run(All { ops, keys, border, set, bits, mask }), &expected);
            }
        }
    }
}
