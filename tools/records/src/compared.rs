//! Which part of a key is compared, and in which form: `--trim`, `--ignore-case`, and what `uniq`
//! skips.

use super::text_form::TextForm;

/// The part of a key that is compared. Without a key, that is the whole record.
///
/// ```text
/// record                     "  ab cd  ef gh"
/// --skip-fields 2            "        ef gh"     the blanks before the next field stay
/// --skip-chars 3             "     f gh"
/// --max-chars 2              ..
/// ```
///
/// A field to skip is a run of blanks (spaces, tabs and newlines) and the bytes after it up to the
/// next blank. A character is a code point of UTF-8; a byte that belongs to none is one, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    /// Trimmed before anything is skipped, and folded last.
    pub(crate) text: TextForm,
    pub(crate) skip_fields: u64,
    pub(crate) skip_chars: u64,
    /// The most characters compared; `None` is all.
    pub(crate) max_chars: Option<u64>,
}

impl Compared {
    /// Whether all of a key is compared as it is.
    pub(crate) fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Appends what is compared of a key.
    pub(super) fn append(&self, key: &[u8], compared: &mut Vec<u8>) {
        let part = self.part(self.text.trimmed(key));
        self.text.append_folded(part, compared);
    }

    fn part<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        let mut part = key;
        for _ in 0..self.skip_fields {
            if part.is_empty() {
                break;
            }
            part = without_field(part);
        }
        part = &part[chars_len(part, self.skip_chars)..];
        match self.max_chars {
            Some(most) => &part[..chars_len(part, most)],
            None => part,
        }
    }
}

/// Whether a byte separates fields where blanks do. A record of lines has no newline.
#[inline(always)]
pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

/// What follows the first field, and the blanks before it.
fn without_field(bytes: &[u8]) -> &[u8] {
    let field = bytes.iter().position(|byte| !is_blank(*byte));
    let rest = &bytes[field.unwrap_or(bytes.len())..];
    let blank = rest.iter().position(|byte| is_blank(*byte));
    &rest[blank.unwrap_or(rest.len())..]
}

/// The length of the first `count` characters, of all if there are fewer.
fn chars_len(bytes: &[u8], count: u64) -> usize {
    let mut len = 0;
    for _ in 0..count {
        if len == bytes.len() {
            break;
        }
        len += first_char_len(&bytes[len..]);
    }
    len
}

/// The length of the first character of these bytes, which are some.
fn first_char_len(bytes: &[u8]) -> usize {
    let len = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        0..=0xc1 | 0xf5..=0xff => 1,
    };
    let is_char = |char: &[u8]| std::str::from_utf8(char).is_ok();
    if bytes.get(..len).is_some_and(is_char) {
        len
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::text_form::IgnoredCase;

    fn compared(options: Compared, key: &[u8]) -> Vec<u8> {
        let mut compared = b"before".to_vec();
        options.append(key, &mut compared);
        assert!(compared.starts_with(b"before"));
        compared.split_off(6)
    }

    /// The characters of bytes, as the standard library finds them.
    fn chars(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut chars = Vec::new();
        for chunk in bytes.utf8_chunks() {
            chars.extend(
                chunk
                    .valid()
                    .chars()
                    .map(|char| char.to_string().into_bytes()),
            );
            chars.extend(chunk.invalid().iter().map(|byte| vec![*byte]));
        }
        chars
    }

    /// One step after the other, on lists.
    fn model(options: Compared, key: &[u8]) -> Vec<u8> {
        let mut rest = key.to_vec();
        if options.text.trim {
            let is_space =
                |byte: Option<&u8>| byte.is_some_and(|byte| b" \t\n\x0c\r".contains(byte));
            while is_space(rest.first()) {
                rest.remove(0);
            }
            while is_space(rest.last()) {
                rest.pop();
            }
        }
        for _ in 0..options.skip_fields {
            while rest.first().is_some_and(|byte| b" \t\n".contains(byte)) {
                rest.remove(0);
            }
            while rest.first().is_some_and(|byte| !b" \t\n".contains(byte)) {
                rest.remove(0);
            }
        }
        let most = options.max_chars.map_or(usize::MAX, |most| most as usize);
        let kept = chars(&rest)
            .into_iter()
            .skip(options.skip_chars as usize)
            .take(most);
        let mut part = kept.collect::<Vec<_>>().concat();
        if options.text.ignored_case.is_some() {
            for byte in &mut part {
                if byte.is_ascii_uppercase() {
                    *byte += 32;
                }
            }
        }
        part
    }

    #[test]
    fn a_limit_of_no_characters_is_not_all() {
        let max_chars = Some(0);
        let none = Compared {
            max_chars,
            ..Compared::default()
        };
        assert!(Compared::default().is_all() && !none.is_all());
    }

    proptest! {
        #[test]
        fn parts_equal_the_model(
            key in vec(prop_oneof![
                4 => prop::sample::select(b"aB  \t\n\xff\xe2\x82\xac\xc3\xa4\xf0\x9f\x98\x80".to_vec()),
                1 => any::<u8>(),
            ], 0..40),
            trim: bool,
            ignore_case: bool,
            skip_fields in 0_u64..10,
            skip_chars in prop_oneof![7 => 0_u64..8, 1 => Just(u64::MAX)],
            max_chars in prop::option::of(0_u64..20),
        ) {
            let ignored_case = ignore_case.then_some(IgnoredCase::Ascii);
            let text = TextForm { trim, ignored_case };
            let options = Compared { text, skip_fields, skip_chars, max_chars };
            prop_assert_eq!(compared(options, &key), model(options, &key));
        }
    }
}
