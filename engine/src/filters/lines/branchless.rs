//! Choices without branches, for those that could not be predicted: masks computed from numbers.

/// All ones if the mask of at most 32 slots is 0, else 0.
#[inline(always)]
pub(super) const fn if_zero(found: u64) -> u64 {
    ((found.cast_signed() - 1) >> 63).cast_unsigned()
}

/// `then` if the mask is all ones, `otherwise` if it is 0.
#[inline(always)]
pub(super) const fn select(mask: u64, then: u64, otherwise: u64) -> u64 {
    otherwise ^ ((otherwise ^ then) & mask)
}
