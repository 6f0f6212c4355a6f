//! Lines that are all different: random printable text of a chosen length, and 64-bit keys.

use echoless::{KeyHasher, SpecError};
use rand_xoshiro::rand_core::Rng;

use super::line::Line;
use super::{Record, random, stream};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 -";

/// The number of characters from one random word, six bits each.
const PER_WORD: usize = 10;

const LONGEST: usize = 1 << 30;

/// An odd number, so multiplying by it is a bijection modulo any power of two.
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Generates lines of `length` bytes, newline included.
pub(super) struct Lines {
    hasher: KeyHasher,
    length: usize,
}

impl Lines {
    /// # Errors
    /// [`SpecError`] if there are fewer than `count` different lines of this length.
    pub(super) fn new(seed: u64, length: usize, count: u64) -> Result<Self, SpecError> {
        let shortest = (1..=PER_WORD).find(|length| count <= 1 << (6 * (length - 1)));
        let shortest = shortest.unwrap_or(PER_WORD + 1);
        if !(shortest..=LONGEST).contains(&length) {
            return Err(SpecError::new(
                "--record-bytes",
                length.to_string(),
                format!("{shortest} to {LONGEST} for {count} different lines"),
            ));
        }
        Ok(Self {
            hasher: KeyHasher::seeded(seed),
            length,
        })
    }
}

impl Record for Lines {
    fn append(&self, position: u64, out: &mut Vec<u8>) {
        let mut random = random(&self.hasher, position, stream::CONTENT);
        let mut left = self.length - 1;
        // The first characters are the position, scattered, and make the line unique.
        let mut word = position.wrapping_mul(SCATTER);
        while left > 0 {
            let characters = left.min(PER_WORD);
            let text: [u8; PER_WORD] =
                std::array::from_fn(|at| ALPHABET[(word >> (6 * at)) as usize % 64]);
            out.extend_from_slice(&text[..characters]);
            left -= characters;
            word = random.next_u64();
        }
        out.push(b'\n');
    }
}

/// Generates random 64-bit keys, one a line. They are distinct, because the seeded hash of a number
/// is a bijection.
pub(super) struct Keys {
    hasher: KeyHasher,
}

impl Keys {
    /// The keys of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            hasher: KeyHasher::seeded(seed),
        }
    }
}

impl Record for Keys {
    fn append(&self, position: u64, out: &mut Vec<u8>) {
        let mut line = Line::new();
        line.hexadecimal(self.hasher.hash_u64(position).get(), 16);
        line.text(b"\n");
        out.extend_from_slice(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn lines_are_different_and_have_the_length() {
        for (length, count) in [(1, 1), (2, 64), (3, 4096), (12, 5000), (100, 5000)] {
            let lines = Lines::new(9, length, count).unwrap();
            let mut seen = HashSet::new();
            for position in 0..count {
                let mut line = Vec::new();
                lines.append(position, &mut line);
                assert_eq!(line.len(), length);
                assert!(line.ends_with(b"\n"));
                assert!(seen.insert(line));
            }
        }
    }

    #[test]
    fn lines_too_short_to_differ_are_rejected() {
        assert!(Lines::new(0, 0, 0).is_err());
        assert!(Lines::new(0, 1, 2).is_err());
        let error = Lines::new(0, 2, 65).err().map(|error| error.allowed);
        assert_eq!(
            error.as_deref(),
            Some("3 to 1073741824 for 65 different lines")
        );
    }
}
