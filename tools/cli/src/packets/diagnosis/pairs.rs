//! Finds the last equal packet of each packet, and decides whether the later one can be a copy.
//!
//! Hosts send equal packets, too: acknowledgments, keep-alives, retransmissions without an IP
//! identification, ARP and DNS requests. Such a packet comes late, or is one of few in its flow,
//! while a copy comes soon, and so do those of the other packets of its flow. With an
//! identification, one that comes soon is a copy in any case: the sender counts what it sends.

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
use super::cause::{Match, Pair, Places};
use super::findings::Findings;
use super::page;
use super::sighting::{Flows, Sighting, flow_of, innermost};
use crate::config::{DedupConfig, PacketConfig};
use crate::dedup::{Fields, Observer, Outputs, RunCounts};

/// The most time between a packet and its copy, in nanoseconds: the window that `packets` has
/// without an option. Hosts wait longer before they repeat a request.
pub(super) const NEAR: u64 = 100_000_000;

/// The same in packets, if they have no times.
const NEAR_PACKETS: u64 = 1024;

/// A flow with copies has one for at most so many packets. One in 2 if all packets are copied.
const PACKETS_FOR_A_COPY: u64 = 4;

/// A packet that is seen more often, each time soon after the time before, is sent periodically. Its
/// copies come sooner than the next one by this factor.
const MOST_TIMES: u32 = 8;
const PERIODS: u64 = 10;

/// The most kinds of pairs that are counted by their interfaces and VLANs, too.
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
///
/// # Errors
/// [`KeyError`] if the options contradict each other.
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
    /// The options of the run that hold for the command that it recommends, its inputs, and the
    /// name of a file in their format.
    pub(crate) options: Vec<String>,
    pub(crate) inputs: Vec<String>,
    pub(crate) output: &'static str,
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
    flows: Flows,
    /// The latest time so far.
    clock: i64,
    pub(super) packets: u64,
    pub(super) pairs: BTreeMap<Pair, u64>,
    /// Packets with an equal one inside the window that the table does not remember any more.
    pub(super) unknown: u64,
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
            clock: i64::MIN,
            packets: 0,
            pairs: BTreeMap::new(),
            unknown: 0,
            scratch: Vec::new(),
        }
    }

    /// The fewest bytes that were captured of a packet that was cut, from the IP header on.
    fn snap(&self) -> Option<u32> {
        self.snapped.as_ref()?.options().snap_safe
    }

    fn observe(&mut self, chunk: &Chunk) {
        let bytes = chunk.bytes.all();
        let packets = &chunk.keys.packets;
        let packets = packets.blocks.iter().zip(&packets.ignored);
        for (index, (key, (block, ignored))) in chunk.keys.hashes.iter().zip(packets).enumerate() {
            let sightings = self.sightings(*key, &block.packet(bytes), *ignored);
            // Every key notes the packet, also behind one that has found a pair.
            let met = sightings
                .into_iter()
                .flatten()
                .map(|(key, sighting)| self.meet(key, sighting));
            match met.fold(None, Option::or) {
                Some(pair) => self.count(pair),
                None => self.unknown += u64::from(chunk.verdicts.of_keys.is_duplicate(index)),
            }
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
        let flow = flow_of(&self.hasher, &outermost, packet.bytes);
        self.packets += 1;
        self.clock = self.clock.max(packet.timestamp.unwrap_or(i64::MIN));
        let mut whole = Sighting::new(packet, &outermost, &outermost, ignored);
        (whole.number, whole.clock) = (self.packets, self.clock);
        (whole.flow, whole.flow_packets) = (flow, self.flows.count(flow));
        let inner = innermost(&outermost, packet.bytes).map(|layers| {
            let ignored = self.inner.ignored_fields(packet);
            let key = hash_of(&self.inner.key(packet, &mut self.scratch), &self.hasher);
            let inner = Sighting::new(packet, &outermost, &layers, ignored);
            (key, inner.numbered_as(&whole))
        });
        if whole.is_cut {
            self.shorten_to(whole.captured);
        }
        let snapped = self.snapped.as_ref().map(|reader| {
            let key = hash_of(&reader.key(packet, &mut self.scratch), &self.hasher);
            let snapped = Sighting {
                seen_by: Match::Snapped,
                ignored: reader.ignored_fields(packet),
                ..whole
            };
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

    /// Notes a packet. Returns the pair that it makes with the last one of this key.
    fn meet(&mut self, key: KeyHash, mut packet: Sighting) -> Option<Pair> {
        let before = self.last.get(key).copied();
        let pair = before.and_then(|before| self.pair(&before, &mut packet));
        self.last.replace(key, packet);
        pair
    }

    fn pair(&mut self, original: &Sighting, copy: &mut Sighting) -> Option<Pair> {
        let times = original.time.zip(copy.time);
        let time = times.map(|(first, second)| second.abs_diff(first));
        // Two keys of one packet may have the same hash.
        if time.is_some_and(|time| time > self.reach) || original.number == copy.number {
            return None;
        }
        let is_cut = original.is_cut || copy.is_cut;
        let seen_by = [original.seen_by, copy.seen_by];
        let matching = match () {
            () if seen_by.contains(&Match::Inner) => Match::Inner,
            () if is_cut && original.captured != copy.captured => Match::Snapped,
            // Equal lengths, and yet unequal as a whole.
            () if seen_by == [Match::Snapped; 2] => return None,
            () => Match::Whole,
        };
        let packets = copy.number - original.number;
        let is_near = time.map_or(packets <= NEAR_PACKETS, |time| time <= NEAR);
        let mut pair = Pair {
            may_be_copy: true,
            matching,
            differing: original.ignored.differing(&copy.ignored),
            is_routed: original.ttl != copy.ttl,
            is_numbered: original.is_numbered,
            has_network: original.has_network,
            crosses_interfaces: original.interface != copy.interface,
            snap: (matching == Match::Snapped)
                .then(|| u32::try_from(original.captured.min(copy.captured)).unwrap_or(u32::MAX)),
            distance: Distance::new(packets, time),
            window: Distance::new(packets, copy.window_from(original)),
            places: Some(Places {
                interfaces: (original.interface, copy.interface),
                vlans: (original.vlan, copy.vlan),
            }),
        };
        pair.may_be_copy = is_near || pair.is_proved();
        if is_near && pair.is_equal() {
            let distance = time.unwrap_or(packets);
            copy.times = original.times + 1;
            copy.longest = original.longest.max(distance);
            if copy.times == MOST_TIMES + 1 {
                self.take_back(&pair, Distance::new(packets, Some(copy.longest)));
            }
            let comes_late = distance.saturating_mul(PERIODS) > copy.longest;
            let is_periodic = copy.times > MOST_TIMES && comes_late;
            let (equal, of_flow) = self.flows.note_equal(copy.flow);
            // Copies that come late have more packets of the flow between them and their originals.
            let packets = original.flow_packets.min(of_flow);
            let is_usual = equal * PACKETS_FOR_A_COPY >= packets;
            pair.may_be_copy = !is_periodic && (is_usual || pair.is_numbered);
        }
        Some(pair)
    }

    /// Counts the packets like this one, which is sent periodically, as no copies any more: as many
    /// as came before it, of those that were as far apart as the `longest`.
    fn take_back(&mut self, periodic: &Pair, longest: Distance) {
        let mut left = u64::from(MOST_TIMES) - 1;
        let pairs = std::mem::take(&mut self.pairs);
        for (pair, n) in pairs {
            let Distance { time, .. } = pair.distance;
            let is_as_far = time
                .zip(longest.time)
                .is_none_or(|(time, longest)| time + 1 >= longest);
            let is_like = pair.is_equal() && pair.places == periodic.places;
            let moved = match pair.may_be_copy && is_as_far && is_like {
                true => left.min(n),
                false => 0,
            };
            left -= moved;
            for (may_be_copy, n) in [(pair.may_be_copy, n - moved), (false, moved)] {
                if n > 0 {
                    *self
                        .pairs
                        .entry(Pair {
                            may_be_copy,
                            ..pair
                        })
                        .or_default() += n;
                }
            }
        }
    }

    fn count(&mut self, mut pair: Pair) {
        if self.pairs.len() >= MOST_PAIRS && !self.pairs.contains_key(&pair) {
            pair.places = None;
        }
        *self.pairs.entry(pair).or_default() += 1;
    }
}

impl Observer for Diagnosis<'_> {
    fn on_chunk(&mut self, chunk: &mut Chunk, _: &mut RunCounts) -> Result<(), Failure> {
        self.observe(chunk);
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
    }
}

/// A reader with the options of another one and one that contradicts none of them.
fn reader(options: KeyOptions) -> KeyReader {
    KeyReader::new(options).expect("no two options that contradict each other")
}
