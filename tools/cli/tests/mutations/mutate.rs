//! Random changes to inputs.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Random changes, the same for the same seed.
pub(crate) struct Mutator(Xoshiro256PlusPlus);

/// Bytes with a meaning in some format, and the ends of ranges of numbers.
const TELLING: &[u8] = b"\0\x01\x7f\x80\x81\xfe\xff\x30\xa0\xbf\x1f\",\r\n\t{}[]:\\0-9e.x\xef\xbb";

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number below `end`, which is above 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }

    /// The bytes after one to eight changes.
    pub(crate) fn mutate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(8) {
            self.change(&mut bytes);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let length = self.below(16).min(bytes.len() - at);
        let telling = TELLING[self.below(TELLING.len())];
        match self.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + length)),
            2 => {
                let copied = bytes[at..at + length].to_vec();
                let to = self.below(bytes.len() + 1);
                bytes.splice(to..to, copied);
            }
            3 => bytes.insert(at, telling),
            4 => {
                let run = vec![telling; self.below(40)];
                bytes.splice(at..at, run);
            }
            5 if length > 0 => bytes[at] ^= 1 << self.below(8),
            6 if length > 0 => bytes[at] = bytes[at].wrapping_add(1),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = telling;
                }
            }
        }
    }
}
