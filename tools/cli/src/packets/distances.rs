//! How far copies are from the packet that they repeat: histograms of packets and of time.

use echoless_records::number::grouped;
use serde::Serialize;

/// The upper ends of the histogram of times, in nanoseconds: 1, 2 and 5 times the powers of ten
/// from a microsecond to 50 seconds.
const TIME_DIGITS: [u64; 3] = [1, 2, 5];
const TIME_DECADES: std::ops::Range<u32> = 3..11;
const TIME_ENDS: usize = TIME_DIGITS.len() * (TIME_DECADES.end - TIME_DECADES.start) as usize;

/// The upper ends of the histogram of times, in nanoseconds.
fn time_ends() -> impl Iterator<Item = u64> {
    TIME_DECADES.flat_map(|power| TIME_DIGITS.map(|digit| digit * 10_u64.pow(power)))
}

/// The upper end of a bucket of times in nanoseconds; the last bucket has none.
pub(crate) fn time_end(bucket: usize) -> Option<u64> {
    time_ends().nth(bucket)
}

/// The upper end of a bucket of packets; the last bucket has none.
pub(crate) fn packets_end(bucket: usize) -> Option<u64> {
    1_u64.checked_shl(bucket as u32)
}

/// The buckets that a distance is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Distance {
    /// The bucket `i` is above `2^(i-1)` packets and at most `2^i`.
    packets: u8,
    /// The bucket of [`time_end`]; `None` if either packet has no time.
    pub(crate) time: Option<u8>,
}

impl Distance {
    /// The distance of this many packets, 1 or more, and nanoseconds.
    pub(crate) fn new(packets: u64, time: Option<u64>) -> Self {
        let bucket = |time| time_ends().take_while(|end| *end < time).count() as u8;
        Self {
            packets: (u64::BITS - (packets - 1).leading_zeros()) as u8,
            time: time.map(bucket),
        }
    }

    /// The distance of two packets, each with its number and its time in nanoseconds.
    pub(crate) fn between(original: (u64, Option<i64>), copy: (u64, Option<i64>)) -> Self {
        let times = original.1.zip(copy.1);
        let time = times.map(|(first, second)| second.abs_diff(first));
        Self::new(copy.0 - original.0, time)
    }
}

/// Numbers of duplicates by distance.
#[derive(Debug, Clone)]
pub(crate) struct Distances {
    pub(crate) by_packets: [u64; u64::BITS as usize + 1],
    pub(crate) by_time: [u64; TIME_ENDS + 1],
    /// Duplicates of which either packet has no time.
    pub(crate) without_time: u64,
}

impl Distances {
    pub(crate) const NONE: Self = Self {
        by_packets: [0; u64::BITS as usize + 1],
        by_time: [0; TIME_ENDS + 1],
        without_time: 0,
    };

    pub(crate) fn add(&mut self, distance: Distance, duplicates: u64) {
        self.by_packets[usize::from(distance.packets)] += duplicates;
        match distance.time {
            Some(bucket) => self.by_time[usize::from(bucket)] += duplicates,
            None => self.without_time += duplicates,
        }
    }

    /// The histograms for programs.
    pub(crate) fn stats(&self) -> DistanceStats {
        let ends = (0..=u64::BITS as usize).map(packets_end);
        let times = (0..=TIME_ENDS).map(|bucket| time_end(bucket).map(|end| end as f64 / 1e9));
        DistanceStats {
            distance_packets: buckets(ends, &self.by_packets),
            distance_seconds: buckets(times, &self.by_time),
            without_time: self.without_time,
        }
    }

    /// The histogram of packets for people: the end of each bucket, and its count.
    pub(crate) fn packet_entries(&self) -> Vec<(String, u64)> {
        let ends = (0..).map(|bucket| end_text(packets_end(bucket).map(grouped)));
        ends.zip(self.by_packets).collect()
    }

    /// The histogram of times for people.
    pub(crate) fn time_entries(&self) -> Vec<(String, u64)> {
        let ends = (0..).map(|bucket| end_text(time_end(bucket).map(time_text)));
        let without = ("without time".into(), self.without_time);
        ends.zip(self.by_time).chain([without]).collect()
    }
}

fn end_text(end: Option<String>) -> String {
    end.map_or("more".into(), |end| format!("to {end}"))
}

/// The bucket that ends behind this share of the counts, if there are any.
pub(crate) fn quantile(counts: &[u64], share: f64) -> Option<usize> {
    let least = (counts.iter().sum::<u64>() as f64 * share).max(1.0);
    let mut sum = 0;
    counts.iter().position(|count| {
        sum += count;
        sum as f64 >= least
    })
}

/// Both histograms in the JSON of `--stats`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct DistanceStats {
    distance_packets: Vec<Bucket<u64>>,
    distance_seconds: Vec<Bucket<f64>>,
    without_time: u64,
}

/// Duplicates at most this far away, and farther than the bucket before; `null` has no end.
#[derive(Debug, Clone, Serialize)]
struct Bucket<T> {
    at_most: Option<T>,
    duplicates: u64,
}

/// The buckets that are not empty.
fn buckets<T>(ends: impl Iterator<Item = Option<T>>, counts: &[u64]) -> Vec<Bucket<T>> {
    let counted = ends.zip(counts).filter(|(_, duplicates)| **duplicates > 0);
    counted
        .map(|(at_most, &duplicates)| Bucket {
            at_most,
            duplicates,
        })
        .collect()
}

/// A time in nanoseconds, in its largest whole unit.
pub(crate) fn time_text(nanoseconds: u64) -> String {
    let (number, unit) = whole_unit(nanoseconds);
    format!("{number} {unit}")
}

/// The largest unit of which a time in nanoseconds is a whole number, and that number.
pub(crate) fn whole_unit(nanoseconds: u64) -> (u64, &'static str) {
    let units = [
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
        ("ns", 1),
    ];
    let whole = |(_, unit): &&(&str, u64)| nanoseconds.is_multiple_of(*unit);
    let (name, unit) = units.iter().find(whole).unwrap_or(&("ns", 1));
    (nanoseconds / unit, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_in_the_bucket_that_ends_at_them() {
        let mut all = Distances::NONE;
        for (packets, time) in [
            (1, Some(0)),
            (2, Some(1000)),
            (3, Some(1001)),
            (4, None),
            (u64::MAX, Some(u64::MAX)),
        ] {
            all.add(Distance::new(packets, time), 2);
        }
        let counted = |entries: Vec<(String, u64)>| {
            let some = entries.into_iter().filter(|(_, count)| *count > 0);
            some.collect::<Vec<_>>()
        };
        let expected = |all: &[(&str, u64)]| {
            let owned = all.iter().map(|(name, count)| ((*name).to_owned(), *count));
            owned.collect::<Vec<_>>()
        };
        assert_eq!(
            counted(all.packet_entries()),
            expected(&[("to 1", 2), ("to 2", 2), ("to 4", 4), ("more", 2)])
        );
        assert_eq!(
            counted(all.time_entries()),
            expected(&[
                ("to 1 us", 4),
                ("to 2 us", 2),
                ("more", 2),
                ("without time", 2)
            ])
        );
        assert_eq!(quantile(&all.by_packets, 0.5), Some(2));
        assert_eq!(quantile(&all.by_packets, 1.0), Some(64));
        assert_eq!(quantile(&[0, 0], 0.5), None);
    }
}
