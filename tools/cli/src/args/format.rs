//! The options that select a record format, made from the list of formats.

use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use echoless::SpecError;

use crate::records::format::{FormatOption, SharedFormat};
use crate::records::formats::{OPTIONS, lines};

/// The format that the command line selects; `None` is plain lines.
#[derive(Debug)]
pub(crate) struct FormatArgs {
    selected: Option<(&'static FormatOption, String)>,
}

impl FormatArgs {
    /// Whether the field delimiter affects where records end.
    pub(crate) fn needs_delimiter(&self) -> bool {
        (self.selected.as_ref()).is_some_and(|(option, _)| option.needs_delimiter)
    }

    /// Builds the format.
    ///
    /// # Errors
    /// [`SpecError`] if the format reserves the delimiter, or its option's value is invalid.
    pub(crate) fn build(&self, delimiter: u8) -> Result<SharedFormat, SpecError> {
        match &self.selected {
            Some((option, value)) => (option.build)(value, delimiter),
            None => lines(delimiter),
        }
    }
}

impl Args for FormatArgs {
    fn augment_args(command: Command) -> Command {
        OPTIONS
            .iter()
            .fold(command, |command, option| command.arg(arg(option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FormatArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let value = |option: &FormatOption| match option.value_name {
            Some(_) => matches.get_one::<String>(option.long).cloned(),
            None => matches.get_flag(option.long).then(String::new),
        };
        let given: Vec<_> = OPTIONS
            .iter()
            .filter_map(|option| Some((option, value(option)?)))
            .collect();
        let implied = |long| given.iter().any(|(other, _)| other.implies.contains(&long));
        let selected = given.iter().find(|(option, _)| !implied(option.long));
        Ok(Self {
            selected: selected.cloned(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn arg(option: &'static FormatOption) -> Arg {
    let compatible = |other: &FormatOption| {
        option.long == other.long
            || option.implies.contains(&other.long)
            || other.implies.contains(&option.long)
    };
    let others = OPTIONS.iter().filter(|other| !compatible(other));
    let arg = Arg::new(option.long)
        .long(option.long)
        .short(option.short)
        .help(option.help)
        .help_heading("Records")
        .conflicts_with_all(others.map(|other| other.long));
    match option.value_name {
        Some(name) => arg.value_name(name).allow_hyphen_values(true),
        None => arg.action(ArgAction::SetTrue),
    }
}
