//! The options of `sliced`.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::table::Outputs;

/// One of the experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// False positives by number of slices.
    Fpr,
    /// Fairness of the load of slices, and the largest share.
    Fairness,
    /// Rates with failed slices.
    Failures,
    /// Slices probed and messages for each arrival.
    Messages,
    /// The equal-timers heuristic.
    Timers,
    /// Growing filters while the rate of arrivals rises.
    Bursts,
    /// Hits and accesses of the levels of a tree.
    Tree,
}

impl Part {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fpr => "fpr",
            Self::Fairness => "fairness",
            Self::Failures => "failures",
            Self::Messages => "messages",
            Self::Timers => "timers",
            Self::Bursts => "bursts",
            Self::Tree => "tree",
        }
    }
}

/// The options of `sliced`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) only: Vec<Part>,
    /// Access log whose requests are a stream: the first word of a line is the producer, the
    /// seventh the event. Skipped if it is absent. The default is beside the repository.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "../shared/data/apache_access.log"
    )]
    pub(super) log: PathBuf,
    /// Runs of each setting, each with other hashes. Slow parts take a fifth of them.
    #[arg(long, default_value = "100")]
    pub(super) runs: NonZeroU64,
    /// Seed of the generated streams and of the hashes.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Number of settings that run at the same time.
    #[arg(long, default_value = "2")]
    pub(super) threads: NonZeroUsize,
    #[command(flatten)]
    pub(super) outputs: Outputs,
}

impl Arguments {
    /// The seeds of all runs.
    pub(super) fn seeds(&self) -> std::ops::Range<u64> {
        self.seed..self.seed.saturating_add(self.runs.get())
    }

    /// The seeds of the runs of a slow part.
    pub(super) fn few_seeds(&self) -> std::ops::Range<u64> {
        self.seed..self.seed.saturating_add(self.runs.get().div_ceil(5))
    }

    pub(super) fn includes(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}
