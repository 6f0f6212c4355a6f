//! What spans, windows and ticks were in the command, Kafka, Python and Flink, when each of them had
//! its own code. States hold windows in these ticks.

use echoless_stream::{Span, Unit, Window, nanoseconds, resolution};

/// Whether it is a time, its units, the length of a tick, and that of one of at most 2^20.
type OfCommand = Option<(bool, u64, u64, u64)>;
/// Whether it is a time, the length of a tick, and the window in ticks.
type OfKafka = Option<(bool, u64, u64)>;

/// Texts with what the command, Kafka and Python (nanoseconds) made of them.
#[rustfmt::skip]
const SPANS: &[(&str, OfCommand, OfKafka, Option<u64>)] = &[
    ("1ns", Some((true, 1, 1, 1)), None, None),
    ("1.5ns", None, None, None),
    ("500us", Some((true, 500000, 200, 1)), None, None),
    ("0.5ms", Some((true, 500000, 200, 1)), None, None),
    ("1ms", Some((true, 1000000, 500, 1)), Some((true, 1, 1)), Some(1000000)),
    (".1s", Some((true, 100000000, 50000, 100)), None, None),
    ("0.05s", Some((true, 50000000, 20000, 50)), None, None),
    ("500ms", Some((true, 500000000, 200000, 500)), Some((true, 1, 500)), Some(500000000)),
    ("999ms", Some((true, 999000000, 200000, 1000)), Some((true, 1, 999)), Some(999000000)),
    ("1500ms", Some((true, 1500000000, 500000, 2000)), Some((true, 1, 1500)), Some(1500000000)),
    ("1.5s", Some((true, 1500000000, 500000, 2000)), None, None),
    ("1s", Some((true, 1000000000, 500000, 1000)), Some((true, 1, 1000)), Some(1000000000)),
    ("2s", Some((true, 2000000000, 1000000, 2000)), Some((true, 1, 2000)), Some(2000000000)),
    ("3999ms", Some((true, 3999000000, 1000000, 5000)), Some((true, 1, 3999)), Some(3999000000)),
    ("4s", Some((true, 4000000000, 2000000, 5000)), Some((true, 2, 2000)), Some(4000000000)),
    ("9.999s", Some((true, 9999000000, 2000000, 10000)), None, None),
    ("30s", Some((true, 30000000000, 10000000, 50000)), Some((true, 10, 3000)), Some(30000000000)),
    ("59s", Some((true, 59000000000, 20000000, 100000)), Some((true, 20, 2950)), Some(59000000000)),
    ("90s", Some((true, 90000000000, 20000000, 100000)), Some((true, 20, 4500)), Some(90000000000)),
    ("1m", Some((true, 60000000000, 20000000, 100000)), Some((true, 20, 3000)), Some(60000000000)),
    ("5m", Some((true, 300000000000, 100000000, 500000)), Some((true, 100, 3000)), Some(300000000000)),
    ("10m", Some((true, 600000000000, 200000000, 1000000)), Some((true, 200, 3000)), Some(600000000000)),
    ("1.5h", Some((true, 5400000000000, 2000000000, 10000000)), None, None),
    ("1h", Some((true, 3600000000000, 1000000000, 5000000)), Some((true, 1000, 3600)), Some(3600000000000)),
    ("2h", Some((true, 7200000000000, 2000000000, 10000000)), Some((true, 2000, 3600)), Some(7200000000000)),
    ("6h", Some((true, 21600000000000, 10000000000, 50000000)), Some((true, 10000, 2160)), Some(21600000000000)),
    ("24h", Some((true, 86400000000000, 20000000000, 100000000)), Some((true, 20000, 4320)), Some(86400000000000)),
    ("36h", Some((true, 129600000000000, 50000000000, 200000000)), Some((true, 50000, 2592)), Some(129600000000000)),
    ("0.125d", Some((true, 10800000000000, 5000000000, 20000000)), None, None),
    ("1d", Some((true, 86400000000000, 20000000000, 100000000)), Some((true, 20000, 4320)), Some(86400000000000)),
    ("7d", Some((true, 604800000000000, 200000000000, 1000000000)), Some((true, 200000, 3024)), Some(604800000000000)),
    ("30d", Some((true, 2592000000000000, 1000000000000, 5000000000)), Some((true, 1000000, 2592)), Some(2592000000000000)),
    ("365d", Some((true, 31536000000000000, 10000000000000, 50000000000)), Some((true, 10000000, 3154)), Some(31536000000000000)),
    ("106751d", Some((true, 9223286400000000000, 2000000000000000, 10000000000000)), Some((true, 2000000000, 4612)), Some(9223286400000000000)),
    ("106752d", None, Some((true, 2000000000, 4612)), Some(9223372800000000000)),
    ("200000d", None, Some((true, 5000000000, 3456)), Some(17280000000000000000)),
    ("1000.000000001s", Some((true, 1000000000001, 500000000, 1000000)), None, None),
    ("1", Some((false, 1, 1, 1)), Some((false, 1, 1)), None),
    ("2", Some((false, 2, 1, 1)), Some((false, 1, 2)), None),
    ("1999", Some((false, 1999, 1, 1)), Some((false, 1, 1999)), None),
    ("2000", Some((false, 2000, 1, 1)), Some((false, 1, 2000)), None),
    ("3999", Some((false, 3999, 1, 1)), Some((false, 1, 3999)), None),
    ("4000", Some((false, 4000, 2, 1)), Some((false, 2, 2000)), None),
    ("5000", Some((false, 5000, 2, 1)), Some((false, 2, 2500)), None),
    ("10k", Some((false, 10000, 5, 1)), Some((false, 5, 2000)), None),
    ("20k", Some((false, 20000, 10, 1)), Some((false, 10, 2000)), None),
    ("50k", Some((false, 50000, 20, 1)), Some((false, 20, 2500)), None),
    ("1000000", Some((false, 1000000, 500, 1)), Some((false, 500, 2000)), None),
    ("1M", Some((false, 1000000, 500, 1)), Some((false, 500, 2000)), None),
    ("5M", Some((false, 5000000, 2000, 5)), Some((false, 2000, 2500)), None),
    ("5m", Some((true, 300000000000, 100000000, 500000)), Some((true, 100, 3000)), Some(300000000000)),
    ("1G", Some((false, 1000000000, 500000, 1000)), Some((false, 500000, 2000)), None),
    ("7T", Some((false, 7000000000000, 2000000000, 10000000)), Some((false, 2000000000, 3500)), None),
    ("9223372036854775807", Some((false, 9223372036854775807, 2000000000000000, 10000000000000)), Some((false, 2000000000000000, 4612)), None),
    ("9223372036854775808", Some((false, 9223372036854775808, 2000000000000000, 10000000000000)), None, None),
    ("18446744073709551615", Some((false, 18446744073709551615, 5000000000000000, 20000000000000)), None, None),
    ("0", None, None, None),
    ("0s", None, None, Some(0)),
    ("0.0s", None, None, None),
    ("", None, None, None),
    ("-1", None, None, None),
    ("-5m", None, None, None),
    ("m", None, None, None),
    ("1.5", None, None, None),
    ("1.s", None, None, None),
    (".s", None, None, None),
    ("1.2.3s", None, None, None),
    ("10 m", None, None, None),
    ("10min", None, None, None),
    ("1K", None, None, None),
    ("1w", None, None, None),
    ("1y", None, None, None),
    ("20000000000000M", None, None, None),
    ("99999999999999999999d", None, None, None),
    ("1０m", None, None, None),
];

#[test]
fn spans_and_ticks_of_the_command_are_as_they_were() {
    for (text, expected, _, _) in SPANS {
        let span = Span::parse(text, Unit::NANOSECOND);
        let found = span.map(|span| {
            (
                matches!(span, Span::Time(_)),
                span.units(),
                span.resolution(),
                span.resolution_of_at_most(1 << 20),
            )
        });
        assert_eq!(found, *expected, "{text}");
    }
}

/// What Kafka accepted is as it was. It accepts what the command does now, where that is in whole
/// milliseconds.
#[test]
fn spans_and_ticks_of_kafka_are_as_they_were() {
    for (text, of_command, expected, _) in SPANS {
        let span = Span::parse(text, Unit::MILLISECOND);
        let found = span.map(|span| {
            let window = Window::new(span.units(), 0, 0);
            assert_eq!(window.late_after, window.ticks, "{text}");
            (
                matches!(span, Span::Time(_)),
                window.resolution,
                window.ticks,
            )
        });
        // Offsets are signed.
        let found = found.filter(|_| span.is_some_and(|span| span.units() <= i64::MAX as u64));
        match expected {
            Some(expected) => assert_eq!(found, Some(*expected), "{text}"),
            None => assert!(found.is_none() || text.contains(['.', 'u']), "{text}"),
        }
        if let (Some(Span::Time(units)), Some((_, nanoseconds, ..))) = (span, of_command) {
            assert_eq!(units * 1_000_000, *nanoseconds, "{text}");
        }
    }
}

/// What Python accepted is as it was.
#[test]
fn windows_of_python_are_as_they_were() {
    for (text, _, _, expected) in SPANS {
        let found = nanoseconds(text);
        match expected {
            Some(expected) => assert_eq!(found, Some(u128::from(*expected)), "{text}"),
            None => assert!(found.is_none() || text.contains(['.', 'u', 'n']), "{text}"),
        }
    }
}

/// The length of a tick in Flink, by its own rule.
fn tick_of_flink(window: u64) -> u64 {
    let mut tick = 1;
    let mut power = 1;
    while power <= window / 2000 {
        for digit in [1, 2, 5] {
            if digit * power <= window / 2000 {
                tick = digit * power;
            }
        }
        power *= 10;
    }
    tick
}

#[test]
fn windows_of_flink_are_as_they_were() {
    const HOUR: u64 = 3_600_000;
    let lengths = (0..64).map(|bits| (1_u64 << bits) / 3).chain(1..5000);
    let lengths = lengths.filter(|length| *length <= 365_000 * 24 * HOUR);
    for length in lengths.chain([60_000, HOUR, 24 * HOUR, 1234 * HOUR, 365_000 * 24 * HOUR]) {
        assert_eq!(resolution(length), tick_of_flink(length), "{length}");
    }
    // Window, lateness and skew; tick, window, late and skew in ticks, beyond the window.
    for (of, expected) in [
        ([60_000, 0, 0], [20, 3000, 3000, 0, 0]),
        ([86_400_000, 300_000, 0], [20_000, 4320, 4335, 0, 0]),
        ([86_400_000, 600_000, HOUR], [20_000, 4320, 4350, 180, 210]),
        ([60_000, 0, 10 * HOUR], [50, 1200, 1200, 720_000, 720_000]),
        ([1, 0, 1], [1, 1, 1, 1, 1]),
    ] {
        let window = Window::new(of[0], of[1], of[2]);
        let found = [
            window.resolution,
            window.ticks,
            window.late_after,
            window.skew,
            window.remembered_beyond(),
        ];
        assert_eq!(found, expected, "{of:?}");
    }
}
