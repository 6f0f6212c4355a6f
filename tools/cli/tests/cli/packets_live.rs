//! `echoless packets --interface`: what virtual interfaces pass on, beside what the command makes of
//! a file with the same packets.

use std::io::{BufRead, BufReader, Read};
use std::process::Command;

use serde_json::Value;

use crate::network::{LiveRun, Network, captured, frames};
use crate::packets_support::{numbered, packets};
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
    let file = capture("3000", &[]);
    let Some((network, folder, sent)) = Network::with_capture(&["a0-a1"], &file, &[]) else {
        return;
    };
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
        network.captured(&format!("{live} {args} {more}"), &sent, &expected);
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
    let file = echoless("gen packets -n 1000", b"").bytes();
    let Some((network, folder, sent)) = Network::with_capture(&["a0-a1", "b0-b1"], &file, &[])
    else {
        return;
    };
    let stats = folder.path("stats").display().to_string();
    for (group, kept) in [("none", 1000), ("interface", 2000)] {
        let live = "--interface a1 --interface b1 --packets 2000 --window 1h";
        let args = format!("{live} --group {group} --stats {stats}");
        let run = LiveRun::start(network.packets("", &args));
        // At once: the packets of both interfaces mix.
        let both = ["a0", "b0"].map(|name| format!("tcpreplay -q -i {name} --pps 20000 {sent}"));
        network.sh(&format!("{} & {} && wait", both[0], both[1]));
        let (code, output, messages) = run.end();
        assert_eq!(code, Some(0), "{messages}");
        let (packets, statistics) = captured(&output);
        assert_eq!((packets.len(), statistics), (kept, 2));
        assert!(packets.is_sorted_by_key(|packet| packet.time));
        let skew = &folder.json("stats")["skew"];
        assert_eq!(skew.as_array().unwrap().len(), usize::from(group == "none"));
        if group == "none" {
            assert_eq!(
                (&skew[0]["first"], &skew[0]["second"]),
                (&"a1".into(), &"b1".into())
            );
            // Some of 1000 keys.
            let copies = skew[0]["copies"].as_u64().unwrap();
            assert!((20..200).contains(&copies), "{skew}");
        }
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
fn a_quiet_interface_costs_no_packets() {
    let file = echoless("gen packets -n 1500", b"").bytes();
    let Some((network, folder, sent)) = Network::with_capture(&["a0-a1", "b0-b1"], &file, &[])
    else {
        return;
    };
    let stats = folder.path("stats").display().to_string();
    for (more, rate) in [("--buffer 4MiB", 500), ("--immediate", 1500)] {
        let live = "--interface a1 --interface b1 --packets 1500 --duration 30s";
        let args = format!("{live} --window-packets 1 --from link --stats {stats} {more}");
        let run = LiveRun::start(network.packets("", &args));
        // The output is read meanwhile.
        let replay = format!("tcpreplay -q -i a0 --pps {rate} {sent}");
        network.sh(&format!("{replay} > /dev/null 2>&1 &"));
        let (code, output, messages) = run.end();
        assert_eq!(code, Some(0), "{messages}");
        assert_eq!(folder.json("stats")["dropped"], 0, "{more}");
        assert!(frames(&output) == frames(&file), "{more}");
    }
}

#[test]
fn a_filter_selects_by_tags_that_the_kernel_has_taken_out() {
    let file = capture("2000", &[]);
    let Some((network, _folder, sent)) = Network::with_capture(&["a0-a1"], &file, &[]) else {
        return;
    };
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
    let file = capture("500", &[]);
    let Some((network, _folder, sent)) = Network::with_capture(&["a0-a1"], &file, &[]) else {
        return;
    };
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
    let file = echoless("gen packets -n 300", b"").bytes();
    let Some((network, _folder, sent)) = Network::with_capture(&["a0-a1", "b0-b1"], &file, &[])
    else {
        return;
    };
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
fn the_last_packets_of_a_removed_interface_are_read() {
    let folder = Folder::new();
    let file = echoless("gen packets -n 300", b"").bytes();
    folder.write("sent", &file);
    let sent = folder.path("sent").display().to_string();
    for ends in ["--strict", "--packets 300"] {
        let Some(network) = Network::new(&["a0-a1", "b0-b1"], &["tcpreplay"]) else {
            return;
        };
        let args = "--interface a1 --interface b1 --window-packets 1 --from link";
        let run = LiveRun::start(network.packets("", &format!("{args} {ends}")));
        // At once: the kernel still has the last packets.
        network.sh(&format!(
            "tcpreplay -q --topspeed -i a0 {sent} && ip link del a1"
        ));
        let (code, output, messages) = run.end();
        assert_eq!(code, Some(2), "{messages}");
        let line = "a1: was removed while it was captured";
        assert_eq!(messages.matches(line).count(), 1, "{messages}");
        assert!(frames(&output) == frames(&file), "{ends}");
        assert_eq!(captured(&output).1, 2);
    }
}

#[test]
fn a_removed_interface_is_told_at_once() {
    let Some(network) = Network::new(&["a0-a1", "b0-b1"], &[]) else {
        return;
    };
    let args = "--interface a1 --interface b1 --fail-on-loss";
    let mut run = LiveRun::start(network.packets("", args));
    network.sh("ip link del a1");
    // Without a packet, and while the run goes on.
    run.await_message("a1: was removed while it was captured");
    assert!(run.child.try_wait().unwrap().is_none());
    send(&run.child, "-TERM");
    let (code, output, _) = run.end();
    assert_eq!((code, captured(&output).1), (Some(143), 2));
}

#[test]
fn an_interface_that_goes_down_is_captured_again_once_it_is_up() {
    let file = echoless("gen packets -n 300", b"").bytes();
    let Some((network, _folder, sent)) = Network::with_capture(&["a0-a1"], &file, &[]) else {
        return;
    };
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
fn an_interface_that_comes_back_is_captured_again_if_it_is_awaited() {
    // All of them fit in a pipe, which is read at the end.
    let file = echoless("gen packets -n 50", b"").bytes();
    let Some((network, folder, sent)) = Network::with_capture(&["a0-a1"], &file, &[]) else {
        return;
    };
    let stats = folder.path("stats").display().to_string();
    let args =
        format!("--interface a1 --packets 150 --from link --window-packets 1 --stats {stats}");
    // Not there when the run begins.
    network.sh("ip link del a1");
    let mut run = network
        .packets("", &format!("{args} --wait-interface"))
        .spawn()
        .unwrap();
    let mut messages = BufReader::new(run.stderr.take().unwrap());
    let mut told = String::new();
    let mut wait_for = |words: &str| {
        while !told.contains(words) {
            assert!(messages.read_line(&mut told).unwrap() > 0, "{told}");
        }
        told.clear();
    };
    wait_for("a1: no such interface, and is awaited");
    network.add("a0-a1");
    let mut output = vec![0; 28];
    let mut stdout = run.stdout.take().unwrap();
    stdout.read_exact(&mut output).unwrap();
    network.replay("a0", &sent);
    for _ in 0..2 {
        network.sh("ip link del a1");
        wait_for("a1: was removed, and is captured again once it is there");
        network.add("a0-a1");
        wait_for("a1: is there again, and captured");
        network.replay("a0", &sent);
    }
    stdout.read_to_end(&mut output).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert!(frames(&output) == [frames(&file), frames(&file), frames(&file)].concat());
    assert_eq!(captured(&output).1, 1);
    let captured = &folder.json("stats")["captured"][0];
    assert_eq!(
        (&captured["packets"], &captured["reopened"]),
        (&150.into(), &2.into())
    );
}

#[test]
fn a_run_that_is_behind_passes_packets_unjudged_if_it_may() {
    let file = capture("2500", &["--frame-bytes", "200"]);
    let Some((network, folder, sent)) = Network::with_capture(&["a0-a1", "b0-b1"], &file, &[])
    else {
        return;
    };
    let stats = folder.path("stats").display().to_string();
    let window = "--window-packets 400 --ignore mac,vlan,ttl,checksum";
    for (overload, more) in [("pass", ""), ("drop", ""), ("pass", "--to b0")] {
        let live = format!("--interface a1 --packets 2500 --buffer 1MiB --overload {overload}");
        let args = format!("{live} {window} --stats {stats} {more} -o -");
        let run = LiveRun::start(network.packets("", &args));
        // Five of eight blocks are full before anything is read.
        let pid = run.child.id();
        network.sh(&format!("kill -STOP {pid}"));
        network.replay("a0", &sent);
        network.sh(&format!("kill -CONT {pid}"));
        let (code, output, messages) = run.end();
        assert_eq!(code, Some(0), "{messages}");
        let stats = folder.json("stats");
        assert_eq!(
            (&stats["records"], &stats["dropped"]),
            (&2500.into(), &0.into())
        );
        let unjudged = stats["unkeyed"].as_u64().unwrap();
        assert_eq!(unjudged > 0, overload == "pass", "{stats}");
        let passed = captured(&output).0.len() as u64;
        assert_eq!(passed, unjudged + stats["fresh"].as_u64().unwrap());
        if !more.is_empty() {
            assert_eq!(stats["sent"], passed);
        }
    }
}

#[test]
fn packets_that_wait_for_those_of_a_quiet_interface_are_judged() {
    // More than half of a buffer, faster than a frame is held for.
    let file = capture("2500", &["--frame-bytes", "200"]);
    let Some((network, folder, sent)) = Network::with_capture(&["a0-a1", "b0-b1"], &file, &[])
    else {
        return;
    };
    let stats = folder.path("stats").display().to_string();
    let live = "--interface a1 --interface b1 --packets 2500 --buffer 1MiB --overload pass";
    let args = format!("{live} --window-packets 400 --stats {stats} -o -");
    // A run that the system leaves waiting for long is behind, and says so: not every time.
    let is_judged = || {
        let run = LiveRun::start(network.packets("", &args));
        network.replay("a0", &sent);
        let (code, _, messages) = run.end();
        assert_eq!(code, Some(0), "{messages}");
        let stats = folder.json("stats");
        let count = |field: &str| stats[field].as_u64().unwrap();
        assert_eq!((count("records"), count("dropped")), (2500, 0), "{stats}");
        count("unkeyed") == 0
    };
    assert!((0..20).any(|_| is_judged()));
}

#[test]
fn a_run_becomes_a_user_once_it_captures() {
    let file = capture("500", &[]);
    let Some((network, _folder, sent)) = Network::with_capture(&["a0-a1"], &file, &[]) else {
        return;
    };
    let run = LiveRun::start(network.packets("", "--interface a1 --user nobody --packets 500"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.child.id())).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().split_whitespace().collect::<Vec<_>>()
    };
    let ids = field("Uid:");
    assert!(
        ids[0] != "0" && ids.iter().all(|id| *id == ids[0]),
        "{status}"
    );
    assert!(!field("Groups:").contains(&"0"), "{status}");
    assert_eq!(
        (field("CapPrm:"), field("CapEff:")),
        (vec!["0000000000000000"; 1], vec!["0000000000000000"; 1])
    );
    network.replay("a0", &sent);
    let (code, output, messages) = run.end();
    assert_eq!(code, Some(0), "{messages}");
    assert!(!captured(&output).0.is_empty());
    packets(&["--interface", "lo", "--user", "no such user"], b"")
        .fails_with("invalid --user=no such user: expected the name of a user other than root");
}

#[test]
fn checksums_that_are_not_computed_are_told_once() {
    let Some(network) = Network::new(&[], &["bash"]) else {
        return;
    };
    let run = LiveRun::start(network.packets("", "--interface lo --packets 4"));
    network.sh("bash -c 'for _ in 1 2; do echo a > /dev/udp/127.0.0.1/9; done' || true");
    network.sh("bash -c 'for _ in 1 2; do echo a > /dev/udp/127.0.0.1/9; done' || true");
    let (code, _, messages) = run.end();
    assert_eq!(code, Some(0), "{messages}");
    let line = "echoless: lo: has packets whose checksums this machine has not computed yet";
    assert_eq!(messages.matches(line).count(), 1, "{messages}");
    assert!(messages.contains(": ethtool -K lo tx off\n"), "{messages}");
}

#[test]
fn rotated_files_are_whole_and_hold_what_one_file_would() {
    let file = capture("1000", &["--frame-bytes", "100"]);
    let Some((network, _folder, sent)) = Network::with_capture(&["a0-a1"], &file, &[]) else {
        return;
    };
    let window = "--window-packets 400 --ignore mac,vlan,ttl,checksum";
    let expected = frames(&packets(&window.split_whitespace().collect::<Vec<_>>(), &file).bytes());
    // Some have a tag of 4 bytes; what is around one is 44 bytes, and what is in front of all 84.
    let largest = 44 + 104;
    for (rotate, keep) in [
        ("150", None),
        ("20kB", None),
        ("1h", None),
        ("150", Some(2)),
    ] {
        let folder = Folder::new();
        // Numbers go on behind those that are there, and other names are left alone.
        let earlier = [
            "out_00006.pcapng",
            "out_00007.pcapng.part",
            "out_x.pcapng",
            "out_8.pcapng",
        ];
        for name in earlier {
            folder.write(name, "earlier");
        }
        let output = folder.path("out.pcapng").display().to_string();
        let keep_option = keep.map_or(String::new(), |keep| format!("--keep {keep}"));
        let args =
            format!("--interface a1 --packets 1000 {window} --rotate {rotate} {keep_option}");
        let mut child = network
            .packets("", &format!("{args} -o {output}"))
            .spawn()
            .unwrap();
        let part = folder.path("out_00008.pcapng.part");
        // The header is written once it captures.
        while !part.metadata().is_ok_and(|part| part.len() > 0) {
            assert!(child.try_wait().unwrap().is_none(), "{rotate}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        network.replay("a0", &sent);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let files = (8..).map(|number| format!("out_{number:05}.pcapng"));
        let first = match keep {
            Some(_) => 8 + expected.len().div_ceil(150) - 2,
            None => 8,
        };
        let files = files.skip(first - 8).take_while(|name| folder.has(name));
        let files: Vec<Vec<u8>> = files.map(|name| folder.bytes(&name)).collect();
        let held: Vec<Vec<Vec<u8>>> = files.iter().map(|file| frames(file)).collect();
        let kept = match keep {
            Some(keep) => {
                assert_eq!(files.len(), keep);
                &expected[(expected.len().div_ceil(150) - keep) * 150..]
            }
            None => &expected[..],
        };
        assert!(held.concat() == kept, "{rotate}");
        let (last, others) = held.split_last().unwrap();
        match rotate {
            "150" => assert!(last.len() <= 150 && others.iter().all(|file| file.len() == 150)),
            "1h" => assert!(others.is_empty()),
            _ => {
                assert!(files.len() > 2);
                for file in &files[..files.len() - 1] {
                    assert!((20_000 - largest..=20_000).contains(&file.len()));
                }
            }
        }
        assert!(earlier.iter().all(|it| folder.has(it)));
        let is_part = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".part");
        let names = std::fs::read_dir(folder.path(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        assert_eq!(names.filter(|name| is_part(name)).count(), 1);
    }
}

#[test]
fn a_full_disk_leaves_no_file_without_its_head() {
    let Some(network) = Network::new(&["a0-a1"], &["prlimit"]) else {
        return;
    };
    let folder = Folder::new();
    let output = folder.path("out.pcapng").display().to_string();
    let args = format!("--interface a1 --duration 1s --rotate 100 -o {output}");
    // The header of the section has 28 bytes, and an interface follows.
    let run = network
        .packets("prlimit --fsize=40", &args)
        .output()
        .unwrap();
    let error = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(2), "{error}");
    assert!(error.contains("out_00001.pcapng.part: "), "{error}");
    assert!(folder.has("out_00001.pcapng.part") && !folder.has("out_00001.pcapng"));
}

#[test]
fn packets_longer_than_the_mtu_are_warned_of_once() {
    let Some(network) = Network::new(&["a0-a1"], &["tcpreplay"]) else {
        return;
    };
    let folder = Folder::new();
    folder.write("sent", echoless("gen packets -n 100", b"").bytes());
    network.sh("ip link set a1 mtu 500");
    let run = LiveRun::start(network.packets("", "--interface a1 --packets 100"));
    // The interface takes them now, and their length is compared with what it was.
    network.sh("ip link set a1 mtu 1500");
    network.replay("a0", &folder.path("sent").display().to_string());
    let (code, _, messages) = run.end();
    assert_eq!(code, Some(0), "{messages}");
    let line = "ethtool -K a1 gro off lro off tso off gso off";
    assert_eq!(messages.matches(line).count(), 1, "{messages}");
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
    // Packets of a megabyte come to a ring of a quarter of that.
    let ended = |id| format!("kill -CONT {id}; kill -TERM {id}");
    let (code, output) = network.overrun(&args, &sent, ended);
    assert_eq!(code, Some(3));
    let stats: Value = folder.json("stats");
    let number = |value: &Value| value.as_u64().unwrap();
    let (read, dropped) = (number(&stats["records"]), number(&stats["dropped"]));
    assert_eq!(read + dropped, 3000);
    assert!(dropped > 1000 && read > 0);
    assert!(number(&stats["captured"][0]["freezes"]) > 0);
    assert_eq!(captured(&output).0.len() as u64, number(&stats["fresh"]));
    // An interface that is removed counts for more.
    let removed = |id| format!("ip link del a1; kill -CONT {id}");
    assert_eq!(network.overrun(&args, &sent, removed).0, Some(2));
}

#[test]
fn packets_that_pass_leave_by_another_interface() {
    let file = capture("1000", &[]);
    let Some((network, folder, sent)) = Network::with_capture(&["a0-a1", "b0-b1"], &file, &[])
    else {
        return;
    };
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
    // Nor what others send there, under any name of the interface.
    network.sh("ip link property add dev b0 altname other");
    let all = "--from link --ignore none --window-packets 1";
    let far = LiveRun::start(network.packets("", &format!("--interface b1 --packets 2000 {all}")));
    let output = folder.path("out");
    let args = format!("--to other {all} --stats {stats} -o {}", output.display());
    let near = format!("--interface a1 --interface b0 {args}");
    let mut near = network.packets("", &near).spawn().unwrap();
    while !output.metadata().is_ok_and(|output| output.len() > 0) {
        assert!(near.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    network.replay("b0", &sent);
    network.replay("a0", &sent);
    assert_eq!(far.end().0, Some(0));
    send(&near, "-TERM");
    let ended = near.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(143), "{ended:?}");
    assert_eq!(folder.json("stats")["records"], 1000);
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
    network.sh("ip link set a1 down && ip link property add dev a0 altname other");
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
            "--interface a0 --to lo",
            "lo: packets leave by Ethernet",
        ),
        ("", "--interface a0 --interface other", "other: is also a0"),
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
            "--interface a --packets 0 | invalid --packets=0: expected a number of packets, 1 to",
            "--interface= |= missing --interface: expected the name of an interface",
            "--interface a --to= |= missing --to: expected the name of an interface",
            "--filter udp | --interface",
            "--interface a --rotate 5 | --output",
            "--interface a -o - --rotate 5 |= invalid --rotate: expected -o FILE, not a stream",
            "--interface a -o x --rotate 0s | invalid --rotate=0s: expected a size such as 1GiB, a time",
            "--interface a -o x --rotate 1e | invalid --rotate=1e: expected a size",
            "--interface a -o x --keep 5 | missing --rotate: expected a limit of the files",
            "--interface a --count --keep 5 | missing --rotate: expected a limit of the files",
            "--interface a -o x --rotate 5 --keep 0 | invalid --keep=0: expected a whole number",
            "--interface a file.pcap | cannot be used with",
        ],
    );
}

#[test]
fn options_of_live_capture_are_rejected_without_an_interface() {
    let options = [
        "--capture af-xdp",
        "--capture af-packet",
        "--filter udp",
        "--snap-length 60",
        "--promiscuous",
        "--buffer 1MiB",
        "--immediate",
        "--duration 1s",
        "--packets 3",
        "--to a0",
        "--rotate 10",
        "--rotate 10 --keep 2",
        "--user nobody",
        "--wait-interface",
        "--overload pass",
        "--overload drop",
        "--fail-on-loss",
    ];
    let file = numbered(&[1, 1, 2]);
    for option in options {
        let folder = Folder::with(&[("in.pcap", &file)]);
        let refused = |more: &str, problem| {
            let run = folder.echoless_on(format!("packets {option} -o out.pcap {more}"), &file);
            run.fails(problem);
            // Only options that were given are named.
            assert!(!run.stderr.contains("--snap-length") || option.starts_with("--snap"));
            let is_written =
                ["out.pcap", "out_00001.pcap.part", "seen"].map(|name| folder.has(name));
            assert_eq!(is_written, [false; 3], "{option} {more}");
        };
        refused("in.pcap", "cannot be used with");
        refused("--skip-seen-files seen", "cannot be used with");
        refused("--skip-seen-files seen in.pcap", "cannot be used with");
        refused("", "--interface");
    }
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
