//! The configuration of live capture.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use echoless::SpecError;
use echoless_capture::{LEAST_BUFFER, MOST_SNAP_LEN, Options};
use echoless_records::failure::Failure;
use echoless_records::number::{parse_if_given, parse_size, parse_time, parse_whole};

use super::packets::parse_packets;
use crate::args::{CaptureMethod, LiveArgs, Overload};
use crate::dedup::{MostOfFile, RotatedFiles};
use crate::packets::live::LiveCapture;
use crate::packets::user::User;

/// The memory of a ring without an option: at 10 Gbit/s, 25 ms of packets.
const BUFFER: u64 = 32 << 20;

/// More than any machine has.
const MOST_BUFFER: u64 = 1 << 40;

/// The longest time that a packet waits for others in its block, and the shortest that the kernel
/// has a timer for.
const BLOCK_TIMEOUT: Duration = Duration::from_millis(20);
const SHORTEST_BLOCK_TIMEOUT: Duration = Duration::from_millis(1);

impl LiveCapture {
    /// The capture of these options, if they name an interface.
    pub(super) fn from_args(args: LiveArgs) -> Result<Option<Self>, SpecError> {
        if args.interfaces.is_empty() {
            return Ok(None);
        }
        let mut known = HashSet::new();
        if let Some(again) = args
            .interfaces
            .iter()
            .find(|name| !known.insert(name.as_str()))
        {
            return Err(SpecError::new("--interface", again, "each interface once"));
        }
        let named = args.interfaces.iter().map(|name| ("--interface", name));
        let mut named = named.chain(args.to.iter().map(|name| ("--to", name)));
        if let Some((option, name)) = named.find(|(_, name)| name.is_empty()) {
            return Err(SpecError::new(option, name, "the name of an interface"));
        }
        let snap_len = args.snap_length.as_deref();
        let snap_len = parse_if_given("--snap-length", snap_len, |option, text| {
            parse_whole(option, text, 1..=MOST_SNAP_LEN)
        })?;
        let options = Options {
            by_xdp: args.capture == CaptureMethod::AfXdp,
            snap_len: snap_len.unwrap_or(MOST_SNAP_LEN),
            promiscuous: args.promiscuous,
            buffer: parse_if_given("--buffer", args.buffer.as_deref(), parse_buffer)?
                .unwrap_or(BUFFER),
            block_timeout: match args.immediate {
                true => SHORTEST_BLOCK_TIMEOUT,
                false => BLOCK_TIMEOUT,
            },
            filter: args.filter,
            sends_to: args.to,
            frames: parse_if_given("--packets", args.packets.as_deref(), parse_packets)?,
            interfaces: args.interfaces,
            waits: args.wait_interface,
        };
        let duration = parse_if_given("--duration", args.duration.as_deref(), parse_duration)?;
        let user = parse_if_given("--user", args.user.as_deref(), User::find)?;
        let (fails, passes) = (args.fail_on_loss, args.overload == Overload::Pass);
        Ok(Some(Self::new(options, duration, fails, passes, user)))
    }
}

/// The files of `--rotate` in the place of an output.
pub(super) fn rotated_files(
    args: &LiveArgs,
    output: Option<&Path>,
) -> Result<Option<RotatedFiles>, Failure> {
    let most = parse_if_given("--rotate", args.rotate.as_deref(), parse_most)?;
    let keep = parse_if_given("--keep", args.keep.as_deref(), |option, text| {
        parse_whole(option, text, 1..=usize::MAX)
    })?;
    let Some(most) = most else {
        if keep.is_some() {
            let allowed = "a limit of the files of which --keep keeps some";
            return Err(SpecError::missing("--rotate", allowed).into());
        }
        return Ok(None);
    };
    let output = output.filter(|path| *path != Path::new("-"));
    let output = output.ok_or_else(|| Failure::option("--rotate", "-o FILE, not a stream"))?;
    RotatedFiles::find(output, most, keep.unwrap_or(usize::MAX)).map(Some)
}

/// Parses what a file may hold. A number is one of packets, and `10m` are minutes.
fn parse_most(option: &'static str, text: &str) -> Result<MostOfFile, SpecError> {
    let most = match text.parse() {
        Ok(packets) => Some(MostOfFile::Packets(packets)),
        Err(_) => match (parse_time(option, text), parse_size(option, text)) {
            (Ok(time), _) => Some(MostOfFile::Nanoseconds(time)),
            (_, Ok(bytes)) => Some(MostOfFile::Bytes(bytes)),
            (Err(_), Err(_)) => None,
        },
    };
    let is_some = |most: &MostOfFile| {
        let (MostOfFile::Packets(number)
        | MostOfFile::Nanoseconds(number)
        | MostOfFile::Bytes(number)) = most;
        *number > 0
    };
    most.filter(is_some).ok_or_else(|| {
        let allowed = "a size such as 1GiB, a time such as 60s, or a number of packets, above 0";
        SpecError::new(option, text, allowed)
    })
}

fn parse_buffer(option: &'static str, text: &str) -> Result<u64, SpecError> {
    let bytes = parse_size(option, text)?;
    let allowed = "256KiB to 1TiB";
    (LEAST_BUFFER..=MOST_BUFFER)
        .contains(&bytes)
        .then_some(bytes)
        .ok_or_else(|| SpecError::new(option, text, allowed))
}

fn parse_duration(option: &'static str, text: &str) -> Result<Duration, SpecError> {
    let time = parse_time(option, text)?;
    let allowed = "a time above 0, such as 500ms, 90s or 10m";
    (time > 0)
        .then(|| Duration::from_nanos(time))
        .ok_or_else(|| SpecError::new(option, text, allowed))
}
