//! The filter that every partition has, and what must not change while there is a state.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use echoless::hash::{SecretKeyError, read_secret_key};
use echoless::spec::parse_bytes;
use echoless::state::StateError;
use echoless::{FilterSpec, FingerprintSpec, KeyHasher, Replacement, SpecError};
use echoless_durable::storage::Storage;
use echoless_durable::{JournalError, LastingOption, check_hasher, check_options, verify};

use crate::args::Args;
use crate::failure::Failure;
use crate::messages::say;
use crate::position::Position;
use crate::window::Window;

/// The filter that every partition has.
#[derive(Debug, Clone)]
pub(crate) struct FilterConfig {
    /// With a folder for each partition of the input.
    pub(crate) state: PathBuf,
    pub(crate) spec: FilterSpec,
    pub(crate) hasher: KeyHasher,
    pub(crate) window: Option<Window>,
    /// The options that must not change.
    pub(crate) options: Vec<LastingOption>,
}

impl FilterConfig {
    /// The filter of the options, which is built once to see that it can be.
    pub(crate) fn new(args: &Args, state: PathBuf) -> Result<Self, Failure> {
        let mut window = args.window.as_deref().map(Window::parse).transpose()?;
        if let Some((text, window)) = args.max_advance.as_deref().zip(window.as_mut()) {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            *window = window.with_max_advance(text, now.as_millis() as i64)?;
        }
        let memory = parse_bytes(&args.memory).map_err(|error| SpecError {
            field: "--memory",
            ..error
        })?;
        let spec = match (&args.filter, window) {
            (Some(text), None) => text.parse::<FilterSpec>()?,
            (Some(text), Some(window)) => {
                let separator = if text.contains(':') { ',' } else { ':' };
                format!("{text}{separator}window={}", window.ticks).parse::<FilterSpec>()?
            }
            (None, window) => {
                let mut spec = FingerprintSpec::new(memory);
                if let Some(window) = window {
                    spec = spec.window(window.ticks).replacement(Replacement::Fifo);
                }
                FilterSpec::try_from(&spec)?
            }
        };
        let spec = spec.memory(memory);
        if spec.facts().window.is_some() && window.is_none() {
            let allowed = format!("the time or the records of the window of {}", spec.name());
            return Err(SpecError::missing("--window", allowed).into());
        }
        drop(spec.build_line_partitions(1)?);
        let hasher = match &args.hash_key {
            None => KeyHasher::seeded(0),
            Some(path) => {
                let key = read_secret_key("--hash-key", path).map_err(|error| match error {
                    SecretKeyError::Invalid(error) => Failure::Option(error),
                    SecretKeyError::Io(error) => Failure::File {
                        path: path.clone(),
                        error,
                    },
                })?;
                KeyHasher::keyed(key)
            }
        };
        Ok(Self {
            state,
            spec,
            hasher,
            window,
            options: lasting(args),
        })
    }

    /// Checks that a journal that was opened at this position has the options of now. The failure
    /// names the option that differs.
    pub(crate) fn check(&self, position: &Position, folder: &Path) -> Result<(), Failure> {
        let place = format!("the state {}", folder.display());
        if let Some(details) = &position.details {
            check_options(&self.options, &details.options, &place)?;
            return Ok(());
        }
        // One of the first versions. The filter itself has the length of the window in ticks.
        let given = |name: &str| {
            let option = self.options.iter().find(|(option, _)| option == name);
            option
                .and_then(|(_, value)| value.clone())
                .unwrap_or_default()
        };
        if self
            .window
            .is_some_and(|window| !position.has_clock_of(window))
        {
            let allowed =
                format!("the window that {place} was made with: its clock is in other ticks");
            return Err(SpecError::new("--window", given("--window"), allowed).into());
        }
        say(&format!(
            "{place} is of an earlier version, which did not keep its options: those of now are \
             taken for them, such as --key {}",
            given("--key")
        ));
        Ok(())
    }

    /// An error that a journal is of another filter, by the option that differs.
    pub(crate) fn explain(
        &self,
        storage: &dyn Storage,
        folder: &Path,
        error: JournalError,
    ) -> Failure {
        if let JournalError::State {
            error: StateError::Mismatch { .. },
            ..
        } = &error
            && let Ok(contents) = verify(storage, folder)
        {
            let place = format!("the state {}", folder.display());
            let details = Position::decode(&contents.caller).and_then(|at| at.details);
            let checked = details.map_or(Ok(()), |details| {
                check_options(&self.options, &details.options, &place)
            });
            let id = u64::from_str_radix(&contents.hasher, 16).unwrap_or_default();
            let check_keys = || check_hasher(&contents.algorithm, id, &self.hasher, &place);
            if let Err(changed) = checked.and_then(|()| check_keys()) {
                return changed.into();
            }
        }
        error.into()
    }
}

/// The options that must not change while there is a state. The journal itself holds the filter and
/// the hash of its keys.
fn lasting(args: &Args) -> Vec<LastingOption> {
    let options = [
        ("--key", Some(&args.key)),
        ("--memory", Some(&args.memory)),
        ("--window", args.window.as_ref()),
    ];
    let given = options.into_iter().filter_map(|(name, value)| {
        let value = value?.clone();
        Some((name.to_owned(), Some(value)))
    });
    given.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use echoless_durable::storage::RealStorage;

    use super::*;
    use crate::partition::tests::{configured, each_second, filter, open, save_without_details};
    use crate::partition::{Entry, Partition};
    use crate::topics::Topics;

    /// Judges 500 records and returns what a second member with other options says.
    fn reopened(folder: &Path, first: &FilterConfig, second: &str) -> String {
        let entries: Vec<Entry> = (0..500).map(each_second).collect();
        let mut partition = open(folder, first, 0);
        partition.judge(&entries).unwrap();
        partition.save().unwrap();
        drop(partition);
        let storage: Arc<dyn Storage> = Arc::new(RealStorage);
        let opened = Partition::open(
            &storage,
            folder,
            &configured(second),
            &Topics::default(),
            Some(500),
            0,
        );
        opened.map_or_else(|error| error.to_string(), |_| "goes on".to_owned())
    }

    #[test]
    fn an_option_that_must_not_change_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = ["1", "2"].map(|digit| {
            let path = folder.path().join(digit);
            fs::write(&path, digit.repeat(32)).unwrap();
            format!("--hash-key {}", path.display())
        });
        let [one, two] = &secrets;
        for (number, (first, second, expected)) in [
            ("--window 1h", "--window 60m", "goes on"),
            ("--window 10k", "--window 10000", "goes on"),
            ("-m 1MiB", "-m 1024k", "goes on"),
            (one, one, "goes on"),
            // The same ticks, of 1 s, 2 s and one offset.
            (
                "--window 1h",
                "--window 2h",
                "invalid --window=2h: expected --window=1h, as in",
            ),
            (
                "--window 3600",
                "--window 1h",
                "invalid --window=1h: expected --window=3600, as in",
            ),
            (
                "--window 1h",
                "--window 10m",
                "invalid --window=10m: expected --window=1h, as in",
            ),
            (
                "--window 1h",
                "",
                "missing --window: expected --window=1h, as in",
            ),
            (
                "",
                "--window 1h",
                "invalid --window=1h: expected no --window, as in",
            ),
            (
                "",
                "--key value",
                "invalid --key=value: expected --key=key, as in",
            ),
            (
                "-m 1MiB",
                "-m 2MiB",
                "invalid --memory=2MiB: expected --memory=1MiB, as in",
            ),
            (one, two, "invalid --hash-key: expected the secret key of"),
            (one, "", "missing --hash-key: "),
            ("", one, "invalid --hash-key: expected none: "),
        ]
        .into_iter()
        .enumerate()
        {
            let folder = folder.path().join(format!("state {number}"));
            let said = reopened(&folder, &configured(first), second);
            assert!(said.starts_with(expected), "{first} / {second}: {said}");
        }
    }

    #[test]
    fn a_journal_without_options_gets_them_if_its_ticks_fit() {
        let folder = tempfile::tempdir().unwrap();
        for (number, (first, second, expected)) in [
            ("--window 1h", "--window 60m", "goes on"),
            ("--window 3600", "--window 3600", "goes on"),
            ("", "", "goes on"),
            (
                "--window 1h",
                "--window 2h",
                "invalid --window=2h: expected the window that",
            ),
            (
                "--window 2h",
                "--window 1h",
                "invalid --window=1h: expected the window that",
            ),
            (
                "--window 3600",
                "--window 1h",
                "invalid --window=1h: expected the window that",
            ),
            (
                "--window 1h",
                "--window 3600",
                "invalid --window=3600: expected the window that",
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let folder = folder.path().join(number.to_string());
            let mut old = open(&folder, &configured(first), 0);
            let entries: Vec<Entry> = (0..500).map(each_second).collect();
            old.judge(&entries).unwrap();
            save_without_details(&mut old);
            drop(old);
            let storage: Arc<dyn Storage> = Arc::new(RealStorage);
            let open = |options: &str| {
                let config = configured(options);
                Partition::open(&storage, &folder, &config, &Topics::default(), Some(500), 0)
            };
            match open(second) {
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.starts_with(expected), "{first} / {second}: {said}");
                }
                Ok(mut partition) => {
                    assert_eq!(expected, "goes on", "{first} / {second}");
                    partition.save().unwrap();
                    drop(partition);
                    // The options are those of now from here on.
                    assert!(open("--key value").is_err());
                }
            }
        }
    }

    #[test]
    fn another_filter_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("0");
        drop(open(&folder, &filter("fingerprint:memory=64KiB", None), 0));
        let storage: Arc<dyn Storage> = Arc::new(RealStorage);
        let other = filter("fingerprint:memory=128KiB", None);
        let error = Partition::open(&storage, &folder, &other, &Topics::default(), Some(0), 0)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("memory"), "{error}");
    }
}
