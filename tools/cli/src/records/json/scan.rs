//! The syntax of JSON: where a token or a value ends.
//!
//! Values are skipped without recursion: containers that are open are one bit each of
//! an integer, which is enough for the deepest nesting allowed. Strings are searched 16 bytes at a
//! time.

use wide::u8x16;

/// The number of containers that may be open at once: the bits of the stack.
pub(crate) const DEEPEST: u32 = 128;

/// The number of bytes of a string compared at once.
const BLOCK: usize = 16;

/// What is wrong with a text that is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Invalid {
    /// The offset of the byte that cannot be there, from 0.
    pub(crate) at: usize,
    pub(crate) problem: &'static str,
}

/// The scan ended at an error, which [`Scan::invalid`] describes. Results with it fit in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stop;

/// A scan of one text.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) invalid: Option<Invalid>,
    /// Whether the strings since this was last cleared have escapes.
    pub(super) escapes: bool,
    /// Whether bytes around strings are not ASCII: only then the text can be invalid UTF-8.
    pub(super) beyond_ascii: bool,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            invalid: None,
            escapes: false,
            beyond_ascii: false,
        }
    }

    /// The number of containers that may still be open after one more.
    pub(super) fn enter(&mut self, at: usize, room: u32) -> Result<u32, Stop> {
        match room.checked_sub(1) {
            Some(room) => Ok(room),
            None => self.fail(at, "more than 128 arrays and objects in each other"),
        }
    }

    /// Scans a value without fields.
    ///
    /// ```text
    /// text     [ { "a" : [ 1 ,
    /// objects  1 bit for each open container, the innermost in bit 0: 0 1 0
    /// ```
    pub(super) fn skip(&mut self, start: usize, room: u32) -> Result<usize, Stop> {
        let mut at = start;
        let mut objects = 0_u128;
        let mut open = 0;
        'value: loop {
            match self.peek(at) {
                b'"' => at = self.string(at + 1)?,
                b'-' | b'0'..=b'9' => at = self.number(at)?,
                bracket @ (b'{' | b'[') => {
                    self.enter(at, room - open)?;
                    let is_object = bracket == b'{';
                    at = self.space(at + 1);
                    if self.peek(at) == if is_object { b'}' } else { b']' } {
                        at += 1;
                    } else {
                        open += 1;
                        objects = objects << 1 | u128::from(is_object);
                        if is_object {
                            at = self.name(at)?;
                            at = self.colon(at)?;
                        }
                        continue 'value;
                    }
                }
                b't' => at = self.literal(at, b"true")?,
                b'f' => at = self.literal(at, b"false")?,
                b'n' => at = self.literal(at, b"null")?,
                _ => return self.fail(at, "expected a value"),
            }
            loop {
                if open == 0 {
                    return Ok(at);
                }
                at = self.space(at);
                let in_object = objects & 1 == 1;
                match self.peek(at) {
                    b',' => {
                        at = self.space(at + 1);
                        if in_object {
                            at = self.name(at)?;
                            at = self.colon(at)?;
                        }
                        continue 'value;
                    }
                    b'}' if in_object => {}
                    b']' if !in_object => {}
                    _ if in_object => return self.fail(at, "expected `,` or `}`"),
                    _ => return self.fail(at, "expected `,` or `]`"),
                }
                at += 1;
                open -= 1;
                objects >>= 1;
            }
        }
    }

    /// The end of the name of a member, which begins at `at`.
    #[inline(always)]
    pub(super) fn name(&mut self, at: usize) -> Result<usize, Stop> {
        if self.peek(at) != b'"' {
            return self.fail(at, "expected the name of a member in double quotes");
        }
        self.string(at + 1)
    }

    /// The start of the value after a name that ends at `at`.
    #[inline(always)]
    pub(super) fn colon(&mut self, at: usize) -> Result<usize, Stop> {
        let at = self.space(at);
        if self.peek(at) != b':' {
            return self.fail(at, "expected `:`");
        }
        Ok(self.space(at + 1))
    }

    /// The end of a string whose first byte after the quote is at `start`.
    #[inline(always)]
    pub(crate) fn string(&mut self, start: usize) -> Result<usize, Stop> {
        let mut at = start;
        loop {
            at = self.special(at);
            match self.peek(at) {
                b'"' => return Ok(at + 1),
                b'\\' => at = self.escape(at)?,
                _ if at == self.bytes.len() => return self.fail(at, "the string does not end"),
                _ => return self.fail(at, "control character in a string"),
            }
        }
    }

    /// The first quote, backslash or control character from `at` on, or the end of the text.
    #[inline(always)]
    fn special(&mut self, mut at: usize) -> usize {
        let len = self.bytes.len();
        while let Some(block) = self.bytes[at..].first_chunk::<BLOCK>() {
            let (found, beyond_ascii) = specials(block);
            self.beyond_ascii |= beyond_ascii;
            if found != 0 {
                return at + found.trailing_zeros() as usize;
            }
            at += BLOCK;
        }
        // The last block of the text, without the bytes before `at`.
        match self.bytes.last_chunk::<BLOCK>() {
            Some(block) => {
                let seen = BLOCK - (len - at);
                let (found, beyond_ascii) = specials(block);
                self.beyond_ascii |= beyond_ascii;
                let found = found >> seen;
                at + (found.trailing_zeros() as usize).min(len - at)
            }
            None => {
                self.beyond_ascii |= !self.bytes.is_ascii();
                let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
                let found = self.bytes[at..].iter().position(is_special);
                found.map_or(len, |offset| at + offset)
            }
        }
    }

    /// The end of the escape sequence at `at`.
    #[cold]
    fn escape(&mut self, at: usize) -> Result<usize, Stop> {
        self.escapes = true;
        match self.peek(at + 1) {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(at + 2),
            b'u' => {
                let digits = self.bytes.get(at + 2..at + 6);
                if digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    Ok(at + 6)
                } else {
                    self.fail(at, "expected four hexadecimal digits after `\\u`")
                }
            }
            _ => self.fail(at, "no escape sequence begins like this"),
        }
    }

    /// The end of the number at `at`.
    #[inline]
    pub(super) fn number(&mut self, at: usize) -> Result<usize, Stop> {
        let start = at + usize::from(self.peek(at) == b'-');
        let mut at = self.digits(start)?;
        if self.peek(start) == b'0' && at > start + 1 {
            return self.fail(start, "a number with a leading zero");
        }
        if self.peek(at) == b'.' {
            at = self.digits(at + 1)?;
        }
        if matches!(self.peek(at), b'e' | b'E') {
            at += 1;
            at = self.digits(at + usize::from(matches!(self.peek(at), b'+' | b'-')))?;
        }
        Ok(at)
    }

    /// The end of one or more digits.
    #[inline(always)]
    fn digits(&mut self, start: usize) -> Result<usize, Stop> {
        let mut at = start;
        while self.peek(at).is_ascii_digit() {
            at += 1;
        }
        if at == start {
            return self.fail(at, "expected a digit");
        }
        Ok(at)
    }

    #[inline]
    fn literal(&mut self, at: usize, literal: &[u8]) -> Result<usize, Stop> {
        if self.bytes[at..].starts_with(literal) {
            Ok(at + literal.len())
        } else {
            self.fail(at, "expected a value")
        }
    }

    /// The first byte from `at` on that is not white space.
    #[inline(always)]
    pub(super) fn space(&self, mut at: usize) -> usize {
        // One comparison where there is none, as in most texts.
        if self.peek(at) > b' ' {
            return at;
        }
        while matches!(self.peek(at), b' ' | b'\t' | b'\n' | b'\r') {
            at += 1;
        }
        at
    }

    /// The byte at `at`; after the end NUL, which no token begins with.
    #[inline(always)]
    pub(super) fn peek(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    #[cold]
    pub(super) fn fail<T>(&mut self, at: usize, problem: &'static str) -> Result<T, Stop> {
        self.invalid = Some(Invalid { at, problem });
        Err(Stop)
    }
}

/// One bit for each byte that does not stand for itself in a string: quotes, backslashes, control
/// characters. And whether any byte is not ASCII.
#[inline(always)]
fn specials(block: &[u8; BLOCK]) -> (u32, bool) {
    let block = u8x16::new(*block);
    let control = block.min(u8x16::splat(0x1f)).simd_eq(block);
    let quote = block.simd_eq(u8x16::splat(b'"'));
    let backslash = block.simd_eq(u8x16::splat(b'\\'));
    let found = (control | quote | backslash).to_bitmask() & 0xffff;
    // The mask of a vector is made of the highest bits of its bytes.
    (found, block.to_bitmask() & 0xffff != 0)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;
    use crate::records::json::find::Node;
    use crate::records::json::path::parse_paths;
    use crate::records::json::tests::text;
    use crate::records::split::FieldBytes;

    fn check(text: &[u8]) -> Result<(), Invalid> {
        Scan::new(text).find(&Node::default(), &mut [])
    }

    #[test]
    fn what_is_wrong_and_where() {
        for (text, at, problem) in [
            ("", 0, "expected a value"),
            ("  ", 2, "expected a value"),
            ("{\"a\":1", 6, "expected `,` or `}`"),
            ("[1 2]", 3, "expected `,` or `]`"),
            ("[1,]", 3, "expected a value"),
            ("{\"a\":1,}", 7, "name of a member"),
            ("{a:1}", 1, "name of a member"),
            ("{\"a\" 1}", 5, "expected `:`"),
            ("[1}", 2, "expected `,` or `]`"),
            ("01", 0, "leading zero"),
            ("1.", 2, "expected a digit"),
            ("-", 1, "expected a digit"),
            ("1e+", 3, "expected a digit"),
            ("truth", 0, "expected a value"),
            ("1 1", 2, "end of the record"),
            ("\"ab", 3, "does not end"),
            ("\"a\tb\"", 2, "control character"),
            ("\"\\x\"", 1, "escape sequence"),
            ("\"\\u12g4\"", 1, "four hexadecimal digits"),
            ("NaN", 0, "expected a value"),
            ("'a'", 0, "expected a value"),
        ] {
            let invalid = check(text.as_bytes()).unwrap_err();
            assert_eq!(invalid.at, at, "{text}: {}", invalid.problem);
            assert!(
                invalid.problem.contains(problem),
                "{text}: {}",
                invalid.problem
            );
        }
        let deep = "[".repeat(DEEPEST as usize + 1) + &"]".repeat(DEEPEST as usize + 1);
        assert!(
            check(deep.as_bytes())
                .unwrap_err()
                .problem
                .contains("more than 128")
        );
        let invalid = check(b"\"ab\xff\"").unwrap_err();
        assert_eq!((invalid.at, invalid.problem), (3, "invalid UTF-8"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Texts with a byte changed, removed or added are JSON for both or for neither.
        #[test]
        fn serde_json_accepts_the_same_texts(
            text in text(),
            at in any::<prop::sample::Index>(),
            byte in prop::sample::select(b"{}[]\",:\\u0019-+.eEtfn \n\x01\x7f\xc3\xa9".to_vec()),
            change in 0..3,
        ) {
            let mut bytes = text.into_bytes();
            let at = at.index(bytes.len());
            match change {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
            let expected = std::str::from_utf8(&bytes).is_ok()
                && serde_json::from_slice::<IgnoredAny>(&bytes).is_ok();
            let paths = parse_paths("--key", "a.b,[1].a,a[0]").unwrap();
            for root in [Node::default(), Node::join(&paths)] {
                let mut found = [FieldBytes::Absent; 3];
                let accepted = Scan::new(&bytes).find(&root, &mut found).is_ok();
                prop_assert_eq!(accepted, expected, "{}", bytes.escape_ascii());
            }
        }

        #[test]
        fn any_bytes_are_scanned(bytes in vec(any::<u8>(), 0..80)) {
            let expected = std::str::from_utf8(&bytes).is_ok()
                && serde_json::from_slice::<IgnoredAny>(&bytes).is_ok();
            prop_assert_eq!(check(&bytes).is_ok(), expected);
        }

        #[test]
        fn specials_are_found_at_any_offset(
            bytes in vec(prop::sample::select(b"aaaaaaaaaaa\"\\\x1f\x20\x7f\x80\xff".to_vec()), 0..60),
            from in any::<prop::sample::Index>(),
        ) {
            let from = from.index(bytes.len() + 1);
            let is_special = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < b' ';
            let expected = bytes[from..].iter().position(is_special);
            let expected = expected.map_or(bytes.len(), |offset| from + offset);
            prop_assert_eq!(Scan::new(&bytes).special(from), expected);
        }
    }
}
