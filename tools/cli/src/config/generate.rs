//! What a run of `echoless gen` is to do: every value checked, every default filled in.

use echoless::SpecError;

use crate::args::GenArgs;
use crate::files::Target;
use crate::generate::Kind;
use crate::generate::repeats::{Repeats, SourceRule};

/// A run of `echoless gen`.
#[derive(Debug)]
pub(crate) struct GenConfig {
    pub(crate) kind: Kind,
    pub(crate) count: u64,
    pub(crate) seed: u64,
    pub(crate) repeats: Repeats,
    pub(crate) record_bytes: usize,
    pub(crate) header: bool,
    pub(crate) output: Target,
}

impl TryFrom<GenArgs> for GenConfig {
    type Error = SpecError;

    fn try_from(args: GenArgs) -> Result<Self, SpecError> {
        if args.record_bytes.is_some() && args.kind != Kind::Lines {
            return Err(SpecError::new(
                "record-bytes",
                "a length for such records",
                "with `lines` only",
            ));
        }
        if args.header && args.kind != Kind::Cdr {
            return Err(SpecError::new(
                "header",
                "a header line before such records",
                "with `cdr` only, whose records have fields",
            ));
        }
        let rule = match args.gap {
            Some(gap) => SourceRule::gap(gap)?,
            None => args.distribution.parse()?,
        };
        Ok(Self {
            kind: args.kind,
            count: args.count,
            seed: args.seed,
            repeats: Repeats::new(args.seed, parse_share(&args.duplicates)?, rule),
            record_bytes: args.record_bytes.unwrap_or(100),
            header: args.header,
            output: Target::from_path(args.output),
        })
    }
}

/// Parses the share of duplicates. Past 0.999 nearly every step back along the stream meets another duplicate.
fn parse_share(text: &str) -> Result<f64, SpecError> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=0.999).contains(&share) => Ok(share),
        _ => Err(SpecError::new(
            "duplicates",
            text,
            "a share from 0 to 0.999",
        )),
    }
}
