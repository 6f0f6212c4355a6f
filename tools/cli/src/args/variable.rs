//! `ECHOLESS_OPTS`: default options of `echoless dedup`, read before those of the command line, so
//! that a typed option replaces the default of the same name.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, CommandFactory, Parser};
use echoless::SpecError;
use echoless_records::failure::Failure;

use super::command::{Args, one_line};

/// The name of the variable.
const VARIABLE: &str = "ECHOLESS_OPTS";

/// The only subcommand that the variable applies to.
const SUBCOMMAND: &str = "dedup";

/// The command line of this process, as typed and with the options of the variable.
#[derive(Debug, Clone)]
pub(crate) struct CommandLine {
    typed: Vec<OsString>,
    /// The value of the variable and its options; empty if they do not apply.
    value: String,
    defaults: Vec<String>,
}

impl CommandLine {
    /// That of this process.
    pub(crate) fn of_process() -> Result<Self, Failure> {
        Self::new(env::args_os().collect(), env::var_os(VARIABLE).as_deref())
    }

    /// That of this process without the variable.
    pub(crate) fn typed_alone() -> Self {
        Self {
            typed: env::args_os().collect(),
            value: String::new(),
            defaults: Vec::new(),
        }
    }

    /// A command line, and the value of the variable if it is set.
    fn new(typed: Vec<OsString>, value: Option<&OsStr>) -> Result<Self, Failure> {
        let applies = typed.get(1).is_some_and(|first| first == SUBCOMMAND);
        let value = value.filter(|_| applies).unwrap_or_default();
        Ok(Self {
            typed,
            value: value.to_string_lossy().into_owned(),
            defaults: split(value)?,
        })
    }

    /// Parses the options of the variable, and after them the typed ones. A typed option takes the
    /// place of one of the variable.
    pub(crate) fn parse(&self) -> Result<Args, clap::Error> {
        check_repeats(&self.typed)?;
        Args::try_parse_from(self.words())
    }

    /// All words: the options of the variable stand before the typed ones.
    fn words(&self) -> impl Iterator<Item = OsString> {
        let (command, rest) = self.typed.split_at(self.typed.len().min(2));
        let defaults = self.defaults.iter().map(OsString::from);
        let all = command.iter().cloned().chain(defaults);
        all.chain(rest.iter().cloned())
    }

    /// The file of `--stats` of a command line that the parser rejects, and all words that may be
    /// inputs. The parser may stop at an option that does not exist or has an invalid value, and
    /// then it has not read what stands behind it.
    pub(crate) fn stats_and_inputs(&self) -> Option<(PathBuf, Vec<PathBuf>)> {
        let lenient = Args::command().ignore_errors(true);
        let matches = lenient.try_get_matches_from(self.words()).ok()?;
        let (_, run) = matches.subcommand()?;
        let stats = run.try_get_one::<PathBuf>("stats").ok().flatten()?.clone();
        let mut words: Vec<OsString> = self.words().collect();
        if let Some(option) = words.iter().position(|word| word == "--stats") {
            words.drain(option..words.len().min(option + 2));
        }
        Some((stats, words.into_iter().map(PathBuf::from).collect()))
    }

    /// The message about words that are not UTF-8, each after the option before it. Those of the
    /// variable always are.
    pub(crate) fn invalid_utf8(&self) -> String {
        let shown = |word: &OsStr| word.as_encoded_bytes().escape_ascii().to_string();
        let is_option = |word: &OsStr| word.as_encoded_bytes().starts_with(b"-");
        let pairs = self.typed.windows(2).map(|pair| (&pair[0], &pair[1]));
        let invalid = pairs.filter(|(_, word)| word.to_str().is_none());
        let named = invalid.map(|(before, word)| {
            if is_option(before) && !is_option(word) {
                format!("{} {}", shown(before), shown(word))
            } else {
                shown(word)
            }
        });
        format!(
            "not UTF-8, as only delimiters and names of files may be: {}",
            named.collect::<Vec<_>>().join(", ")
        )
    }

    /// Names the variable in a failure, if it has options: one of them may be the cause.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        if self.defaults.is_empty() || matches!(failure, Failure::ReaderGone) {
            return failure;
        }
        Failure::WithVariable {
            variable: VARIABLE,
            value: self.value.clone(),
            cause: Box::new(failure),
        }
    }
}

/// The options that list fields or name an output. With `-k 1 -k 2`, as `sort` takes it, or two
/// outputs, the first would be lost without a word.
const GIVEN_ONCE: [&str; 11] = [
    "key",
    "time_field",
    "ignore",
    "copies",
    "output",
    "duplicates",
    "explain",
    "rejects",
    "tag_file",
    "top_keys",
    "stats",
];

/// Checks that none of [`GIVEN_ONCE`] has two values. Any other option counts as its last value,
/// which may follow those of an alias.
fn check_repeats(typed: &[OsString]) -> Result<(), clap::Error> {
    let allow_others = |arg: Arg| {
        let id = arg.get_id().clone();
        match GIVEN_ONCE.contains(&id.as_str()) {
            true => arg,
            false => arg.overrides_with(id),
        }
    };
    let command = Args::command()
        .args_override_self(false)
        .mut_subcommands(|subcommand| subcommand.mut_args(allow_others));
    let repeats = |error: &clap::Error| {
        let [option, before] = [ContextKind::InvalidArg, ContextKind::PriorArg]
            .map(|kind| error.get(kind).map(ToString::to_string));
        error.kind() == ErrorKind::ArgumentConflict && option.is_some() && option == before
    };
    match command.try_get_matches_from(typed) {
        Err(error) if repeats(&error) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Splits the value of the variable into words, as a shell does, and checks that they are options
/// with their values. They need not be complete: typed ones may complete them.
fn split(value: &OsStr) -> Result<Vec<String>, Failure> {
    let invalid = |allowed: &str| {
        let value = value.to_string_lossy().into_owned();
        Failure::from(SpecError::new(VARIABLE, value, allowed))
    };
    let text = value.to_str();
    let words = text.and_then(|text| shell_words::split(text).ok());
    let words = words.ok_or_else(|| invalid("options in UTF-8, with quotes that end"))?;
    if words.is_empty() {
        return Ok(words);
    }
    let alone = || {
        ["echoless", SUBCOMMAND]
            .into_iter()
            .chain(words.iter().map(|word| &**word))
    };
    let lenient = Args::command().ignore_errors(true);
    let names_files = lenient.try_get_matches_from(alone()).is_ok_and(|matches| {
        let options = matches.subcommand_matches(SUBCOMMAND);
        options.is_some_and(|options| options.contains_id("inputs"))
    });
    // After `--`, typed options would be names of files.
    if names_files || words.iter().any(|word| word == "--") {
        return Err(invalid("options only, no names of files"));
    }
    match Args::command().try_get_matches_from(alone()) {
        Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => {
            Err(Failure::Usage(format!("{VARIABLE}: {}", one_line(&error))))
        }
        Ok(_) | Err(_) => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(typed: &[&str], value: &str) -> Result<CommandLine, String> {
        let typed = typed.iter().map(OsString::from).collect();
        CommandLine::new(typed, Some(OsStr::new(value))).map_err(|failure| failure.to_string())
    }

    #[test]
    fn only_dedup_reads_the_variable_and_empty_is_nothing() {
        for (typed, value, defaults) in [
            (
                &["echoless", "dedup", "f"][..],
                "-q -m '1 G'",
                &["-q", "-m", "1 G"][..],
            ),
            (&["echoless", "dedup"], "", &[]),
            (&["echoless", "dedup"], " \t ", &[]),
            (&["echoless", "plan"], "-q '", &[]),
            (&["echoless"], "-q", &[]),
            (&[], "-q", &[]),
        ] {
            assert_eq!(line(typed, value).unwrap().defaults, defaults, "{value}");
        }
    }

    #[test]
    fn options_that_are_given_once_exist() {
        let command = Args::command();
        let all = || {
            command
                .get_subcommands()
                .flat_map(clap::Command::get_arguments)
        };
        for id in GIVEN_ONCE {
            assert!(all().any(|arg| arg.get_id() == id), "{id}");
        }
    }
}
