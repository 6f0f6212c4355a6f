//! The configuration of `echoless gen`.

use clap::ValueEnum;
use echoless::SpecError;

use crate::args::GenArgs;
use crate::files::Target;
use crate::generate::Kind;
use crate::generate::repeats::{Repeats, SourceRule};

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
        if let Some(bytes) = args.record_bytes
            && args.kind != Kind::Lines
        {
            let allowed = "no length except for `lines`";
            return Err(SpecError::new("--record-bytes", bytes.to_string(), allowed));
        }
        if args.header && args.kind != Kind::Cdr {
            let allowed = "cdr with --header, whose records have fields";
            let kind = args.kind.to_possible_value();
            let kind = kind.map_or_else(String::new, |kind| kind.get_name().to_owned());
            return Err(SpecError::new("KIND", kind, allowed));
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

/// Parses the share of duplicates. Above 0.999, nearly every step back along the stream would meet
/// another duplicate.
fn parse_share(text: &str) -> Result<f64, SpecError> {
    let share = text.parse().ok();
    share
        .filter(|share| (0.0..=0.999).contains(share))
        .ok_or_else(|| SpecError::new("--duplicates", text, "a share from 0 to 0.999"))
}
