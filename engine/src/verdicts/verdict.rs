//! The verdict on one key.

/// The answer of a filter to one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The key is new, or the filter has evicted it since it last arrived.
    Fresh,
    /// The key arrived before, or is a false positive.
    Duplicate,
}

impl Verdict {
    /// `true` for [`Duplicate`](Self::Duplicate).
    #[must_use]
    pub const fn is_duplicate(self) -> bool {
        matches!(self, Self::Duplicate)
    }

    /// The verdict that a bit of a batch stands for.
    #[inline]
    pub const fn from_bit(duplicate: bool) -> Self {
        if duplicate {
            Self::Duplicate
        } else {
            Self::Fresh
        }
    }
}
