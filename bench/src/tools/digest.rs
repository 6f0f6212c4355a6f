//! A digest of a file of lines: outputs are compared without holding them in memory.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use echoless::KeyHasher;

use crate::failure::Failure;

/// The digest of a file of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest {
    /// How many lines there are.
    pub(super) lines: u64,
    /// A hash of the lines and their order.
    in_order: u64,
    /// A hash of the multiset of lines.
    in_any_order: u128,
}

/// The result of comparing two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    SameBytes,
    SameLines,
    Different,
}

impl Comparison {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SameBytes => "same bytes",
            Self::SameLines => "same lines, other order",
            Self::Different => "other lines",
        }
    }
}

impl Digest {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read; the error names it.
    pub(super) fn of_file(path: &Path) -> Result<Self, Failure> {
        let named = |error: std::io::Error| format!("{}: {error}", path.display());
        let input = BufReader::with_capacity(1 << 20, File::open(path).map_err(named)?);
        Ok(Self::of(input).map_err(named)?)
    }

    fn of(mut input: impl BufRead) -> std::io::Result<Self> {
        let hashers = [KeyHasher::seeded(1), KeyHasher::seeded(2)];
        let mut digest = Self {
            lines: 0,
            in_order: 0,
            in_any_order: 0,
        };
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            let [low, high] = [0, 1].map(|index: usize| hashers[index].hash(&line));
            digest.lines += 1;
            digest.in_order = hashers[0].hash_u64(digest.in_order ^ low.get()).get();
            let hash = u128::from(high.get()) << 64 | u128::from(low.get());
            digest.in_any_order = digest.in_any_order.wrapping_add(hash);
            line.clear();
        }
        Ok(digest)
    }

    pub(super) fn compare(self, other: Self) -> Comparison {
        if self == other {
            Comparison::SameBytes
        } else if (self.lines, self.in_any_order) == (other.lines, other.in_any_order) {
            Comparison::SameLines
        } else {
            Comparison::Different
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_content_are_distinguished() {
        let digest = |text: &str| Digest::of(text.as_bytes()).unwrap();
        let one = digest("a\nb\nc\n");
        assert_eq!(one.lines, 3);
        assert_eq!(one.compare(digest("a\nb\nc\n")), Comparison::SameBytes);
        assert_eq!(one.compare(digest("c\na\nb\n")), Comparison::SameLines);
        assert_eq!(one.compare(digest("a\nb\nd\n")), Comparison::Different);
        assert_eq!(one.compare(digest("a\nb\nc\nc\n")), Comparison::Different);
        assert_eq!(one.compare(digest("a\nb\nc")), Comparison::Different);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Digest::of_file(Path::new("/nowhere/lines")).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/lines: "));
    }
}
