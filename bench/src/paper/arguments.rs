//! What the `paper` command is asked for.

use std::num::{NonZeroU64, NonZeroUsize};

use clap::Args;
use echoless::spec::Form;

use super::tables::Paper;
use crate::table::Outputs;

/// The options of `paper`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The paper whose tables are run.
    #[arg(long, value_enum, default_value = "000")]
    pub(super) paper: Paper,
    /// Only this table of the paper.
    #[arg(long)]
    pub(super) table: Option<u32>,
    /// Divide stream lengths, universes and memories by this; rates stay the same within noise.
    #[arg(long, default_value = "64")]
    pub(super) scale: NonZeroU64,
    /// Which form of the filters runs.
    #[arg(long, default_value = "scattered")]
    pub(super) form: Form,
    /// Seeds the streams and the filters' random choices.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Cells run at once.
    #[arg(long, default_value = "2")]
    pub(super) threads: NonZeroUsize,
    #[command(flatten)]
    pub(super) outputs: Outputs,
}
