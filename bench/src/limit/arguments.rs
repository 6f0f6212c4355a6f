//! The options of `limit`.

use clap::Args;
use echoless::{Kernel, LookAhead};

use super::candidates::Candidate;
use crate::machine::SIZES_MIB;
use crate::table::Outputs;

/// The options of `limit`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Sizes of the filters, in MiB.
    #[arg(long, value_delimiter = ',', default_value = "1,64,512", value_parser = clap::value_parser!(u64).range(SIZES_MIB))]
    pub(super) sizes: Vec<u64>,
    /// Keys for each measurement, in millions.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(super) keys: u64,
    /// Measurements of each filter; the table has the median.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) rounds: u64,
    /// Kernels to measure. Default: all that this machine supports.
    #[arg(long, value_delimiter = ',')]
    pub(super) kernels: Vec<Kernel>,
    /// Blocks of 64 keys that filters prefetch ahead, 1 to 3, and perhaps the cache: 2 or 2,l2.
    /// Default: what each filter measures.
    #[arg(long, value_name = "BLOCKS")]
    pub(super) lookahead: Option<LookAhead>,
    /// Measure each filter with every look-ahead in turn, and without a fixed one: a table of the
    /// one that it chose against the best fixed one, and nothing else.
    #[arg(long, conflicts_with_all = ["lookahead", "repeats"])]
    pub(super) compare_lookahead: bool,
    /// Parts of the names of filters to measure, such as `lru` or `rlbsbf:k=2`, separated by `;`.
    /// Default: all.
    #[arg(long, value_delimiter = ';')]
    pub(super) only: Vec<String>,
    /// Measure streams in which nine of ten keys repeat one of the last 4 x lines new keys, in
    /// place of distinct keys. The last two columns are empty then, and rates include reading the
    /// draws.
    #[arg(long)]
    pub(super) repeats: bool,
    #[command(flatten)]
    pub(super) outputs: Outputs,
}

impl Arguments {
    /// Whether a filter is measured.
    pub(super) fn includes(&self, candidate: &Candidate) -> bool {
        let mut names = self.only.iter();
        self.only.is_empty() || names.any(|name| candidate.name.contains(name))
    }
}
