//! Limits of the memory of a filter, in bits.

use echoless::SpecError;

/// The number of bits in `memory_bytes`, or an error if it overflows.
pub(crate) fn bits_of(memory_bytes: u64) -> Result<u64, SpecError> {
    memory_bytes.checked_mul(8).ok_or_else(|| {
        SpecError::new(
            "memory",
            format!("{memory_bytes} B"),
            format!("at most {} B", u64::MAX / 8),
        )
    })
}

/// The number of bits in `memory_bytes`, or an error if they are fewer than `least_bits`. `reason`
/// states in the error what needs that many.
pub(crate) fn at_least_bits(
    memory_bytes: u64,
    least_bits: u128,
    reason: &str,
) -> Result<u64, SpecError> {
    let bits = bits_of(memory_bytes)?;
    if u128::from(bits) < least_bits {
        return Err(SpecError::new(
            "memory",
            format!("{memory_bytes} B"),
            format!("at least {} B ({reason})", least_bits.div_ceil(8)),
        ));
    }
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_and_too_many_bits_are_errors() {
        let error = at_least_bits(1, 9, "3 filters of 3 bits").unwrap_err();
        let text = "invalid memory=1 B: expected at least 2 B (3 filters of 3 bits)";
        assert_eq!(error.to_string(), text);
        assert!(bits_of(u64::MAX).is_err());
    }
}
