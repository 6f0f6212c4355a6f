//! The configuration of `echoless packets`.

use std::sync::Arc;

use echoless::memory::LINE_BYTES;
use echoless::spec::{Form, format_bytes};
use echoless::{FilterSpec, FingerprintGeometry, SlotWidth, SpecError, Window};
use echoless_packets::key::{Field, KeyError, KeyOptions, KeyReader};
use echoless_records::compression::codec::Detection;
use echoless_records::compression::length::plain_len;
use echoless_records::failure::Failure;
use echoless_records::files::{Source, Target};
use echoless_records::number::{parse_if_given, parse_size, parse_time};
use echoless_stream::{Span, parse_count};

use super::dedup::{Content, DedupConfig};
use super::known_states::KnownStates;
use super::live::rotated_files;
use super::memory_size::{MOST_DEFAULT_MEMORY, at_most_default, memory_for, most_distinct_records};
use super::run::RunConfig;
use super::window::WindowConfig;
use crate::args::{CaptureMethod, Keep, PacketArgs, Summary};
use crate::dedup::RotatedFiles;
use crate::packets::diagnosis::{DiagnosisConfig, wide_key};
use crate::packets::filter::{BothSpec, CountedSpec, Windows};
use crate::packets::header::StreamHeader;
use crate::packets::keys::PacketReading;
use crate::packets::live::LiveCapture;

/// The window without an option, in nanoseconds: 100 ms.
const DEFAULT_WINDOW: u64 = 100_000_000;

/// The same of a diagnosis: 2 s.
const DIAGNOSIS_WINDOW: u64 = 2_000_000_000;

/// The least bytes of a packet in a file: the header of its block in a pcap file.
const LEAST_BLOCK: u64 = 16;

/// The least time between packets in nanoseconds, rounded down: 64 bytes, a preamble and a gap at
/// 100 Gbit/s. Short windows then need little memory, which matters because a filter with fine
/// ticks is swept often.
const LEAST_INTERVAL: u64 = 6;

/// Packets, how they are read, and their windows.
#[derive(Debug)]
pub(crate) struct PacketConfig {
    pub(crate) reading: Arc<PacketReading>,
    pub(crate) windows: Windows,
    /// The window of packets beside one of time.
    pub(crate) second: Option<u64>,
    /// What is captured, if packets are not read from files.
    pub(crate) live: Option<LiveCapture>,
    /// What takes the place of the packets.
    pub(crate) diagnosis: Option<DiagnosisConfig>,
    /// The files that take the place of one output.
    pub(crate) rotated: Option<RotatedFiles>,
}

impl PacketConfig {
    /// The window of packets that must contain a copy beside the window of time.
    pub(crate) fn second_window(&self) -> Option<Window> {
        match &self.windows {
            Windows::Time(_) | Windows::Packets(_) => None,
            Windows::Both(both) => both.packets.filter.facts().window,
        }
    }
}

impl TryFrom<PacketArgs> for DedupConfig {
    type Error = Failure;

    fn try_from(mut args: PacketArgs) -> Result<Self, Failure> {
        if args.report && args.run.quiet && args.run.stats.is_none() {
            let allowed = "--stats FILE beside --report and --quiet: the report goes nowhere else";
            return Err(SpecError::missing("--stats", allowed).into());
        }
        if args.svg.is_some() && !args.diagnose {
            let allowed = "--diagnose beside --svg FILE, which is a drawing of the diagnosis";
            return Err(SpecError::missing("--diagnose", allowed).into());
        }
        let refresh = !args.no_refresh;
        let time = parse_if_given("--window", args.window.as_deref(), parse_window)?;
        let count = args.window_packets.as_deref();
        let count = parse_if_given("--window-packets", count, parse_packets)?;
        let window = |span| WindowConfig::of_packets(span, refresh);
        let (first, second) = match (time, count) {
            (None, None) if args.diagnose => (window(Span::Time(DIAGNOSIS_WINDOW)), None),
            (None, None) => (window(Span::Time(DEFAULT_WINDOW)), None),
            (Some(time), None) => (window(Span::Time(time)), None),
            (None, Some(count)) => (window(Span::Records(count)), None),
            (Some(time), Some(count)) => {
                (window(Span::Time(time)), Some(window(Span::Records(count))))
            }
        };
        let keys = key_reader(&args)?;
        let diagnosis = args.diagnose.then(|| diagnosis(&mut args));
        let mut run = args.run;
        let rotated = rotated_files(&args.live, run.output.as_deref())?;
        let live = LiveCapture::from_args(args.live)?;
        let sends = live.as_ref().is_some_and(LiveCapture::sends);
        if sends && run.output.is_none() && !run.count {
            run.output = Some("/dev/null".into());
        }
        let sources = match &live {
            Some(live) => vec![live.source()],
            None => Source::all(&args.inputs),
        };
        let input_bytes = Source::total_len(&sources);
        let plain_bytes = plain_len(&sources, Detection::Binary);
        let memory = match parse_if_given("--memory", args.memory.as_deref(), parse_size)? {
            Some(memory) => memory,
            None => memory_of_window(&sources, plain_bytes, time, count),
        };
        let least = 2 * LINE_BYTES;
        if second.is_some() && memory < least {
            let allowed = format!("{least} B or more with two windows");
            return Err(SpecError::new("--memory", format_bytes(memory), allowed).into());
        }
        let (filter, windows) = match &second {
            None => {
                let filter = filter(&first, memory)?;
                let windows = match first.span {
                    Span::Time(_) => Windows::Time(filter),
                    Span::Records(_) => Windows::Packets(CountedSpec {
                        filter,
                        resolution: first.resolution,
                    }),
                };
                (filter, windows)
            }
            Some(second) => {
                // One of them is as likely to be the tighter window as the other.
                let half = |window: &WindowConfig| {
                    let renewing = WindowConfig {
                        refresh: true,
                        ..window.clone()
                    };
                    filter(&renewing, memory / 2)
                };
                let time = half(&first)?;
                let windows = Windows::Both(Box::new(BothSpec {
                    time,
                    packets: CountedSpec {
                        filter: half(second)?,
                        resolution: second.resolution,
                    },
                    refresh,
                }));
                (time, windows)
            }
        };
        let reading = PacketReading {
            keys,
            report: args.report || args.diagnose,
            tag: args.tag,
        };
        let packets = PacketConfig {
            reading: Arc::new(reading),
            windows,
            second: second.map(|window| window.span.units()),
            live,
            diagnosis,
            rotated,
        };
        Ok(Self {
            sources,
            known: 0,
            follow: false,
            known_states: KnownStates::default(),
            little_memory: false,
            input_bytes,
            plain_bytes,
            content: Content::Packets(Arc::new(packets)),
            keep: Keep::First,
            rereading: None,
            exact: None,
            filter,
            window: Some(first),
            run: RunConfig::new(run, args.threads, Vec::new())?,
            state: None,
            restart: None,
            skipped: None,
            stream_header: StreamHeader::default(),
        })
    }
}

/// The exact filter of a window: 40 bits of fingerprint and 24 bits of time for each key.
///
/// A fresh packet is reported as a duplicate if one of the live keys of its line, at most 8, has
/// its fingerprint: less than `8 / 2^40`, or 7e-12, in memory up to 1 GiB. Of 10^9 packets, fewer
/// than 0.008 are. In more memory the line is selected by bits of the fingerprint, and each
/// doubling doubles the probability.
fn filter(window: &WindowConfig, memory: u64) -> Result<FilterSpec, SpecError> {
    let spec: FilterSpec = window.completed("stamped:bits=64").parse()?;
    Ok(spec.form(Form::Line).memory(memory))
}

/// The memory without `-m`: 256 MiB, or less if fewer packets can be in the window, at most one in
/// [`LEAST_INTERVAL`].
///
/// 100 ms of the smallest packets at 10 Gbit/s are 1.5 million. They put 0.36 keys into a line of
/// 8 slots on average, and none is evicted.
fn memory_of_window(
    sources: &[Source],
    plain_bytes: Option<u64>,
    window_time: Option<u64>,
    window_packets: Option<u64>,
) -> u64 {
    let lines = MOST_DEFAULT_MEMORY / LINE_BYTES;
    let shape = FingerprintGeometry::new(lines, SlotWidth::Bits64);
    // Files of `/proc` have a length of 0 and content all the same.
    let empty = sources.iter().any(|source| source.length() == Some(0));
    let bytes = plain_bytes.filter(|_| !empty);
    let in_files = bytes.map(|bytes| most_distinct_records(bytes, LEAST_BLOCK));
    let bounds = [
        in_files,
        window_time.map(|time| time / LEAST_INTERVAL + 1),
        window_packets.map(|packets| packets.saturating_add(1)),
    ];
    let keys = bounds.into_iter().flatten().min();
    at_most_default(keys.map(|keys| memory_for(keys, shape)))
}

/// Parses `--window`: a time above 0.
fn parse_window(option: &'static str, text: &str) -> Result<u64, SpecError> {
    let time = parse_time(option, text).ok().filter(|time| *time > 0);
    time.ok_or_else(|| {
        let allowed = "a time such as 100ms, 500us or 0.05s (ns, m, h and d too, at most 106751d); a number of packets is --window-packets";
        SpecError::new(option, text, allowed)
    })
}

/// Parses a number of packets, 1 or more, that stamps can count.
pub(super) fn parse_packets(option: &'static str, text: &str) -> Result<u64, SpecError> {
    let count = parse_count(text).filter(|count| *count <= u64::MAX >> 1);
    count.ok_or_else(|| {
        let allowed = "a number of packets, 1 to 2^63 - 1, such as 1000 or 10k";
        SpecError::new(option, text, allowed)
    })
}

fn key_reader(args: &PacketArgs) -> Result<KeyReader, SpecError> {
    let mut ignore: echoless_packets::key::FieldSet = args.ignore.parse().map_err(rejected)?;
    if args.inner {
        ignore = ignore.with(Field::Tunnel);
    }
    let number = |option, text: Option<&str>| parse_if_given(option, text, parse_length);
    let skip_bytes = number("--skip-bytes", args.skip_bytes.as_deref())?.unwrap_or(0);
    if args.diagnose {
        return wide_key(skip_bytes).map_err(rejected);
    }
    let options = KeyOptions {
        from: args.from.parse().map_err(rejected)?,
        ignore,
        payload_bytes: number("--payload-bytes", args.payload_bytes.as_deref())?,
        snap_safe: number("--snap-safe", args.snap_safe.as_deref())?,
        skip_bytes,
        group: args.group.parse().map_err(rejected)?,
    };
    KeyReader::new(options).map_err(rejected)
}

/// What a diagnosis is of, which has a line for a summary unless the options set another one.
fn diagnosis(args: &mut PacketArgs) -> DiagnosisConfig {
    args.run.summary.get_or_insert(Summary::Line);
    let live = &args.live;
    let mut options = Vec::new();
    let mut add = |name: &str, value: &Option<String>| {
        options.extend(
            value
                .iter()
                .flat_map(|value| [name.to_owned(), value.clone()]),
        );
    };
    add("--skip-bytes", &args.skip_bytes);
    for name in &live.interfaces {
        add("--interface", &Some(name.clone()));
    }
    add("--filter", &live.filter);
    add("--snap-length", &live.snap_length);
    if live.capture == CaptureMethod::AfXdp {
        options.extend(["--capture", "af-xdp"].map(str::to_owned));
    }
    options.extend(live.promiscuous.then(|| "--promiscuous".to_owned()));
    let typed = |source: &Source| match source.typed() {
        _ if source.is_stdin() => "FILE".into(),
        option if option.starts_with('-') => format!("./{option}"),
        path => path,
    };
    let inputs = match live.interfaces.is_empty() {
        true => Source::all(&args.inputs).iter().map(typed).collect(),
        false => Vec::new(),
    };
    DiagnosisConfig {
        interfaces: live.interfaces.clone(),
        by_xdp: live.capture == CaptureMethod::AfXdp,
        svg: args.svg.take().map(Target::from),
        options,
        inputs,
    }
}

/// Parses a number of bytes of a packet.
fn parse_length(option: &'static str, text: &str) -> Result<u32, SpecError> {
    let allowed = "a number of bytes, 0 to 4294967295";
    text.parse()
        .map_err(|_| SpecError::new(option, text, allowed))
}

/// The options of a key as they are named on the command line.
const KEY_OPTIONS: [(&str, &str); 5] = [
    ("from", "--from"),
    ("ignore", "--ignore"),
    ("payload_bytes", "--payload-bytes"),
    ("snap_safe", "--snap-safe"),
    ("group", "--group"),
];

/// A rejected option, named as on the command line.
fn rejected(error: KeyError) -> SpecError {
    let found = KEY_OPTIONS.iter().find(|(name, _)| *name == error.option);
    let option = found.map_or(error.option, |(_, option)| option);
    SpecError::new(option, error.value, error.allowed)
}
