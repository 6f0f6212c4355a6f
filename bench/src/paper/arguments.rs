//! What the `paper` command is asked for.

use std::num::{NonZeroU64, NonZeroUsize};

use clap::Args;
use echoless::spec::Form;

use super::tables::Paper;
use crate::table::Outputs;

/// The options of `paper`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The papers whose tables are run.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "000")]
    pub(super) paper: Vec<Paper>,
    /// Only this table of each paper.
    #[arg(long)]
    pub(super) table: Option<u32>,
    /// Divide stream lengths, universes and memories by this; rates stay the same within noise.
    #[arg(long, default_value = "64")]
    pub(super) scale: NonZeroU64,
    /// Which forms of the filters run: scattered, line.
    #[arg(long, value_delimiter = ',', default_value = "scattered")]
    pub(super) form: Vec<Form>,
    /// Seeds the streams and the filters' random choices.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Cells run at once.
    #[arg(long, default_value = "2")]
    pub(super) threads: NonZeroUsize,
    #[command(flatten)]
    pub(super) outputs: Outputs,
}
