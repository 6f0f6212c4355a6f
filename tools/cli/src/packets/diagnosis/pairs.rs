//! Finds the last equal packet of each packet, and decides whether the later one can be a copy.
//!
//! Hosts send equal packets, too: acknowledgments, keep-alives, retransmissions without an IP
//! identification, ARP and DNS requests. Such a packet comes late, or is one of few in its flow,
//! while a copy comes soon, and so do those of the other packets of its flow. With an
//! identification, one that comes soon is a copy in any case: the sender counts what it sends. Some
//! send the same one always, so only a flow with several identifications is numbered.

use std::collections::BTreeMap;

use echoless::{KeyHash, KeyHasher};
use echoless_packets::Packet;
use echoless_packets::key::{
    Field, FieldSet, IgnoredFields, KeyError, KeyOptions, KeyReader, MIN_SNAP,
};
use echoless_packets::layers::Layers;
use echoless_records::chunk::Chunk;
use echoless_records::failure::Failure;
use echoless_records::files::Target;

use super::super::distances::Distance;
use super::super::keys::hash_of;
use super::super::last_seen::LastSeen;
use super::super::skew::Skew;
use super::cause::{Match, Pair, Places};
use super::findings::{Findings, GAP};
use super::page;
use super::sighting::{Flows, MOST_TIMES, Sighting, flow_of, innermost};
use crate::config::{DedupConfig, PacketConfig};
use crate::dedup::{Fields, Observer, Outputs, RunCounts};

/// The most time between a packet and its copy, in nanoseconds: the window that `packets` has
/// without an option. Hosts wait longer before they repeat a request.
pub(super) const NEAR: u64 = 100_000_000;

/// The same in packets, if they have no times.
const NEAR_PACKETS: u64 = 1024;

/// A packet that is seen more than [`MOST_TIMES`], and waits at least this many nanoseconds before
/// one of them, is sent periodically. Its copies come sooner than the next one by this factor.
const LEAST_PERIOD: u64 = 1_000_000;
const PERIODS: u64 = 10;

/// The most kinds of pairs that are counted by their interfaces and VLANs, too. With twice as many,
/// further kinds are not told from pairs that are too far apart.
const MOST_PAIRS: usize = 1 << 14;

/// What is left out of the wide key: all that the network changes in a packet or puts in front of
/// it. The IP identification is not: with another one, the sender has sent the packet again.
const CHANGED_ON_THE_WAY: FieldSet = FieldSet::of(&[
    Field::CaptureHeader,
    Field::Mac,
    Field::Vlan,
    Field::OtherTags,
    Field::LanId,
    Field::Mpls,
    Field::Pppoe,
    Field::Padding,
    Field::Tos,
    Field::Ttl,
    Field::IpChecksum,
    Field::TransportChecksum,
]);

/// The key of a diagnosis, of packets as they are.
pub(crate) fn wide_key(skip_bytes: u32) -> Result<KeyReader, KeyError> {
    KeyReader::new(KeyOptions {
        ignore: CHANGED_ON_THE_WAY,
        skip_bytes,
        ..KeyOptions::default()
    })
}

/// What a diagnosis writes beside its text, and how it names the run.
#[derive(Debug)]
pub(crate) struct DiagnosisConfig {
    /// Gets the drawing.
    pub(crate) svg: Option<Target>,
    /// The options of the run that hold for the command that it recommends, and its inputs.
    pub(crate) options: Vec<String>,
    pub(crate) inputs: Vec<String>,
    /// The interfaces that are captured.
    pub(crate) interfaces: Vec<String>,
    /// They are captured before this machine sees the packets, which it makes no copies of then.
    pub(crate) by_xdp: bool,
}

/// The equal packets of a stream so far.
#[derive(Debug)]
pub(crate) struct Diagnosis<'a> {
    pub(super) config: &'a DiagnosisConfig,
    hasher: KeyHasher,
    /// The greatest time between two packets of a pair, in nanoseconds.
    reach: u64,
    /// The keys of the packets in tunnels.
    inner: KeyReader,
    /// The keys of what all packets have that were cut, once there is one.
    snapped: Option<KeyReader>,
    last: LastSeen<Sighting>,
    pub(super) flows: Flows,
    /// Whether the stream is of pcap files.
    pub(super) is_pcap: bool,
    /// The latest time so far.
    clock: i64,
    pub(super) packets: u64,
    /// Further packets, which were not compared: their time is before the latest one by more than
    /// the window.
    pub(super) unjudged: u64,
    /// The kinds of pairs with their counts, and the place of each there.
    pub(super) pairs: Vec<(Pair, u64)>,
    numbers: BTreeMap<Pair, u16>,
    /// The longest window, in nanoseconds, that a pair needs which may be of a copy.
    pub(super) greatest: u64,
    /// Packets with an equal one inside the window that is not remembered any more.
    pub(super) unknown: u64,
    /// Of the interfaces that are captured, if they are several.
    pub(super) skew: Option<Skew>,
    scratch: Vec<u8>,
}

impl<'a> Diagnosis<'a> {
    pub(crate) fn new(
        config: &DedupConfig,
        packets: &'a PacketConfig,
        diagnosis: &'a DiagnosisConfig,
    ) -> Self {
        let options = packets.reading.keys.options();
        let ignore = options.ignore.with(Field::Tunnel);
        Self {
            config: diagnosis,
            hasher: config.run.hasher.clone(),
            reach: config
                .window
                .as_ref()
                .map_or(u64::MAX, |it| it.span.units()),
            inner: reader(KeyOptions {
                ignore,
                ..options.clone()
            }),
            snapped: None,
            last: LastSeen::new(),
            flows: Flows::default(),
            is_pcap: false,
            clock: i64::MIN,
            packets: 0,
            unjudged: 0,
            pairs: Vec::new(),
            numbers: BTreeMap::new(),
            greatest: 0,
            unknown: 0,
            skew: Skew::of(&diagnosis.interfaces),
            scratch: Vec::new(),
        }
    }

    /// The fewest bytes that were captured of a packet that was cut, from the IP header on.
    pub(super) fn snap(&self) -> Option<u32> {
        self.snapped.as_ref()?.options().snap_safe
    }

    fn observe(&mut self, chunk: &Chunk) {
        let bytes = chunk.bytes.all();
        // Their header is no block.
        self.is_pcap |= chunk.input.is_first && chunk.bytes.start > 0;
        let packets = &chunk.keys.packets;
        self.unjudged += packets.unjudged.len() as u64;
        let packets = packets.blocks.iter().zip(&packets.ignored);
        for (index, (key, (block, ignored))) in chunk.keys.hashes.iter().zip(packets).enumerate() {
            let sightings = self.sightings(*key, &block.packet(bytes), *ignored);
            let mut is_found = false;
            // Every key notes the packet, also behind one that has found a pair.
            for (key, mut packet) in sightings.into_iter().flatten() {
                let before = self.last.get(key).copied();
                let pair = before.and_then(|before| self.pair(&before, &mut packet));
                if let Some(pair) = pair.filter(|_| !is_found) {
                    self.count(pair, &mut packet);
                    is_found = true;
                }
                self.last.replace(key, packet);
            }
            let is_duplicate = chunk.verdicts.of_keys.is_duplicate(index);
            self.unknown += u64::from(is_duplicate && !is_found);
        }
    }

    /// The packet as each of its keys sees it: as it is, in its tunnels, and as far as packets that
    /// were cut go.
    fn sightings(
        &mut self,
        key: KeyHash,
        packet: &Packet<'_>,
        ignored: IgnoredFields,
    ) -> [Option<(KeyHash, Sighting)>; 3] {
        let outermost = Layers::outermost(packet);
        self.packets += 1;
        self.clock = self.clock.max(packet.timestamp.unwrap_or(i64::MIN));
        let whole = self.sighting(packet, &outermost, &outermost, ignored);
        let inner = innermost(&outermost, packet.bytes).map(|layers| {
            let ignored = self.inner.ignored_fields(packet);
            let key = hash_of(&self.inner.key(packet, &mut self.scratch), &self.hasher);
            let mut inner = self.sighting(packet, &outermost, &layers, ignored);
            // Ports differ between the flows inside, and not between tunnels.
            let mut tunnel = outermost;
            tunnel.transport = None;
            inner.tunnel = Some(flow_of(&self.hasher, &tunnel, packet.bytes));
            (key, inner)
        });
        if whole.is_cut && whole.told_by.is_some() {
            self.shorten_to(whole.captured);
        }
        let snapped = self.snapped.as_ref().map(|reader| {
            let key = hash_of(&reader.key(packet, &mut self.scratch), &self.hasher);
            let mut snapped = whole;
            snapped.is_snapped = true;
            snapped.ignored = reader.ignored_fields(packet);
            (key, snapped)
        });
        // All keys of a short packet may be equal.
        let differs = |(other, _): &(KeyHash, Sighting)| *other != key;
        [
            Some((key, whole)),
            inner.filter(differs),
            snapped.filter(differs),
        ]
    }

    /// The packet in these layers, with its place in the stream and in its flow.
    fn sighting(
        &mut self,
        packet: &Packet<'_>,
        outermost: &Layers,
        layers: &Layers,
        ignored: IgnoredFields,
    ) -> Sighting {
        let mut sighting = Sighting::new(packet, outermost, layers, ignored);
        (sighting.number, sighting.clock) = (self.packets, self.clock);
        sighting.flow = flow_of(&self.hasher, layers, packet.bytes);
        let counted = self.flows.count(sighting.flow, sighting.id);
        (sighting.flow_packets, sighting.is_numbered) = counted;
        sighting
    }

    /// Has later keys compare at most this many bytes where packets were cut.
    fn shorten_to(&mut self, captured: usize) {
        let snap = u32::try_from(captured).unwrap_or(u32::MAX);
        if snap < MIN_SNAP || self.snap().is_some_and(|before| before <= snap) {
            return;
        }
        let options = self.inner.options();
        // Of what is not compared, the checksum is left.
        let compared = [Field::Tunnel, Field::TransportChecksum];
        let ignore = compared.into_iter().fold(options.ignore, FieldSet::without);
        self.snapped = Some(reader(KeyOptions {
            ignore,
            snap_safe: Some(snap),
            ..options.clone()
        }));
    }

    fn pair(&mut self, original: &Sighting, copy: &mut Sighting) -> Option<Pair> {
        let times = original.time.zip(copy.time);
        let time = times.map(|(first, second)| second.abs_diff(first));
        // Two keys of one packet may have the same hash.
        if time.is_some_and(|time| time > self.reach) || original.number == copy.number {
            return None;
        }
        let matching = match () {
            () if original.is_snapped || copy.is_snapped => Match::Snapped,
            () if original.tunnel != copy.tunnel => Match::Tunnels,
            () if copy.tunnel.is_some() => Match::Inner,
            () => Match::Whole,
        };
        let packets = copy.number - original.number;
        let is_near = time.map_or(packets <= NEAR_PACKETS, |time| time <= NEAR);
        let window = copy.window_from(original);
        let mut pair = Pair {
            may_be_copy: true,
            matching,
            differing: original.ignored.differing(&copy.ignored),
            is_routed: original.ttl != copy.ttl,
            is_numbered: copy.is_numbered,
            has_network: copy.has_network,
            is_on_link: copy.is_on_link,
            crosses_interfaces: original.interface != copy.interface,
            distance: Distance::new(packets, time),
            window: Distance::new(packets, window),
            places: Some(Places {
                interfaces: (original.interface, copy.interface),
                vlans: (original.vlan, copy.vlan),
            }),
        };
        let is_cut = original.is_cut || copy.is_cut;
        let may_be_equal = match matching {
            // Those of equal length are unequal as a whole.
            Match::Snapped => {
                is_cut
                    && original.captured != copy.captured
                    && copy.told_by.is_some_and(|end| Some(end) <= self.snap())
            }
            // What was not captured differs.
            _ => !(is_cut && pair.differing.contains(Field::TransportChecksum)),
        };
        let vlans = original.vlan.zip(copy.vlan);
        let is_on_other_link = copy.is_on_link && vlans.is_some_and(|(from, to)| from != to);
        pair.may_be_copy = may_be_equal && !is_on_other_link && (is_near || pair.is_proved());
        if pair.may_be_copy && is_near {
            let distance = time.unwrap_or(packets);
            copy.times = original.times + 1;
            copy.longest = original.longest.max(distance);
            copy.series = original.series;
            let is_slow = time.is_none() || copy.longest >= LEAST_PERIOD;
            let is_periodic = copy.times > MOST_TIMES && is_slow && !pair.is_numbered;
            if is_periodic {
                self.take_back(copy);
            }
            let comes_late = distance.saturating_mul(PERIODS) > copy.longest;
            let is_usual =
                !pair.is_equal() || self.flows.note_equal(copy.flow, original.flow_packets);
            pair.may_be_copy = !(is_periodic && comes_late) && (is_usual || pair.is_numbered);
        }
        if pair.may_be_copy {
            self.greatest = self.greatest.max(window.unwrap_or(0));
        }
        Some(pair)
    }

    /// Counts the first pairs of a periodic packet as no copies any more: those that came late.
    fn take_back(&mut self, periodic: &mut Sighting) {
        let longest = Distance::new(1, Some(periodic.longest)).time;
        for number in periodic.series.iter_mut().filter_map(Option::take) {
            let (pair, n) = &mut self.pairs[usize::from(number)];
            let time = pair.distance.time;
            if time.is_none_or(|time| Some(usize::from(time) + GAP) > longest.map(usize::from)) {
                *n -= 1;
                let may_be_copy = false;
                let pair = Pair {
                    may_be_copy,
                    ..*pair
                };
                self.add(pair);
            }
        }
    }

    /// Counts the pair that a packet makes with one before it.
    fn count(&mut self, pair: Pair, copy: &mut Sighting) {
        let number = self.add(pair);
        let nth = copy.times.checked_sub(2).filter(|_| pair.may_be_copy);
        if let Some(slot) = nth.and_then(|nth| copy.series.get_mut(nth)) {
            *slot = number;
        }
    }

    /// Counts a pair. Returns its number, unless there are too many kinds.
    fn add(&mut self, mut pair: Pair) -> Option<u16> {
        let is_beyond =
            |most, pair: &Pair| self.pairs.len() >= most && !self.numbers.contains_key(pair);
        if is_beyond(MOST_PAIRS, &pair) {
            pair.places = None;
        }
        if is_beyond(2 * MOST_PAIRS, &pair) {
            self.unknown += 1;
            return None;
        }
        // Fewer than 2^16, see MOST_PAIRS.
        let next = self.pairs.len() as u16;
        let number = *self.numbers.entry(pair).or_insert(next);
        if number == next {
            self.pairs.push((pair, 0));
        }
        self.pairs[usize::from(number)].1 += 1;
        Some(number)
    }
}

impl Observer for Diagnosis<'_> {
    fn on_chunk(&mut self, chunk: &mut Chunk, _: &mut RunCounts) -> Result<(), Failure> {
        self.observe(chunk);
        if let Some(skew) = &mut self.skew {
            skew.observe(chunk);
        }
        Ok(())
    }

    fn finish(&mut self, outputs: &mut Outputs) -> Result<(), Failure> {
        let findings = Findings::new(self);
        let text = page::lines(self, &findings);
        let svg = match self.config.svg {
            Some(_) => page::svg(&text, &findings)?,
            None => String::new(),
        };
        outputs.write_diagnosis(&(text.join("\n") + "\n"), &svg)
    }

    fn stats(&self, _: &RunCounts, fields: &mut Fields) {
        fields.add("diagnosis", page::stats(self, &Findings::new(self)));
        if let Some(skew) = &self.skew {
            fields.add("skew", skew.stats());
        }
    }
}

/// A reader with the options of another one and one that contradicts none of them.
fn reader(options: KeyOptions) -> KeyReader {
    KeyReader::new(options).expect("no two options that contradict each other")
}
