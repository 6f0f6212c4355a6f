//! `echoless packets --interface`: what virtual interfaces pass on, beside what the command makes of
//! a file with the same packets.

use std::process::Command;

use serde_json::Value;

use crate::network::{LiveRun, Network, captured, frames};
use crate::packets_support::packets;
use crate::run::{Folder, assert_errors, echoless, send};

/// A capture with copies in which the MAC addresses, the time to live and a VLAN tag may differ.
fn capture(packets: &str, more: &[&str]) -> Vec<u8> {
    let mut all = vec!["gen", "packets", "-n", packets, "--duplicates", "0.25"];
    all.extend(["--copies", "ttl,mac,vlan"]);
    all.extend_from_slice(more);
    echoless(&all, b"").bytes()
}

#[test]
fn the_output_is_that_of_the_file() {
    let Some(network) = Network::new(&["a0-a1"], &["tcpreplay"]) else {
        return;
    };
    let folder = Folder::new();
    let file = capture("3000", &[]);
    folder.write("sent", &file);
    let sent = folder.path("sent").display().to_string();
    // The times are others, so the window is one of packets.
    let window = "--window-packets 400 --ignore mac,vlan,ttl,checksum";
    for (which, more) in [
        ("", ""),
        ("", "--threads 1"),
        ("", "--immediate"),
        ("--invert", "--read-bytes 100"),
    ] {
        let args = format!("{window} {which}");
        let expected = packets(&args.split_whitespace().collect::<Vec<_>>(), &file);
        let expected = frames(&expected.bytes());
        let has_tag = |frame: &Vec<u8>| frame[12..14] == [0x81, 0];
        assert_eq!(expected.iter().any(has_tag), !which.is_empty());
        let stats = folder.path("stats").display().to_string();
        let live = format!("--interface a1 --packets 3000 --stats {stats}");
        let run = LiveRun::start(network.packets("", &format!("{live} {args} {more}")));
        network.replay("a0", &sent);
        let (code, output, messages) = run.end();
        assert_eq!(code, Some(0), "{messages}");
        assert!(frames(&output) == expected, "{which} {more}");
        let (packets, statistics) = captured(&output);
        assert_eq!(statistics, 1);
        assert!(packets.is_sorted_by_key(|packet| packet.time));
        let stats = folder.json("stats");
        assert_eq!(stats["records"], 3000);
        assert_eq!(
            (&stats["dropped"], &stats["complete"]),
            (&0.into(), &true.into())
        );
        assert_eq!(stats["captured"][0]["name"], "a1");
        assert_eq!(stats["captured"][0]["packets"], 3000);
    }
}

#[test]
fn interfaces_are_one_stream_in_the_order_of_time() {
    let Some(network) = Network::new(&["a0-a1", "b0-b1"], &["tcpreplay"]) else {
        return;
    };
    let folder = Folder::new();
    let file = echoless("gen packets -n 1000", b"").bytes();
    folder.write("sent", &file);
    let sent = folder.path("sent").display().to_string();
    for (group, kept) in [("none", 1000), ("interface", 2000)] {
        let args =
            format!("--interface a1 --interface b1 --packets 2000 --window 1h --group {group}");
        let run = LiveRun::start(network.packets("", &args));
        // At once: the packets of both interfaces mix.
        let both = ["a0", "b0"].map(|name| format!("tcpreplay -q -i {name} --pps 20000 {sent}"));
        network.sh(&format!("{} & {} && wait", both[0], both[1]));
        let (code, output, messages) = run.end();
        assert_eq!(code, Some(0), "{messages}");
        let (packets, statistics) = captured(&output);
        assert_eq!((packets.len(), statistics), (kept, 2));
        assert!(packets.is_sorted_by_key(|packet| packet.time));
        let of = |interface| {
            packets
                .iter()
                .filter(move |packet| packet.interface == interface)
        };
        let mut found: Vec<Vec<u8>> = match group {
            "none" => packets.iter().map(|packet| packet.bytes.clone()).collect(),
            _ => {
                let second: Vec<_> = of(1).map(|packet| packet.bytes.clone()).collect();
                assert!(second == frames(&file));
                of(0).map(|packet| packet.bytes.clone()).collect()
            }
        };
        let mut expected = frames(&file);
        found.sort();
        expected.sort();
        assert!(found == expected, "{group}");
    }
}

#[test]
fn a_filter_selects_by_tags_that_the_kernel_has_taken_out() {
    let Some(network) = Network::new(&["a0-a1"], &["tcpreplay"]) else {
        return;
    };
    let folder = Folder::new();
    let file = capture("2000", &[]);
    folder.write("sent", &file);
    let sent = folder.path("sent").display().to_string();
    let tagged = |frame: &Vec<u8>| frame[12..14] == [0x81, 0];
    let mut expected = frames(&file);
    expected.retain(tagged);
    assert!(expected.len() > 100);
    let args = format!(
        "--interface a1 --filter vlan --packets {} --tag --snap-length 50",
        expected.len()
    );
    let mut probe = network.packets("", "--interface a1 --filter vlan --duration 1ms");
    let probe = probe.output().unwrap();
    if String::from_utf8_lossy(&probe.stderr).contains("libpcap") {
        eprintln!("skipped: libpcap is absent");
        return;
    }
    let run = LiveRun::start(network.packets("", &args));
    network.replay("a0", &sent);
    let (code, output, messages) = run.end();
    assert_eq!(code, Some(0), "{messages}");
    let found = captured(&output).0;
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.original_len as usize, expected.len());
        assert_eq!(found.bytes, expected[..expected.len().min(50)]);
    }
    let mut bad = network.packets("", "--interface a1 --filter 'udp and'");
    let bad = bad.output().unwrap();
    let error = String::from_utf8(bad.stderr).unwrap();
    assert_eq!(bad.status.code(), Some(2));
    assert!(error.starts_with("echoless: invalid --filter="), "{error}");
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn signals_and_durations_end_a_run_with_all_that_came() {
    let Some(network) = Network::new(&["a0-a1"], &["tcpreplay"]) else {
        return;
    };
    let folder = Folder::new();
    let file = capture("500", &[]);
    folder.write("sent", &file);
    let sent = folder.path("sent").display().to_string();
    let all = "--interface a1 --from link --ignore none --window-packets 1";
    let expected = frames(
        &packets(
            &[
                "--from",
                "link",
                "--ignore",
                "none",
                "--window-packets",
                "1",
            ],
            &file,
        )
        .bytes(),
    );
    for (signal, expected_code) in [("-INT", 130), ("-TERM", 143)] {
        let run = LiveRun::start(network.packets("", all));
        network.replay("a0", &sent);
        // At once: the kernel still has the last packets.
        send(&run.child, signal);
        let (code, output, messages) = run.end();
        assert_eq!(code, Some(expected_code), "{messages}");
        assert!(messages.contains("500 packets"), "{messages}");
        assert!(frames(&output) == expected, "{signal}");
        assert_eq!(captured(&output).1, 1);
    }
    let run = LiveRun::start(network.packets("", "--interface a1 --duration 100ms"));
    let (code, output, messages) = run.end();
    assert_eq!(
        (code, captured(&output)),
        (Some(0), (Vec::new(), 1)),
        "{messages}"
    );
}

#[test]
fn an_interface_that_is_removed_is_an_error_behind_whole_outputs() {
    let Some(network) = Network::new(&["a0-a1", "b0-b1"], &["tcpreplay"]) else {
        return;
    };
    let folder = Folder::new();
    let file = echoless("gen packets -n 300", b"").bytes();
    folder.write("sent", &file);
    let sent = folder.path("sent").display().to_string();
    // Another one goes on.
    let args = "--interface a1 --interface b1 --packets 600 --window 1h";
    let run = LiveRun::start(network.packets("", args));
    network.replay("a0", &sent);
    network.sh("ip link del a1");
    network.replay("b0", &sent);
    let (code, output, messages) = run.end();
    assert_eq!(code, Some(2), "{messages}");
    assert!(
        messages.contains("a1: was removed while it was captured"),
        "{messages}"
    );
    assert!(frames(&output) == frames(&file));
    assert_eq!(captured(&output).1, 2);
    // The last one ends the run.
    let run = LiveRun::start(network.packets("", "--interface b1"));
    network.replay("b0", &sent);
    network.sh("ip link del b1");
    let (code, output, messages) = run.end();
    assert_eq!(code, Some(2), "{messages}");
    assert!(
        messages.contains("b1: was removed while it was captured"),
        "{messages}"
    );
    assert!(frames(&output) == frames(&file));
}

#[test]
fn an_interface_that_goes_down_is_captured_again_once_it_is_up() {
    let Some(network) = Network::new(&["a0-a1"], &["tcpreplay"]) else {
        return;
    };
    let folder = Folder::new();
    let file = echoless("gen packets -n 300", b"").bytes();
    folder.write("sent", &file);
    let sent = folder.path("sent").display().to_string();
    let args = "--interface a1 --packets 600 --from link --window-packets 1";
    let run = LiveRun::start(network.packets("", args));
    network.replay("a0", &sent);
    network.sh("ip link set a1 down && ip link set a1 up");
    network.replay("a0", &sent);
    let (code, output, messages) = run.end();
    assert_eq!(code, Some(0), "{messages}");
    assert!(
        messages.contains("a1: is down, and captured again"),
        "{messages}"
    );
    assert!(frames(&output) == [frames(&file), frames(&file)].concat());
}

#[test]
fn lost_packets_are_counted() {
    let Some(network) = Network::new(&["a0-a1"], &["tcpreplay"]) else {
        return;
    };
    let folder = Folder::new();
    folder.write("sent", echoless("gen packets -n 3000", b"").bytes());
    let sent = folder.path("sent").display().to_string();
    let stats = folder.path("stats").display().to_string();
    let args = format!("--interface a1 --buffer 256KiB --fail-on-loss --stats {stats}");
    let run = LiveRun::start(network.packets("", &args));
    let id = run.child.id();
    // While it is stopped, packets of a megabyte come to a ring of a quarter of that.
    network.sh(&format!("kill -STOP {id}"));
    network.replay("a0", &sent);
    network.sh(&format!("kill -CONT {id}; kill -TERM {id}"));
    let (code, output, messages) = run.end();
    assert_eq!(code, Some(3), "{messages}");
    assert!(
        messages.contains("lost before they were read"),
        "{messages}"
    );
    let stats: Value = folder.json("stats");
    let number = |value: &Value| value.as_u64().unwrap();
    let (read, dropped) = (number(&stats["records"]), number(&stats["dropped"]));
    assert_eq!(read + dropped, 3000);
    assert!(dropped > 1000 && read > 0);
    assert!(number(&stats["captured"][0]["freezes"]) > 0);
    assert_eq!(captured(&output).0.len() as u64, number(&stats["fresh"]));
}

#[test]
fn packets_that_pass_leave_by_another_interface() {
    let Some(network) = Network::new(&["a0-a1", "b0-b1"], &["tcpreplay"]) else {
        return;
    };
    let folder = Folder::new();
    let file = capture("1000", &[]);
    folder.write("sent", &file);
    let sent = folder.path("sent").display().to_string();
    let stats = folder.path("stats").display().to_string();
    let window = "--window-packets 400 --ignore mac,vlan,ttl,checksum";
    for which in ["", "--invert", "--tag"] {
        let all = "--from link --ignore none --window-packets 1";
        let args = if which == "--tag" {
            all.into()
        } else {
            format!("{window} {which}")
        };
        let expected =
            frames(&packets(&args.split_whitespace().collect::<Vec<_>>(), &file).bytes());
        let count = expected.len();
        let far =
            LiveRun::start(network.packets("", &format!("--interface b1 --packets {count} {all}")));
        // What is sent is not captured again.
        let live = format!("--interface a1 --interface b0 --packets 1000 --stats {stats}");
        let near = network.packets(
            "",
            &format!("{live} --to b0 {args} {which} --fail-on-loss -o -"),
        );
        let near = LiveRun::start(near);
        network.replay("a0", &sent);
        let (code, output, messages) = near.end();
        assert_eq!(code, Some(0), "{messages}");
        let (far_code, arrived, far_messages) = far.end();
        assert_eq!(far_code, Some(0), "{far_messages}");
        assert!(frames(&arrived) == expected, "{which}");
        assert!(frames(&output) == expected, "{which}");
        let stats = folder.json("stats");
        assert_eq!(
            (&stats["sent"], &stats["unsent"]),
            (&count.into(), &0.into())
        );
    }
    network.sh("ip link set b0 mtu 1000");
    let long = frames(&file)
        .iter()
        .filter(|frame| frame.len() > 1018)
        .count();
    let live = format!("--interface a1 --packets 1000 --to b0 --fail-on-loss --stats {stats} -o -");
    let run =
        LiveRun::start(network.packets("", &format!("{live} --window-packets 1 --from link")));
    network.replay("a0", &sent);
    let (code, _, messages) = run.end();
    assert_eq!(code, Some(3), "{messages}");
    assert!(messages.contains(&format!("{long} not sent")), "{messages}");
}

#[test]
fn interfaces_that_cannot_be_captured_are_one_line() {
    let Some(network) = Network::new(&["a0-a1"], &["setpriv"]) else {
        return;
    };
    network.sh("ip link set a1 down");
    let drop = "setpriv --bounding-set=-net_raw";
    for (before, args, message) in [
        ("", "--interface nowhere", "nowhere: no such interface"),
        (
            "",
            "--interface a-name-that-is-longer-than-any",
            ": no such interface",
        ),
        ("", "--interface a1", "a1: is down (ip link set a1 up)"),
        (
            "",
            "--interface a0 --to a1",
            "a1: is down (ip link set a1 up)",
        ),
        (
            "",
            "--interface a0 --to nowhere",
            "nowhere: no such interface",
        ),
        (
            "",
            "--interface a0 --buffer 1TiB",
            "a0: no memory for a ring of 1099511627776 bytes",
        ),
        (
            drop,
            "--interface a0",
            "a0: no permission to capture: expected root, or",
        ),
        (drop, "--interface a0", "setcap cap_net_raw+ep"),
    ] {
        let folder = Folder::new();
        let output = folder.path("out").display().to_string();
        let run = network
            .packets(before, &format!("{args} --duration 20s -o {output}"))
            .output()
            .unwrap();
        let error = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{args}: {error}");
        assert!(
            error.contains(message) && error.lines().count() == 1,
            "{error}"
        );
        assert!(!folder.has("out"), "{args}");
    }
}

#[test]
fn options_that_contradict_each_other_are_one_line() {
    assert_errors(
        |args| echoless([&["packets"], args].concat(), b""),
        &[
            "--interface a --interface a |= invalid --interface=a: expected each interface once",
            "--interface a --snap-length 0 | invalid --snap-length=0: expected a whole number from 1",
            "--interface a --buffer 1k |= invalid --buffer=1k: expected 256KiB to 1TiB",
            "--interface a --duration 0s | invalid --duration=0s: expected a time above 0",
            "--interface a --packets 0 | invalid --packets=0: expected a whole number from 1",
            "--filter udp | --interface",
            "--interface a file.pcap | cannot be used with",
        ],
    );
}

#[test]
fn other_programs_read_a_live_capture() {
    let Some(network) = Network::new(&["a0-a1"], &["tcpreplay", "tshark", "capinfos"]) else {
        return;
    };
    let folder = Folder::new();
    folder.write("sent", echoless("gen packets -n 200", b"").bytes());
    let sent = folder.path("sent").display().to_string();
    let run = LiveRun::start(network.packets("", "--interface a1 --packets 200"));
    network.replay("a0", &sent);
    let (_, output, _) = run.end();
    folder.write("out", output);
    let show = Command::new("capinfos")
        .arg(folder.path("out"))
        .output()
        .unwrap();
    let shown = String::from_utf8(show.stdout).unwrap();
    for part in ["Name = a1", "Number of stat entries = 1", "nanoseconds (9)"] {
        assert!(shown.contains(part), "{shown}");
    }
    let read = Command::new("tshark")
        .args(["-n", "-Y", "frame.packet_flags_direction == 1", "-r"])
        .arg(folder.path("out"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(read.stdout).unwrap().lines().count(), 200);
}
