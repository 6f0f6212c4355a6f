//! The command line as typed, one file for each subcommand or pair of them. [`crate::config`]
//! checks it and fills in defaults.

mod command;
mod dedup;
mod examples;
mod habits;
mod live;
mod packets;
mod refused;
mod run;
mod state;
mod variable;

pub(crate) use command::{Args, Command, Parsed, Rejected, parse, parse_from};
pub(crate) use dedup::{DedupArgs, Keep, Late, key_options, must_not_change};
pub(crate) use live::{CaptureMethod, LiveArgs, Overload};
pub(crate) use packets::PacketArgs;
pub(crate) use run::{RunArgs, Summary, ThreadArgs};
pub(crate) use state::{StateAction, StateArgs};
