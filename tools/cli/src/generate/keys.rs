//! Random 64-bit keys, one a line.

use echoless::KeyHasher;

use super::Record;
use super::line::Line;

/// Generates keys. They are distinct, because the seeded hash of a number is a bijection.
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
