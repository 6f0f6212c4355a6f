//! The fields of binary records: ranges of their bytes, `0-15,24-31` or `8-`.
//!
//! Bytes are numbered from 0 and both ends of a range belong to it, as in `Range: bytes=0-15` of
//! HTTP. Fields between delimiters are numbered from 1.

use std::sync::Arc;

use echoless::SpecError;

use super::binary::{Binary, BinaryFields, BinaryFraming};
use super::fault::Problem;
use super::field_set::{FieldBytes, FieldSet, MissingField, Selected};
use crate::formats::{ChosenFields, SelectedFormat};

/// The ranges of the key, ascending, and then those of the time. Each is one field.
///
/// If all records have the same length, no range can be missing, and ranges that meet are one: the
/// key is the same bytes in fewer fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ByteRanges {
    ranges: Vec<ByteRange>,
    /// The number of ranges of the key.
    keys: usize,
}

/// Adjacent bytes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ByteRange {
    start: usize,
    /// The end of the range; `None` is that of the record.
    end: Option<usize>,
    /// The number of bytes that a record must have.
    required: usize,
}

impl ByteRanges {
    /// Parses the fields of the options. `longest` is the length of every record, if all have the
    /// same. Fails if a range is not one, or ends after every record.
    pub(super) fn parse(
        fields: &ChosenFields<'_>,
        longest: Option<usize>,
    ) -> Result<Self, SpecError> {
        let mut ranges = Vec::new();
        for text in fields.key.iter().flat_map(|key| key.split(',')) {
            ranges.push(ByteRange::parse("--key", text, longest)?);
        }
        ranges.sort_unstable();
        ranges.dedup();
        if longest.is_some() {
            ranges = merge(ranges);
        }
        let keys = ranges.len();
        for text in fields.time.iter().flat_map(|time| time.split(',')) {
            ranges.push(ByteRange::parse("--time-field", text, longest)?);
        }
        Ok(Self { ranges, keys })
    }

    /// The format of this framing with these fields.
    pub(super) fn format(self, framing: impl BinaryFraming) -> SelectedFormat {
        let (keys, times) = (self.keys, self.ranges.len() - self.keys);
        SelectedFormat::numbered(Arc::new(Binary::new(framing, self)), keys, times)
    }
}

impl BinaryFields for ByteRanges {
    /// Appends those ranges of a record's content that are in `fields`. Fails if the content ends
    /// before one of them does.
    #[inline(always)]
    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem> {
        let mut lacking = None;
        for (field, range) in self.ranges.iter().enumerate() {
            if !fields.contains(field) {
                continue;
            }
            if range.required <= content.len() {
                let (start, end) = (range.start, range.end.unwrap_or(content.len()));
                out.fields.push(FieldBytes::Record { start, end });
            } else {
                out.fields.push(FieldBytes::Absent);
                let fields = content.len();
                lacking = lacking.or(Some(MissingField { field, fields }));
            }
        }
        lacking.map_or(Ok(()), |lacking| Err(Problem::Lacks(lacking)))
    }

    fn names(&self) -> Vec<String> {
        let name = |range: &ByteRange| match *range {
            ByteRange {
                start, end: None, ..
            } => format!("byte range {start}-"),
            ByteRange {
                start,
                end: Some(end),
                ..
            } => format!("byte range {start}-{}", end - 1),
        };
        self.ranges.iter().map(name).collect()
    }
}

impl ByteRange {
    fn parse(option: &'static str, text: &str, longest: Option<usize>) -> Result<Self, SpecError> {
        let invalid = || {
            let allowed = match longest {
                None => "bytes numbered from 0, and ranges such as 0-15,24-".into(),
                Some(length) => format!(
                    "bytes from 0 to {}, the last of a record, and ranges such as 0-15,24-",
                    length - 1
                ),
            };
            SpecError::new(option, format!("`{text}`"), allowed)
        };
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<usize>().ok().filter(|_| digits);
            let within = number.filter(|byte| *byte < longest.unwrap_or(usize::MAX));
            within.ok_or_else(invalid)
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let start = number(first)?;
        if last.is_empty() {
            return Ok(Self {
                start,
                end: None,
                required: start + 1,
            });
        }
        let last = number(last)?;
        if last < start {
            return Err(invalid());
        }
        Ok(Self {
            start,
            end: Some(last + 1),
            required: last + 1,
        })
    }
}

/// The bytes of ascending ranges in disjoint ones that do not meet.
fn merge(ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    let mut merged: Vec<ByteRange> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end.is_none_or(|end| range.start <= end) => {
                last.end = last.end.zip(range.end).map(|(one, other)| one.max(other));
                last.required = last.required.max(range.required);
            }
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn parse(key: &str, longest: Option<usize>) -> Result<ByteRanges, SpecError> {
        let key = Some(key);
        let fields = ChosenFields {
            key,
            ..ChosenFields::default()
        };
        ByteRanges::parse(&fields, longest)
    }

    fn selected(ranges: &ByteRanges, content: &[u8]) -> (Vec<Vec<u8>>, Result<(), Problem>) {
        let mut chosen = Selected::default();
        let outcome = ranges.select(&FieldSet::all(), content, &mut chosen);
        (
            chosen.values(content).map(<[u8]>::to_vec).collect(),
            outcome,
        )
    }

    #[test]
    fn both_ends_belong_to_a_range() {
        let ranges = parse("2-3,0,5-", Some(8)).unwrap();
        let expected = vec![b"a".to_vec(), b"cd".to_vec(), b"fgh".to_vec()];
        assert_eq!(selected(&ranges, b"abcdefgh"), (expected, Ok(())));
        assert_eq!(parse("0-3,2-5,6", Some(8)), parse("0-6", Some(8)));
        assert_ne!(parse("0-3,5", Some(8)), parse("0-5", Some(8)));
        assert_eq!(parse("4-,0-1,4-", None), parse("0-1,4-", None));
    }

    #[test]
    fn a_short_record_lacks_the_whole_range() {
        let ranges = parse("0-1,3-5", None).unwrap();
        let (fields, outcome) = selected(&ranges, b"abcde");
        assert_eq!(fields, [b"ab".to_vec(), Vec::new()]);
        let lacking = MissingField {
            field: 1,
            fields: 5,
        };
        assert_eq!(outcome, Err(Problem::Lacks(lacking)));
        assert_eq!(ranges.names()[1], "byte range 3-5");
        assert_eq!(parse("7-", None).unwrap().names()[0], "byte range 7-");
    }

    #[test]
    fn an_open_range_needs_its_first_byte() {
        let ranges = parse("2-", None).unwrap();
        assert_eq!(selected(&ranges, b"abc").1, Ok(()));
        assert!(selected(&ranges, b"ab").1.is_err());
        // Of ranges that meet, one may be missing and the other not.
        let ranges = parse("0-3,4-", None).unwrap();
        let (fields, outcome) = selected(&ranges, b"abcd");
        assert_eq!(fields, [b"abcd".to_vec(), Vec::new()]);
        assert!(matches!(
            outcome,
            Err(Problem::Lacks(MissingField { field: 1, .. }))
        ));
    }

    #[test]
    fn impossible_ranges_are_invalid() {
        for text in " -3 3-2 a 1-2-3 0,,1 +1 1-+2 99999999999999999999 8 0-8 8-".split(' ') {
            let error = parse(text, Some(8)).unwrap_err();
            assert_eq!(error.field, "--key", "{text}");
            assert!(error.allowed.contains("0 to 7"), "{text}");
        }
        assert!(parse("8,0-8", None).is_ok());
        assert!(parse(&usize::MAX.to_string(), None).is_err());
    }

    proptest! {
        /// The fields together are the bytes that any of the ranges has.
        #[test]
        fn fields_equal_the_union_of_the_ranges(
            ranges in vec((0usize..20, 0usize..20), 1..6),
        ) {
            let ranges: Vec<(usize, usize)> =
                ranges.into_iter().map(|(start, more)| (start, start + more)).collect();
            let items: Vec<String> = ranges.iter().map(|(a, b)| format!("{a}-{b}")).collect();
            let content: Vec<u8> = (0..40).collect();
            let (fields, outcome) = selected(&parse(&items.join(","), Some(40)).unwrap(), &content);
            let contains = |byte: &u8| ranges.iter().any(|(a, b)| (*a..=*b).contains(&(*byte).into()));
            let expected: Vec<u8> = content.iter().copied().filter(contains).collect();
            prop_assert_eq!(fields.concat(), expected);
            prop_assert_eq!(outcome, Ok(()));
        }
    }
}
