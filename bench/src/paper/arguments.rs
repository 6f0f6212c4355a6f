//! The options of `paper`.

use std::num::{NonZeroU64, NonZeroUsize};

use clap::Args;
use echoless::spec::Form;

use super::tables::Paper;
use crate::table::Outputs;

/// The options of `paper`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Papers whose tables are run.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "000")]
    pub(super) paper: Vec<Paper>,
    /// Run only this table of each paper.
    #[arg(long)]
    pub(super) table: Option<u32>,
    /// Divide stream lengths, universes and memories by this. Rates stay the same within noise.
    #[arg(long, default_value = "64")]
    pub(super) scale: NonZeroU64,
    /// Forms of the filters to run: scattered, line.
    #[arg(long, value_delimiter = ',', default_value = "scattered")]
    pub(super) form: Vec<Form>,
    /// Seed of the streams and of the random choices of the filters.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Number of cells that run at the same time.
    #[arg(long, default_value = "2")]
    pub(super) threads: NonZeroUsize,
    #[command(flatten)]
    pub(super) outputs: Outputs,
}
