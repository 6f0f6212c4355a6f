//! The command as a whole: its subcommands, and the parser's messages on one line.

use std::iter;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use echoless_lab::command::{EvalArgs, GenArgs, PlanArgs};
use echoless_records::failure::Failure;
use echoless_records::files::check_stdout;

use super::dedup::DedupArgs;
use super::packets::PacketArgs;
use super::state::StateArgs;
use super::variable::CommandLine;
use super::{examples, habits};

/// Duplicate detection on endless streams, at memory speed and in fixed memory
#[derive(Debug, Parser)]
#[command(
    name = "echoless",
    version,
    propagate_version = true,
    arg_required_else_help = false,
    args_override_self = true
)]
#[command(after_help = examples::EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Pass on the first occurrence of every record, in order
    #[command(after_help = examples::DEDUP)]
    Dedup(Box<DedupArgs>),
    /// Remove duplicate packets from capture files (pcap, pcapng) or interfaces
    #[command(after_help = examples::PACKETS)]
    Packets(Box<PacketArgs>),
    /// Write a reproducible stream of generated records
    #[command(after_help = examples::GEN)]
    Gen(GenArgs),
    /// Measure filters on a stream against an exact oracle
    #[command(after_help = examples::EVAL)]
    Eval(EvalArgs),
    /// Rank all filters for a stream and a memory, and recommend one
    #[command(after_help = examples::PLAN)]
    Plan(PlanArgs),
    /// Show, check and move what dedup --state has kept
    #[command(after_help = examples::STATE)]
    State(StateArgs),
    /// Write the completions of a shell
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
    /// Write a manual page (roff)
    Man {
        /// The subcommand to describe; without it, the command as a whole
        #[arg(value_parser = PossibleValuesParser::new(SUBCOMMANDS), hide_possible_values = true)]
        command: Option<String>,
        /// Write the pages of the command and of every subcommand into a folder
        #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
        all: Option<PathBuf>,
    },
}

/// The names of the subcommands.
const SUBCOMMANDS: [&str; 8] = [
    "dedup",
    "packets",
    "gen",
    "eval",
    "plan",
    "state",
    "completions",
    "man",
];

/// The parsed command line of this process.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) args: Args,
    /// What was parsed, for messages about options.
    pub(crate) line: CommandLine,
}

/// A command line that was rejected.
#[derive(Debug)]
pub(crate) struct Rejected {
    pub(crate) failure: Failure,
    /// The file of `--stats` and the inputs, if they could be read.
    pub(crate) stats_and_inputs: Option<(PathBuf, Vec<PathBuf>)>,
}

impl From<Failure> for Box<Rejected> {
    fn from(failure: Failure) -> Self {
        Self::new(Rejected {
            failure,
            stats_and_inputs: None,
        })
    }
}

/// Parses the command line, with the options of `ECHOLESS_OPTS`. If it only requests help or the
/// version, writes that and returns `None`.
pub(crate) fn parse() -> Result<Option<Parsed>, Box<Rejected>> {
    let line = CommandLine::of_process().map_err(|failure| Rejected {
        failure,
        stats_and_inputs: CommandLine::typed_alone().stats_and_inputs(),
    })?;
    let error = match line.parse() {
        Ok(args) => return Ok(Some(Parsed { args, line })),
        Err(error) => error,
    };
    if error.use_stderr() {
        let message = match error.kind() {
            // The parser's message does not contain the position.
            ErrorKind::InvalidUtf8 => line.invalid_utf8(),
            _ => one_line(&error),
        };
        return Err(Box::new(Rejected {
            failure: line.explain(Failure::Usage(message)),
            stats_and_inputs: line.stats_and_inputs(),
        }));
    }
    check_stdout()
        .and_then(|()| error.print())
        .map_err(Failure::writing_stdout)?;
    Ok(None)
}

/// Parses arguments that begin with the name of a subcommand. Fails with [`Failure::Usage`] also if
/// they only request help.
pub(crate) fn parse_from(arguments: &[&str]) -> Result<Args, Failure> {
    let all = iter::once("echoless").chain(arguments.iter().copied());
    Args::try_parse_from(all).map_err(|error| Failure::Usage(one_line(&error)))
}

/// A parser's message without its usage section, on one line.
pub(super) fn one_line(error: &clap::Error) -> String {
    if let Some(message) = habits::message(error).or_else(|| option_of_another(error)) {
        return message;
    }
    let message = error.to_string();
    let paragraphs: Vec<String> = message
        .split("\n\n")
        .filter(|paragraph| {
            !paragraph.starts_with("Usage:") && !paragraph.starts_with("For more information")
        })
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let message = paragraphs.join("; ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    // The parser advises `-- -x`, which is no value of the option before it.
    match message.split_once("; tip: to pass '") {
        Some((problem, tip)) if tip.contains("' as a value, use '-- ") => {
            let name = tip.split('\'').next().unwrap_or_default();
            if Path::new(name).exists() {
                format!("{problem}; tip: for the file of this name, use './{name}'")
            } else {
                format!("{problem}; --help lists the options")
            }
        }
        _ => message.into(),
    }
}

/// The message about an option that only other subcommands have, and which. The parser would
/// suggest any option of this one whose name has some of the same letters.
fn option_of_another(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let long = argument.strip_prefix("--")?;
    let is_it = |option: &clap::Arg| option.get_long() == Some(long) && !option.is_hide_set();
    let command = Args::command();
    let others = command.get_subcommands();
    let others: Vec<&str> = others
        .filter(|other| other.get_arguments().any(is_it))
        .map(clap::Command::get_name)
        .collect();
    let (last, first) = others.split_last()?;
    let have = if first.is_empty() {
        format!("{last} has")
    } else {
        format!("{} and {last} have", first.join(", "))
    };
    Some(format!(
        "unexpected argument '{argument}' found; {have} {argument}"
    ))
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn all_subcommands_have_a_manual_page() {
        let command = Args::command();
        let names: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        assert_eq!(names, SUBCOMMANDS);
    }

    #[test]
    fn options_of_long_helps_have_headings() {
        for name in ["dedup", "packets"] {
            let args = Args::command();
            let command = args.find_subcommand(name).unwrap();
            let options = command.get_arguments().filter(|arg| !arg.is_positional());
            let bare = options
                .filter(|option| !option.is_hide_set() && option.get_help_heading().is_none());
            assert_eq!(bare.map(Arg::get_id).collect::<Vec<_>>(), [""; 0], "{name}");
        }
    }

    #[test]
    fn names_of_values_that_list_them_list_all() {
        use clap::builder::PossibleValue;

        let mut lists = 0;
        for subcommand in Args::command().get_subcommands() {
            let takes_value = |option: &&clap::Arg| option.get_action().takes_values();
            for option in subcommand.get_opts().filter(takes_value) {
                let name = option.get_value_names().unwrap_or_default().join(" ");
                let possible = option.get_possible_values();
                let values: Vec<&str> = possible.iter().map(PossibleValue::get_name).collect();
                // The name that clap derives from the option carries no information.
                let of_option = option.get_id().as_str().to_uppercase();
                assert!(
                    name != of_option || ["SEED", "FORMAT", "STREAM"].contains(&&*name),
                    "{name}"
                );
                if name.contains('|') {
                    lists += 1;
                    assert_eq!(name.split('|').collect::<Vec<_>>(), values);
                }
            }
        }
        assert!(lists > 0);
    }

    #[test]
    fn a_usage_error_is_one_line() {
        let error = Args::try_parse_from(["echoless", "dedup", "--memry", "1G"]).unwrap_err();
        let line = one_line(&error);
        assert!(
            line.starts_with("unexpected argument '--memry' found"),
            "{line}"
        );
        assert!(line.contains("'--memory'"), "{line}");
        assert!(!line.contains('\n') && !line.contains("Usage"), "{line}");
        let error = Args::try_parse_from(["echoless", "dedup", "-o", "-x"]).unwrap_err();
        assert_eq!(
            one_line(&error),
            "unexpected argument '-x' found; --help lists the options"
        );
        for (arguments, has) in [
            (
                ["packets", "--known=x"],
                "--known' found; dedup has --known",
            ),
            (
                ["packets", "--header"],
                "--header' found; dedup, gen, eval and plan have --header",
            ),
            (
                ["dedup", "--to-csv"],
                "--to-csv' found; eval and plan have --to-csv",
            ),
        ] {
            let all = ["echoless"].into_iter().chain(arguments);
            let error = Args::try_parse_from(all).unwrap_err();
            assert_eq!(one_line(&error), format!("unexpected argument '{has}"));
        }
    }
}
