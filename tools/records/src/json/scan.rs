//! The syntax of JSON: where a token or a value ends.
//!
//! Values are skipped without recursion: containers that are open are one bit each of an integer,
//! which is enough for the deepest nesting allowed. What ends a string is searched once for 64
//! bytes, not for each string: most strings are shorter, and the bits of a block serve several.
//!
//! ```text
//! text      {"id":7,"note":"a \"b\"",...
//! specials   1  1   1    1 1  11 111       quotes, backslashes, control characters
//! ```

use memchr::memchr;
use wide::u8x16;

/// The number of containers that may be open at once: the bits of the stack.
pub(crate) const DEEPEST: u32 = 128;

/// The number of bytes whose special ones are found at once: one bit of a mask each.
const BLOCK: usize = 64;

/// What is wrong with a text that is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invalid {
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
    /// Whether bytes in or around strings are not ASCII: only then the text can be invalid UTF-8.
    pub(super) beyond_ascii: bool,
    /// The offset of the block whose special bytes are known.
    block: usize,
    /// One bit for each byte of the block that does not stand for itself in a string, and one for
    /// the end of the text if that is less than a block away.
    specials: u64,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let mut scan = Self {
            bytes,
            invalid: None,
            escapes: false,
            beyond_ascii: false,
            block: 0,
            specials: 0,
        };
        scan.load(0);
        scan
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
                            let name = self.name(at)?;
                            (_, at) = self.member(name)?;
                        }
                        continue 'value;
                    }
                }
                first => at = self.scalar(at, first)?,
            }
            loop {
                if open == 0 {
                    return Ok(at);
                }
                if objects & 1 == 1 {
                    let (next, more) = self.next_member(at)?;
                    at = next;
                    if more {
                        (_, at) = self.member(at)?;
                        continue 'value;
                    }
                } else {
                    let (next, more) = self.next_element(at)?;
                    at = next;
                    if more {
                        continue 'value;
                    }
                }
                open -= 1;
                objects >>= 1;
            }
        }
    }

    /// The end of the value at `at` that is no array or object, of which `first` is the first byte.
    #[inline(always)]
    pub(super) fn scalar(&mut self, at: usize, first: u8) -> Result<usize, Stop> {
        if first == b'"' {
            return self.string(at + 1);
        }
        match first {
            b'-' | b'0'..=b'9' => self.number(at),
            b't' if self.word(at) == Some(*b"true") => Ok(at + 4),
            b'f' if self.word(at + 1) == Some(*b"alse") => Ok(at + 5),
            b'n' if self.word(at) == Some(*b"null") => Ok(at + 4),
            _ => self.fail(at, "expected a value"),
        }
    }

    /// The start of the characters of a name at `at`.
    #[inline(always)]
    pub(super) fn name(&mut self, at: usize) -> Result<usize, Stop> {
        if self.peek(at) != b'"' {
            return self.fail(at, "expected the name of a member in double quotes");
        }
        Ok(at + 1)
    }

    /// The end of the characters of a name that begin at `name`, and the start of the value.
    #[inline(always)]
    pub(super) fn member(&mut self, name: usize) -> Result<(usize, usize), Stop> {
        let special = self.special(name);
        if self.word(special) == Some(*b"\":") {
            let at = special + 2;
            let at = if self.peek(at) > b' ' {
                at
            } else {
                self.space(at)
            };
            return Ok((special, at));
        }
        let end = self.string_from(special)?;
        let at = self.space(end);
        if self.peek(at) != b':' {
            return self.fail(at, "expected `:`");
        }
        Ok((end - 1, self.space(at + 1)))
    }

    /// What follows a member that ends at `at`: the start of the characters of the next name and
    /// true, or the end of the object and false.
    #[inline(always)]
    pub(super) fn next_member(&mut self, at: usize) -> Result<(usize, bool), Stop> {
        // One comparison where there is no white space, as in most texts.
        if self.word(at) == Some(*b",\"") {
            return Ok((at + 2, true));
        }
        if self.word(at) == Some(*b", \"") {
            return Ok((at + 3, true));
        }
        let at = self.space(at);
        match self.peek(at) {
            b',' => Ok((self.name(self.space(at + 1))?, true)),
            b'}' => Ok((at + 1, false)),
            _ => self.fail(at, "expected `,` or `}`"),
        }
    }

    /// What follows an element that ends at `at`: the start of the next one and true, or the end
    /// of the array and false.
    #[inline(always)]
    pub(super) fn next_element(&mut self, at: usize) -> Result<(usize, bool), Stop> {
        let at = self.space(at);
        match self.peek(at) {
            b',' => Ok((self.space(at + 1), true)),
            b']' => Ok((at + 1, false)),
            _ => self.fail(at, "expected `,` or `]`"),
        }
    }

    /// The end of a string whose first byte after the quote is at `start`.
    #[inline(always)]
    pub(crate) fn string(&mut self, start: usize) -> Result<usize, Stop> {
        let special = self.special(start);
        if self.peek(special) == b'"' {
            return Ok(special + 1);
        }
        self.string_from(special)
    }

    /// The end of a string with the special byte at `at`.
    #[inline(never)]
    fn string_from(&mut self, mut at: usize) -> Result<usize, Stop> {
        loop {
            match self.peek(at) {
                b'"' => return Ok(at + 1),
                b'\\' => at = self.escape(at)?,
                _ if at == self.bytes.len() => return self.fail(at, "the string does not end"),
                _ => return self.fail(at, "control character in a string"),
            }
            at = self.special(at);
        }
    }

    /// The first quote, backslash or control character from `at` on, or the end of the text.
    #[inline(always)]
    fn special(&mut self, mut at: usize) -> usize {
        loop {
            // The difference wraps if the block is behind `at`.
            let mut offset = at.wrapping_sub(self.block);
            if offset >= BLOCK {
                self.load(at);
                offset = 0;
            }
            let found = self.specials >> offset;
            if found != 0 {
                return at + found.trailing_zeros() as usize;
            }
            at = self.block + BLOCK;
        }
    }

    /// Finds the special bytes of the block at `at`.
    #[inline(never)]
    fn load(&mut self, at: usize) {
        let rest = &self.bytes[at..];
        let (mut found, beyond_ascii) = match (rest.first_chunk(), self.bytes.last_chunk()) {
            (Some(block), _) => specials(block),
            (None, Some(block)) => {
                let (found, beyond_ascii) = specials(block);
                (found >> (BLOCK - 1 - rest.len()) >> 1, beyond_ascii)
            }
            (None, None) => {
                let mut block = [0; BLOCK];
                block[..rest.len()].copy_from_slice(rest);
                specials(&block)
            }
        };
        if rest.len() < BLOCK {
            found |= 1 << rest.len();
        }
        self.block = at;
        self.specials = found;
        self.beyond_ascii |= beyond_ascii;
    }

    /// The end of the escape sequence at `at`.
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

    /// The end of one or more digits, of which eight are looked at at once.
    #[inline(always)]
    fn digits(&mut self, start: usize) -> Result<usize, Stop> {
        let mut at = start;
        loop {
            let Some(word) = self.word(at) else {
                // The text ends within the word.
                while self.peek(at).is_ascii_digit() {
                    at += 1;
                }
                break;
            };
            let others = others_than_digits(word);
            if others != 0 {
                at += others.trailing_zeros() as usize / 8;
                break;
            }
            at += 8;
        }
        if at == start {
            return self.fail(at, "expected a digit");
        }
        Ok(at)
    }

    /// The bytes from `at` on, unless the text ends before the last of them. `at` is in the text or
    /// at its end.
    #[inline(always)]
    fn word<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes[at..].first_chunk().copied()
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

/// The highest bit of each byte that is no digit.
#[inline(always)]
fn others_than_digits(word: [u8; 8]) -> u64 {
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    // Digits become 0 to 9, and only bytes above 9 carry into their highest bit: none carries
    // further.
    let word = u64::from_le_bytes(word) ^ u64::from_ne_bytes([b'0'; 8]);
    (((word & !HIGHEST) + u64::from_ne_bytes([0x76; 8])) | word) & HIGHEST
}

/// One bit for each byte that does not stand for itself in a string: quotes, backslashes, control
/// characters. And whether any byte is not ASCII.
#[inline(always)]
fn specials(block: &[u8; BLOCK]) -> (u64, bool) {
    let (quarters, _) = block.as_chunks::<16>();
    let mut found = 0;
    let mut all = u8x16::ZERO;
    for (index, quarter) in quarters.iter().enumerate() {
        let quarter = u8x16::new(*quarter);
        let control = quarter.min(u8x16::splat(0x1f)).simd_eq(quarter);
        let quote = quarter.simd_eq(u8x16::splat(b'"'));
        let backslash = quarter.simd_eq(u8x16::splat(b'\\'));
        let bits = (control | quote | backslash).to_bitmask() & 0xffff;
        found |= u64::from(bits) << (16 * index);
        all |= quarter;
    }
    // The mask of a vector is made of the highest bits of its bytes.
    (found, all.to_bitmask() & 0xffff != 0)
}

/// Appends the characters of a valid string, given without its quotes.
///
/// A lone surrogate is encoded like any other code point of three bytes (WTF-8), which no valid
/// UTF-8 contains.
pub(crate) fn unescape(content: &[u8], out: &mut Vec<u8>) {
    let mut rest = content;
    while let Some(at) = memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (escaped, after) = match rest.get(at + 1) {
            Some(b'u') => {
                let (high, after) = (unit(&rest[at + 2..]), &rest[at + 6..]);
                let low = after.strip_prefix(b"\\u").map(unit);
                match (high, low) {
                    (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => (
                        0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00)),
                        &after[6..],
                    ),
                    _ => (high, after),
                }
            }
            Some(byte) => {
                let escaped = match byte {
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                };
                (escaped.into(), &rest[at + 2..])
            }
            None => return,
        };
        push_code_point(escaped, out);
        rest = after;
    }
    out.extend_from_slice(rest);
}

/// The UTF-16 code unit in the four hexadecimal digits at the start of `digits`.
fn unit(digits: &[u8]) -> u32 {
    let value = |digit: &u8| char::from(*digit).to_digit(16).unwrap_or(0);
    digits
        .iter()
        .take(4)
        .fold(0, |unit, digit| unit << 4 | value(digit))
}

/// Appends a code point in UTF-8, surrogates included.
fn push_code_point(point: u32, out: &mut Vec<u8>) {
    if let Some(character) = char::from_u32(point) {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        let continuation = |shift: u32| 0x80 | (point >> shift & 0x3f) as u8;
        out.extend_from_slice(&[0xe0 | (point >> 12) as u8, continuation(6), continuation(0)]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;
    use crate::field_set::FieldBytes;
    use crate::json::find::Node;
    use crate::json::path::parse_paths;
    use crate::json::tests::text;

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

        /// Blanks in front move every block of the text: nothing else changes.
        #[test]
        fn results_do_not_depend_on_where_a_block_begins(
            text in text(),
            at in any::<prop::sample::Index>(),
            byte in prop::sample::select(b"{}[]\",:\\u019-.eE \n\x01\x7f\xc3\xa9".to_vec()),
            is_damaged in any::<bool>(),
        ) {
            let mut bytes = text.into_bytes();
            if is_damaged {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let root = Node::join(&parse_paths("--key", "a.b,[1].a,a[0],b").unwrap());
            let scanned = |blanks: usize| {
                let text = [&vec![b' '; blanks][..], &bytes].concat();
                let mut found = [FieldBytes::Absent; 4];
                let mut result = Scan::new(&text).find(&root, &mut found);
                if let Err(invalid) = &mut result {
                    invalid.at -= blanks;
                }
                let values = found.map(|field| match field {
                    FieldBytes::Record { start, end } => Some((start - blanks, end - blanks)),
                    FieldBytes::Scratch { .. } | FieldBytes::Absent => None,
                });
                (result, values)
            };
            let expected = scanned(0);
            for blanks in 1..=BLOCK {
                prop_assert_eq!(scanned(blanks), expected, "{}: {}", blanks, bytes.escape_ascii());
            }
        }

        #[test]
        fn numbers_are_those_of_serde_json(
            bytes in vec(prop::sample::select(b"01234567899900.eE-+:/;\x80\xff".to_vec()), 1..24),
            behind in 0_usize..10,
        ) {
            let text = [&bytes[..], &vec![b' '; behind]].concat();
            let expected = serde_json::from_slice::<IgnoredAny>(&text).is_ok();
            prop_assert_eq!(check(&text).is_ok(), expected, "{}", text.escape_ascii());
        }

        #[test]
        fn specials_are_found_at_any_offset(
            bytes in vec(prop::sample::select(b"aaaaaaaaaaa\"\\\x1f\x20\x7f\x80\xff".to_vec()), 0..200),
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
