//! The options of `echoless packets` for live capture.

use clap::{Arg, Args as ClapArgs, ValueEnum};

const HEADING: &str = "Live capture";

/// An argument that no files go with, if it is one of live capture. That each requires an interface
/// is not enough: clap does not require an argument that conflicts with a given one.
fn without_files(arg: Arg) -> Arg {
    match arg.get_help_heading() {
        Some(HEADING) => arg.conflicts_with_all(["inputs", "skip_seen_files"]),
        _ => arg,
    }
}

/// What becomes of packets that come faster than they are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Overload {
    /// They pass without a verdict.
    Pass,
    /// Some are lost.
    Drop,
}

/// How packets are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CaptureMethod {
    /// By a packet socket.
    AfPacket,
    /// By AF_XDP.
    AfXdp,
}

/// Where packets are captured, and how.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = HEADING, mut_args(without_files))]
pub(crate) struct LiveArgs {
    /// Capture on this interface instead of reading files, until a signal (Ctrl-C) ends it. Several
    /// interfaces are one stream, in the order of time. Needs root or capabilities; Linux only
    #[arg(long = "interface", value_name = "NAME")]
    pub(crate) interfaces: Vec<String>,

    /// How to capture: copy what an interface receives and sends, or take what it receives by
    /// AF_XDP, which this machine then does not get
    #[arg(
        long,
        value_enum,
        value_name = "af-packet|af-xdp",
        default_value = "af-packet",
        requires = "interfaces",
        hide_possible_values = true
    )]
    pub(crate) capture: CaptureMethod,

    /// Capture only packets that this expression in the language of libpcap selects, such as 'udp
    /// and port 53'. Needs libpcap
    #[arg(long, value_name = "EXPRESSION", requires = "interfaces")]
    pub(crate) filter: Option<String>,

    /// Capture at most the first N bytes of each packet, 1 to 262144
    #[arg(long, value_name = "N", requires = "interfaces")]
    pub(crate) snap_length: Option<String>,

    /// Capture packets to others, too, as they arrive from mirror ports and taps
    #[arg(long, requires = "interfaces")]
    pub(crate) promiscuous: bool,

    /// Memory of each interface for packets that are not read yet, 256KiB or more [default: 32MiB]
    #[arg(long, value_name = "SIZE", requires = "interfaces")]
    pub(crate) buffer: Option<String>,

    /// Pass each packet on at once. Without this option it waits up to 20 ms for others
    #[arg(long, requires = "interfaces")]
    pub(crate) immediate: bool,

    /// End after this time: 90s, 10m, 1h
    #[arg(long, value_name = "TIME", requires = "interfaces")]
    pub(crate) duration: Option<String>,

    /// End after N captured packets
    #[arg(long, value_name = "N", requires = "interfaces")]
    pub(crate) packets: Option<String>,

    /// Send the packets that pass by this interface, and by -o only if that is given. What is sent
    /// is not captured again
    #[arg(long, value_name = "NAME", requires = "interfaces")]
    pub(crate) to: Option<String>,

    /// Write files of at most this size (1GiB), time (60s) or number of packets (100000) one after
    /// the other, as FILE_00001 and so on in the place of -o FILE. The one that is written ends in
    /// .part
    #[arg(
        long,
        value_name = "LIMIT",
        requires_all = ["interfaces", "output"],
        conflicts_with_all = ["count", "compress"]
    )]
    pub(crate) rotate: Option<String>,

    /// Keep the last N whole files that the run has written with --rotate, and remove its older
    /// ones
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<String>,

    /// Become this user once the interfaces are open, and keep no privilege: files that are written
    /// are the user's. Needs root
    #[arg(
        long,
        value_name = "NAME",
        requires = "interfaces",
        conflicts_with = "wait_interface"
    )]
    pub(crate) user: Option<String>,

    /// Wait for interfaces that are not there or not up, and capture one that is removed again once
    /// it is back
    #[arg(long, requires = "interfaces", conflicts_with = "strict")]
    pub(crate) wait_interface: bool,

    /// What to do when half of a buffer waits to be read: pass packets without a verdict, so that
    /// copies pass, or go on and have the kernel drop packets once it is full. Either is counted
    #[arg(
        long,
        value_enum,
        value_name = "pass|drop",
        default_value = "drop",
        requires = "interfaces",
        conflicts_with = "diagnose",
        hide_possible_values = true
    )]
    pub(crate) overload: Overload,

    /// Exit with code 3 if packets were lost, because they came faster than they were read or
    /// could not be sent
    #[arg(long, requires = "interfaces")]
    pub(crate) fail_on_loss: bool,
}
