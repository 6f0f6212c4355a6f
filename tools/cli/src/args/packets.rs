//! The options of `echoless packets`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use echoless_records::options::{accept_hyphens, headed};

use super::live::LiveArgs;
use super::run::{RunArgs, ThreadArgs};

/// Remove duplicate packets from capture files (pcap, pcapng) or interfaces
///
/// A packet is dropped if an equal one lies inside the window before it. Kept packets, and all
/// blocks that are no packets, are copied unchanged. gzip, zstd, lz4, xz, bzip2 and lzip are
/// recognised by content.
#[derive(Debug, ClapArgs)]
#[command(mut_args(accept_hyphens(&["interfaces", "filter", "to", "user"])))]
#[command(mut_args(headed(&[
    ("Window", &["window", "window_packets", "no_refresh"]),
    ("Key", &["from", "ignore", "inner", "payload_bytes", "snap_safe", "skip_bytes", "group"]),
    ("Filter", &["memory"]),
    ("Which records", &["tag"]),
    ("Where to", &["report"]),
    ("Diagnosis", &["diagnose", "svg"]),
])))]
pub(crate) struct PacketArgs {
    /// Capture files to read as one stream, in the order of time; `-` or no file means standard
    /// input. Several pcap files must have one link type, byte order and resolution of times; pcapng
    /// files may differ
    #[arg(value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,

    /// A packet is a duplicate only of one captured at most this long before: 100ms, 1s, 500us.
    /// The clock is the latest time so far: a packet with an earlier time, or without one, is
    /// judged at the clock, and one earlier by more than the window is kept [default: 100ms,
    /// without --window-packets]
    #[arg(long, value_name = "TIME")]
    pub(crate) window: Option<String>,

    /// A packet is a duplicate only of one of the N packets before it. With --window, both windows
    /// must contain the other packet
    #[arg(long, value_name = "N")]
    pub(crate) window_packets: Option<String>,

    /// The window counts from the last copy that was kept. Without this option a dropped copy
    /// renews it
    #[arg(long)]
    pub(crate) no_refresh: bool,

    /// Layer that the comparison begins at: link, network, transport or payload. A packet without
    /// this layer is compared from the link layer on
    #[arg(long, value_name = "LAYER", default_value = "network")]
    pub(crate) from: String,

    /// Fields that may differ between copies, with commas between them: capture-header (radiotap
    /// and the like), mac, vlan, other-tags, lan-id (in PRP and HSR), mpls, pppoe, padding, tos,
    /// ttl, ip-id, ip-checksum, ip-options, flow-label, transport-checksum, tcp-seq, tcp-ack,
    /// tcp-window, tcp-options, checksum (both checksums), tunnel (all headers in front of the
    /// innermost packet); or none
    #[arg(long, value_name = "FIELDS", default_value = "lan-id,ttl,checksum")]
    pub(crate) ignore: String,

    /// Compare the innermost packet of tunnels (IP in IP, GRE, ERSPAN, VXLAN, Geneve, GTP-U, TZSP,
    /// L2TP and others), as with --ignore tunnel
    #[arg(long)]
    pub(crate) inner: bool,

    /// Compare at most N bytes behind the header of TCP, UDP, SCTP or ICMP; the length is compared
    /// in any case, and of packets without such a header all bytes are
    #[arg(long, value_name = "N")]
    pub(crate) payload_bytes: Option<String>,

    /// Compare at most the first N bytes from the layer on, so that copies captured with different
    /// snap lengths are equal; 40 or more, and no more than every capture has
    #[arg(long, value_name = "N")]
    pub(crate) snap_safe: Option<String>,

    /// Do not compare the first N bytes of each frame, for link headers that are not understood.
    /// What follows is compared from the IP header on if there is one beyond doubt, else all bytes.
    /// Where --from begins behind them, nothing changes
    #[arg(long, value_name = "N")]
    pub(crate) skip_bytes: Option<String>,

    /// What copies must have in common besides the packet: none, interface or vlan
    #[arg(long, value_name = "NAME", default_value = "none")]
    pub(crate) group: String,

    /// Memory of the filter: 64k, 256MiB, 2G (powers of 1024) or 500MB (powers of 1000) [default:
    /// 256MiB, enough for 100 ms of the smallest packets at 10 Gbit/s; less for short files and
    /// short windows]
    #[arg(short, long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Write every packet, and mark duplicates with the comment `echoless: duplicate` instead of
    /// dropping them. For pcapng files without simple packet blocks: only there a packet can have
    /// a comment
    #[arg(long, conflicts_with_all = ["invert", "count"])]
    pub(crate) tag: bool,

    /// Report the distances of duplicates, their interfaces, and which ignored fields differ; on
    /// standard error (not with --quiet) and in --stats
    #[arg(long)]
    pub(crate) report: bool,

    /// Write no packets, but in some lines of text whether there are copies, how far apart they
    /// are, what made them, and the command that removes them. Equal packets up to 2 s apart count,
    /// or up to --window
    #[arg(
        long,
        conflicts_with_all = [
            "window_packets", "no_refresh", "from", "ignore", "inner", "payload_bytes", "snap_safe",
            "group", "tag", "report", "invert", "count", "output", "duplicates", "explain",
            "compress", "fail_on_duplicates", "skip_seen_files", "to",
        ]
    )]
    pub(crate) diagnose: bool,

    /// Write the diagnosis to this file, too, with charts of the distances, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) live: LiveArgs,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}
