//! Options that must not change as long as a state goes on, compared by what they mean: `60m` is
//! the window `1h`, and `--format csv` is `--csv`.

use std::ffi::OsStr;
use std::fmt::Debug;

use echoless_durable::{ChangedOption, LastingOption};
use echoless_records::compression::codec::Compression;
use echoless_records::delimiter::Delimiter;
use echoless_records::field_list::FieldList;
use echoless_records::number::{parse_size, parse_whole};
use echoless_records::options::meaning_of_format;

use crate::args::must_not_change;

/// An option, and what it means.
struct Meaning<'a> {
    typed: &'a LastingOption,
    /// Without its hyphens.
    option: &'a str,
    value: String,
}

/// Checks that options mean the same as those that are saved in this place. The error names the
/// first one that does not.
pub(crate) fn check_options(
    now: &[LastingOption],
    saved: &[LastingOption],
    place: &str,
) -> Result<(), ChangedOption> {
    let (now, saved) = (meanings(now), meanings(saved));
    let others = |these: &[Meaning<'_>], those: &[Meaning<'_>]| {
        let is_among = |this: &Meaning<'_>| {
            let mut same = those.iter().filter(|that| that.option == this.option);
            same.any(|that| that.value == this.value)
        };
        let others = these.iter().filter(|this| !is_among(this));
        others.map(|this| this.typed.clone()).collect::<Vec<_>>()
    };
    let (now, saved) = (others(&now, &saved), others(&saved, &now));
    echoless_durable::check_options(&now, &saved, place)
}

/// What the options mean. One with its default value is as if it was not given.
fn meanings(options: &[LastingOption]) -> Vec<Meaning<'_>> {
    let has_header = options.iter().any(|(option, _)| option == "--header");
    let has_own_fields = options.iter().any(|(option, value)| {
        let format = value.as_deref().filter(|_| option == "--format");
        format.is_some_and(|format| meaning_of_format(format).is_none())
    });
    let lasting = options.iter().filter(|(option, _)| must_not_change(option));
    let mut meanings = lasting
        .filter_map(|typed| {
            let option = typed.0.trim_start_matches('-');
            let value = typed.1.as_deref().unwrap_or_default();
            let (option, value) = if ["key", "time-field"].contains(&option) {
                // Names are those of one file, and formats with fields of their own have others.
                let fields =
                    (!has_own_fields).then(|| meaning_of_fields(option, value, has_header));
                (option, fields.flatten().unwrap_or_else(|| value.to_owned()))
            } else {
                meaning(option, value)?
            };
            Some(Meaning {
                typed,
                option,
                value,
            })
        })
        .collect::<Vec<_>>();
    if meanings.iter().any(|meaning| meaning.option == "csv") {
        // It is implied.
        meanings.retain(|meaning| meaning.option != "crlf");
    }
    meanings
}

fn meaning_of_fields(option: &str, value: &str, has_header: bool) -> Option<String> {
    if option == "key" {
        let fields = FieldList::parse(value, has_header).ok()?;
        return Some(fields.meaning_of_key());
    }
    let fields = FieldList::parse_each("--time-field", value, has_header).ok()?;
    Some(format!("{fields:?}"))
}

/// The option and the value that an option stands for; `None` for a default.
fn meaning<'a>(option: &'a str, value: &str) -> Option<(&'a str, String)> {
    fn shown<T: Debug, E>(parsed: Result<T, E>) -> Option<String> {
        Some(format!("{:?}", parsed.ok()?))
    }
    let number = || parse_whole("", value, 0..=u64::MAX);
    let parsed = match option {
        "window" => echoless_durable::meaning("--window", value),
        "compress" => shown(Compression::parse("", value)),
        "max-chars" | "time-year" => shown(number()),
        "skip-fields" | "skip-chars" if number() == Ok(0) => return None,
        "skip-fields" | "skip-chars" => shown(number()),
        "delimiter" => match Delimiter::parse(OsStr::new(value)) {
            Ok(delimiter) if delimiter == Delimiter::default() => return None,
            delimiter => shown(delimiter),
        },
        "format" => match meaning_of_format(value) {
            Some((None, None)) => return None,
            Some((None, Some(delimiter))) => {
                return Some(("delimiter", format!("{delimiter:?}")));
            }
            Some((Some(option), _)) => return Some((option, String::new())),
            None => value
                .strip_prefix("fixed:")
                .and_then(|size| shown(parse_size("", size)))
                .map(|bytes| format!("fixed:{bytes}")),
        },
        _ => None,
    };
    Some((option, parsed.unwrap_or_else(|| value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Vec<(String, Option<String>)> {
        let words = text.split_whitespace();
        let option = |word: &str| match word.split_once('=') {
            Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
            None => (word.to_owned(), None),
        };
        words.map(option).collect()
    }

    #[test]
    fn options_are_the_same_if_they_mean_the_same() {
        for (one, other) in [
            ("--window=1h", "--window=60m"),
            ("--window=1h", "--window=3600.0s"),
            ("--window=1000", "--window=1k"),
            ("--compress=zstd", "--compress=zstd:3"),
            ("--compress=gzip:6", "--compress=gzip"),
            ("--compress=xz:06", "--compress=xz"),
            ("--key=1,2", "--key=1-2"),
            ("--key=2,1,1", "--key=1-2"),
            ("--key=1-3,!2", "--key=3,1"),
            ("--key=1-3,5-,4", "--key=4-5,1-3,5-"),
            ("--key=-1,1,-1", "--key=1,-1"),
            ("--header --key=id,1,2,id", "--header --key=2,id,1"),
            ("--key=1 --time-field=02", "--key=1 --time-field=2"),
            ("--key=1 --delimiter=tab", "--key=1 --delimiter=\\t"),
            ("--key=1 --delimiter=\\x09", "--key=1 --format=tsv"),
            ("--key=1 --delimiter=,", "--key=1"),
            ("--csv --key=1", "--format=csv --key=1"),
            ("--csv --key=1", "--crlf --format=csv --key=1"),
            ("--key=1", "--format=lines --key=1"),
            (
                "--format=fixed:1024 --key=0-3",
                "--format=fixed:1k --key=0-3",
            ),
            ("--skip-chars=0 --max-chars=08", "--max-chars=8"),
            ("--missing=skip", "--missing=error --blank-lines=skip"),
            ("--late=pass --lateness=1s", ""),
        ] {
            let (one, other) = (options(one), options(other));
            check_options(&one, &other, "a state").unwrap();
            check_options(&other, &one, "a state").unwrap();
        }
    }

    #[test]
    fn options_that_mean_something_else_are_named_as_they_were_typed() {
        for (now, saved, expected) in [
            (
                "--window=1h",
                "--window=3600",
                "invalid --window=1h: expected --window=3600",
            ),
            (
                "--window=1h",
                "",
                "invalid --window=1h: expected no --window",
            ),
            (
                "",
                "--window=60m",
                "missing --window: expected --window=60m",
            ),
            (
                "--compress=zstd",
                "--compress=zstd:4",
                "invalid --compress=zstd: expected --compress=zstd:4",
            ),
            (
                "--key=1-2",
                "--key=1-3",
                "invalid --key=1-2: expected --key=1-3",
            ),
            (
                "--key=1-2",
                "--key=12",
                "invalid --key=1-2: expected --key=12",
            ),
            ("--key=-1", "--key=1", "invalid --key=-1: expected --key=1"),
            // Names in the header may look like numbers of other fields.
            (
                "--header --key=a",
                "--header --key=A",
                "invalid --key=a: expected --key=A",
            ),
            (
                "--key=1 --time-field=2,3",
                "--key=1 --time-field=3,2",
                "invalid --time-field=2,3: expected --time-field=3,2",
            ),
            (
                "--format=csv",
                "",
                "invalid --format=csv: expected no --format",
            ),
            (
                "--crlf",
                "--format=csv",
                "invalid --crlf: expected no --crlf",
            ),
            (
                "--format=json --key=a",
                "--format=jsonl --key=a",
                "invalid --format=json: expected --format=jsonl",
            ),
            (
                "--format=json --key=1-2",
                "--format=json --key=1,2",
                "invalid --key=1-2: expected --key=1,2",
            ),
        ] {
            let error = check_options(&options(now), &options(saved), "a state").unwrap_err();
            assert_eq!(error.to_string(), format!("{expected}, as in a state"));
        }
    }
}
