//! Selecting keys, eight at a time: which hashes are at or above a border or have a bit in a bitmap,
//! and the keys of a set moved together. Routing keys to partitions consists of these operations,
//! and so does finding the keys that an audit follows, in a crate of its own.
//!
//! Whether a key belongs to one of two partitions is random, and no branch predictor can guess it.
//! `at_least`, `have_bits` and `pick` therefore take no branch.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::hash::KeyHash;
use crate::isa::{DetectedKernel, HotLoop, TargetIsa};
use crate::kernels::scalar::Scalar;
#[cfg(target_arch = "x86_64")]
use crate::kernels::{avx2::Avx2, avx512::Avx512};

/// The number of keys in a group: those of one 512-bit register.
pub const GROUP: usize = 8;

/// The words of a bitmap of keys, 16 KiB.
pub const BITMAP_WORDS: usize = 1 << 11;

/// The word and the bit of a key in such a bitmap. Any bits of a hash do.
#[inline(always)]
pub const fn bit_of(key: KeyHash) -> (usize, u32) {
    ((key.0 >> 32) as usize % BITMAP_WORDS, key.0 as u32 % 64)
}

/// The operations of a kernel on a group of keys, and on words with one bit for each key.
///
/// All of them are `#[inline(always)]`, or they could not be inlined into a loop that has the
/// kernel's features enabled.
pub trait SelectOps: TargetIsa {
    /// One bit for each key, set where its hash is `border` or more.
    fn at_least(self, keys: &[KeyHash; GROUP], border: u64) -> u8;

    /// One bit for each key, set where [its bit](bit_of) of the bitmap is set.
    fn have_bits(self, keys: &[KeyHash; GROUP], bitmap: &[u64; BITMAP_WORDS]) -> u8;

    /// Writes the keys whose bit in `set` is set to the front of `picked`, in their order. The keys
    /// behind them are unspecified.
    // Written in place: a kernel that stores twice would otherwise store to the stack and load
    // across both stores, which waits until they have left the store buffer.
    fn pick(self, keys: &[KeyHash; GROUP], set: u8, picked: &mut [KeyHash; GROUP]);

    /// Bit `i` of `bits` moved to the position of the `i`-th set bit of `mask`.
    ///
    /// ```text
    /// mask    0 1 1 0 0 1 0 1
    /// bits            d c b a
    /// result  0 d c 0 0 b 0 a
    /// ```
    fn deposit(self, bits: u64, mask: u64) -> u64;
}

/// A [`HotLoop`] over the operations of a kernel. As there, `run` and everything it calls must be
/// `#[inline(always)]`.
pub trait SelectLoop {
    /// The result.
    type Output;
    /// The loop.
    fn run<O: SelectOps>(self, ops: O) -> Self::Output;
}

/// A loop with the operations of a kernel.
struct With<O, L>(O, L);

impl<O: SelectOps, L: SelectLoop> HotLoop for With<O, L> {
    type Output = L::Output;

    #[inline(always)]
    fn run(self) -> L::Output {
        let Self(ops, select_loop) = self;
        select_loop.run(ops)
    }
}

/// Runs a loop with the operations of this kernel, compiled for its instruction set.
#[inline]
pub fn run_with_ops<L: SelectLoop>(kernel: DetectedKernel, select_loop: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(ops) = Avx512::new(kernel) {
        return kernel.run(With(ops, select_loop));
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(ops) = Avx2::new(kernel) {
        return kernel.run(With(ops, select_loop));
    }
    kernel.run(With(Scalar, select_loop))
}

impl SelectOps for Scalar {
    #[inline(always)]
    fn at_least(self, keys: &[KeyHash; GROUP], border: u64) -> u8 {
        // The last key first: shifting a comparison in from below is one add with carry.
        keys.iter()
            .rev()
            .fold(0, |bits, key| bits << 1 | u8::from(key.0 >= border))
    }

    #[inline(always)]
    fn have_bits(self, keys: &[KeyHash; GROUP], bitmap: &[u64; BITMAP_WORDS]) -> u8 {
        keys.iter().rev().fold(0, |bits, key| {
            let (word, bit) = bit_of(*key);
            bits << 1 | (bitmap[word] >> bit & 1) as u8
        })
    }

    #[inline(always)]
    fn pick(self, keys: &[KeyHash; GROUP], set: u8, picked: &mut [KeyHash; GROUP]) {
        let mut count = 0;
        for (index, key) in keys.iter().enumerate() {
            // Written in any case; the next key overwrites it if it is not picked.
            picked[count] = *key;
            count += usize::from(set >> index & 1);
        }
    }

    #[inline(always)]
    fn deposit(self, mut bits: u64, mut mask: u64) -> u64 {
        if mask == u64::MAX {
            // All keys of the word have one owner, as is always so with a single partition.
            return bits;
        }
        // Without the instruction this is a loop over the set bits of the mask.
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
    use crate::isa::tested::kernels;
    use proptest::prelude::*;

    /// The results of all operations, from a loop compiled for the kernel.
    struct All<'a, O> {
        ops: O,
        keys: &'a [KeyHash; GROUP],
        bitmap: &'a [u64; BITMAP_WORDS],
        border: u64,
        set: u8,
        bits: u64,
        mask: u64,
    }

    impl<O: SelectOps> HotLoop for All<'_, O> {
        type Output = ([u8; 2], Vec<KeyHash>, u64);

        #[inline(always)]
        fn run(self) -> Self::Output {
            let found = [
                self.ops.at_least(self.keys, self.border),
                self.ops.have_bits(self.keys, self.bitmap),
            ];
            let mut picked = [KeyHash(!0); GROUP];
            self.ops.pick(self.keys, self.set, &mut picked);
            let picked = picked[..self.set.count_ones() as usize].to_vec();
            (found, picked, self.ops.deposit(self.bits, self.mask))
        }
    }

    proptest! {
        #[test]
        fn operations_agree_with_loops_over_single_keys(
            hashes: [u64; GROUP],
            border in prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)],
            of_keys: Option<prop::sample::Index>,
            set: u8,
            words: [u64; 8],
            bits: u64,
            mask in prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)],
        ) {
            let border = of_keys.map_or(border, |index| hashes[index.index(GROUP)]);
            let keys = &hashes.map(KeyHash);
            let at_least = (0..GROUP)
                .fold(0, |bits, index| bits | u8::from(hashes[index] >= border) << index);
            let mut bitmap = Box::new([0; BITMAP_WORDS]);
            for (hash, word) in hashes.iter().zip(words) {
                bitmap[(hash >> 32) as usize % BITMAP_WORDS] = word;
            }
            let have_bits = (0..GROUP).fold(0, |bits, index| {
                let (word, bit) = (hashes[index] >> 32 & 0x7ff, hashes[index] & 63);
                bits | ((bitmap[word as usize] >> bit & 1) as u8) << index
            });
            let bitmap = &*bitmap;
            let picked: Vec<KeyHash> =
                (0..GROUP).filter(|index| set >> index & 1 == 1).map(|index| keys[index]).collect();
            let positions = (0..64).filter(|position| mask >> position & 1 == 1);
            let deposited = (0..64)
                .zip(positions)
                .fold(0, |moved, (index, position)| moved | (bits >> index & 1) << position);
            let expected = ([at_least, have_bits], picked, deposited);
            let ops = Scalar;
            prop_assert_eq!(&ops.run(All { ops, keys, bitmap, border, set, bits, mask }), &expected);
            #[cfg(target_arch = "x86_64")]
            for kernel in kernels() {
                let kernel = kernel.detect().unwrap();
                if let Some(ops) = Avx2::new(kernel) {
                    prop_assert_eq!(&ops.run(All { ops, keys, bitmap, border, set, bits, mask }), &expected);
                }
                if let Some(ops) = Avx512::new(kernel) {
                    prop_assert_eq!(&ops.run(All { ops, keys, bitmap, border, set, bits, mask }), &expected);
                }
            }
        }
    }
}
