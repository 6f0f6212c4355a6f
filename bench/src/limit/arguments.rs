//! The options of `limit`.

use clap::Args;
use echoless::Kernel;

use super::candidates::Candidate;
use crate::machine::SIZES_MIB;
use crate::streams::BATCH;
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
    /// Blocks of 64 keys that filters prefetch ahead, 1 to 3, perhaps the cache, and perhaps that
    /// lines are found in vectors: 2, 2,l2 or 2,l2,vectors. Default: what each filter measures.
    #[arg(long, value_name = "BLOCKS")]
    pub(super) lookahead: Option<String>,
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
    /// Whether a filter is measured at a size in MiB.
    pub(super) fn includes(&self, candidate: &Candidate, size: u64) -> bool {
        let mut names = self.only.iter();
        let is_selected = self.only.is_empty() || names.any(|name| candidate.name.contains(name));
        is_selected && (candidate.batch == BATCH || size >= REGIONS_FROM)
    }
}

/// Filters in region order are measured from this size on, in MiB.
const REGIONS_FROM: u64 = 2048;
