//! Lists of fields as they are typed: `2,5-7,9-`, `-1` for the last field, `!3` for all fields but
//! one, or names in the header.

use std::ops::RangeInclusive;
use std::sync::Arc;

use echoless::SpecError;

use super::field_set::{FieldOrder, FieldSet, KeyFields, PickedFields, PickedRange, Position};

/// The names of the fields of records.
#[derive(Debug, Clone)]
pub struct HeaderNames {
    /// Those of the first header of the stream.
    pub first: Arc<[Vec<u8>]>,
    /// Those of these records.
    pub now: Arc<[Vec<u8>]>,
    /// The number of the latter in the stream; 0 if they are the first.
    pub number: u32,
}

/// The highest field number. A bound, so that a typing error is rejected instead of making every
/// record pay for a search of that many fields.
const HIGHEST: usize = 1_000_000;

/// The fields as the user lists them: names are not resolved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldList {
    /// Without any, all fields.
    included: Vec<Item>,
    /// The fields behind `!`.
    excluded: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Fields(PickedRange),
    Name(String),
}

impl FieldList {
    /// Parses a list of fields. Names are allowed if there is a `header`.
    ///
    /// # Errors
    /// [`SpecError`] if the text is no such list.
    pub fn parse(text: &str, header: bool) -> Result<Self, SpecError> {
        let (mut included, mut excluded) = (Vec::new(), Vec::new());
        for typed in text.split(',') {
            let (items, item) = match typed.strip_prefix('!') {
                Some(item) => (&mut excluded, item),
                None => (&mut included, typed),
            };
            items.push(match parse_range(item)? {
                Some(range) => Item::Fields(range),
                None if header && !item.is_empty() => Item::Name(item.into()),
                None => {
                    return Err(invalid(
                        typed,
                        "field numbers from 1 and ranges such as 2,5-7,9-, -1 for the last field, \
                         !3 for all but field 3 (names require --header)",
                    ));
                }
            });
        }
        Ok(Self { included, excluded })
    }

    /// Parses the fields, each a number or a name, that the option `option` takes.
    ///
    /// # Errors
    /// [`SpecError`] of the option if the text is no such list.
    pub fn parse_each(option: &'static str, text: &str, header: bool) -> Result<Self, SpecError> {
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
            Item::Fields(range) => matches!(
                *range,
                (Position::FromStart(first), Some(Position::FromStart(last))) if first == last
            ),
        };
        if list.excluded.is_empty() && list.included.iter().all(is_one) {
            return Ok(list);
        }
        Err(of_option(invalid(text, allowed)))
    }

    /// The fields with these numbers, from 0.
    pub(crate) fn numbered(numbers: RangeInclusive<usize>) -> Self {
        let [first, last] = [*numbers.start(), *numbers.end()].map(Position::FromStart);
        Self {
            included: vec![Item::Fields((first, Some(last)))],
            excluded: Vec::new(),
        }
    }

    /// The number of listed items, which is that of the fields where each is one.
    pub fn count(&self) -> usize {
        self.included.len()
    }

    /// Replaces the names by their positions in the header.
    ///
    /// # Errors
    /// [`SpecError`] if a name is not in the header, or no field is left.
    pub fn resolve(&self, header: &[Vec<u8>]) -> Result<KeyFields, SpecError> {
        let included = find(&self.included, header)?;
        let excluded = find(&self.excluded, header)?;
        let is_absolute = |range: &PickedRange| absolute(*range).is_some();
        if !included.iter().chain(&excluded).all(is_absolute) {
            return Ok(KeyFields {
                set: FieldSet::all(),
                picked: Some(PickedFields::new(included, excluded)),
            });
        }
        let numbers = |ranges: Vec<PickedRange>| ranges.into_iter().filter_map(absolute).collect();
        let set = FieldSet::without(numbers(included), numbers(excluded));
        if set.is_empty() {
            let typed = self.excluded.first();
            let typed = typed.map_or_else(String::new, |item| format!("!{}", item.typed()));
            return Err(invalid(&typed, "a key with at least one field"));
        }
        Ok(KeyFields { set, picked: None })
    }

    /// The same fields where records have other names of fields: those of the names that the listed
    /// ones have in the first header, for keys that equal those of records with that one. `None` if
    /// names do not tell them: one is missing or occurs twice, a field is counted from the end, or
    /// all fields are listed but some, and there are others than before.
    pub fn resolve_as(&self, names: &HeaderNames) -> Option<(KeyFields, FieldOrder)> {
        let (first, now) = (&names.first, &names.now);
        let whole = |header: &[Vec<u8>]| {
            let KeyFields { set, picked } = self.resolve(header).ok()?;
            let numbers = (0..header.len()).filter(|number| set.contains(*number));
            let numbers: Vec<usize> = numbers.collect();
            let has_all = picked.is_none() && set.required() <= header.len();
            has_all.then_some((numbers, set.contains(usize::MAX)))
        };
        let (listed, is_open) = whole(first)?;
        if is_open && whole(now).is_none_or(|(numbers, _)| numbers.len() != listed.len()) {
            return None;
        }
        let numbers: Option<Vec<usize>> = listed
            .iter()
            .map(|number| number_of(&first[*number], now))
            .collect();
        let (set, order) = FieldSet::in_order(&numbers?);
        Some((KeyFields { set, picked: None }, order))
    }

    /// [`numbers`](Self::numbers) where records have other names of fields; `None` if names do not
    /// tell them.
    pub(crate) fn numbers_as(&self, names: &HeaderNames) -> Option<Vec<usize>> {
        let listed = self.numbers(&names.first).ok()?;
        let moved = |number: usize| number_of(names.first.get(number)?, &names.now);
        listed.into_iter().map(moved).collect()
    }

    /// A text that is the same for all lists that select the same fields, in any header.
    pub fn meaning_of_key(&self) -> String {
        let has_name = |item: &Item| matches!(item, Item::Name(_));
        if !self.included.iter().chain(&self.excluded).any(has_name)
            && let Ok(KeyFields { set, picked: None }) = self.resolve(&[])
        {
            return format!("{set:?}");
        }
        let meaning = |items: &[Item]| {
            let (mut numbers, mut others) = (Vec::new(), Vec::new());
            for item in items {
                let range = match item {
                    Item::Fields(range) => absolute(*range),
                    Item::Name(_) => None,
                };
                match range {
                    Some(range) => numbers.push(range),
                    None => others.push(item.typed()),
                }
            }
            others.sort_unstable();
            others.dedup();
            let numbers = (!numbers.is_empty()).then(|| FieldSet::new(numbers));
            format!("{numbers:?} and {others:?}")
        };
        let [included, excluded] = [&self.included, &self.excluded].map(|items| meaning(items));
        format!("{included} without {excluded}")
    }

    /// The numbers of the fields, from 0, in the order in which they are listed. No range is open,
    /// and all count from the start.
    pub(crate) fn numbers(&self, header: &[Vec<u8>]) -> Result<Vec<usize>, SpecError> {
        let ranges = find(&self.included, header)?;
        Ok(ranges.into_iter().filter_map(absolute).flatten().collect())
    }
}

impl Item {
    /// The item as the user might have typed it.
    fn typed(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Fields((first, last)) if *last == Some(*first) => first.to_string(),
            Self::Fields((first, last)) => {
                let last = last.map_or_else(String::new, |last| last.to_string());
                format!("{first}-{last}")
            }
        }
    }
}

/// The number, from 0, of the only field with this name.
fn number_of(name: &[u8], header: &[Vec<u8>]) -> Option<usize> {
    let mut found = (0..header.len()).filter(|at| header[*at] == name);
    match (found.next(), found.next()) {
        (found, None) => found,
        (_, Some(_)) => None,
    }
}

/// The positions of fields, with those of names in the header.
fn find(items: &[Item], header: &[Vec<u8>]) -> Result<Vec<PickedRange>, SpecError> {
    let mut ranges = Vec::new();
    for item in items {
        ranges.push(match item {
            Item::Fields(range) => *range,
            Item::Name(name) => {
                let mut found = (0..header.len()).filter(|at| header[*at] == name.as_bytes());
                match (found.next(), found.next()) {
                    (Some(at), None) => (Position::FromStart(at), Some(Position::FromStart(at))),
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

/// The numbers of a range that counts from the start.
fn absolute(range: PickedRange) -> Option<RangeInclusive<usize>> {
    match range {
        (Position::FromStart(first), None) => Some(first..=usize::MAX),
        (Position::FromStart(first), Some(Position::FromStart(last))) => Some(first..=last),
        (Position::FromStart(_), Some(Position::FromEnd(_))) | (Position::FromEnd(_), _) => None,
    }
}

/// `2`, `5-7`, `9-`, `-1`, `-3-` or `2--2`; `None` if it is none of these and so may be a name.
fn parse_range(item: &str) -> Result<Option<PickedRange>, SpecError> {
    let Some((first, rest)) = split_position(item) else {
        return match item {
            "-" => Err(invalid(item, "a range with a first field, such as 1-5")),
            _ => Ok(None),
        };
    };
    let last = match rest.strip_prefix('-') {
        None if rest.is_empty() => Some(first),
        None => return Ok(None),
        Some("") => None,
        Some(last) => match split_position(last) {
            Some((last, "")) => Some(last),
            Some(_) | None => return Ok(None),
        },
    };
    let first = position(item, first)?;
    let last = last.map(|last| position(item, last)).transpose()?;
    let descends = match (first, last) {
        (Position::FromStart(first), Some(Position::FromStart(last))) => last < first,
        (Position::FromEnd(first), Some(Position::FromEnd(last))) => last > first,
        (Position::FromEnd(_), Some(Position::FromStart(_))) => true,
        (Position::FromStart(_), Some(Position::FromEnd(_))) | (_, None) => false,
    };
    if descends {
        return Err(invalid(item, "a range from a lower field to a higher one"));
    }
    Ok(Some((first, last)))
}

/// The digits at the start of a text with the minus before them, and what follows.
fn split_position(text: &str) -> Option<(&str, &str)> {
    let minus = usize::from(text.starts_with('-'));
    let digits = text[minus..].bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| text.split_at(minus + digits))
}

/// The position that a number is, which may have a minus.
fn position(item: &str, text: &str) -> Result<Position, SpecError> {
    let (digits, position): (_, fn(usize) -> Position) = match text.strip_prefix('-') {
        Some(digits) => (digits, Position::FromEnd),
        None => (text, Position::FromStart),
    };
    match digits.parse::<usize>() {
        Ok(number) if (1..=HIGHEST).contains(&number) => Ok(position(number - 1)),
        _ => Err(invalid(
            item,
            "field numbers from 1 to 1000000, or from -1 to -1000000 from the last field on",
        )),
    }
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
        for text in ["", "1-2", "1-", "1,2-3", "a,,b", "0", "-1", "!1", "1--1"] {
            let error = FieldList::parse_each("--time-field", text, true).unwrap_err();
            assert_eq!(error.field, "--time-field", "{text}");
        }
        assert!(FieldList::parse_each("--time-field", "name", false).is_err());
    }

    #[test]
    fn impossible_fields_are_invalid() {
        let lists = "0 0-3 3-0 7-5 2,,3 -0 - -3-1 -1--2 a 1-2-3 1--2-3 1000001 -1000001 \
                     99999999999999999999 +1 ! !a !!1";
        for text in lists.split(' ').chain(["", "2 "]) {
            let error = FieldList::parse(text, false).unwrap_err();
            assert_eq!(error.field, "--key", "{text}");
        }
    }

    #[test]
    fn a_key_keeps_at_least_one_field() {
        for (text, typed) in [("1,!1", "`!1`"), ("2-3,!1-", "`!1-`"), ("!1-", "`!1-`")] {
            let list = FieldList::parse(text, false).unwrap();
            let error = list.resolve(&[]).unwrap_err();
            assert_eq!(error.asked, typed, "{text}");
        }
        // How many fields a record has is known later.
        let last = FieldList::parse("!-1", false).unwrap();
        assert!(last.resolve(&[]).unwrap().picked.is_some());
    }

    #[test]
    fn names_are_looked_up_in_the_header() {
        let header: Vec<Vec<u8>> = ["id", "start-time", "cell", "cell"]
            .map(|name| name.as_bytes().to_vec())
            .into();
        let resolve = |text| FieldList::parse(text, true).unwrap().resolve(&header);
        assert_eq!(resolve("start-time,1").unwrap().set, FieldSet::of(&[0, 1]));
        assert_eq!(
            resolve("1-3,!start-time").unwrap().set,
            FieldSet::of(&[0, 2])
        );
        assert!(resolve("!nobody").is_err());
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
