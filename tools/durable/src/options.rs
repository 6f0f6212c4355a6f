//! Options that must not change over the runs of a state: which they are, when two values are the
//! same, comparing those of now with those that a commit holds, and what the user is told.
//!
//! A program stores its options in the bytes of its commits, in a format of its own. The journal
//! holds filter and hasher itself, and checks them.

use echoless::KeyHasher;
use echoless::spec::parse_bytes;
use echoless_stream::{nanoseconds, parse_count};

/// What an option decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    /// What a key is. States with different keys have nothing in common.
    Key,
    /// Verdicts or outputs, but not what a key is: it must not change while a state goes on.
    Others,
    /// What happens to a record without a key or in time, and how long one may be. No record that
    /// was judged before has another key, and errors that end a run advise them: it may change.
    Faults,
}

/// The options that do not decide what a key is. All others do.
const OPTIONS: [(&str, Decides); 19] = [
    ("--blank-lines", Decides::Faults),
    ("--comment", Decides::Others),
    ("--compress", Decides::Others),
    ("--exact", Decides::Others),
    ("--header", Decides::Others),
    ("--invert", Decides::Others),
    ("--late", Decides::Faults),
    ("--lateness", Decides::Faults),
    ("--max-record", Decides::Faults),
    ("--memory", Decides::Others),
    ("--missing", Decides::Faults),
    ("--no-decompress", Decides::Others),
    ("--refresh", Decides::Others),
    ("--tag", Decides::Others),
    ("--tag-file", Decides::Others),
    ("--time-field", Decides::Others),
    ("--time-format", Decides::Others),
    ("--time-year", Decides::Others),
    ("--window", Decides::Others),
];

/// What an option decides, such as `--key`.
#[must_use]
pub fn decides(option: &str) -> Decides {
    let found = OPTIONS.iter().find(|(name, _)| *name == option);
    found.map_or(Decides::Key, |(_, decides)| *decides)
}

/// What the value of `--window` or `--memory` means: two texts of one meaning are the same. `None`
/// for other options, and for texts without a meaning.
#[must_use]
pub fn meaning(option: &str, value: &str) -> Option<String> {
    match option {
        "--window" => {
            let time = nanoseconds(value).map(|time| format!("{time} ns"));
            time.or_else(|| parse_count(value).map(|records| records.to_string()))
        }
        "--memory" => parse_bytes(value).ok().map(|bytes| bytes.to_string()),
        _ => None,
    }
}

/// An option by its name, with its value if it takes one.
pub type LastingOption = (String, Option<String>);

/// An option that differs from that of a state, as a message for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ChangedOption(String);

/// Checks that the options are those that are `saved` in a place, such as `the state s`, or mean the
/// same.
///
/// # Errors
/// [`ChangedOption`] for the first one that differs, was not given before, or is missing.
///
/// # Examples
/// ```
/// use echoless_durable::check_options;
/// let option = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
/// let saved = [option("--window", "1h")];
/// assert_eq!(check_options(&[option("--window", "60m")], &saved, "the state s"), Ok(()));
/// let changed = check_options(&[option("--window", "2h")], &saved, "the state s");
/// assert_eq!(
///     changed.unwrap_err().to_string(),
///     "invalid --window=2h: expected --window=1h, as in the state s"
/// );
/// ```
pub fn check_options(
    now: &[LastingOption],
    saved: &[LastingOption],
    place: &str,
) -> Result<(), ChangedOption> {
    let is_same = |name: &str, now: &str, saved: &str| {
        now == saved || meaning(name, now).is_some_and(|now| meaning(name, saved) == Some(now))
    };
    let text = |(name, value): &LastingOption| match value {
        Some(value) => format!("{name}={value}"),
        None => name.clone(),
    };
    let find = |options: &[LastingOption], name: &str| {
        options.iter().find(|(option, _)| option == name).cloned()
    };
    for option in now {
        let (name, value) = option;
        let of_state = find(saved, name);
        let is_same = match (value, of_state.as_ref().map(|(_, saved)| saved)) {
            (None, Some(None)) => true,
            (Some(now), Some(Some(saved))) => is_same(name, now, saved),
            _ => false,
        };
        if !is_same {
            let expected = of_state.map_or_else(|| format!("no {name}"), |saved| text(&saved));
            let option = text(option);
            return Err(ChangedOption(format!(
                "invalid {option}: expected {expected}, as in {place}"
            )));
        }
    }
    match saved.iter().find(|(name, _)| find(now, name).is_none()) {
        None => Ok(()),
        Some(option) => {
            let (name, expected) = (&option.0, text(option));
            Err(ChangedOption(format!(
                "missing {name}: expected {expected}, as in {place}"
            )))
        }
    }
}

/// Checks that keys with this algorithm and id of a hasher have the hash of `hasher`, which
/// `--hash-key` or `--seed` determines.
///
/// # Errors
/// [`ChangedOption`] with the option that differs.
pub fn check_hasher(
    algorithm: &str,
    id: u64,
    hasher: &KeyHasher,
    place: &str,
) -> Result<(), ChangedOption> {
    if (algorithm, id) == (hasher.algorithm(), hasher.id()) {
        return Ok(());
    }
    let is_keyed = hasher.algorithm() == KeyHasher::keyed([0; 16]).algorithm();
    Err(ChangedOption(
        match (algorithm == hasher.algorithm(), is_keyed) {
            (true, true) => format!("invalid --hash-key: expected the secret key of {place}"),
            (true, false) => format!("invalid --seed: expected that of the keys in {place}"),
            (false, true) => {
                format!("invalid --hash-key: expected none: {place} has keys of {algorithm}")
            }
            (false, false) => format!("missing --hash-key: {place} has keys of {algorithm}"),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Vec<LastingOption> {
        let options = text
            .split_whitespace()
            .map(|option| match option.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (option.to_owned(), None),
            });
        options.collect()
    }

    #[test]
    fn options_that_change_are_named_with_what_they_were() {
        for (now, saved, expected) in [
            ("", "", None),
            ("--a=1 --b", "--b --a=1", None),
            (
                "--memory=1MiB --window=1h",
                "--window=60m --memory=1024k",
                None,
            ),
            // More nanoseconds than 64 bits hold.
            ("--window=200000d", "--window=4800000h", None),
            (
                "--window=3600",
                "--window=1h",
                Some("invalid --window=3600: expected --window=1h"),
            ),
            ("--a=1", "--a=01", Some("invalid --a=1: expected --a=01")),
            ("--a=1", "--a=2", Some("invalid --a=1: expected --a=2")),
            ("--a=x", "--a=y", Some("invalid --a=x: expected --a=y")),
            ("--a=1", "", Some("invalid --a=1: expected no --a")),
            ("--a", "--a=1", Some("invalid --a: expected --a=1")),
            ("", "--a=1", Some("missing --a: expected --a=1")),
            ("--a=1", "--a=1 --b", Some("missing --b: expected --b")),
        ] {
            let checked = check_options(&options(now), &options(saved), "the state");
            let said = checked.err().map(|error| error.to_string());
            let expected = expected.map(|text| format!("{text}, as in the state"));
            assert_eq!(said, expected, "{now} / {saved}");
        }
    }

    #[test]
    fn keys_of_another_hash_name_the_option() {
        let (seeded, keyed) = (KeyHasher::seeded, |byte| KeyHasher::keyed([byte; 16]));
        for (saved, now, expected) in [
            (seeded(1), seeded(1), None),
            (keyed(1), keyed(1), None),
            (
                seeded(1),
                seeded(2),
                Some("invalid --seed: expected that of"),
            ),
            (
                keyed(1),
                keyed(2),
                Some("invalid --hash-key: expected the secret key of s"),
            ),
            (
                seeded(1),
                keyed(1),
                Some("invalid --hash-key: expected none: s has keys of wyhash"),
            ),
            (
                keyed(1),
                seeded(1),
                Some("missing --hash-key: s has keys of siphash-2-4"),
            ),
        ] {
            let checked = check_hasher(saved.algorithm(), saved.id(), &now, "s");
            let said = checked.map_err(|error| error.to_string()).err();
            match expected {
                None => assert_eq!(said, None),
                Some(text) => assert!(said.as_ref().is_some_and(|said| said.starts_with(text))),
            }
        }
    }
}
