//! In which form a text is compared: `--ignore-case` and `--trim`, for fields, whole records and
//! the strings of JSON.

use clap::ValueEnum;
use unicase::UniCase;

/// Which letters are compared without their case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IgnoredCase {
    /// A to Z equal a to z, and no others do, in any language
    Ascii,
    /// Letters of all languages, by the full case folding of Unicode: `Ä` equals `ä`, `ß` equals
    /// `ss`
    Unicode,
}

/// The form of a text that is compared; by default the text itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TextForm {
    /// Whether white space of ASCII at both ends is left out.
    pub(crate) trim: bool,
    pub(crate) ignored_case: Option<IgnoredCase>,
}

impl TextForm {
    /// Whether texts are compared as they are.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        !self.trim && self.ignored_case.is_none()
    }

    /// The text without what is trimmed.
    pub(super) fn trimmed(self, text: &[u8]) -> &[u8] {
        if self.trim { text.trim_ascii() } else { text }
    }

    /// Appends a trimmed text with its letters folded.
    pub(super) fn append_folded(self, text: &[u8], out: &mut Vec<u8>) {
        match self.ignored_case {
            None => out.extend_from_slice(text),
            Some(IgnoredCase::Unicode) if !text.is_ascii() => append_case_folded(text, out),
            Some(IgnoredCase::Ascii | IgnoredCase::Unicode) => {
                out.extend(text.iter().map(u8::to_ascii_lowercase));
            }
        }
    }
}

/// Appends a text with the full case folding of Unicode. Bytes that are not UTF-8 stay.
fn append_case_folded(text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        let folded = UniCase::unicode(chunk.valid()).to_folded_case();
        out.extend_from_slice(folded.as_bytes());
        out.extend_from_slice(chunk.invalid());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn folded(case: IgnoredCase, text: &[u8]) -> Vec<u8> {
        let form = TextForm {
            trim: false,
            ignored_case: Some(case),
        };
        let mut out = b"X".to_vec();
        form.append_folded(text, &mut out);
        assert_eq!(out.remove(0), b'X');
        out
    }

    #[test]
    fn letters_of_all_languages_are_folded() {
        for (one, other) in [
            ("ÄÖÜ", "äöü"),
            ("ΣΊΣΥΦΟΣ", "σίσυφος"),
            ("ЖУК", "жук"),
            ("STRASSE", "straße"),
            ("\u{212a}", "k"),
            ("ſ", "s"),
            ("ǅ", "ǆ"),
            ("İ", "i\u{307}"),
        ] {
            let [one, other] = [one, other].map(str::as_bytes);
            let both = |case| [one, other].map(|text| folded(case, text));
            let [first, second] = both(IgnoredCase::Unicode);
            assert_eq!(first, second, "{}", one.escape_ascii());
            let [first, second] = both(IgnoredCase::Ascii);
            assert_ne!(first, second, "{}", one.escape_ascii());
        }
        // The dotless i is a letter of its own.
        assert_ne!(
            folded(IgnoredCase::Unicode, "ı".as_bytes()),
            folded(IgnoredCase::Unicode, b"I")
        );
        assert_eq!(folded(IgnoredCase::Unicode, b"\xffA\xc3"), b"\xffa\xc3");
    }

    proptest! {
        #[test]
        fn a_folded_text_stays_as_it_is_folded_again(text: String) {
            for case in [IgnoredCase::Ascii, IgnoredCase::Unicode] {
                let once = folded(case, text.as_bytes());
                prop_assert_eq!(&folded(case, &once), &once);
            }
            prop_assert_eq!(
                folded(IgnoredCase::Unicode, text.to_ascii_uppercase().as_bytes()),
                folded(IgnoredCase::Unicode, text.to_ascii_lowercase().as_bytes())
            );
        }
    }
}
