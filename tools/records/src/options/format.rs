//! The options that select a record format, made from the lists of formats.

use std::fmt::Write;

use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use echoless::SpecError;

use crate::delimiter::Delimiter;
use crate::failure::Failure;
use crate::formats::{
    ChosenFields, FormatBuild, FormatName, FormatOption, NAMES, OPTIONS, SelectedFormat, lines,
};
use crate::keys::SharedFormat;

const FORMAT: &str = "format";

/// The format that the command line selects.
#[derive(Debug)]
pub(crate) struct FormatArgs {
    /// The option that selects a format; `None` is plain lines.
    option: Option<&'static FormatOption>,
    /// The value of `--format`.
    named: Option<String>,
}

/// The options that define how a format is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FormatUse<'a> {
    pub(crate) fields: ChosenFields<'a>,
    /// That of `--delimiter` or `--whitespace`.
    pub(crate) delimiter: Option<&'a Delimiter>,
    pub(crate) header: bool,
    /// Whether records get a field of their own for the verdict.
    pub(crate) tag: bool,
}

impl FormatArgs {
    /// Builds the format and parses the fields of its records. Fails if the options contradict each
    /// other, the value of one is invalid, or a file that one names cannot be read.
    pub(crate) fn select(&self, given: FormatUse<'_>) -> Result<SelectedFormat, Failure> {
        let Some(text) = &self.named else {
            return delimited(self.option, given);
        };
        let (name, value) = find_name(text)?;
        if let Some(option) = self.option
            && !name.options.contains(&option.long)
        {
            let allowed = format!("a format that --{} does not contradict", option.long);
            return Err(SpecError::new("--format", text, allowed).into());
        }
        match &name.build {
            FormatBuild::Delimited { option, delimiter } => {
                if let (Some(delimiter), Some(typed)) = (delimiter, given.delimiter)
                    && *typed != Delimiter::Byte(*delimiter)
                {
                    let allowed = format!("no other delimiter than that of --format {text}");
                    return Err(typed.invalid(allowed));
                }
                let option = option.or(self.option);
                Ok(match delimiter {
                    None => delimited(option, given)?,
                    Some(delimiter) => {
                        let delimiter = Delimiter::Byte(*delimiter);
                        SelectedFormat::listed(
                            build(option, &delimiter)?,
                            &given.fields,
                            given.header,
                        )?
                    }
                })
            }
            FormatBuild::OwnFields(build) => {
                if let Some(delimiter) = given.delimiter {
                    let allowed = format!("no delimiter with --format {text}");
                    return Err(delimiter.invalid(allowed));
                }
                if given.header {
                    let allowed = format!("no header with --format {text}");
                    return Err(Failure::option("--header", allowed));
                }
                build(value, &given.fields)
            }
        }
    }

    /// The options that were given, each with its value if it takes one.
    pub(crate) fn given(&self) -> Vec<(String, Option<String>)> {
        let option = (self.option).map(|option| (format!("--{}", option.long), None));
        let named = self.named.as_ref();
        let named = named.map(|format| ("--format".to_owned(), Some(format.clone())));
        option.into_iter().chain(named).collect()
    }
}

/// A format with fields between delimiters: that of the option.
fn delimited(
    option: Option<&'static FormatOption>,
    given: FormatUse<'_>,
) -> Result<SelectedFormat, Failure> {
    let FormatUse { fields, tag, .. } = given;
    let has_fields = fields.key.is_some() || fields.time.is_some() || tag;
    if let Some(delimiter) = given.delimiter
        && !has_fields
        && !option.is_some_and(|option| option.needs_delimiter)
    {
        let of_uniq = match delimiter {
            Delimiter::Blanks => "--max-chars N is the -w of uniq",
            Delimiter::Byte(_) | Delimiter::Sequence(_) => "--repeated is the -d of uniq",
        };
        let allowed = "no delimiter without --key, --time-field, --tag or --csv";
        return Err(delimiter.invalid(format!("{allowed} ({of_uniq})")));
    }
    let delimiter = given.delimiter.cloned().unwrap_or_default();
    SelectedFormat::listed(build(option, &delimiter)?, &given.fields, given.header)
}

fn build(
    option: Option<&'static FormatOption>,
    delimiter: &Delimiter,
) -> Result<SharedFormat, Failure> {
    option.map_or_else(|| lines(delimiter), |option| (option.build)(delimiter))
}

/// The format with the name in a value of `--format`, and what follows the colon, if it has one.
fn find_name(text: &str) -> Result<(&'static FormatName, &str), SpecError> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let fits = |format: &&FormatName| {
        format.name == name && format.value_name.is_some() == value.is_some()
    };
    match NAMES.iter().find(fits) {
        Some(format) => Ok((format, value.unwrap_or_default())),
        None => {
            let allowed: Vec<String> = NAMES.iter().map(usage).collect();
            Err(SpecError::new("--format", text, allowed.join(", ")))
        }
    }
}

/// What a value of `--format` stands for, if records of it have fields between delimiters: the
/// option that selects the same format, without its hyphens, if it is another one than lines, and
/// the delimiter.
pub fn meaning_of_format(text: &str) -> Option<(Option<&'static str>, Option<Delimiter>)> {
    match &find_name(text).ok()?.0.build {
        FormatBuild::Delimited { option, delimiter } => {
            let delimiter = delimiter.map(Delimiter::Byte);
            Some((option.map(|option| option.long), delimiter))
        }
        FormatBuild::OwnFields(_) => None,
    }
}

/// How a name is written with its value.
fn usage(format: &FormatName) -> String {
    let value = format.value_name.map(|value| format!(":{value}"));
    format!("{}{}", format.name, value.unwrap_or_default())
}

impl Args for FormatArgs {
    fn augment_args(command: Command) -> Command {
        OPTIONS
            .iter()
            .fold(command, |command, option| command.arg(arg(option)))
            .arg(format_arg())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FormatArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = OPTIONS
            .iter()
            .filter(|option| matches.get_flag(option.long));
        let given: Vec<_> = given.collect();
        let implied = |long| given.iter().any(|other| other.implies.contains(&long));
        let selected = given.iter().find(|option| !implied(option.long));
        Ok(Self {
            option: selected.copied(),
            named: matches.get_one::<String>(FORMAT).cloned(),
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
    Arg::new(option.long)
        .long(option.long)
        .short(option.short)
        .help(option.help)
        .help_heading("Records")
        .conflicts_with_all(others.map(|other| other.long))
        .action(ArgAction::SetTrue)
}

fn format_arg() -> Arg {
    let mut help = String::from("Records are of this format:");
    for format in NAMES {
        // Writing to a string cannot fail.
        let _ = write!(help, "\n- {}: {}", usage(format), format.help);
    }
    Arg::new(FORMAT)
        .long(FORMAT)
        .value_name("FORMAT")
        .help(help)
        .help_heading("Records")
}
