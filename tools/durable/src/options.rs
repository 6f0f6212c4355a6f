//! Options of a program that must not change over the runs of a state: comparing those of now with
//! those that a commit holds, and what the user is told.
//!
//! A program stores the list in the bytes of its commits, in a format of its own.

use echoless::KeyHasher;

/// An option by its name, with its value if it takes one.
pub type LastingOption = (String, Option<String>);

/// An option that differs from that of a state, as a message for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ChangedOption(String);

/// Checks that the options are those that are `saved` in a place, such as `the state s`.
/// `is_same(name, now, saved)` says whether two texts of an option mean one value.
///
/// # Errors
/// [`ChangedOption`] for the first one that differs, was not given before, or is missing.
///
/// # Examples
/// ```
/// use echoless_durable::check_options;
/// let option = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
/// let is_same = |_: &str, now: &str, saved: &str| now == saved;
/// let saved = [option("--window", "1h")];
/// assert_eq!(check_options(&saved, &saved, "the state s", is_same), Ok(()));
/// let changed = check_options(&[option("--window", "2h")], &saved, "the state s", is_same);
/// assert_eq!(
///     changed.unwrap_err().to_string(),
///     "invalid --window=2h: expected --window=1h, as in the state s"
/// );
/// ```
pub fn check_options(
    now: &[LastingOption],
    saved: &[LastingOption],
    place: &str,
    is_same: impl Fn(&str, &str, &str) -> bool,
) -> Result<(), ChangedOption> {
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
            (Some(now), Some(Some(saved))) => now == saved || is_same(name, now, saved),
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

    /// Numbers are equal if they have one value.
    fn is_same(_: &str, now: &str, saved: &str) -> bool {
        let number = |text: &str| text.parse::<u64>().ok();
        number(now).is_some() && number(now) == number(saved)
    }

    #[test]
    fn options_that_change_are_named_with_what_they_were() {
        for (now, saved, expected) in [
            ("", "", None),
            ("--a=1 --b", "--b --a=01", None),
            ("--a=1", "--a=2", Some("invalid --a=1: expected --a=2")),
            ("--a=x", "--a=y", Some("invalid --a=x: expected --a=y")),
            ("--a=1", "", Some("invalid --a=1: expected no --a")),
            ("--a", "--a=1", Some("invalid --a: expected --a=1")),
            ("", "--a=1", Some("missing --a: expected --a=1")),
            ("--a=1", "--a=1 --b", Some("missing --b: expected --b")),
        ] {
            let checked = check_options(&options(now), &options(saved), "the state", is_same);
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
