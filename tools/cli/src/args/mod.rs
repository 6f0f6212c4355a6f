//! The command line as typed, one file for each subcommand or pair of them. [`crate::config`]
//! checks it and fills in defaults.

mod command;
mod dedup;
mod examples;
mod format;
mod generate;
mod habits;
mod lab;
mod packets;
mod records;
mod refused;
mod run;
mod state;
mod variable;

pub(crate) use command::{Args, Command, Parsed, Rejected, parse, parse_from};
pub(crate) use dedup::{DedupArgs, Keep, Late, key_options, must_not_change};
pub(crate) use format::{FormatUse, meaning_of_format};
pub(crate) use generate::GenArgs;
pub(crate) use lab::{EvalArgs, LabOutputs, PlanArgs, RecordFileArgs};
pub(crate) use packets::PacketArgs;
pub(crate) use records::RecordArgs;
pub(crate) use run::{RunArgs, Summary};
pub(crate) use state::{StateAction, StateArgs};
