//! What all pairs of a stream say together: the causes beyond doubt, the window that separates
//! copies from packets that were sent again, and the options that remove the copies.

use std::collections::BTreeMap;

use echoless_packets::key::{Field, FieldSet, KeyOptions, KeyReader};

use super::super::distances::{Distances, packets_end, quantile, time_end, whole_unit};
use super::super::tally::CopyTally;
use super::cause::{Cause, Match, Pair};
use super::pairs::{Diagnosis, NEAR};

/// Fewer copies than this prove nothing, nor do fewer than one in so many packets.
const LEAST_COPIES: u64 = 5;
const PACKETS_FOR_A_COPY: u64 = 1000;

/// Where nothing proves a copy, equal packets are copies if at least two in so many packets are.
/// Every second packet is, if all are copied.
const PACKETS_FOR_TWO_EQUAL: u64 = 5;

/// The buckets in a row without a pair that separate copies from packets that were sent again: a
/// power of ten.
pub(super) const GAP: usize = 3;

/// The window is so many times as long as the greatest distance of a copy, if nothing is in the
/// way, because queues may be longer than they were; and never shorter than this many nanoseconds.
const MARGIN: u64 = 5;
const LEAST_WINDOW: u64 = 100_000;

/// What was found.
#[derive(Debug)]
pub(super) struct Findings {
    /// The causes of copies, the most frequent first, and those of too few pairs.
    pub(super) causes: Vec<(Cause, u64)>,
    pub(super) doubtful: Vec<(Cause, u64)>,
    pub(super) copies: u64,
    pub(super) tally: CopyTally,
    pub(super) by_vlans: BTreeMap<(Option<u16>, Option<u16>), u64>,
    /// Packets that are equal to an earlier one, as far as the options compare them, and were sent
    /// again.
    pub(super) repeats: Distances,
    /// Those of them that the options remove, too.
    pub(super) removed_repeats: u64,
    /// Whether the window is longer than the distances, because packets are not in the order of
    /// time.
    pub(super) is_unordered: bool,
    /// The options that remove the copies; none without copies.
    pub(super) options: Vec<String>,
}

/// The verdict on a pair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Copy,
    Doubtful,
    Repeat,
}

impl Findings {
    pub(super) fn new(diagnosis: &Diagnosis<'_>) -> Self {
        let mut all = kinds(diagnosis);
        // With each option, further packets are compared with those before.
        for option in [&[Match::Snapped][..], &[Match::Inner, Match::Tunnels]] {
            let is_of = |pair: &Pair| option.contains(&pair.matching);
            let is_copy = |(pair, _, kind): &(&Pair, _, _)| is_of(pair) && *kind == Kind::Copy;
            if !all.iter().any(is_copy) {
                all.retain(|(pair, _, kind)| *kind != Kind::Repeat || !is_of(pair));
            }
        }
        let judged = || all.iter().copied();
        let of = |wanted| judged().filter(move |(_, _, kind)| *kind == wanted);
        let by_cause = |wanted| {
            let mut causes: BTreeMap<Cause, u64> = BTreeMap::new();
            of(wanted).for_each(|(pair, n, _)| *causes.entry(pair.cause()).or_default() += n);
            let mut causes: Vec<_> = causes.into_iter().collect();
            causes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
            causes
        };
        let windows = |wanted| {
            let mut windows = Distances::NONE;
            of(wanted).for_each(|(pair, n, _)| windows.add(pair.window, n));
            windows
        };
        let mut findings = Self {
            causes: by_cause(Kind::Copy),
            doubtful: by_cause(Kind::Doubtful),
            copies: of(Kind::Copy).map(|(_, n, _)| n).sum(),
            tally: CopyTally::new(),
            by_vlans: BTreeMap::new(),
            repeats: Distances::NONE,
            removed_repeats: 0,
            is_unordered: false,
            options: Vec::new(),
        };
        for (pair, n, kind) in judged() {
            match kind {
                Kind::Copy => {
                    let interfaces = pair.places.map(|places| places.interfaces);
                    findings
                        .tally
                        .add(pair.distance, interfaces, pair.differing, n);
                    if let Some(places) = pair.places {
                        *findings.by_vlans.entry(places.vlans).or_default() += n;
                    }
                }
                Kind::Repeat => findings.repeats.add(pair.distance, n),
                Kind::Doubtful => {}
            }
        }
        if findings.copies > 0 {
            let (copies, repeats) = (windows(Kind::Copy), windows(Kind::Repeat));
            findings.add_window(&copies, &repeats, diagnosis.greatest);
            let copies: Vec<&Pair> = of(Kind::Copy).map(|(pair, _, _)| pair).collect();
            findings.add_key(&copies, diagnosis.snap());
        }
        findings
    }

    /// Adds the window that has all copies, and of the other equal packets as few as possible.
    /// `copies` and `repeats` are the windows that have them; `greatest` takes the place of the end
    /// of the last bucket.
    fn add_window(&mut self, copies: &Distances, repeats: &Distances, greatest: u64) {
        let Some(last) = quantile(&copies.by_time, 1.0) else {
            let last = quantile(&copies.by_packets, 1.0).and_then(packets_end);
            let window = last.unwrap_or(1).saturating_mul(2);
            let inside = (0..)
                .map_while(packets_end)
                .take_while(|end| *end <= window);
            self.removed_repeats = repeats.by_packets[..inside.count()].iter().sum();
            self.options = vec!["--window-packets".into(), window.to_string()];
            return;
        };
        let second = 1_000_000_000;
        let last_end = time_end(last).unwrap_or((greatest / second + 1).saturating_mul(second));
        let wanted = (last_end.saturating_mul(MARGIN)).clamp(LEAST_WINDOW, NEAR.max(last_end));
        // Half as long as the least one with a packet that was sent again.
        let beyond = repeats
            .by_time
            .iter()
            .skip(last + 1)
            .position(|count| *count > 0);
        let beyond = beyond.and_then(|buckets| time_end(last + buckets));
        let most = beyond
            .map_or(wanted, |time| wanted.min(time / 2))
            .max(last_end);
        let ends = (0..).map_while(time_end).take_while(|end| *end <= most);
        let buckets = ends.clone().count();
        let window = ends.last().unwrap_or(last_end).max(last_end);
        self.removed_repeats = repeats.by_time[..buckets.max(last + 1)].iter().sum();
        let (number, unit) = whole_unit(window);
        self.options = vec!["--window".into(), format!("{number}{unit}")];
        self.is_unordered = quantile(&self.tally.distances.by_time, 1.0) < Some(last);
    }

    /// Adds what must not be compared, besides what is not by default. Packets were cut at `snap`.
    fn add_key(&mut self, copies: &[&Pair], snap: Option<u32>) {
        let default = KeyOptions::default();
        let before_network = KeyReader::new(default.clone()).map(|reader| reader.left_out());
        let before_network = before_network.unwrap_or(FieldSet::EMPTY);
        let mut ignore = default.ignore;
        for pair in copies {
            let without_option = if pair.has_network {
                before_network
            } else {
                default.ignore
            };
            let others = pair
                .differing
                .iter()
                .filter(|it| !without_option.contains(*it));
            ignore = others.fold(ignore, FieldSet::with);
        }
        let needs = |matching| copies.iter().any(|pair| pair.matching == matching);
        if needs(Match::Inner) || needs(Match::Tunnels) {
            self.options.push("--inner".into());
        }
        if let Some(snap) = snap.filter(|_| needs(Match::Snapped)) {
            self.options
                .extend(["--snap-safe".into(), snap.to_string()]);
            // It tells packets apart that differ only behind these bytes.
            ignore = ignore.without(Field::TransportChecksum);
        }
        let ignore = ignore.without(Field::Tunnel);
        if ignore != default.ignore {
            self.options.extend(["--ignore".into(), ignore.to_string()]);
        }
    }
}

/// The pairs with their counts and verdicts.
fn kinds<'a>(diagnosis: &'a Diagnosis<'_>) -> Vec<(&'a Pair, u64, Kind)> {
    let pairs = diagnosis.pairs.iter().filter(|(_, n)| *n > 0);
    let may_be_copies = || pairs.clone().filter(|(pair, _)| pair.may_be_copy);
    let packets = diagnosis.packets;
    let least = LEAST_COPIES.max(packets.div_ceil(PACKETS_FOR_A_COPY));
    let by_time = |is_of: &dyn Fn(&Pair) -> bool| {
        let mut distances = Distances::NONE;
        let of = may_be_copies().filter(|(pair, _)| is_of(pair));
        of.for_each(|(pair, n)| distances.add(pair.distance, *n));
        distances.by_time
    };
    let (all, proved) = (by_time(&|_| true), by_time(&Pair::is_proved));
    let certain = by_time(&|pair| !pair.is_ambiguous());
    let are_enough = certain.iter().sum::<u64>() >= least;
    let last_proved = end_of_copies(&proved, &proved);
    // Hosts may send again more packets than the network copies.
    let last_equal = end_of_copies(&all, if are_enough { &certain } else { &all });
    let is_copy = |pair: &Pair| {
        let bucket = pair.distance.time.map_or(0, usize::from);
        let is_near = time_end(bucket).is_some_and(|end| end <= NEAR);
        let comes_soon = match () {
            () if pair.is_ambiguous() => bucket <= last_equal,
            // A packet that was sent again differs from the copy of the one before, too.
            () if pair.is_proved() => pair.is_numbered && is_near || bucket <= last_proved,
            () => is_near,
        };
        pair.may_be_copy && comes_soon
    };
    let mut by_cause: BTreeMap<(Cause, bool), u64> = BTreeMap::new();
    let mut ambiguous = 0;
    for (pair, n) in may_be_copies().filter(|(pair, _)| is_copy(pair)) {
        *by_cause
            .entry((pair.cause(), pair.is_ambiguous()))
            .or_default() += n;
        ambiguous += if pair.is_ambiguous() { *n } else { 0 };
    }
    by_cause.retain(|(_, is_ambiguous), n| !*is_ambiguous && *n >= least);
    // Hosts repeat much in one flow, and little in all.
    let is_of_flows = ambiguous >= 2 * diagnosis.flows.most_equal;
    let are_most = ambiguous * PACKETS_FOR_TWO_EQUAL >= 2 * packets;
    let are_copies = !by_cause.is_empty() || is_of_flows && are_most;
    let kind = |(pair, n): &'a (Pair, u64)| {
        // What makes copies of some packets makes those of others, too.
        let is_proved = by_cause.contains_key(&(pair.cause(), false));
        let enough = is_proved || pair.is_ambiguous() && ambiguous >= least && are_copies;
        let kind = match is_copy(pair) {
            true if enough => Kind::Copy,
            true => Kind::Doubtful,
            false => Kind::Repeat,
        };
        (pair, *n, kind)
    };
    pairs.clone().map(kind).collect()
}

/// The last bucket of times that has copies: that of the group of buckets with no [`GAP`] inside
/// that has the most of `certain`, which are among the counts.
fn end_of_copies(counts: &[u64], certain: &[u64]) -> usize {
    let (mut most, mut end) = (0, 0);
    let (mut group, mut is_most, mut empty) = (0, false, 0);
    for (bucket, (count, certain)) in counts.iter().zip(certain).enumerate() {
        if *count == 0 {
            empty += 1;
            continue;
        }
        if empty >= GAP {
            (group, is_most) = (0, false);
        }
        empty = 0;
        group += certain;
        is_most |= group > most;
        if is_most {
            (most, end) = (group, bucket);
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_ends_the_copies() {
        for (counts, end) in [
            (&[0, 9, 5, 0, 0, 1, 0, 0, 0, 4][..], 5),
            (&[1, 0, 0, 0, 7, 8], 5),
            (&[3, 0, 0, 0, 3], 0),
            (&[0, 0], 0),
        ] {
            assert_eq!(end_of_copies(counts, counts), end, "{counts:?}");
        }
        let certain = [0, 2, 0, 0, 0, 0, 0, 1];
        assert_eq!(end_of_copies(&[0, 3, 1, 0, 0, 0, 9, 9], &certain), 2);
    }
}
