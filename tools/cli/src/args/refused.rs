//! Options of similar programs that a stream in fixed memory cannot have. Each is rejected with the
//! reason and with what to use instead; without them, the parser would suggest unrelated options.

use clap::Args as ClapArgs;
use echoless_records::failure::Failure;

/// Options that are hidden and rejected.
#[derive(Debug, ClapArgs)]
pub(crate) struct RefusedArgs {
    /// Write each record with the number of times that it occurs
    #[arg(short = 'c', hide = true)]
    counts: bool,
}

impl RefusedArgs {
    /// Checks that none of the options is given. The failure says why, and what to use.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.counts {
            true => Err(Failure::Usage(format!("-c is not possible: {COUNTS}"))),
            false => Ok(()),
        }
    }
}

const COUNTS: &str = "an exact count for each key takes memory for each key, and the memory of \
                      the filter is fixed; use sort FILE | uniq -c, --top-keys FILE for the keys \
                      with the most duplicates, or --count for the number of records that would be \
                      written";
