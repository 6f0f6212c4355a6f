//! Visits the fields of a packet in order, each with the name under which it can be ignored.
//!
//! Keys and reports of ignored fields are two sinks of this one walk, so they cannot disagree.

use super::field::Field;
use super::options::From;
use super::select::Selection;
use crate::LinkType;
use crate::layers::{
    ETHERNET_LEN, ETHERTYPE_LLC, IpVersion, Layers, LinkHeader, Network, SLL_LEN, SLL2_LEN, Shim,
    ShimKind, Transport, TransportKind, wireless_addresses,
};

/// What an item of a key holds. The numbers are part of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    Group = 1,
    Link,
    Vlan,
    Mpls,
    Pppoe,
    EtherType,
    Ipv4,
    IpOptions,
    Ipv6,
    Extensions,
    Tcp,
    TcpOptions,
    Udp,
    Sctp,
    Icmp,
    Icmpv6,
    OtherTransport,
    Payload,
    Trailer,
    Snap,
    Hsr,
    OtherShim,
    Prp,
}

/// Receives the fields of a packet.
pub(super) trait Sink {
    /// Begins an item. Its fields without a name are ignored with `owner`.
    fn item(&mut self, tag: Tag, owner: Option<Field>);
    /// Bytes of the item that belong to no field that can be ignored alone.
    fn fixed(&mut self, bytes: &[u8]);
    /// Bytes of the item that belong to `field`.
    fn field(&mut self, field: Field, bytes: &[u8]);
}

/// Visits the headers from the layer `from` on; not payload and trailer.
#[inline(always)]
pub(super) fn headers(selection: &Selection<'_>, from: From, sink: &mut impl Sink) {
    let (layers, bytes) = (&selection.layers, selection.bytes);
    if from == From::Link {
        link(layers, bytes, sink);
    }
    if let (From::Link | From::Network, Some(ip)) = (from, &layers.network) {
        match ip.version {
            IpVersion::V4 => ipv4(ip, bytes, sink),
            IpVersion::V6 => ipv6(ip, bytes, sink),
        }
    }
    if let (From::Link | From::Network | From::Transport, Some(header)) = (from, &layers.transport)
    {
        transport(header, bytes, sink);
    }
}

#[inline(always)]
fn link(layers: &Layers, bytes: &[u8], sink: &mut impl Sink) {
    if let Some(header) = &layers.link {
        sink.item(Tag::Link, None);
        sink.fixed(&header.kind.0.to_be_bytes());
        link_header(header, bytes, sink);
    }
    for shim in layers.shims.iter(bytes) {
        visit_shim(&shim, layers.payload.wire_end, bytes, sink);
    }
    // Of an unknown link header everything is payload.
    let unknown = layers.link.is_some_and(|link| link.end == link.start);
    if !unknown || layers.network.is_some() || !layers.shims.is_empty() {
        sink.item(Tag::EtherType, None);
        sink.fixed(&layers.ethertype.to_be_bytes());
    }
}

#[inline(always)]
fn link_header(link: &LinkHeader, bytes: &[u8], sink: &mut impl Sink) {
    let (frame, kind) = match link.kind {
        LinkType::ETHERNET | LinkType::LINUX_SLL | LinkType::LINUX_SLL2 => (link.start, link.kind),
        _ => link.frame(bytes),
    };
    if frame > link.start {
        sink.field(Field::CaptureHeader, &bytes[link.start..frame]);
    }
    let header = &bytes[frame..link.end];
    match (kind, header.len()) {
        (LinkType::ETHERNET, ETHERNET_LEN) => sink.field(Field::Mac, header),
        (LinkType::LINUX_SLL, SLL_LEN) => {
            sink.field(Field::Mac, &header[..2]);
            sink.fixed(&header[2..4]);
            sink.field(Field::Mac, &header[4..14]);
        }
        (LinkType::LINUX_SLL2, SLL2_LEN) => {
            sink.fixed(&header[2..4]);
            sink.field(Field::Mac, &header[4..8]);
            sink.fixed(&header[8..10]);
            sink.field(Field::Mac, &header[10..]);
        }
        (LinkType::IEEE802_11, _) => {
            let mut at = 0;
            for range in wireless_addresses(header) {
                sink.fixed(&header[at..range.start]);
                at = range.end;
                sink.field(Field::Mac, &header[range]);
            }
            sink.fixed(&header[at..]);
        }
        // Headers without addresses, and those that were not read.
        (_, _) => sink.fixed(header),
    }
}

fn visit_shim(shim: &Shim, wire_end: usize, bytes: &[u8], sink: &mut impl Sink) {
    let header = &bytes[shim.start()..shim.end()];
    match shim.kind {
        ShimKind::Vlan => {
            sink.item(Tag::Vlan, Some(Field::Vlan));
            sink.fixed(&shim.ethertype.to_be_bytes());
            sink.fixed(header);
        }
        ShimKind::Mpls => {
            sink.item(Tag::Mpls, Some(Field::Mpls));
            sink.fixed(&shim.ethertype.to_be_bytes());
            for label in header.chunks_exact(4) {
                sink.fixed(&label[..3]);
                sink.field(Field::Ttl, &label[3..]);
            }
        }
        ShimKind::Pppoe => {
            sink.item(Tag::Pppoe, Some(Field::Pppoe));
            sink.fixed(&header[..4]);
            sink.fixed(&header[6..]);
            let length = u16::from_be_bytes([header[4], header[5]]);
            inner_length(shim.start() + 6, length, wire_end, sink);
        }
        ShimKind::Snap => {
            sink.item(Tag::Snap, None);
            sink.fixed(header);
            if shim.ethertype != ETHERTYPE_LLC {
                inner_length(shim.start(), shim.ethertype, wire_end, sink);
            }
        }
        ShimKind::Hsr => {
            const LENGTH: u16 = 0x0fff;
            sink.item(Tag::Hsr, Some(Field::OtherTags));
            sink.field(Field::LanId, &[header[0] & 0xf0]);
            sink.fixed(&header[2..]);
            let length = u16::from_be_bytes([header[0], header[1]]) & LENGTH;
            inner_length(shim.start(), length, wire_end, sink);
        }
        ShimKind::Other => {
            sink.item(Tag::OtherShim, Some(Field::OtherTags));
            sink.fixed(&shim.ethertype.to_be_bytes());
            sink.fixed(header);
        }
    }
}

/// The length in a header, of the bytes from `start` on, as the excess over the content, which ends
/// at `wire_end`: the length itself would reveal ignored headers and options in them.
fn inner_length(start: usize, length: u16, wire_end: usize, sink: &mut impl Sink) {
    let excess = (start + usize::from(length)).wrapping_sub(wire_end) as u32;
    sink.fixed(&excess.to_le_bytes());
}

/// Visits the PRP trailer, if the frame has one.
#[inline(always)]
pub(super) fn prp(selection: &Selection<'_>, sink: &mut impl Sink) {
    if let Some(trailer) = &selection.prp {
        sink.item(Tag::Prp, Some(Field::Padding));
        sink.fixed(&trailer[..2]);
        sink.field(Field::LanId, &[trailer[2] & 0xf0]);
        sink.fixed(&[trailer[2] & 0x0f, trailer[3]]);
    }
}

#[inline(always)]
fn ipv4(ip: &Network, bytes: &[u8], sink: &mut impl Sink) {
    let (header, options) = bytes[ip.start..ip.end].split_at(20);
    sink.item(Tag::Ipv4, None);
    // Flags and fragment offset come first: they determine whether the identification is compared.
    sink.fixed(&header[6..8]);
    if ip.fragment {
        sink.fixed(&header[4..6]);
    } else {
        sink.field(Field::IpId, &header[4..6]);
    }
    sink.field(Field::Tos, &header[1..2]);
    sink.field(Field::Ttl, &header[8..9]);
    sink.field(Field::IpChecksum, &header[10..12]);
    sink.fixed(&header[9..10]);
    sink.fixed(&header[12..20]);
    mark_no_length(ip, sink);
    if ip.cut {
        // The length of the header, which would follow from the options.
        sink.fixed(&header[..1]);
    }
    if !options.is_empty() {
        sink.item(Tag::IpOptions, Some(Field::IpOptions));
        sink.fixed(options);
    }
}

#[inline(always)]
fn ipv6(ip: &Network, bytes: &[u8], sink: &mut impl Sink) {
    let (header, extensions) = bytes[ip.start..ip.end].split_at(40);
    sink.item(Tag::Ipv6, None);
    sink.field(Field::Tos, &[header[0] << 4 | header[1] >> 4]);
    sink.field(Field::FlowLabel, &[header[1] & 0x0f, header[2], header[3]]);
    sink.field(Field::Ttl, &header[7..8]);
    sink.fixed(&header[6..7]);
    sink.fixed(&header[8..]);
    mark_no_length(ip, sink);
    if !extensions.is_empty() {
        sink.item(Tag::Extensions, None);
        sink.fixed(extensions);
    }
}

/// Tells a packet without a length from one with it, which the other lengths would not.
#[inline(always)]
fn mark_no_length(ip: &Network, sink: &mut impl Sink) {
    if ip.no_length {
        sink.fixed(&[0]);
    }
}

#[inline(always)]
fn transport(transport: &Transport, bytes: &[u8], sink: &mut impl Sink) {
    let header = &bytes[transport.start..transport.end];
    match transport.kind {
        TransportKind::Tcp => {
            let (header, options) = header.split_at(20);
            sink.item(Tag::Tcp, None);
            sink.fixed(&header[..4]);
            sink.field(Field::TcpSeq, &header[4..8]);
            sink.field(Field::TcpAck, &header[8..12]);
            // The data offset follows from the length of the options.
            sink.fixed(&[header[12] & 0x0f, header[13]]);
            sink.field(Field::TcpWindow, &header[14..16]);
            sink.field(Field::TransportChecksum, &header[16..18]);
            sink.fixed(&header[18..20]);
            if !options.is_empty() {
                sink.item(Tag::TcpOptions, Some(Field::TcpOptions));
                sink.fixed(options);
            }
        }
        TransportKind::Udp => {
            sink.item(Tag::Udp, None);
            let (ports_and_length, checksum) = header.split_at(6);
            sink.fixed(ports_and_length);
            sink.field(Field::TransportChecksum, checksum);
        }
        TransportKind::Sctp => {
            sink.item(Tag::Sctp, None);
            sink.fixed(&header[..8]);
            sink.field(Field::TransportChecksum, &header[8..12]);
        }
        TransportKind::Icmp | TransportKind::Icmpv6 => {
            let v4 = transport.kind == TransportKind::Icmp;
            sink.item(if v4 { Tag::Icmp } else { Tag::Icmpv6 }, None);
            sink.fixed(&header[..2]);
            sink.field(Field::TransportChecksum, &header[2..4]);
            sink.fixed(&header[4..8]);
        }
        TransportKind::Other => {
            sink.item(Tag::OtherTransport, None);
            sink.fixed(&[transport.protocol]);
        }
    }
}
