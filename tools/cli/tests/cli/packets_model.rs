//! The verdicts of `echoless packets` against a plain model of its windows.

use std::collections::HashMap;
use std::fs;

use echoless_packets::LinkType;
use echoless_packets::writer::PcapWriter;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::packets_support::{frame, packets, pcapng, split};
use crate::run::file;

/// A kind of file.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Pcap { big_endian: bool, nanoseconds: bool },
    Pcapng { big_endian: bool },
}

/// A packet: the number in its payload, and its time in microseconds. A pcapng file has a simple
/// packet block for a packet without a time.
type Numbered = (u64, Option<u64>);

fn capture(kind: Kind, stream: &[Numbered]) -> Vec<u8> {
    match kind {
        Kind::Pcap {
            big_endian,
            nanoseconds,
        } => {
            let mut file = PcapWriter::new(big_endian, nanoseconds, LinkType::ETHERNET);
            for (number, time) in stream {
                let units = time.unwrap() * if nanoseconds { 1000 } else { 1 };
                let frame = frame(*number);
                file.packet(units, &frame, frame.len() as u32);
            }
            file.into_bytes()
        }
        Kind::Pcapng { big_endian } => {
            let mut file = pcapng(big_endian);
            for (number, time) in stream {
                let frame = frame(*number);
                match time {
                    Some(time) => file.packet(0, time * 1000, &frame, frame.len() as u32),
                    None => file.simple_packet(&frame, frame.len() as u32),
                }
            }
            file.into_bytes()
        }
    }
}

/// The windows of a run, in microseconds and packets.
#[derive(Debug, Clone, Copy)]
struct Windows {
    time: Option<u64>,
    packets: Option<u64>,
    refresh: bool,
}

/// Whether each packet is a duplicate, from the definition.
fn model(windows: Windows, stream: &[Numbered]) -> Vec<bool> {
    let mut last: HashMap<u64, (u64, u64)> = HashMap::new();
    let (mut clock, mut at) = (0, 0);
    let judge = |(number, time): &Numbered| {
        clock = clock.max(time.unwrap_or(0));
        let age = clock - time.unwrap_or(clock);
        if windows.time.is_some_and(|window| age > window) {
            // A late packet passes, and leaves no trace.
            return false;
        }
        at += 1;
        let duplicate = last.get(number).is_some_and(|(before, then)| {
            windows.time.is_none_or(|window| clock - then <= window)
                && (windows.packets).is_none_or(|window| at - before <= window)
        });
        if windows.refresh || !duplicate {
            last.insert(*number, (at, clock));
        }
        duplicate
    };
    stream.iter().map(judge).collect()
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        (any::<bool>(), any::<bool>()).prop_map(|(big_endian, nanoseconds)| Kind::Pcap {
            big_endian,
            nanoseconds
        }),
        any::<bool>().prop_map(|big_endian| Kind::Pcapng { big_endian }),
    ]
}

fn windows() -> impl Strategy<Value = Windows> {
    let time = prop::option::of(1_u64..60);
    let packets = prop::option::of(1_u64..40);
    let some = (time, packets).prop_filter("a window", |(time, packets)| {
        time.is_some() || packets.is_some()
    });
    (some, any::<bool>()).prop_map(|((time, packets), refresh)| Windows {
        time,
        packets,
        refresh,
    })
}

/// Steps of time that go back now and then.
fn streams() -> impl Strategy<Value = Vec<(u64, i64, bool)>> {
    let step = prop_oneof![6 => 0_i64..6, 1 => -30_i64..0, 1 => 20_i64..80];
    vec((0_u64..15, step, prop::bool::weighted(0.1)), 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn verdicts_equal_the_model(
        kind in kinds(),
        windows in windows(),
        steps in streams(),
        threads in 1_usize..4,
    ) {
        let mut time = 1_000_000;
        let mut stream: Vec<Numbered> = Vec::new();
        for (number, step, simple) in steps {
            time = (time + step).max(0);
            // The clock begins with the first packet.
            let simple = simple && !stream.is_empty() && matches!(kind, Kind::Pcapng { .. });
            stream.push((number, (!simple).then_some(time as u64)));
        }
        let capture = capture(kind, &stream);
        let (kept, dropped) = split(&capture, &model(windows, &stream));
        let directory = tempfile::tempdir().unwrap();
        let side = file(directory.path(), "dropped", b"");
        let threads = threads.to_string();
        let mut args = vec!["--threads", &threads, "--duplicates", &side];
        let time = windows.time.map(|time| format!("{time}us"));
        let count = windows.packets.map(|count| count.to_string());
        for (option, value) in [("--window", &time), ("--window-packets", &count)] {
            if let Some(value) = value {
                args.extend([option, value]);
            }
        }
        if !windows.refresh {
            args.push("--no-refresh");
        }
        let run = packets(&args, &capture);
        prop_assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        prop_assert_eq!(run.stdout, kept);
        prop_assert_eq!(fs::read(side).unwrap(), dropped);
    }
}

/// A packet and its copy `distance` packets later, between other packets. The link type is
/// unknown, so packets are short and compared whole.
fn far_copies(distance: u64) -> Vec<u8> {
    let mut file = PcapWriter::new(false, false, LinkType(147));
    for number in (0..distance).chain([0]) {
        file.packet(1, &number.to_be_bytes(), 8);
    }
    file.into_bytes()
}

#[test]
fn a_window_of_a_million_packets_is_exact() {
    for (distance, duplicates) in [(1_000_000, "1\n"), (1_000_001, "0\n")] {
        let capture = far_copies(distance);
        let args = ["--window-packets", "1000000", "--count", "--invert"];
        let run = packets(&[&args[..], &["-m", "256MiB"]].concat(), &capture);
        assert_eq!(run.text(), duplicates, "{distance}");
    }
}

#[test]
fn a_window_of_time_is_exact_to_its_tick() {
    // A microsecond from 100 ms to a second, less below.
    for (window, distance, duplicates) in [
        ("100ms", 100_000_000, "1\n"),
        ("100ms", 100_001_000, "0\n"),
        ("10500us", 10_500_000, "1\n"),
        ("10500us", 10_500_100, "0\n"),
        ("1ns", 1, "1\n"),
        ("1ns", 2, "0\n"),
        ("131072ns", 131_072, "1\n"),
        ("131072ns", 131_073, "0\n"),
        ("1s", 1_000_000_000, "1\n"),
        ("1s", 1_000_001_000, "0\n"),
    ] {
        let mut file = PcapWriter::new(false, true, LinkType::ETHERNET);
        for time in [5_000_000_000, 5_000_000_000 + distance] {
            file.packet(time, &frame(1), 50);
        }
        let args = ["--window", window, "--count", "--invert"];
        let run = packets(&args, &file.into_bytes());
        assert_eq!(run.text(), duplicates, "{window} {distance}");
    }
}

#[test]
fn the_default_window_is_100_ms_unless_one_is_given() {
    let capture = |distance: u64| {
        let (first, copy) = ((7, frame(1)), (7 + distance, frame(1)));
        crate::packets_support::pcap(&[first, copy])
    };
    for (args, distance, kept) in [
        (&[][..], 100_000, "1\n"),
        (&[], 100_001, "2\n"),
        (&["--window-packets", "1"], 10_000_000, "1\n"),
        (&["--window", "1s"], 1_000_000, "1\n"),
        (
            &["--window", "1s", "--window-packets", "1"],
            1_000_001,
            "2\n",
        ),
    ] {
        let mut all = vec!["--count"];
        all.extend_from_slice(args);
        let run = packets(&all, &capture(distance));
        assert_eq!(run.text(), kept, "{args:?} {distance}");
    }
}

#[test]
fn long_silences_between_packets() {
    // Each pair of copies is a second behind the one before: many windows, so the stamps of the
    // filter wrap around again and again.
    let pairs = (0..20_000_u64).flat_map(|pair| {
        let time = pair * 1_000_000;
        [(time, frame(pair % 7)), (time + 50_000, frame(pair % 7))]
    });
    let capture = crate::packets_support::pcap(&pairs.collect::<Vec<_>>());
    let args = ["--count", "--invert", "-m", "64MiB"];
    assert_eq!(packets(&args, &capture).text(), "20000\n");
}
