//! Lists of fields as they are typed: `2,5-7,9-`, or names in the header.

use std::ops::RangeInclusive;

use echoless::SpecError;

use super::field_set::FieldSet;

/// The highest field number. A bound, so that a typing error is rejected instead of making every
/// record pay for a search of that many fields.
const HIGHEST: usize = 1_000_000;

/// The fields as the user lists them: names are not resolved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldList {
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    /// Field numbers from 0; an open range ends at `usize::MAX`.
    Numbers(RangeInclusive<usize>),
    Name(String),
}

impl FieldList {
    /// Parses a list of fields. Names are allowed if there is a `header`.
    pub(crate) fn parse(text: &str, header: bool) -> Result<Self, SpecError> {
        let items: Result<Vec<Item>, SpecError> = text
            .split(',')
            .map(|item| match parse_numbers(item)? {
                Some(numbers) => Ok(Item::Numbers(numbers)),
                None if header && !item.is_empty() => Ok(Item::Name(item.into())),
                None => Err(invalid(
                    item,
                    "field numbers from 1 and ranges such as 2,5-7,9- (names require --header)",
                )),
            })
            .collect();
        Ok(Self { items: items? })
    }

    /// Parses the fields, each a number or a name, that the option `option` takes.
    pub(crate) fn parse_each(
        option: &'static str,
        text: &str,
        header: bool,
    ) -> Result<Self, SpecError> {
        let allowed = if header {
            "one field, a number or a name, or several such as 2,3"
        } else {
            "one field, a number from 1, or several such as 2,3 (names require --header)"
        };
        let of_option = |error: SpecError| SpecError {
            field: option,
            // The list of a key may have ranges.
            allowed: if error.allowed.contains("range") {
                allowed.into()
            } else {
                error.allowed
            },
            asked: error.asked,
        };
        let list = Self::parse(text, header).map_err(of_option)?;
        let is_one = |item: &Item| match item {
            Item::Name(_) => true,
            Item::Numbers(numbers) => numbers.start() == numbers.end(),
        };
        if list.items.iter().all(is_one) {
            return Ok(list);
        }
        Err(of_option(invalid(text, allowed)))
    }

    /// The fields with these numbers, from 0.
    pub(crate) fn numbered(numbers: RangeInclusive<usize>) -> Self {
        Self {
            items: vec![Item::Numbers(numbers)],
        }
    }

    /// The number of fields, if none of the ranges is open.
    pub(crate) fn count(&self) -> usize {
        let count = |item: &Item| match item {
            Item::Numbers(numbers) => numbers.end() - numbers.start() + 1,
            Item::Name(_) => 1,
        };
        self.items.iter().map(count).sum()
    }

    /// Replaces the names by their positions in the header.
    pub(crate) fn resolve(&self, header: &[Vec<u8>]) -> Result<FieldSet, SpecError> {
        Ok(FieldSet::new(self.ranges(header)?))
    }

    /// The numbers of the fields, from 0, in the order in which they are listed. No range is open.
    pub(crate) fn numbers(&self, header: &[Vec<u8>]) -> Result<Vec<usize>, SpecError> {
        Ok(self.ranges(header)?.into_iter().flatten().collect())
    }

    fn ranges(&self, header: &[Vec<u8>]) -> Result<Vec<RangeInclusive<usize>>, SpecError> {
        let mut ranges = Vec::new();
        for item in &self.items {
            ranges.push(match item {
                Item::Numbers(numbers) => numbers.clone(),
                Item::Name(name) => {
                    let mut found = (0..header.len()).filter(|at| header[*at] == name.as_bytes());
                    match (found.next(), found.next()) {
                        (Some(at), None) => at..=at,
                        (Some(_), Some(_)) => {
                            return Err(invalid(name, "a name that only one field has"));
                        }
                        (None, _) => return Err(invalid(name, known_names(header))),
                    }
                }
            });
        }
        Ok(ranges)
    }
}

/// `2`, `5-7` or `9-`; `None` if it is none of these and so may be a name.
fn parse_numbers(item: &str) -> Result<Option<RangeInclusive<usize>>, SpecError> {
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (first, last) = match item.split_once('-') {
        None => (item, item),
        Some((first, "")) => (first, ""),
        Some((first, last)) if numeric(last) => (first, last),
        Some(_) => return Ok(None),
    };
    if first.is_empty() && !item.is_empty() {
        return Err(invalid(item, "a range with a first field, such as 1-5"));
    }
    if !numeric(first) {
        return Ok(None);
    }
    let number = |text: &str| match text.parse::<usize>() {
        Ok(number) if (1..=HIGHEST).contains(&number) => Ok(number - 1),
        _ => Err(invalid(item, "field numbers from 1 to 1000000")),
    };
    let start = number(first)?;
    let end = if last.is_empty() {
        usize::MAX
    } else {
        number(last)?
    };
    if end < start {
        return Err(invalid(item, "a range from a lower field to a higher one"));
    }
    Ok(Some(start..=end))
}

fn invalid(item: &str, allowed: impl Into<String>) -> SpecError {
    SpecError::new("--key", format!("`{item}`"), allowed)
}

/// The most names of a header that a message lists.
const MOST_NAMES: usize = 24;

fn known_names(header: &[Vec<u8>]) -> String {
    if header.iter().all(Vec::is_empty) {
        return "a header with names: the first record has none".into();
    }
    let mut names: Vec<_> = header
        .iter()
        .take(MOST_NAMES)
        // With quotes: blanks at the ends, and commas, are part of a name.
        .map(|name| format!("{:?}", String::from_utf8_lossy(name)))
        .collect();
    if header.len() > MOST_NAMES {
        names.push(format!("{} more", header.len() - MOST_NAMES));
    }
    format!("one of the header's names: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_a_number_or_a_name() {
        let header = [b"name".to_vec(), b"other".to_vec()];
        for (text, numbers) in [
            ("3", &[2][..]),
            ("name", &[0]),
            ("2,other,name,9", &[1, 1, 0, 8]),
        ] {
            let list = FieldList::parse_each("--time-field", text, true).unwrap();
            assert_eq!(list.numbers(&header).as_deref(), Ok(numbers), "{text}");
            assert_eq!(list.count(), numbers.len());
        }
        for text in ["", "1-2", "1-", "1,2-3", "a,,b", "0", "-1"] {
            let error = FieldList::parse_each("--time-field", text, true).unwrap_err();
            assert_eq!(error.field, "--time-field", "{text}");
        }
        assert!(FieldList::parse_each("--time-field", "name", false).is_err());
    }

    #[test]
    fn impossible_fields_are_invalid() {
        let lists = "0 0-3 3-0 7-5 2,,3 -3 - a 1-2-3 1000001 99999999999999999999 +1";
        for text in lists.split(' ').chain(["", "2 "]) {
            let error = FieldList::parse(text, false).unwrap_err();
            assert_eq!(error.field, "--key", "{text}");
        }
    }

    #[test]
    fn names_are_looked_up_in_the_header() {
        let header: Vec<Vec<u8>> = ["id", "start-time", "cell", "cell"]
            .map(|name| name.as_bytes().to_vec())
            .into();
        let resolve = |text| FieldList::parse(text, true).unwrap().resolve(&header);
        assert_eq!(resolve("start-time,1").unwrap(), FieldSet::of(&[0, 1]));
        assert!(
            resolve("cell")
                .unwrap_err()
                .to_string()
                .contains("only one")
        );
        let unknown = resolve("caller").unwrap_err().to_string();
        assert!(
            unknown.ends_with("names: \"id\", \"start-time\", \"cell\", \"cell\""),
            "{unknown}"
        );
        let wide: Vec<Vec<u8>> = (0..5000).map(|i| format!("name{i}").into_bytes()).collect();
        let list = FieldList::parse("caller", true).unwrap();
        let unknown = list.resolve(&wide).unwrap_err().to_string();
        assert!(
            unknown.ends_with("\"name22\", \"name23\", 4976 more"),
            "{unknown}"
        );
    }
}
