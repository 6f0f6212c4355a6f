//! The configuration of `echoless gen`.

use clap::ValueEnum;
use echoless::SpecError;
use echoless_lab::stream::parse_count;

use super::{parse_if_given, parse_seed};
use crate::args::GenArgs;
use crate::failure::Failure;
use crate::files::Target;
use crate::generate::cdr::CdrFormat;
use crate::generate::packets::{CaptureConfig, Changes, FrameBytes};
use crate::generate::repeats::{Repeats, SourceRule};
use crate::generate::{GenConfig, Kind};
use crate::number::{parse_size, parse_whole};

/// How many packets later a copy follows unless an option sets another number.
const COPY_GAP: u64 = 100;

impl TryFrom<GenArgs> for GenConfig {
    type Error = Failure;

    fn try_from(args: GenArgs) -> Result<Self, Failure> {
        if let Some(bytes) = &args.record_bytes
            && args.kind != Kind::Lines
        {
            let allowed = "no length except for `lines`";
            return Err(SpecError::new("--record-bytes", bytes, allowed).into());
        }
        let only_cdr = [
            (args.header, "cdr with --header, whose records have fields"),
            (args.format.is_some(), "cdr with --format"),
        ];
        for (given, allowed) in only_cdr {
            if given && args.kind != Kind::Cdr {
                let kind = args.kind.to_possible_value();
                let kind = kind.map_or_else(String::new, |kind| kind.get_name().to_owned());
                return Err(SpecError::new("KIND", kind, allowed).into());
            }
        }
        let cdr_format = args.format.unwrap_or_default();
        if args.header && cdr_format == CdrFormat::Ber {
            let allowed = "no header with --format ber";
            return Err(Failure::option("--header", allowed));
        }
        let rule = match (&args.gap, &args.distribution, args.kind) {
            (Some(gap), _, _) => SourceRule::Gap(parse_count("--gap", gap)?),
            (None, Some(distribution), _) => distribution.parse()?,
            (None, None, Kind::Packets) => SourceRule::Gap(COPY_GAP),
            (None, None, Kind::Cdr | Kind::Keys | Kind::Lines) => SourceRule::Uniform,
        };
        let capture = capture(&args)?;
        let seed = parse_seed(&args.seed)?;
        Ok(Self {
            kind: args.kind,
            count: parse_number(&args.count)?,
            seed,
            repeats: Repeats::new(seed, parse_fraction(&args.duplicates)?, rule),
            cdr_format,
            record_bytes: match args.record_bytes {
                None => 100,
                Some(text) => parse_size("--record-bytes", &text)?
                    .try_into()
                    .unwrap_or(usize::MAX),
            },
            header: args.header || args.kind == Kind::Packets,
            capture,
            output: Target::from_path(args.output),
            quiet: args.quiet,
        })
    }
}

/// The capture of `packets`.
fn capture(args: &GenArgs) -> Result<CaptureConfig, SpecError> {
    let given = [
        ("--frame-bytes", args.frame_bytes.is_some()),
        ("--copies", args.copies.is_some()),
        ("--snap", args.snap.is_some()),
        ("--rate", args.rate.is_some()),
        ("--nanoseconds", args.nanoseconds),
        ("--pcapng", args.pcapng),
    ];
    if args.kind != Kind::Packets
        && let Some((option, _)) = given.iter().find(|(_, given)| *given)
    {
        let kind = args.kind.to_possible_value();
        let kind = kind.map_or_else(String::new, |kind| kind.get_name().to_owned());
        return Err(SpecError::new(
            "KIND",
            kind,
            format!("packets with {option}"),
        ));
    }
    let rate = args.rate.as_deref().unwrap_or("1M");
    let per_second = parse_count("--rate", rate)?;
    if per_second > 1_000_000_000 {
        return Err(SpecError::new("--rate", rate, "1 to 1G"));
    }
    Ok(CaptureConfig {
        frame_bytes: FrameBytes::parse(args.frame_bytes.as_deref().unwrap_or("imix"))?,
        copies: Changes::parse(args.copies.as_deref().unwrap_or("none"))?,
        snap: parse_if_given("--snap", args.snap.as_deref(), parse_snap)?,
        rate: per_second,
        nanoseconds: args.nanoseconds,
        pcapng: args.pcapng,
    })
}

/// Parses the most bytes of a packet.
fn parse_snap(option: &'static str, text: &str) -> Result<u32, SpecError> {
    parse_whole(option, text, 0..=u32::MAX)
}

/// Parses the number of records, which may be 0.
fn parse_number(text: &str) -> Result<u64, SpecError> {
    match text {
        "0" => Ok(0),
        _ => parse_count("--count", text).map_err(|error| SpecError {
            allowed: format!("0, or {}", error.allowed),
            ..error
        }),
    }
}

/// Parses the fraction of duplicates. Above 0.999, nearly every step back along the stream would
/// meet another duplicate.
fn parse_fraction(text: &str) -> Result<f64, SpecError> {
    let fraction = text.parse().ok();
    fraction
        .filter(|fraction| (0.0..=0.999).contains(fraction))
        .ok_or_else(|| SpecError::new("--duplicates", text, "a fraction from 0 to 0.999"))
}
