//! Threads, statistics, report and exit codes of `echoless packets`.

use std::fs;

use echoless_packets::LinkType;
use echoless_packets::synth::{Header, Stack};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::packets_support::{frame, numbered, packets, pcap, pcapng, split, with_ttl};
use crate::run::{echoless, file};

/// The statistics of a run.
fn stats(args: &[&str], capture: &[u8]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), "stats", b"");
    let mut all = vec!["--stats", &name];
    all.extend_from_slice(args);
    packets(&all, capture).bytes();
    serde_json::from_slice(&fs::read(&name).unwrap()).unwrap()
}

/// A capture of several chunks with copies at many distances, in both directions of time.
fn mixed() -> Vec<u8> {
    let mut packets = Vec::new();
    let mut state = 1_u64;
    for number in 0..30_000_u64 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let random = state >> 40;
        let back = if random.is_multiple_of(4) {
            random / 4 % 3000
        } else {
            0
        };
        let ttl = 64 - (random % 3) as u8;
        let late = if random.is_multiple_of(50) { 900 } else { 0 };
        let time = 1_000_000 + number * 3 - late;
        packets.push((time, with_ttl(number.saturating_sub(back), ttl)));
    }
    pcap(&packets)
}

#[test]
fn the_output_is_the_same_for_any_number_of_threads() {
    let capture = mixed();
    let directory = tempfile::tempdir().unwrap();
    let dropped = file(directory.path(), "dropped", b"");
    let stats = file(directory.path(), "stats", b"");
    let sha256 = |bytes: &[u8]| Sha256::digest(bytes).to_vec();
    for windows in [
        &["--window", "3ms"][..],
        &["--window-packets", "1000", "--no-refresh"],
        &["--window", "4ms", "--window-packets", "900"],
        &["--window", "4ms", "--window-packets", "900", "--no-refresh"],
    ] {
        let mut outcomes = Vec::new();
        for threads in ["1", "2", "3", "8"] {
            let mut args = vec!["--report", "--threads", threads];
            args.extend(["--duplicates", &dropped, "--stats", &stats]);
            args.extend_from_slice(windows);
            let kept = packets(&args, &capture).bytes();
            assert!(kept.len() > capture.len() / 2 && kept.len() < capture.len());
            let mut stats: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
            for varies in ["seconds", "threads", "huge_page_bytes"] {
                stats[varies] = Value::Null;
            }
            outcomes.push((sha256(&kept), sha256(&fs::read(&dropped).unwrap()), stats));
        }
        for outcome in &outcomes[1..] {
            assert_eq!(*outcome, outcomes[0], "{windows:?}");
        }
    }
}

#[test]
fn statistics_of_a_run() {
    let capture = numbered(&[1, 2, 1, 3, 1]);
    let both = stats(&["--window", "1s", "--window-packets", "2"], &capture);
    assert_eq!(both["records"], 5);
    assert_eq!(both["fresh"], 3);
    assert_eq!(both["duplicates"], 2);
    assert_eq!(both["window"], 1.0);
    assert_eq!(both["granule"], 1e-6);
    assert_eq!(both["window_unit"], "seconds");
    assert_eq!(both["window_packets"], 2);
    assert_eq!(both["evictions"], 0);
    assert_eq!(both["memory_bytes"], 64 << 10);
    assert_eq!(both["slot_bits"], 64);
    let filter = both["filter"].as_str().unwrap();
    assert_eq!(filter.matches("stamped:").count(), 2, "{filter}");
    let counted = stats(&["--window-packets", "2"], &capture);
    assert_eq!(counted["window"], 2.0);
    assert_eq!(counted["granule"], 1.0);
    assert_eq!(counted["window_unit"], "packets");
    assert_eq!(counted["window_packets"], Value::Null);
    assert_eq!(counted["clock_from"], Value::Null);
    let records = echoless(["packets"], &capture);
    assert_eq!(records.code, 0);
    let summary = records.stderr;
    assert!(summary.contains("5 packets (354 B) in "), "{summary}");
    assert!(
        summary.contains("3 fresh, 2 duplicates (40.00 %)"),
        "{summary}"
    );
    assert!(
        summary.contains("no evictions: no duplicate inside the window was missed"),
        "{summary}"
    );
}

#[test]
fn late_packets_pass_and_are_counted() {
    // The third packet is late by more than the window, and equal to the second and the last.
    let capture = pcap(&[
        (1_000_000, frame(1)),
        (2_000_000, frame(2)),
        (1_800_000, frame(2)),
        (1_900_000, frame(1)),
        (1_700_000, frame(1)),
        (2_000_000, frame(2)),
    ]);
    for threads in ["1", "2"] {
        for (windows, duplicates) in [
            (&[][..], 1),
            (&["--window", "100ms", "--window-packets", "2"], 1),
            (&["--window-packets", "9"], 4),
        ] {
            let args = [&["--threads", threads, "--report"], windows].concat();
            let stats = stats(&args, &capture);
            let late = if duplicates == 1 { 2 } else { 0 };
            let counts = (&stats["records"], &stats["duplicates"], &stats["unkeyed"]);
            assert_eq!(counts, (&6.into(), &duplicates.into(), &late.into()));
            assert_eq!(stats["late"], late);
        }
    }
    // Late packets are packets, not blocks for every output.
    let (kept, dropped) = split(&capture, &[false, false, false, false, false, true]);
    assert_eq!(packets(&[], &capture).bytes(), kept);
    let inverted = packets(&["--invert"], &capture);
    assert_eq!(inverted.bytes(), dropped);
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), "explained", b"");
    let args = ["--count", &format!("--explain={name}")];
    packets(&args, &capture).bytes();
    let explained = fs::read_to_string(&name).unwrap();
    assert!(explained.contains("\"record\":6,"), "{explained}");
}

#[test]
fn a_copy_may_have_an_earlier_time_than_its_original() {
    // Two clocks, of which one is 50 ms behind the other.
    let capture = pcap(&[
        (2_000_000, frame(1)),
        (1_950_000, frame(1)),
        (1_951_000, frame(2)),
        (2_001_000, frame(2)),
    ]);
    for (window, duplicates, late) in [("100ms", 2, 0), ("10ms", 0, 2)] {
        let stats = stats(&["--window", window], &capture);
        assert_eq!(
            (&stats["duplicates"], &stats["late"]),
            (&duplicates.into(), &late.into())
        );
    }
}

#[test]
fn packets_that_are_not_compared_as_usual_are_counted() {
    let short = vec![5; 30];
    let plain = frame(1);
    let long = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::udp()]).bytes(&[7; 90]);
    let mut malformed = plain.clone();
    malformed[14] = 0x44;
    // Shortened before the capture, and another copy behind a router.
    let mut routed = long[..70].to_vec();
    (routed[22], routed[25]) = (63, 0);
    let packets = [short, plain, malformed, long[..70].to_vec(), routed];
    let capture = pcap(&(0..).zip(packets).collect::<Vec<_>>());
    let counts = |args: &[&str]| {
        let stats = stats(args, &capture);
        ["compared_whole", "truncated", "malformed", "short"].map(|name| stats[name].as_u64())
    };
    assert_eq!(counts(&[]), [2, 2, 1, 0].map(Some));
    assert_eq!(counts(&["--snap-safe", "60"]), [2, 2, 1, 2].map(Some));
    let run = echoless(["packets"], &capture);
    assert!(
        run.stderr.contains("4 fresh, 1 duplicate"),
        "{}",
        run.stderr
    );
    let line = "echoless: packets that were not compared as usual: 2 without the layer of --from, \
                2 truncated, 1 malformed\n";
    assert!(run.stderr.contains(line), "{}", run.stderr);
    let usual = echoless(["packets"], numbered(&[1]));
    assert!(!usual.stderr.contains("not compared"), "{}", usual.stderr);
}

#[test]
fn files_that_are_not_in_the_order_of_time_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let write =
        |name: &str, packets: &[(u64, Vec<u8>)]| file(directory.path(), name, &pcap(packets));
    let late = write("late", &[(9_000_000, frame(1)), (9_000_001, frame(2))]);
    // Equal packets five seconds apart are no copies, also if both are before the clock.
    let early = write("early", &[(1_000_000, frame(3)), (6_000_000, frame(3))]);
    let empty = write("empty", &[]);
    let run = |args: &[&str]| echoless([&["packets", "--count", "-m", "64k"], args].concat(), b"");
    let wrong = run(&[&late, &empty, &early]);
    assert_eq!(wrong.stdout, b"4\n");
    let warning = format!(
        "echoless: {early}: begins before packets of the inputs in front of it by more than the \
         window, so packets pass unjudged: join the files in the order of time first (mergecap)\n"
    );
    // Once, and once in the summary.
    assert_eq!(wrong.stderr.matches("mergecap").count(), 2);
    let summary = "2 packets too late, passed unjudged; join the files in the order of time";
    assert!(wrong.stderr.contains(summary), "{}", wrong.stderr);
    assert!(wrong.stderr.starts_with(&warning), "{}", wrong.stderr);
    assert!(
        wrong.stderr.contains("2 passed unjudged"),
        "{}",
        wrong.stderr
    );
    assert!(!run(&[&early, &late]).stderr.contains("mergecap"));
    assert_eq!(run(&["-q", &late, &early]).stderr, "");
}

#[test]
fn evictions_are_reported_with_the_memory_that_is_enough() {
    let numbers: Vec<u64> = (0..40_000).chain(0..40_000).collect();
    let capture = numbered(&numbers);
    for windows in [
        &["--window-packets", "40000"][..],
        &["--window", "1s"],
        &["--window", "1s", "--window-packets", "40000"],
    ] {
        let small = stats(windows, &capture);
        assert!(small["evictions"].as_u64().unwrap() > 10_000, "{windows:?}");
        assert!(small["estimated_missed_duplicates"].as_u64().unwrap() > 10_000);
        assert_eq!(small["estimated_false_duplicates_low"], 0);
        let keys = small["busiest_window_keys"].as_u64().unwrap();
        assert!((30_000..50_000).contains(&keys), "{windows:?}: {keys}");
        let enough = small["busiest_window_memory_bytes"].as_u64().unwrap();
        let mut args = vec!["packets", "-q", "--count", "--invert", "-m"];
        let enough = (2 * enough).to_string();
        args.push(&enough);
        args.extend_from_slice(windows);
        let found: u64 = echoless(&args, &capture).text().trim().parse().unwrap();
        assert!(found > 39_900, "{windows:?}: {found}");
    }
}

#[test]
fn the_report_tells_where_duplicates_come_from() {
    let mut file = pcapng(false);
    file.interface(LinkType::ETHERNET, 0, &[(9, &[9])]);
    let len = frame(1).len() as u32;
    for (interface, time, frame) in [
        (0, 1_000, with_ttl(1, 64)),
        // 500 ns later on another interface, behind a router.
        (1, 1_500, with_ttl(1, 63)),
        (0, 2_000, with_ttl(2, 64)),
        (0, 2_500, with_ttl(3, 64)),
        (0, 3_000, with_ttl(4, 64)),
        // A copy 4 packets back, which is identical to what it copies.
        (1, 12_500, with_ttl(1, 63)),
    ] {
        file.packet(interface, time, &frame, len);
    }
    file.simple_packet(&with_ttl(1, 63), len);
    let file = file.into_bytes();
    let report = stats(&["--report"], &file)["copies"].clone();
    let expected = json!({
        "distance_packets": [
            { "at_most": 1, "duplicates": 2 },
            { "at_most": 4, "duplicates": 1 },
        ],
        "distance_seconds": [
            { "at_most": 1e-6, "duplicates": 1 },
            { "at_most": 2e-5, "duplicates": 1 },
        ],
        "without_time": 1,
        "interfaces": [
            { "original": "0.0", "copy": "0.1", "duplicates": 1 },
            { "original": "0.1", "copy": "0.0", "duplicates": 1 },
            { "original": "0.1", "copy": "0.1", "duplicates": 1 },
        ],
        "other_interfaces": 0,
        "differing_fields": [
            { "field": "ttl", "duplicates": 1 },
            { "field": "ip-checksum", "duplicates": 1 },
        ],
        "identical": 2,
        "unknown": 0,
    });
    assert_eq!(report, expected);
    assert_eq!(stats(&[], &file)["copies"], Value::Null);
    let summary = echoless(["packets", "--report"], &file).stderr;
    for line in [
        "duplicates by distance in packets: to 1: 2; to 4: 1",
        "duplicates by distance in time: to 1 us: 1; to 20 us: 1; without time: 1",
        "duplicates by interfaces (section.number): 0.0 to 0.1: 1; 0.1 to 0.0: 1; 0.1 to 0.1: 1",
        "duplicates by differing fields: ttl: 1; ip-checksum: 1; none: 2",
    ] {
        assert!(summary.contains(line), "{summary}");
    }
    // The report was requested, so it follows a summary of one line.
    let line = echoless(["packets", "--summary", "line", "--report"], &file).stderr;
    let report = |summary: &str| {
        let lines = summary
            .lines()
            .filter(|line| line.contains("duplicates by "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(report(&line), report(&summary));
    assert_eq!(line.lines().count(), 5, "{line}");
    assert_eq!(
        packets(&["--report"], &file).error(),
        "missing --stats: expected --stats FILE beside --report and --quiet: the report goes \
         nowhere else"
    );
    let none = echoless(["packets", "--report"], numbered(&[1])).stderr;
    assert!(
        none.contains("duplicates by differing fields: none"),
        "{none}"
    );
}

#[test]
fn exit_codes() {
    let copies = numbered(&[1, 1]);
    let fresh = numbered(&[1, 2]);
    assert_eq!(packets(&[], &copies).code, 0);
    assert_eq!(packets(&["--fail-on-duplicates"], &copies).code, 1);
    assert_eq!(packets(&["--fail-on-duplicates"], &fresh).code, 0);
    assert_eq!(packets(&["--fail-on-duplicates"], b"").code, 2);
}

#[test]
fn a_signal_completes_the_run() {
    use std::io::{Read, Write};

    use crate::run::{command, send};

    let capture = numbered(&[1, 1, 2]);
    let cut = &capture[..capture.len() - 5];
    let expected = numbered(&[1]);
    for threads in ["1", "2"] {
        let args = ["packets", "-m", "64k", "--threads", threads];
        let mut child = command(args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdin.write_all(cut).unwrap();
        let mut kept = vec![0; expected.len()];
        stdout.read_exact(&mut kept).unwrap();
        send(&child, "-INT");
        stdout.read_to_end(&mut kept).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(kept, expected);
        assert_eq!(output.status.code(), Some(130));
        let summary = String::from_utf8(output.stderr).unwrap();
        assert!(summary.contains("2 packets"), "{summary}");
    }
}
