//! Options of similar programs that a stream in fixed memory cannot have. Each is rejected with the
//! reason and with what to use instead; without them, the parser would suggest unrelated options.

use clap::{Args as ClapArgs, ValueEnum};

use crate::failure::Failure;

/// Options that are hidden and rejected, except `--keep first`, which is what happens anyway.
#[derive(Debug, ClapArgs)]
pub(crate) struct RefusedArgs {
    /// Which record of a key to write
    #[arg(long, value_name = "WHICH", hide = true)]
    keep: Option<Keep>,

    /// The same as `--keep last`
    #[arg(long, hide = true)]
    last: bool,

    /// Write only the records whose key occurs once
    #[arg(short, long, hide = true)]
    unique: bool,

    /// Write each record with the number of times that it occurs
    #[arg(short = 'c', hide = true)]
    counts: bool,
}

/// The values of `--keep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Keep {
    First,
    Last,
}

impl RefusedArgs {
    /// Checks that none of the options is given.
    ///
    /// # Errors
    /// [`Failure::Usage`] with one sentence: why, and what to use.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let &Self {
            keep,
            last,
            unique,
            counts,
        } = self;
        let sentence = if last {
            Some(("--last", LAST))
        } else if keep == Some(Keep::Last) {
            Some(("--keep last", LAST))
        } else if unique {
            Some(("--unique", UNIQUE))
        } else if counts {
            Some(("-c", COUNTS))
        } else {
            None
        };
        sentence.map_or(Ok(()), |(option, why)| {
            Err(Failure::Usage(format!("{option} is not possible: {why}")))
        })
    }
}

const LAST: &str = "which record of a key is its last is known only at the end of the stream, and \
                    records are written as they are read; use tac FILE | echoless dedup | tac";

const UNIQUE: &str = "whether a key occurs again is known only at the end of the stream, and \
                      records are written as they are read; use sort FILE | uniq -u, or \
                      --repeated for the keys that do occur again";

const COUNTS: &str = "an exact count for each key takes memory for each key, and the memory of \
                      the filter is fixed; use sort FILE | uniq -c, or --count for the number of \
                      records that would be written";
