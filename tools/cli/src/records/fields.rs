//! The fields that make up the key: `2,5-7,9-`, or names in the header.

use std::ops::RangeInclusive;

use echoless::SpecError;

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

/// The fields of the key: numbers from 0, in disjoint ascending ranges, so that one pass over the
/// record finds them.
///
/// The order in which the user listed them is dropped: it does not affect which keys are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldSet {
    ranges: Vec<RangeInclusive<usize>>,
    /// The number of fields a record must have. Merging an open range with others loses it, so it
    /// is stored.
    required: usize,
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
        let of_option = |error: SpecError| SpecError {
            field: option,
            ..error
        };
        let list = Self::parse(text, header).map_err(of_option)?;
        let is_one = |item: &Item| match item {
            Item::Name(_) => true,
            Item::Numbers(numbers) => numbers.start() == numbers.end(),
        };
        if list.items.iter().all(is_one) {
            return Ok(list);
        }
        let allowed = "one field, a number or a name, or several such as 2,3";
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

impl FieldSet {
    /// Every field.
    pub(super) fn all() -> Self {
        Self {
            ranges: vec![0..=usize::MAX],
            required: 0,
        }
    }

    fn new(mut ranges: Vec<RangeInclusive<usize>>) -> Self {
        ranges.sort_by_key(|range| *range.start());
        let highest = ranges.iter().map(|range| match *range.end() {
            usize::MAX => *range.start(),
            end => end,
        });
        let required = highest.max().map_or(0, |highest| highest + 1);
        let mut disjoint: Vec<RangeInclusive<usize>> = Vec::new();
        for range in ranges {
            match disjoint.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => disjoint.push(range),
            }
        }
        Self {
            ranges: disjoint,
            required,
        }
    }

    /// The fields with these numbers, from 0.
    pub(super) fn of(numbers: &[usize]) -> Self {
        Self::new(numbers.iter().map(|number| *number..=*number).collect())
    }

    /// The set with the field `more`, the rank of that field in it, and whether it was in the set
    /// before. `None` if the set has an open range: `required` would then cover the field too, and
    /// no longer be the number of fields that the key alone requires.
    pub(crate) fn with(&self, more: usize) -> Option<(Self, usize, bool)> {
        if self.ranges.iter().any(|range| *range.end() == usize::MAX) {
            return None;
        }
        let contained = self.ranges.iter().any(|range| range.contains(&more));
        let mut ranges = self.ranges.clone();
        ranges.push(more..=more);
        let set = Self::new(ranges);
        let rank = set.count_from(0) - set.count_from(more);
        Some((set, rank, contained))
    }

    /// Passes those of a record's `fields` that are in the set to `take`.
    ///
    /// # Errors
    /// [`MissingField`] if the record ends before the last of them.
    #[inline]
    pub(crate) fn select<F>(
        &self,
        mut fields: impl Iterator<Item = F>,
        mut take: impl FnMut(F),
    ) -> Result<(), MissingField> {
        let mut next = 0;
        for range in &self.ranges {
            while next <= *range.end() {
                match fields.next() {
                    Some(field) if next >= *range.start() => take(field),
                    Some(_) => {}
                    None if *range.end() == usize::MAX && next >= self.required => return Ok(()),
                    None => {
                        return Err(MissingField {
                            field: next.max(*range.start()),
                            fields: next,
                        });
                    }
                }
                next += 1;
            }
        }
        Ok(())
    }

    /// Whether the set has the field with this number, from 0.
    pub(crate) fn contains(&self, field: usize) -> bool {
        self.ranges.iter().any(|range| range.contains(&field))
    }

    /// Whether the set has every field below this number.
    pub(crate) fn contains_all(&self, fields: usize) -> bool {
        let first = self.ranges.first();
        fields == 0 || first.is_some_and(|range| *range.start() == 0 && *range.end() >= fields - 1)
    }

    /// Removes from `chosen`, which has all of `fields` fields, those that are not in the set.
    #[inline]
    pub(crate) fn retain<T>(&self, fields: usize, chosen: &mut Vec<T>) {
        // The options mostly select all fields.
        if !self.contains_all(fields) {
            let mut field = 0..;
            chosen.retain(|_| field.next().is_some_and(|field| self.contains(field)));
        }
    }

    /// The number of fields in the set from number `field` on. Of an open range only the fields
    /// that a record must have count.
    pub(crate) fn count_from(&self, field: usize) -> usize {
        self.ranges
            .iter()
            .filter(|range| *range.end() >= field)
            .map(|range| match (*range.start().max(&field), *range.end()) {
                (start, usize::MAX) => self.required.saturating_sub(start),
                (start, end) => end - start + 1,
            })
            .sum()
    }
}

/// A record lacks a field of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MissingField {
    /// The number of the first such field, from 0.
    pub(crate) field: usize,
    /// The number of fields of the record.
    pub(crate) fields: usize,
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
        .map(|name| String::from_utf8_lossy(name).escape_debug().to_string())
        .collect();
    if header.len() > MOST_NAMES {
        names.push(format!("{} more", header.len() - MOST_NAMES));
    }
    format!("one of the header's names: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> FieldSet {
        FieldList::parse(text, false).unwrap().resolve(&[]).unwrap()
    }

    fn chosen(text: &str, fields: usize) -> Result<Vec<usize>, MissingField> {
        let mut taken = Vec::new();
        set(text)
            .select(1..=fields, |field| taken.push(field))
            .map(|()| taken)
    }

    #[test]
    fn numbers_ranges_and_open_ranges() {
        assert_eq!(chosen("2", 3), Ok(vec![2]));
        assert_eq!(chosen("2,5-7", 9), Ok(vec![2, 5, 6, 7]));
        assert_eq!(chosen("3-", 5), Ok(vec![3, 4, 5]));
        assert_eq!(chosen("3-", 3), Ok(vec![3]));
        assert_eq!(chosen("1,3-,2", 4), Ok(vec![1, 2, 3, 4]));
    }

    #[test]
    fn one_more_field_has_a_rank() {
        for (text, more, rank, contained) in [
            ("1-3", 2, 1, true),
            ("1-3", 4, 3, false),
            ("3,5-6", 1, 0, false),
            ("3,5-6", 4, 1, false),
            ("3,5-6", 9, 3, false),
            ("3,5-6", 6, 2, true),
        ] {
            let (set, found, was_in) = set(text).with(more - 1).unwrap();
            assert_eq!((found, was_in), (rank, contained), "{text} with {more}");
            let mut taken = Vec::new();
            set.select(1..=9, |field| taken.push(field)).unwrap();
            assert_eq!(taken[rank], more, "{text} with {more}");
        }
        assert_eq!(set("2-").with(0), None);
    }

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
    fn order_and_overlap_do_not_matter() {
        assert_eq!(set("7,1,5-6"), set("1,5-7"));
        assert_eq!(set("2-4,3-6"), set("2-6"));
    }

    #[test]
    fn a_short_record_reports_the_missing_field() {
        let lacks = |field, fields| Err(MissingField { field, fields });
        assert_eq!(chosen("2,5-7", 5), lacks(5, 5));
        assert_eq!(chosen("9", 5), lacks(8, 5));
        assert_eq!(chosen("4-", 3), lacks(3, 3));
        assert_eq!(set("2,5-7").count_from(5), 2);
        assert_eq!(set("2,5-7").count_from(0), 4);
        assert_eq!(set("3-").count_from(2), 1);
        assert_eq!(set("2,3-").count_from(1), 2);
    }

    #[test]
    fn ranges_that_meet_still_require_all_their_fields() {
        let cases = [
            ("2-5,4-", 5),
            ("4-,2-5", 5),
            ("2,3-", 3),
            ("2-,1-3", 3),
            ("2-", 2),
        ];
        for (text, required) in cases {
            let lacking = MissingField {
                field: required - 1,
                fields: required - 1,
            };
            assert_eq!(chosen(text, required - 1), Err(lacking), "{text}");
            assert!(chosen(text, required).is_ok(), "{text}");
        }
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
        assert_eq!(resolve("start-time,1").unwrap(), set("1-2"));
        assert!(
            resolve("cell")
                .unwrap_err()
                .to_string()
                .contains("only one")
        );
        let unknown = resolve("caller").unwrap_err().to_string();
        assert!(unknown.contains("id, start-time"), "{unknown}");
        let wide: Vec<Vec<u8>> = (0..5000).map(|i| format!("name{i}").into_bytes()).collect();
        let list = FieldList::parse("caller", true).unwrap();
        let unknown = list.resolve(&wide).unwrap_err().to_string();
        assert!(unknown.ends_with("name22, name23, 4976 more"), "{unknown}");
    }
}
