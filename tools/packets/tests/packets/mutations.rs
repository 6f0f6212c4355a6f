//! All packets that differ from a packet in one field.

use echoless_packets::key::Field;
use echoless_packets::synth::{Header, Stack};

/// A packet that differs from another one.
pub(crate) struct Mutation {
    /// The changed field, by its name in the model.
    pub(crate) name: String,
    /// The number of the changed header.
    pub(crate) at: usize,
    /// The field as keys ignore it; `None` if it is none of those.
    pub(crate) field: Option<Field>,
    pub(crate) stack: Stack,
}

/// Every packet that differs from `stack` in one field of a header, or in one header.
pub(crate) fn mutations(stack: &Stack) -> Vec<Mutation> {
    let mut all = Vec::new();
    for (at, header) in stack.headers.iter().enumerate() {
        for (name, field, changed) in changes(header) {
            let mut stack = stack.clone();
            stack.headers[at] = changed;
            let name = format!("{at} {name}");
            all.push(Mutation {
                name,
                at,
                field,
                stack,
            });
        }
        let neighbour = |at: usize| stack.headers.get(at);
        // A control word exists only behind a label.
        let needed = matches!(neighbour(at + 1), Some(Header::ControlWord))
            && !matches!(neighbour(at.wrapping_sub(1)), Some(Header::Mpls { .. }));
        if let Some(field) = removable(header).filter(|_| !needed) {
            let mut stack = stack.clone();
            stack.headers.remove(at);
            let name = format!("{at} removed");
            let field = Some(field);
            all.push(Mutation {
                name,
                at,
                field,
                stack,
            });
        }
    }
    all
}

/// The field that ignores the presence of a header.
fn removable(header: &Header) -> Option<Field> {
    match header {
        Header::Vlan { .. } => Some(Field::Vlan),
        Header::Mpls { .. } => Some(Field::Mpls),
        Header::Pppoe { .. } => Some(Field::Pppoe),
        _ => None,
    }
}

/// Adds a change to a list: a copy of the header with one expression evaluated on it.
macro_rules! change {
    ($list:ident, $header:ident, $pattern:pat, $name:literal, $field:expr, $change:expr) => {{
        let mut changed = $header.clone();
        if let $pattern = &mut changed {
            $change;
        }
        $list.push(($name, $field, changed));
    }};
}

fn changes(header: &Header) -> Vec<(&'static str, Option<Field>, Header)> {
    let mut all = Vec::new();
    match header {
        Header::Ethernet { .. } => {
            change!(
                all,
                header,
                Header::Ethernet { source, .. },
                "source",
                Some(Field::Mac),
                source[3] ^= 1
            );
            change!(
                all,
                header,
                Header::Ethernet { destination, .. },
                "destination",
                Some(Field::Mac),
                destination[5] ^= 1
            );
        }
        Header::Sll { .. } => {
            change!(
                all,
                header,
                Header::Sll { address, .. },
                "address",
                Some(Field::Mac),
                address[0] ^= 1
            );
            change!(
                all,
                header,
                Header::Sll { packet_type, .. },
                "packet type",
                Some(Field::Mac),
                *packet_type ^= 1
            );
            change!(
                all,
                header,
                Header::Sll { arphrd, .. },
                "arphrd",
                None,
                *arphrd ^= 1
            );
        }
        Header::Sll2 { .. } => {
            change!(
                all,
                header,
                Header::Sll2 { address, .. },
                "address",
                Some(Field::Mac),
                address[7] ^= 1
            );
            change!(
                all,
                header,
                Header::Sll2 { packet_type, .. },
                "packet type",
                Some(Field::Mac),
                *packet_type ^= 1
            );
            change!(
                all,
                header,
                Header::Sll2 { interface, .. },
                "interface",
                Some(Field::Mac),
                *interface ^= 1
            );
            change!(
                all,
                header,
                Header::Sll2 { arphrd, .. },
                "arphrd",
                None,
                *arphrd ^= 1
            );
        }
        Header::Vlan { .. } => {
            change!(
                all,
                header,
                Header::Vlan { tci, .. },
                "tci",
                Some(Field::Vlan),
                *tci ^= 1
            );
            change!(
                all,
                header,
                Header::Vlan { tpid, .. },
                "tpid",
                Some(Field::Vlan),
                *tpid ^= 0x8100 ^ 0x88a8
            );
        }
        Header::Mpls { .. } => {
            change!(
                all,
                header,
                Header::Mpls { label, .. },
                "label",
                Some(Field::Mpls),
                *label ^= 1
            );
            change!(
                all,
                header,
                Header::Mpls { class, .. },
                "class",
                Some(Field::Mpls),
                *class ^= 1
            );
            change!(
                all,
                header,
                Header::Mpls { ttl, .. },
                "ttl",
                Some(Field::Ttl),
                *ttl ^= 1
            );
        }
        Header::Pppoe { .. } => {
            change!(
                all,
                header,
                Header::Pppoe { session },
                "session",
                Some(Field::Pppoe),
                *session ^= 1
            );
        }
        Header::Ipv4(_) => {
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "tos",
                Some(Field::Tos),
                ip.tos ^= 4
            );
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "id",
                Some(Field::IpId),
                ip.id ^= 1
            );
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "ttl",
                Some(Field::Ttl),
                ip.ttl ^= 1
            );
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "checksum",
                Some(Field::IpChecksum),
                ip.checksum = Some(7)
            );
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "don't fragment",
                None,
                ip.fragment ^= 0x4000
            );
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "more fragments",
                None,
                ip.fragment ^= 0x2000
            );
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "offset",
                None,
                ip.fragment ^= 3
            );
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "source",
                None,
                ip.source[0] ^= 1
            );
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "destination",
                None,
                ip.destination[3] ^= 1
            );
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "protocol",
                None,
                ip.protocol ^= 1
            );
            let options = Some(Field::IpOptions);
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "options",
                options,
                ip.options = vec![7; 12]
            );
            change!(
                all,
                header,
                Header::Ipv4(ip),
                "no options",
                options,
                ip.options.clear()
            );
        }
        Header::Ipv6(_) => {
            change!(
                all,
                header,
                Header::Ipv6(ip),
                "class",
                Some(Field::Tos),
                ip.class ^= 16
            );
            change!(
                all,
                header,
                Header::Ipv6(ip),
                "class",
                Some(Field::Tos),
                ip.class ^= 1
            );
            change!(
                all,
                header,
                Header::Ipv6(ip),
                "label",
                Some(Field::FlowLabel),
                ip.flow_label ^= 0x8_0001
            );
            change!(
                all,
                header,
                Header::Ipv6(ip),
                "hop limit",
                Some(Field::Ttl),
                ip.hop_limit ^= 1
            );
            change!(
                all,
                header,
                Header::Ipv6(ip),
                "source",
                None,
                ip.source[15] ^= 1
            );
            change!(
                all,
                header,
                Header::Ipv6(ip),
                "destination",
                None,
                ip.destination[0] ^= 1
            );
            change!(
                all,
                header,
                Header::Ipv6(ip),
                "protocol",
                None,
                ip.protocol ^= 1
            );
            change!(
                all,
                header,
                Header::Ipv6(ip),
                "options",
                None,
                ip.options = Some(vec![9; 14])
            );
            change!(
                all,
                header,
                Header::Ipv6(ip),
                "no options",
                None,
                ip.options = None
            );
            change!(
                all,
                header,
                Header::Ipv6(ip),
                "fragment",
                None,
                ip.fragment = Some((8, 1))
            );
            change!(
                all,
                header,
                Header::Ipv6(ip),
                "whole fragment",
                None,
                ip.fragment = Some((0, 2))
            );
        }
        Header::Tcp(_) => {
            change!(
                all,
                header,
                Header::Tcp(tcp),
                "source",
                None,
                tcp.source ^= 1
            );
            change!(
                all,
                header,
                Header::Tcp(tcp),
                "destination",
                None,
                tcp.destination ^= 1
            );
            change!(
                all,
                header,
                Header::Tcp(tcp),
                "seq",
                Some(Field::TcpSeq),
                tcp.seq ^= 1
            );
            change!(
                all,
                header,
                Header::Tcp(tcp),
                "ack",
                Some(Field::TcpAck),
                tcp.ack ^= 1
            );
            change!(all, header, Header::Tcp(tcp), "flags", None, tcp.flags ^= 1);
            change!(
                all,
                header,
                Header::Tcp(tcp),
                "window",
                Some(Field::TcpWindow),
                tcp.window ^= 1
            );
            change!(
                all,
                header,
                Header::Tcp(tcp),
                "checksum",
                Some(Field::TransportChecksum),
                tcp.checksum ^= 1
            );
            change!(
                all,
                header,
                Header::Tcp(tcp),
                "urgent",
                None,
                tcp.urgent ^= 1
            );
            let options = Some(Field::TcpOptions);
            change!(
                all,
                header,
                Header::Tcp(tcp),
                "options",
                options,
                tcp.options = vec![1; 8]
            );
            change!(
                all,
                header,
                Header::Tcp(tcp),
                "no options",
                options,
                tcp.options.clear()
            );
        }
        Header::Udp { .. } => {
            change!(
                all,
                header,
                Header::Udp { source, .. },
                "source",
                None,
                *source ^= 1
            );
            change!(
                all,
                header,
                Header::Udp { destination, .. },
                "destination",
                None,
                *destination ^= 1
            );
            change!(
                all,
                header,
                Header::Udp { checksum, .. },
                "checksum",
                Some(Field::TransportChecksum),
                *checksum ^= 1
            );
        }
        Header::Sctp { .. } => {
            change!(
                all,
                header,
                Header::Sctp { source, .. },
                "source",
                None,
                *source ^= 1
            );
            change!(
                all,
                header,
                Header::Sctp { destination, .. },
                "destination",
                None,
                *destination ^= 1
            );
            change!(
                all,
                header,
                Header::Sctp { verification, .. },
                "verification",
                None,
                *verification ^= 1
            );
            change!(
                all,
                header,
                Header::Sctp { checksum, .. },
                "checksum",
                Some(Field::TransportChecksum),
                *checksum ^= 1
            );
        }
        Header::Icmp { .. } => {
            change!(
                all,
                header,
                Header::Icmp { kind, .. },
                "kind",
                None,
                *kind ^= 1
            );
            change!(
                all,
                header,
                Header::Icmp { code, .. },
                "code",
                None,
                *code ^= 1
            );
            change!(
                all,
                header,
                Header::Icmp { checksum, .. },
                "checksum",
                Some(Field::TransportChecksum),
                *checksum ^= 1
            );
            change!(
                all,
                header,
                Header::Icmp { rest, .. },
                "rest",
                None,
                *rest ^= 1
            );
        }
        Header::Icmpv6 { .. } => {
            change!(
                all,
                header,
                Header::Icmpv6 { kind, .. },
                "kind",
                None,
                *kind ^= 1
            );
            change!(
                all,
                header,
                Header::Icmpv6 { code, .. },
                "code",
                None,
                *code ^= 1
            );
            change!(
                all,
                header,
                Header::Icmpv6 { checksum, .. },
                "checksum",
                Some(Field::TransportChecksum),
                *checksum ^= 1
            );
            change!(
                all,
                header,
                Header::Icmpv6 { rest, .. },
                "rest",
                None,
                *rest ^= 1
            );
        }
        Header::Gre { .. } => {
            change!(
                all,
                header,
                Header::Gre { checksum, .. },
                "checksum",
                None,
                *checksum = !*checksum
            );
            change!(
                all,
                header,
                Header::Gre { key, .. },
                "key",
                None,
                *key = Some(key.map_or(1, |k| k ^ 1))
            );
        }
        Header::Erspan { .. } => {
            change!(
                all,
                header,
                Header::Erspan { session },
                "session",
                None,
                *session ^= 1
            );
        }
        Header::Vxlan { .. } => {
            change!(all, header, Header::Vxlan { vni }, "vni", None, *vni ^= 1);
        }
        Header::Geneve { .. } => {
            change!(
                all,
                header,
                Header::Geneve { vni, .. },
                "vni",
                None,
                *vni ^= 1
            );
            change!(
                all,
                header,
                Header::Geneve { options, .. },
                "options",
                None,
                options.extend([1; 4])
            );
        }
        Header::GtpU { .. } => {
            change!(
                all,
                header,
                Header::GtpU { teid, .. },
                "teid",
                None,
                *teid ^= 1
            );
            change!(
                all,
                header,
                Header::GtpU { extension, .. },
                "extension",
                None,
                *extension = !*extension
            );
        }
        Header::Null | Header::Loop | Header::ControlWord | Header::Opaque { .. } => {}
    }
    all
}
