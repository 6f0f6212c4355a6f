//! The options of `echoless gen`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use echoless::SpecError;
use echoless_records::failure::Failure;
use echoless_records::files::Target;
use echoless_records::number::{parse_if_given, parse_seed, parse_size, parse_whole};
use echoless_records::options::{accept_hyphens, headed};

use super::cdr::CdrFormat;
use super::packets::{CaptureConfig, Changes, FrameBytes};
use super::repeats::{Repeats, SourceRule};
use super::{GenConfig, Kind};
use crate::stream::parse_count;

/// Write a reproducible stream of generated records
#[derive(Debug, ClapArgs)]
#[command(mut_args(accept_hyphens(&["distribution", "copies"])))]
#[command(mut_args(headed(&[
    ("Packets", &["frame_bytes", "copies", "snap", "rate", "nanoseconds", "pcapng"]),
])))]
pub struct GenArgs {
    /// Kind of records
    #[arg(value_enum)]
    pub(crate) kind: Kind,

    /// Number of records: 1000, 10k, 1M (powers of 1000)
    #[arg(short = 'n', long, value_name = "N", default_value = "1M")]
    pub(crate) count: String,

    /// Seed of the stream; equal seeds and options give equal bytes
    #[arg(long, default_value = "0")]
    pub(crate) seed: String,

    /// Fraction of the records that repeat an earlier one, 0 to 0.999
    #[arg(long, value_name = "FRACTION", default_value = "0")]
    pub(crate) duplicates: String,

    /// Which earlier record a duplicate repeats: all equally likely (uniform), or the earliest most
    /// often (zipf, zipf:EXPONENT) [default: uniform]
    #[arg(long, value_name = "NAME", requires = "duplicates")]
    pub(crate) distribution: Option<String>,

    /// Make each duplicate repeat the record exactly N records before it: 1000, 10k, 1M
    #[arg(
        long,
        value_name = "N",
        requires = "duplicates",
        conflicts_with = "distribution"
    )]
    pub(crate) gap: Option<String>,

    /// Length of the records of `lines`, newline included: 64, 1k [default: 100]
    #[arg(long, value_name = "SIZE")]
    pub(crate) record_bytes: Option<String>,

    /// How the records of `cdr` are written [default: csv]
    #[arg(long, value_enum, value_name = "csv|ber")]
    pub(crate) format: Option<CdrFormat>,

    /// Begin with a header line (cdr in csv only)
    #[arg(long)]
    pub(crate) header: bool,

    /// Length of the frames of `packets`: 60 to 9216, or imix for 7 of 60, 4 of 590 and 1 of 1514
    /// bytes [default: imix]
    #[arg(long, value_name = "BYTES")]
    pub(crate) frame_bytes: Option<String>,

    /// What differs in the copies of `packets`, with commas in between: ttl (one less), mac
    /// (another pair), vlan (one more tag) [default: none]
    #[arg(long, value_name = "FIELDS", requires = "duplicates")]
    pub(crate) copies: Option<String>,

    /// Capture at most this many bytes of a packet
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    pub(crate) snap: Option<String>,

    /// Packets in a second of their times, 1 to 1G [default: 1M]
    #[arg(long, value_name = "N")]
    pub(crate) rate: Option<String>,

    /// Write times in nanoseconds instead of microseconds
    #[arg(long)]
    pub(crate) nanoseconds: bool,

    /// Write a pcapng file instead of a pcap file
    #[arg(long)]
    pub(crate) pcapng: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write no progress, only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

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
