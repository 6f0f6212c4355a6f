//! From arguments to configurations: every value checked, every default filled in. One file for
//! each subcommand.

mod dedup;
mod default_filter;
mod inputs;
mod keep;
mod known_states;
mod lasting;
mod live;
mod memory_size;
mod packets;
mod run;
mod window;

pub(crate) use crate::args::{Keep, Late, Summary};
pub(crate) use dedup::{Content, DedupConfig, RecordConfig, StateConfig};
pub(crate) use known_states::KnownStates;
pub(crate) use lasting::check_options;
pub(crate) use packets::PacketConfig;
pub(crate) use run::{RunConfig, core_count};
pub(crate) use window::{ClockSource, WindowConfig};
