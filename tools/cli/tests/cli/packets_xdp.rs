//! `echoless packets --interface --capture af-xdp`: what virtual interfaces pass on, beside what
//! the command makes of a file with the same packets.

use std::{fs, thread};

use serde_json::Value;

use crate::network::{LiveRun, Network, captured, frames};
use crate::packets_support::packets;
use crate::run::{Folder, assert_errors, echoless, send};

/// A network with these pairs of interfaces whose system has AF_XDP, and a capture to send there:
/// its folder and its path.
fn feed(pairs: &[&str], file: &[u8], tools: &[&str]) -> Option<(Network, Folder, String)> {
    Network::with_capture(pairs, file, tools).filter(|(network, ..)| network.has_xdp())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

const XDP: &str = "--interface a1 --capture af-xdp";
const ALL: &str = "--window-packets 1 --from link --ignore none";

#[test]
fn the_output_is_that_of_the_file_and_of_a_packet_socket() {
    let gen_packets = "gen packets -n 3000 --duplicates 0.25 --copies ttl,mac,vlan";
    let file = echoless(gen_packets, b"").bytes();
    let Some((network, folder, sent)) = feed(&["a0-a1"], &file, &[]) else {
        return;
    };
    let stats = folder.path("stats").display().to_string();
    let window = "--window-packets 400 --ignore mac,vlan,ttl,checksum";
    let expected = packets(&window.split_whitespace().collect::<Vec<_>>(), &file);
    let expected = frames(&expected.bytes());
    let mut outputs = Vec::new();
    for (method, more) in [
        ("af-packet", ""),
        ("af-xdp", ""),
        ("af-xdp", "--threads 1 --immediate"),
        ("af-xdp", "--read-bytes 100"),
    ] {
        let live = format!("--interface a1 --capture {method} --packets 3000 --stats {stats}");
        let args = format!("{live} {window} {more}");
        let (output, messages) = network.captured(&args, &sent, &expected);
        let stats = folder.json("stats");
        let of_interface = &stats["captured"][0];
        assert_eq!(of_interface["packets"], 3000);
        assert_eq!(stats["dropped"], 0);
        let way = of_interface["capture"].as_str().unwrap();
        assert!(way.starts_with(method), "{way}");
        let warning = "ethtool -K a1 rxvlan off";
        assert_eq!(messages.contains(warning), method == "af-xdp", "{messages}");
        // Nothing but the times and the statistics differ.
        let mut blocks = packets_without_times(&output);
        blocks.sort();
        outputs.push(blocks);
    }
    assert!(outputs.iter().all(|output| *output == outputs[0]));
}

/// The blocks of the packets of a file, with zeros in the place of their times.
fn packets_without_times(file: &[u8]) -> Vec<Vec<u8>> {
    let blocks = crate::packets_support::packet_blocks(file).into_iter();
    let without_time = blocks.map(|block| {
        let mut block = block.to_vec();
        block[12..20].fill(0);
        block
    });
    without_time.collect()
}

#[test]
fn the_host_has_the_packets_again_at_the_end() {
    let file = echoless("gen packets -n 300", b"").bytes();
    let Some((network, _folder, sent)) = feed(&["a0-a1"], &file, &[]) else {
        return;
    };
    let of_host = format!("--interface a1 {ALL} --packets 300");
    // After every kind of end.
    for signal in ["-INT", "-TERM", "-KILL"] {
        let host = LiveRun::start(network.packets("", &of_host));
        let mut run = LiveRun::start(network.packets("", &format!("{XDP} {ALL}")));
        network.replay("a0", &sent);
        // At once: the rings still have the last packets.
        match signal {
            "-KILL" => run.child.kill().unwrap(),
            _ => send(&run.child, signal),
        }
        let (code, output, messages) = run.end();
        if signal != "-KILL" {
            assert_eq!(code, Some(if signal == "-INT" { 130 } else { 143 }));
            assert!(frames(&output) == frames(&file), "{messages}");
        }
        let wait = "while ip link show a1 | grep -q xdp; do sleep 0.01; done";
        network.sh(&format!("timeout 60 sh -c '{wait}'"));
        // It has none of those before.
        network.replay("a0", &sent);
        let (code, output, messages) = host.end();
        assert_eq!(code, Some(0), "{messages}");
        assert!(frames(&output) == frames(&file), "{signal}");
        assert_eq!(captured(&output).0.len(), 300);
    }
}

#[test]
fn all_queues_are_captured_in_the_driver_and_behind_it() {
    let file = echoless("gen packets -n 2000", b"").bytes();
    let Some((network, folder, sent)) = feed(&[], &file, &["ethtool"]) else {
        return;
    };
    let stats = folder.path("stats").display().to_string();
    let mut expected = frames(&file);
    expected.sort();
    // The driver of a virtual interface takes a program if it has as many queues as its peer.
    for (queues, of_peer, way) in [(4, 4, "af-xdp copy"), (2, 4, "af-xdp generic")] {
        let most = "numtxqueues 4 numrxqueues 4";
        network.sh(&format!(
            "ip link add a0 {most} type veth peer name a1 {most}"
        ));
        network.sh(&format!(
            "ethtool -L a0 tx {of_peer} && ethtool -L a1 rx {queues}"
        ));
        network.sh("ip link set a0 up && ip link set a1 up");
        let args = format!("{XDP} {ALL} --packets 2000 --stats {stats}");
        let run = LiveRun::start(network.packets("", &args));
        network.replay("a0", &sent);
        let (code, output, messages) = run.end();
        assert_eq!(code, Some(0), "{messages}");
        let mut found = frames(&output);
        found.sort();
        assert!(found == expected, "{way}");
        assert!(captured(&output).0.is_sorted_by_key(|packet| packet.time));
        assert_eq!(folder.json("stats")["captured"][0]["capture"], way);
        network.sh("ip link del a1");
    }
}

#[test]
fn packets_longer_than_a_chunk_are_whole() {
    let file = echoless("gen packets -n 300 --frame-bytes 8000", b"").bytes();
    let Some((network, _folder, sent)) = feed(&["a0-a1"], &file, &[]) else {
        return;
    };
    network.sh("ip link set a0 mtu 9000 && ip link set a1 mtu 9000");
    network.captured(&format!("{XDP} {ALL} --packets 300"), &sent, &frames(&file));
}

#[test]
fn interfaces_are_one_stream_and_a_filter_selects() {
    let file = echoless("gen packets -n 1000", b"").bytes();
    let Some((network, folder, sent)) = feed(&["a0-a1", "b0-b1"], &file, &[]) else {
        return;
    };
    let stats = folder.path("stats").display().to_string();
    let args = format!("{XDP} --interface b1 --window 1h --stats {stats}");
    let run = LiveRun::start(network.packets("", &format!("{args} --packets 2000")));
    let both = ["a0", "b0"].map(|name| format!("tcpreplay -q -i {name} --pps 20000 {sent}"));
    network.sh(&format!("{} & {} && wait", both[0], both[1]));
    let (code, output, messages) = run.end();
    assert_eq!(code, Some(0), "{messages}");
    let mut found = frames(&output);
    found.sort();
    let mut expected = frames(&file);
    expected.sort();
    assert!(found == expected);
    assert!(captured(&output).0.is_sorted_by_key(|packet| packet.time));
    // What the filter rejects is read all the same, and counts for nothing.
    let run = network.packets("", &format!("{args} {ALL} --filter 'less 300'"));
    let run = match LiveRun::try_start(run) {
        Ok(run) => run,
        Err(error) if error.contains("libpcap") => {
            eprintln!("skipped: libpcap is absent");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    network.replay("a0", &sent);
    send(&run.child, "-TERM");
    let (code, output, messages) = run.end();
    assert_eq!(code, Some(143), "{messages}");
    let is_short = |frame: &&Vec<u8>| frame.len() <= 300;
    let short: Vec<_> = frames(&file).iter().filter(is_short).cloned().collect();
    assert!((1..1000).contains(&short.len()));
    assert!(frames(&output) == short);
    assert_eq!(number(&folder.json("stats")["records"]), short.len() as u64);
    let bad = network
        .packets("", &format!("{XDP} --filter 'udp and'"))
        .output();
    let error = String::from_utf8(bad.unwrap().stderr).unwrap();
    assert!(error.starts_with("echoless: invalid --filter="), "{error}");
}

#[test]
fn lost_packets_are_counted() {
    let file = echoless("gen packets -n 3000", b"").bytes();
    let Some((network, folder, sent)) = feed(&["a0-a1"], &file, &[]) else {
        return;
    };
    let stats = folder.path("stats").display().to_string();
    let args = format!("{XDP} {ALL} --buffer 256KiB --fail-on-loss --stats {stats}");
    // More packets come than there are chunks.
    let ended = |id| format!("kill -CONT {id}; kill -TERM {id}");
    let (code, output) = network.overrun(&args, &sent, ended);
    assert_eq!(code, Some(3));
    let stats = folder.json("stats");
    let (read, dropped) = (number(&stats["records"]), number(&stats["dropped"]));
    assert_eq!((read + dropped, read), (3000, 128), "{stats}");
    assert!(number(&stats["captured"][0]["freezes"]) > 0);
    assert!(frames(&output) == frames(&file)[..128]);
}

#[test]
fn interfaces_go_down_and_are_removed_and_come_back() {
    // All of them fit in a pipe, which is read at the end.
    let file = echoless("gen packets -n 50 --frame-bytes 100", b"").bytes();
    let Some((network, folder, sent)) = feed(&["a0-a1"], &file, &[]) else {
        return;
    };
    let stats = folder.path("stats").display().to_string();
    let args = format!("{XDP} {ALL} --packets 200 --wait-interface --stats {stats}");
    let mut run = LiveRun::start(network.packets("", &args));
    network.replay("a0", &sent);
    run.await_message("a1: takes VLAN tags out of packets");
    network.sh("ip link set a1 down && ip link set a1 up");
    run.await_message("a1: is down, and captured again");
    network.replay("a0", &sent);
    for _ in 0..2 {
        network.sh("ip link del a1");
        run.await_message("a1: was removed, and is captured again once it is there");
        network.add("a0-a1");
        run.await_message("a1: is there again, and captured");
        network.replay("a0", &sent);
    }
    let (code, output, _) = run.end();
    assert_eq!(code, Some(0));
    let all = [(); 4].map(|()| frames(&file)).concat();
    assert!(frames(&output) == all);
    assert_eq!(folder.json("stats")["captured"][0]["reopened"], 2);
    // Without an option, the run ends.
    let run = LiveRun::start(network.packets("", &format!("{XDP} {ALL}")));
    network.replay("a0", &sent);
    network.sh("ip link del a1");
    let (code, output, messages) = run.end();
    assert_eq!(code, Some(2), "{messages}");
    let line = "a1: was removed while it was captured";
    assert!(messages.contains(line), "{messages}");
    assert!(frames(&output) == frames(&file));
}

#[test]
fn interfaces_that_cannot_be_captured_are_one_line() {
    let Some((network, folder, _)) = feed(&["a0-a1", "b0-b1"], b"", &["setpriv", "prlimit"]) else {
        return;
    };
    network.sh("ip link set b1 down");
    let busy = LiveRun::start(network.packets("", &XDP.replace("a1", "a0")));
    let output = folder.path("out").display().to_string();
    let drop = |of: &str| format!("setpriv --bounding-set=-{of}");
    for (before, args, message) in [
        (String::new(), "nowhere", "nowhere: no such interface"),
        (String::new(), "b1", "b1: is down (ip link set b1 up)"),
        (
            String::new(),
            "a0",
            "a0: another program has queue 0 by AF_XDP",
        ),
        (
            String::new(),
            "a1 --buffer 1TiB",
            "a1: no memory for a ring of 1099511627776 bytes",
        ),
        (
            drop("net_raw"),
            "a1",
            "a1: no permission to capture: expected root, or",
        ),
        (
            drop("net_admin,-bpf,-sys_admin"),
            "a1",
            "setcap cap_net_raw,cap_net_admin,cap_bpf",
        ),
        (
            format!("prlimit --memlock=65536 {}", drop("ipc_lock")),
            "a1",
            "a1: no locked memory for a ring of 33554432 bytes (--buffer): expected a higher limit",
        ),
    ] {
        let args = format!("--interface {args} --capture af-xdp --duration 20s -o {output}");
        let run = network.packets(&before, &args).output().unwrap();
        let error = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{args}: {error}");
        assert!(
            error.contains(message) && error.lines().count() == 1,
            "{error}"
        );
        assert!(!folder.has("out"), "{args}");
    }
    send(&busy.child, "-TERM");
    assert_eq!(busy.end().0, Some(143));
}

#[test]
fn a_diagnosis_says_of_the_host_what_holds_for_its_way_to_capture() {
    let file = echoless(
        "gen packets -n 4000 --duplicates 0.25 --copies ttl --gap 1",
        b"",
    )
    .bytes();
    let Some((network, folder, sent)) = feed(&[], &file, &[]) else {
        return;
    };
    let stats = folder.path("stats").display().to_string();
    for (method, packets) in [("af-packet", 8000), ("af-xdp", 4000)] {
        folder.write("stats", b"");
        let args = format!("--diagnose --interface lo --capture {method} --packets {packets}");
        let args = format!("{args} --stats {stats}");
        let run = network.packets("", &args).spawn().unwrap();
        // Written once the interface is open.
        while fs::read(&stats).map_or(0, |stats| stats.len()) == 0 {
            thread::yield_now();
        }
        network.replay("lo", &sent);
        let output = run.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("\ninterfaces: 0.0 lo\n"), "{method}: {text}");
        let of_host = "\nlo has each packet twice";
        assert_eq!(text.contains(of_host), method == "af-packet", "{text}");
    }
}

#[test]
fn options_that_contradict_each_other_are_one_line() {
    assert_errors(
        |args| echoless([&["packets"], args].concat(), b""),
        &[
            "--capture af-xdp | --interface",
            "--interface a --capture pcap | af-packet",
        ],
    );
}
