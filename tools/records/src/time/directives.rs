//! The directives of a strftime format: those whose text says more than what is read from it.

/// Whether the format has one of these directives.
pub(super) fn has(format: &str, any: &[u8]) -> bool {
    directives(format)
        .iter()
        .any(|directive| any.contains(directive))
}

/// Rejects the directives that jiff parses without using what they say.
pub(super) fn check(format: &str) -> Result<(), String> {
    let has = |any: &[u8]| has(format, any);
    let reason = if has(b"Q") {
        "%Q names a zone, and offsets of zones are not known here: %z reads an offset"
    } else if has(b"C") {
        "%C is a century without the year in it: %Y reads both"
    } else if has(b"Il") && !has(b"Pp") {
        "the 12 hours of %I and %l need %p"
    } else {
        return Ok(());
    };
    Err(reason.into())
}

/// The letters of the directives of a format, without their flags, widths, colons and dots.
fn directives(format: &str) -> Vec<u8> {
    let mut bytes = format.bytes();
    let mut letters = Vec::new();
    while bytes.any(|byte| byte == b'%') {
        letters.extend(
            bytes.find(|byte| {
                !matches!(byte, b'_' | b'-' | b'^' | b'#' | b':' | b'.' | b'0'..=b'9')
            }),
        );
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_letters_without_flags() {
        // `%%` is no directive.
        assert_eq!(directives("%%Q%-d%:::z%3f%.f%"), b"%dzff");
    }
}
