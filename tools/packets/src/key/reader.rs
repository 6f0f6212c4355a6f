//! The reader: packets to keys.

use super::encode::{Encoder, Ignored, IgnoredByDefault};
use super::field::{Field, FieldSet, KeyError};
use super::ignored::{IgnoredFields, IgnoredSink};
use super::options::{From, Group, KeyOptions};
use super::select::{Conditions, Selection};
use super::visit::{self, Sink, Tag};
use crate::layers::{IpVersion, Layers, Plain, ShimKind, TransportKind};
use crate::packet::Packet;

/// The VLAN identifier in tag control information.
const VLAN_ID: u16 = 0x0fff;

/// Turns packets into keys.
///
/// # Examples
/// ```
/// use echoless_packets::key::{KeyOptions, KeyReader};
/// use echoless_packets::synth::{Header, Stack};
///
/// let reader = KeyReader::new(KeyOptions::default())?;
/// let stack = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::udp()]);
/// let mut frame = stack.bytes(b"abc");
/// let key_of = |frame: &[u8]| {
///     let mut out = Vec::new();
///     reader.key(&stack.packet(frame), &mut Vec::new()).write_to(&mut out);
///     out
/// };
/// let key = key_of(&frame);
/// // Padding of a short frame is not part of the packet.
/// frame.resize(60, 0);
/// assert_eq!(key_of(&frame), key);
/// // The last byte of the payload is.
/// let last = stack.bytes(b"abc").len() - 1;
/// frame[last] ^= 1;
/// assert_ne!(key_of(&frame), key);
/// # Ok::<(), echoless_packets::key::KeyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct KeyReader {
    options: KeyOptions,
    payload_limit: usize,
    /// The options select in the outermost layers of all captured bytes.
    is_outermost: bool,
    /// Moreover, they select the IP packet, and ignore what is ignored by default: the keys of
    /// plain packets have a form of their own in the code, not in their bytes.
    has_plain: bool,
}

/// The key of one packet. Two keys of one reader are equal if all three parts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'a> {
    /// The compared fields of the headers, encoded, and the lengths of the other two parts. In the
    /// scratch memory.
    pub head: &'a [u8],
    /// The compared bytes of the payload, in the packet.
    pub payload: &'a [u8],
    /// What follows the IP packet in the frame, in the packet; empty unless the key begins at the
    /// link layer.
    pub trailer: &'a [u8],
    /// How the packet was read. Not part of the key.
    pub conditions: Conditions,
}

impl<'a> Key<'a> {
    /// The parts, for a hasher that takes several fields and keeps them apart.
    #[must_use]
    #[inline]
    pub fn parts(&self) -> [&'a [u8]; 3] {
        [self.head, self.payload, self.trailer]
    }

    /// Appends the key as one byte string: the length of the head (4 bytes, little-endian) and the
    /// parts. It is injective: different keys give different strings.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        // The head is shorter than 4 GiB, because the packet is.
        out.extend_from_slice(&(self.head.len() as u32).to_le_bytes());
        for part in self.parts() {
            out.extend_from_slice(part);
        }
    }
}

impl KeyReader {
    /// A reader with these options.
    ///
    /// # Errors
    /// [`KeyError`] if an option is out of range, or if two of them contradict each other.
    pub fn new(options: KeyOptions) -> Result<Self, KeyError> {
        options.check()?;
        let payload_limit = options
            .payload_bytes
            .map_or(usize::MAX, |limit| limit as usize);
        let is_outermost = Selection::is_outermost(&options);
        Ok(Self {
            is_outermost,
            has_plain: is_outermost
                && options.from == From::Network
                && options.group == Group::None
                && options.ignore == FieldSet::DEFAULT,
            options,
            payload_limit,
        })
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &KeyOptions {
        &self.options
    }

    /// The key of a packet. The headers are encoded in `scratch`, whose content is lost; payload
    /// and trailer stay where they are. Reads the cache lines of the headers only.
    #[must_use]
    pub fn key<'a>(&self, packet: &Packet<'a>, scratch: &'a mut Vec<u8>) -> Key<'a> {
        if self.has_plain
            && let Some(plain) = Plain::read(packet)
        {
            return self.plain_key(packet, plain, scratch);
        }
        if self.is_outermost {
            self.key_of_outermost(packet, scratch)
        } else {
            self.key_of_part(packet, scratch)
        }
    }

    /// The key of a plain packet, compiled for each IP version and transport. `has_plain` holds.
    #[inline(always)]
    fn plain_key<'a>(
        &self,
        packet: &Packet<'a>,
        plain: Plain,
        scratch: &'a mut Vec<u8>,
    ) -> Key<'a> {
        use IpVersion::{V4, V6};
        use TransportKind::{Tcp, Udp};
        match (plain.version, plain.transport) {
            (V4, Tcp) => self.encode_plain(packet, plain.layers(packet.bytes, V4, Tcp), scratch),
            (V4, _) => self.encode_plain(packet, plain.layers(packet.bytes, V4, Udp), scratch),
            (V6, Tcp) => self.encode_plain(packet, plain.layers(packet.bytes, V6, Tcp), scratch),
            (V6, _) => self.encode_plain(packet, plain.layers(packet.bytes, V6, Udp), scratch),
        }
    }

    #[inline(always)]
    fn encode_plain<'a>(
        &self,
        packet: &Packet<'a>,
        layers: Layers,
        scratch: &'a mut Vec<u8>,
    ) -> Key<'a> {
        let selection = Selection::of_outermost(packet, layers, &KeyOptions::default());
        self.encode(
            packet,
            &selection,
            Encoder::plain(scratch, IgnoredByDefault),
        )
    }

    #[inline(never)]
    fn key_of_outermost<'a>(&self, packet: &Packet<'a>, scratch: &'a mut Vec<u8>) -> Key<'a> {
        let selection = Selection::outermost(packet, &self.options);
        let encoder = self.encoder(&selection, scratch);
        self.encode(packet, &selection, encoder)
    }

    /// The key of the innermost packet, or of the first bytes.
    #[inline(never)]
    fn key_of_part<'a>(&self, packet: &Packet<'a>, scratch: &'a mut Vec<u8>) -> Key<'a> {
        let selection = Selection::new(packet, &self.options);
        let encoder = self.encoder(&selection, scratch);
        self.encode(packet, &selection, encoder)
    }

    #[inline(always)]
    fn encoder<'a>(
        &self,
        selection: &Selection<'_>,
        scratch: &'a mut Vec<u8>,
    ) -> Encoder<'a, FieldSet> {
        Encoder::new(scratch, selection.layers.payload.start, self.options.ignore)
    }

    #[inline(always)]
    fn encode<'a, I: Ignored>(
        &self,
        packet: &Packet<'a>,
        selection: &Selection<'a>,
        mut encoder: Encoder<'a, I>,
    ) -> Key<'a> {
        self.group(packet, selection, &mut encoder);
        visit::headers(selection, selection.from, &mut encoder);

        let payload = selection.layers.payload.bytes(selection.bytes);
        // Where no header ends, bytes of headers may be among these.
        let limit = match selection.layers.has_transport_header() {
            true => self.payload_limit,
            false => usize::MAX,
        };
        let payload = &payload[..payload.len().min(limit)];
        encoder.item(Tag::Payload, None);
        lengths(payload, selection.layers.payload.wire_len(), &mut encoder);

        let trailer_span = &selection.layers.trailer;
        let compared =
            selection.from == From::Link && !self.options.ignore.contains(Field::Padding);
        let trailer = if compared {
            let trailer = trailer_span.bytes(selection.bytes);
            encoder.item(Tag::Trailer, Some(Field::Padding));
            // Without a trailer, the packet may be longer than the frame. With `snap_safe`, copies
            // that were cut elsewhere are equal.
            let missing = match self.options.snap_safe {
                Some(_) => 0,
                None => selection.layers.missing,
            };
            let excess = trailer_span.wire_len().wrapping_sub(missing);
            lengths(trailer, excess, &mut encoder);
            visit::prp(selection, &mut encoder);
            trailer
        } else {
            &[]
        };
        Key {
            head: encoder.finish(),
            payload,
            trailer,
            conditions: selection.conditions,
        }
    }

    /// The values of the fields that the key of this packet leaves out.
    #[must_use]
    pub fn ignored_fields(&self, packet: &Packet<'_>) -> IgnoredFields {
        let selection = Selection::new(packet, &self.options);
        let ignore = self.options.ignore.union(selection.from.fields_before());
        let mut sink = IgnoredSink::new(ignore);
        visit::headers(&selection, From::Link, &mut sink);
        let trailer = selection.layers.trailer.bytes(selection.bytes);
        if !trailer.is_empty() {
            sink.item(Tag::Trailer, Some(Field::Padding));
            sink.fixed(trailer);
        }
        visit::prp(&selection, &mut sink);
        if selection.conditions.inner {
            sink.item(Tag::Group, Some(Field::Tunnel));
            sink.fixed(&selection.bytes[..selection.layers.start]);
        }
        sink.finish()
    }

    /// The fields that keys of this reader leave out wherever a packet has the layer that they
    /// begin at.
    #[must_use]
    pub fn left_out(&self) -> FieldSet {
        self.options.ignore.union(self.options.from.fields_before())
    }

    #[inline(always)]
    fn group(&self, packet: &Packet<'_>, selection: &Selection<'_>, sink: &mut impl Sink) {
        match self.options.group {
            Group::None => {}
            Group::Interface => {
                sink.item(Tag::Group, None);
                sink.fixed(&packet.interface.section.to_le_bytes());
                sink.fixed(&packet.interface.index.to_le_bytes());
            }
            Group::Vlan => {
                sink.item(Tag::Group, None);
                for shim in selection.outermost_shims.iter(selection.bytes) {
                    if shim.kind == ShimKind::Vlan {
                        let tag = [
                            selection.bytes[shim.start()],
                            selection.bytes[shim.start() + 1],
                        ];
                        let id = u16::from_be_bytes(tag) & VLAN_ID;
                        sink.fixed(&id.to_le_bytes());
                    }
                }
            }
        }
    }
}

/// The captured length of a part that is compared, and its length on the wire.
#[inline(always)]
fn lengths(part: &[u8], wire_len: usize, sink: &mut impl Sink) {
    // Packets are shorter than 4 GiB: their lengths have 32 bits in every capture file.
    sink.fixed(&(part.len() as u32).to_le_bytes());
    sink.fixed(&(wire_len as u32).to_le_bytes());
}
