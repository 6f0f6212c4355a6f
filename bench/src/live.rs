//! Live capture beside `tcpdump` and beside the same packets in a file: the CPU time of a packet,
//! and what is lost, over a pair of virtual interfaces.
//!
//! The interfaces are in a network namespace of this process, which nothing outside of it sees.
//! Where the right to make one is missing, nothing is measured, and a message reports it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use echoless_capture::Sender;
use echoless_packets::LinkType;
use echoless_packets::writer::PcapWriter;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use serde_json::Value;
use wait4::Wait4;

use crate::clock::median;
use crate::failure::Failure;
use crate::table::{Cell, Outputs, Table};
use crate::tools::{echoless, find, run_child};
use crate::turns::measure_in_turn;

/// The options of `live`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Packets of a run.
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1000..))]
    packets: u64,
    /// Packets sent per second.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
    /// Measurements of each row; the table has the medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    #[command(flatten)]
    outputs: Outputs,
}

/// The interface that packets are sent by, and the one that has them.
const SENDS: &str = "sends";
const CAPTURED: &str = "captured";

/// The lengths of the frames that come in turns, without the checksum: the smallest, and IMIX.
const KINDS: [(&str, &[usize]); 2] = [
    ("60 bytes", &[60]),
    (
        "IMIX",
        &[60, 590, 60, 60, 590, 60, 1514, 60, 590, 60, 590, 60],
    ),
];

/// Every so many packets, one is a copy of that before it.
const COPIES: u64 = 4;

/// How long a capture may take to begin, and to end behind its last packet.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks, and between the begin of a capture and the first packet.
const PAUSE: Duration = Duration::from_millis(100);

/// The values of `--capture`.
const AF_PACKET: &str = "af-packet";
const AF_XDP: &str = "af-xdp";

/// A program that gets the packets.
#[derive(Debug, Clone)]
enum Way {
    Tcpdump(PathBuf),
    /// From the interface; to a file, or to the null device.
    Live {
        capture: &'static str,
        output: Option<PathBuf>,
    },
    /// From a file with the same packets.
    File(PathBuf),
}

impl Way {
    fn name(&self) -> &'static str {
        match self {
            Self::Tcpdump(_) => "tcpdump -w /dev/null",
            Self::Live {
                output: Some(_), ..
            } => "packets --interface -o FILE",
            Self::Live {
                capture: AF_PACKET, ..
            } => "packets --interface",
            Self::Live { .. } => "packets --interface --capture af-xdp",
            Self::File(_) => "packets FILE",
        }
    }
}

/// What a run took.
#[derive(Debug, Clone, Copy)]
struct Taken {
    cpu_seconds: f64,
    lost: u64,
}

/// Measures and prints the table.
///
/// # Errors
/// If a program is not available or fails, or has counted other packets than were sent.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let (ours, tcpdump) = (echoless()?, find("tcpdump", folder.path()));
    if tcpdump.is_none() {
        eprintln!("skipped: tcpdump is absent");
    }
    if let Err(error) = make_network() {
        eprintln!("skipped: no network for the packets: {error}");
        return Ok(());
    }
    let has_xdp = has_xdp(&ours)?;
    let mut table = Table::new(&[
        "frames",
        "command",
        "packets",
        "packets_per_second",
        "cpu_seconds",
        "ns_per_packet",
        "lost",
        "cpu_ratio",
    ]);
    for (kind, lengths) in KINDS {
        let file = folder.path().join("packets.pcap");
        write_file(&file, arguments.packets, lengths)?;
        let mut ways: Vec<_> = tcpdump.iter().cloned().map(Way::Tcpdump).collect();
        let output = folder.path().join("out.pcapng");
        let live = |capture, output| Way::Live { capture, output };
        ways.extend([live(AF_PACKET, None), live(AF_PACKET, Some(output))]);
        ways.extend(has_xdp.then(|| live(AF_XDP, None)));
        ways.push(Way::File(file));
        let stats = folder.path().join("stats");
        let taken = measure_in_turn(&mut ways, arguments.rounds, |way| {
            let taken = measure(way, arguments, lengths, &ours, &stats);
            taken.map_err(|error| format!("{kind}, {}: {error}", way.name()).into())
        })?;
        let cpu = |taken: &[Taken]| median(taken.iter().map(|it| it.cpu_seconds).collect());
        let of_tcpdump = tcpdump.as_ref().map(|_| cpu(&taken[0]));
        for (way, taken) in ways.iter().zip(&taken) {
            let is_live = !matches!(way, Way::File(_));
            table.push(vec![
                kind.into(),
                way.name().into(),
                arguments.packets.into(),
                is_live.then_some(arguments.rate).into(),
                cpu(taken).into(),
                (cpu(taken) / arguments.packets as f64 * 1e9).into(),
                taken.iter().map(|it| it.lost).sum::<u64>().into(),
                of_tcpdump
                    .map(|of| cpu(taken) / of)
                    .map_or(Cell::Nothing, Cell::from),
            ]);
        }
    }
    table.publish(&arguments.outputs)
}

/// Has this process be in a network of its own, with the two interfaces.
fn make_network() -> Result<(), Failure> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    let quiet = "net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1";
    for line in [
        format!("sysctl -qw {quiet}"),
        format!("ip link add {SENDS} type veth peer name {CAPTURED}"),
        format!("ip link set {SENDS} up"),
        format!("ip link set {CAPTURED} up"),
    ] {
        let mut words = line.split(' ');
        let program = words.next().unwrap_or_default();
        let ended = Command::new(program).args(words).output()?;
        if !ended.status.success() {
            return Err(
                format!("{line}: {}", String::from_utf8_lossy(&ended.stderr).trim()).into(),
            );
        }
    }
    Ok(())
}

/// Whether packets can be captured by AF_XDP here; a message if not.
fn has_xdp(ours: &Path) -> Result<bool, Failure> {
    let mut probe = Command::new(ours);
    probe.args(["packets", "--interface", CAPTURED, "--capture", AF_XDP]);
    let probe = probe
        .args(["--duration", "1ms", "-o", "/dev/null"])
        .output()?;
    if !probe.status.success() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&probe.stderr).trim());
    }
    Ok(probe.status.success())
}

/// Makes the next packet in `frame`: UDP in IPv4, of which one in [`COPIES`] is that before it.
fn make(frame: &mut Vec<u8>, number: u64, lengths: &[usize]) {
    let original = number - u64::from(number % COPIES == COPIES - 1);
    let length = lengths[(original % lengths.len() as u64) as usize];
    frame.clear();
    frame.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    let total = (length - frame.len()) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend((original as u16).to_be_bytes());
    frame.extend([0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([3, 232, 7, 208]);
    frame.extend((total - 20).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(original.to_be_bytes());
    frame.resize(length, 0);
}

fn write_file(path: &Path, packets: u64, lengths: &[usize]) -> Result<(), Failure> {
    let (mut writer, mut frame) = (PcapWriter::new(false, true, LinkType::ETHERNET), Vec::new());
    for number in 0..packets {
        make(&mut frame, number, lengths);
        writer.packet(number * 5000, &frame, frame.len() as u32);
    }
    Ok(fs::write(path, writer.into_bytes())?)
}

fn measure(
    way: &Way,
    arguments: &Arguments,
    lengths: &[usize],
    ours: &Path,
    stats: &Path,
) -> Result<Taken, Failure> {
    let packets = arguments.packets;
    let counted = packets.to_string();
    let mut command = match way {
        Way::Tcpdump(program) => {
            let mut command = Command::new(program);
            command.args([
                "-n",
                "-i",
                CAPTURED,
                "-B",
                "32768",
                "-w",
                "/dev/null",
                "-c",
                &counted,
            ]);
            command
        }
        Way::Live { capture, output } => {
            let mut command = Command::new(ours);
            command.args(["packets", "--interface", CAPTURED, "--packets", &counted]);
            command.args(["--capture", capture]);
            if let Some(output) = output {
                command.arg("-o").arg(output);
            }
            command.arg("--stats").arg(stats);
            command
        }
        Way::File(file) => {
            let mut command = Command::new(ours);
            command.arg("packets").arg("--stats").arg(stats).arg(file);
            let usage = run_child(&mut command, None, None)?;
            check(stats, packets, 0)?;
            return Ok(Taken {
                cpu_seconds: usage.cpu_seconds,
                lost: 0,
            });
        }
    };
    let messages = stats.with_extension("messages");
    command
        .stdout(Stdio::null())
        .stderr(File::create(&messages)?);
    let mut child = command.spawn()?;
    await_capture(&mut child)?;
    send(packets, arguments.rate, lengths)?;
    let used = end(child)?;
    let messages = fs::read_to_string(messages)?;
    let lost = match way {
        Way::Tcpdump(_) => {
            let count = |words| counted_before(&messages, words);
            let (found, lost) = (
                count(" packets captured"),
                count(" packets dropped by kernel"),
            );
            if found + lost < packets {
                return Err(format!("tcpdump has {found} of {packets} packets: {messages}").into());
            }
            lost
        }
        Way::Live { .. } | Way::File(_) => check(stats, packets, 1)?,
    };
    let cpu_seconds = (used.utime + used.stime).as_secs_f64();
    Ok(Taken { cpu_seconds, lost })
}

/// Where the kernel lists packet sockets, behind a line of names; the number in a column is 1 once
/// one gets packets.
const SOCKETS: &str = "/proc/self/net/packet";
const RUNNING: usize = 5;

/// Waits until the program captures.
fn await_capture(child: &mut Child) -> Result<(), Failure> {
    let begun = Instant::now();
    let is_running = |socket: &str| socket.split_whitespace().nth(RUNNING) == Some("1");
    while !fs::read_to_string(SOCKETS)?.lines().any(is_running) {
        if let Some(status) = child.try_wait()? {
            return Err(format!("a capture did not begin: {status}").into());
        }
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            return Err("a capture did not begin".into());
        }
        thread::sleep(PAUSE);
    }
    thread::sleep(PAUSE);
    Ok(())
}

/// Sends the packets at this rate.
fn send(packets: u64, rate: u64, lengths: &[usize]) -> Result<(), Failure> {
    let sender = Sender::open(SENDS).map_err(|error| error.source)?;
    let (begun, mut frame) = (Instant::now(), Vec::new());
    for number in 0..packets {
        make(&mut frame, number, lengths);
        sender.send(&frame)?;
        if number % 32 == 0 {
            let due = Duration::from_secs_f64(number as f64 / rate as f64);
            thread::sleep(due.saturating_sub(begun.elapsed()));
        }
    }
    Ok(())
}

/// Waits for the end of a capture. One that has lost packets waits for them, and is told to end.
fn end(mut child: Child) -> Result<wait4::ResourceUsage, Failure> {
    let (pid, sent) = (Pid::from_raw(child.id().try_into()?), Instant::now());
    // It is not reaped here, so the number stays its own.
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let mut is_told = false;
    while waitid(Id::Pid(pid), look)? == WaitStatus::StillAlive && sent.elapsed() < PATIENCE {
        // Once: a second signal ends a program at once.
        if sent.elapsed() > PATIENCE / 2 && !is_told {
            kill(pid, Signal::SIGTERM)?;
            is_told = true;
        }
        thread::sleep(PAUSE);
    }
    child.kill()?;
    Ok(child.wait4()?.rusage)
}

/// The number in front of these words.
fn counted_before(messages: &str, words: &str) -> u64 {
    let number = messages.lines().find_map(|line| line.strip_suffix(words));
    number
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

/// Checks the counts of our command: of all packets, a quarter are duplicates. Returns how many
/// were lost.
fn check(stats: &Path, packets: u64, interfaces: usize) -> Result<u64, Failure> {
    let stats: Value = serde_json::from_str(&fs::read_to_string(stats)?)?;
    let count = |name: &str| stats[name].as_u64().unwrap_or(0);
    let (found, lost) = (count("records"), count("dropped"));
    let named = stats["captured"].as_array().map_or(0, Vec::len);
    let duplicates = count("duplicates");
    let copies = packets / COPIES;
    // A sender that is not run for longer than the window, on a busy machine, sends a copy too
    // late.
    let least = if interfaces == 0 {
        copies
    } else {
        copies * 99 / 100
    };
    let is_right = (least..=copies).contains(&duplicates) || lost > 0;
    if found + lost != packets || named != interfaces || !is_right {
        let counts = format!("{found} packets, {duplicates} duplicates, {lost} lost");
        return Err(format!("expected {packets} packets, found {counts}").into());
    }
    Ok(lost)
}
