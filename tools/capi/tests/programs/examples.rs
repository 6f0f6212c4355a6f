//! The programs in `examples`, each against what it must find.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use echoless_packets::LinkType;
use echoless_packets::synth::{Header, Stack};
use echoless_packets::writer::PcapWriter;

use super::{SANITIZERS, VALGRIND, build, output, package, run};

/// Milliseconds.
const WINDOW: u64 = 1000;

/// A packet of a capture: its content by number, its time in milliseconds, and its TTL, which
/// differs between copies.
#[derive(Debug, Clone, Copy)]
struct Sent {
    number: u64,
    at: u64,
    ttl: u8,
}

impl Sent {
    fn bytes(&self) -> Vec<u8> {
        let mut ip = Header::ipv4();
        if let Header::Ipv4(ip) = &mut ip {
            ip.ttl = self.ttl;
        }
        let stack = Stack::new(vec![Header::ethernet(), ip, Header::udp()]);
        stack.bytes(format!("packet {:020}", self.number).as_bytes())
    }
}

/// Packets a millisecond apart, of which some are copies of earlier ones: within the window, or
/// more than half a window after its end, since a window may end a fifth later than it says.
fn stream(packets: u64) -> Vec<Sent> {
    let mut recorded: HashMap<u64, u64> = HashMap::new();
    let mut sent: Vec<Sent> = Vec::new();
    for index in 0..packets {
        let at = 1_700_000_000_000 + index;
        let draw = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let copied = match draw % 4 {
            0 => sent.iter().rev().nth(draw as usize % 700),
            1 => sent.iter().rev().nth(1600 + draw as usize % 900),
            _ => None,
        };
        let copied = copied.filter(|copied| {
            let age = at - recorded[&copied.number];
            !(WINDOW - 100..=WINDOW + WINDOW / 2).contains(&age)
        });
        let number = copied.map_or(index, |copied| copied.number);
        let entry = recorded.entry(number).or_insert(at);
        if at - *entry > WINDOW {
            *entry = at;
        }
        let ttl = 64 - (draw % 7) as u8;
        sent.push(Sent { number, at, ttl });
    }
    sent
}

/// The packets that are no copies of another one that was let through within `window`.
fn expected(sent: &[Sent], window: u64) -> Vec<Vec<u8>> {
    let mut recorded = HashMap::new();
    let mut is_fresh = |sent: &&Sent| match recorded.get(&sent.number) {
        Some(at) if sent.at - at <= window => false,
        _ => {
            recorded.insert(sent.number, sent.at);
            true
        }
    };
    let fresh = sent.iter().filter(|sent| is_fresh(sent));
    fresh.map(Sent::bytes).collect()
}

fn write_capture(path: &Path, sent: &[Sent]) {
    let mut file = PcapWriter::new(false, false, LinkType::ETHERNET);
    for packet in sent {
        let bytes = packet.bytes();
        file.packet(packet.at * 1000, &bytes, bytes.len() as u32);
    }
    fs::write(path, file.into_bytes()).unwrap();
}

/// The packets of a pcap file in the byte order of this machine.
fn read_capture(path: &Path) -> Vec<Vec<u8>> {
    let file = fs::read(path).unwrap();
    let mut rest = &file[24..];
    let mut packets = Vec::new();
    while let Some((header, after)) = rest.split_first_chunk::<16>() {
        let length = u32::from_ne_bytes(header[8..12].try_into().unwrap()) as usize;
        packets.push(after[..length].to_vec());
        rest = &after[length..];
    }
    packets
}

/// Builds an example with the options of a package.
fn example(name: &str, with: &str, more: &[&str], binary: &str) -> Option<std::path::PathBuf> {
    let options = package(name, with)?;
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    build(
        &format!("examples/{name}.c"),
        &[&options, more].concat(),
        binary,
    )
}

#[test]
fn drop_packets_from_file_to_file() {
    let folder = tempfile::tempdir().unwrap();
    let [input, out] = ["in.pcap", "out.pcap"].map(|name| folder.path().join(name));
    let sent = stream(6000);
    let fresh = expected(&sent, WINDOW);
    assert!(fresh.len() > expected(&sent, u64::MAX).len() && fresh.len() < sent.len());
    write_capture(&input, &sent);
    for (under, more, binary) in [
        (VALGRIND, &[][..], "drop_packets"),
        (&[][..], SANITIZERS, "drop_packets_asan"),
    ] {
        let Some(program) = example("drop_packets", "libpcap", more, binary) else {
            return;
        };
        let arguments = [input.to_str().unwrap(), out.to_str().unwrap()];
        if let Some(text) = run(under, &program, &arguments) {
            let duplicates = sent.len() - fresh.len();
            let report = format!(
                "packets {}\nduplicates {duplicates}\nevicted 0\n",
                sent.len()
            );
            assert!(text.starts_with(&report), "{text}");
            assert!(read_capture(&out) == fresh);
            fs::remove_file(&out).unwrap();
        }
    }
}

/// The way of the packets: from `echo1` to `echo0`, which is up first, so that `echo1` sends
/// nothing to nowhere. The first line on the fifo says that the capture runs.
const OVER_VETH: &str = r#"set -eu
ip link add echo0 type veth peer name echo1
ip link set echo0 up
ip link set echo1 up
mkfifo "$FOLDER/ready"
timeout 120 "$DROP" -s fingerprint:fpr=1e-8,memory=4MiB -c "$COUNT" -i echo0 \
    "$FOLDER/out.pcap" "udp port 53" 2>"$FOLDER/ready" &
exec 3<"$FOLDER/ready"
read -r line <&3
test "$line" = "capturing on echo0" || { echo "$line" >&2; exit 1; }
"$SEND" echo1 "$FOLDER/in.pcap"
wait $!
"#;

#[test]
fn drop_packets_live_on_a_veth_pair() {
    let name = "drop_packets on a veth pair";
    let private = ["--user", "--map-root-user", "--net"];
    let may = Command::new("unshare")
        .args(private)
        .args(["ip", "link", "add", "echo0", "type", "veth"])
        .output();
    if !may.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED {name}: no permission for a network namespace, or no unshare or ip");
        return;
    }
    let Some(program) = example("drop_packets", "libpcap", &[], "drop_packets_live") else {
        return;
    };
    let Some(sender) = build("tests/send_packets.c", &["-lpcap"], "send_packets") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let sent = stream(1500);
    write_capture(&folder.path().join("in.pcap"), &sent);
    let report = output(
        Command::new("unshare")
            .args(private)
            .args(["sh", "-c", OVER_VETH])
            .env("FOLDER", folder.path())
            .env("DROP", program)
            .env("SEND", sender)
            .env("COUNT", sent.len().to_string()),
    );
    assert!(report.starts_with("packets 1500\n"), "{report}");
    let fresh = expected(&sent, u64::MAX);
    assert!(read_capture(&folder.path().join("out.pcap")) == fresh);
}

/// A `struct call_record`.
fn record(call: u64, received: u64) -> [u8; 56] {
    let mut bytes = [0; 56];
    bytes[..8].copy_from_slice(&received.to_ne_bytes());
    bytes[8..20].copy_from_slice(format!("{:012}", call % 1000).as_bytes());
    bytes[24..36].copy_from_slice(format!("{:012}", call % 777).as_bytes());
    bytes[40..48].copy_from_slice(&call.to_ne_bytes());
    bytes[48..52].copy_from_slice(&((call % 60) as u32).to_ne_bytes());
    bytes[52..56].copy_from_slice(&(received as u32).to_ne_bytes());
    bytes
}

#[test]
fn call_records_of_four_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (mut calls, mut duplicates, mut seconds) = (HashSet::new(), 0, 0);
    let mut paths = Vec::new();
    for thread in 0..4 {
        let mut bytes = Vec::new();
        // Not a multiple of a batch; most calls are in two files, and some twice in one.
        for index in 0..12_345 {
            let call = thread * 6000 + index - index % 10 / 9;
            bytes.extend(record(call, index));
            if !calls.insert(call) {
                duplicates += 1;
                seconds += call % 60;
            }
        }
        let path = folder.path().join(format!("{thread}.records"));
        fs::write(&path, bytes).unwrap();
        paths.push(path);
    }
    let paths: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let expected = format!(
        "records {}\nduplicates {duplicates}\nduplicate seconds {seconds}\n",
        4 * 12_345
    );
    for (under, more, binary) in [
        (VALGRIND, &[][..], "call_records"),
        (&[][..], SANITIZERS, "call_records_asan"),
    ] {
        if let Some(program) = build("examples/call_records.c", more, binary)
            && let Some(text) = run(under, &program, &paths)
        {
            assert!(text.starts_with(&expected), "{text}instead of {expected}");
        }
    }
}

/// No huge pages, no devices, no files of other processes.
const EAL: &[&str] = &[
    "-l",
    "0",
    "--no-huge",
    "-m",
    "64",
    "--no-pci",
    "--no-shconf",
    "--no-telemetry",
    "--iova-mode=va",
];

#[test]
fn dpdk_forwards_between_files() {
    let Some(program) = example("dpdk_forward", "libdpdk", &[], "dpdk_forward") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let sent = stream(4000);
    // The even packets arrive on one port, the odd ones on the other; half of the copies of a
    // packet are on a port of their own.
    let devices: Vec<String> = (0..2)
        .map(|port| {
            let [from, to] = ["in", "out"].map(|way| folder.path().join(format!("{way}{port}")));
            let half: Vec<Sent> = sent.iter().skip(port).step_by(2).copied().collect();
            write_capture(&from, &half);
            format!(
                "net_pcap{port},rx_pcap={},tx_pcap={}",
                from.display(),
                to.display()
            )
        })
        .collect();
    let vdevs = ["--vdev", &devices[0], "--vdev", &devices[1]];
    let options = ["--", "-s", "fingerprint:fpr=1e-8,memory=4MiB", "-c", "4000"];
    let text = run(&[], &program, &[EAL, &vdevs, &options].concat()).unwrap();
    let numbers = |packets: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
        let payload = |packet: Vec<u8>| packet[42..].to_vec();
        let mut numbers: Vec<_> = packets.into_iter().map(payload).collect();
        numbers.sort();
        numbers
    };
    let fresh = numbers(expected(&sent, u64::MAX));
    let report = format!(
        "received 4000\nforwarded {}\nunsent 0\nduplicates {}\n",
        fresh.len(),
        4000 - fresh.len()
    );
    assert!(text.ends_with(&report), "{text}instead of {report}");
    // Which copy is the first depends on the order of the bursts of the ports.
    let forwarded = [0, 1].map(|port| read_capture(&folder.path().join(format!("out{port}"))));
    assert!(numbers(forwarded.concat()) == fresh);
}

#[test]
fn dpdk_drops_what_a_ring_brings_back() {
    let Some(program) = example("dpdk_forward", "libdpdk", &[], "dpdk_forward_ring") else {
        return;
    };
    // One port has the same packet without end, the other gives back what it is sent.
    let vdevs = ["--vdev", "net_null0,copy=1", "--vdev", "net_ring0"];
    let options = ["--", "-s", "fingerprint:fpr=1e-8,memory=4MiB", "-c", "5000"];
    let text = run(&[], &program, &[EAL, &vdevs, &options].concat()).unwrap();
    let report = "received 5000\nforwarded 1\nunsent 0\nduplicates 4999\n";
    assert!(text.ends_with(report), "{text}");
}
