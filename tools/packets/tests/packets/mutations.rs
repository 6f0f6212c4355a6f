//! All packets that differ from a packet in one field.

use echoless_packets::LinkType;
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
        // A control word exists only behind a label, and some tunnels are one.
        let before = neighbour(at.wrapping_sub(1));
        let needed = matches!(neighbour(at + 1), Some(Header::ControlWord))
            && !matches!(before, Some(Header::Mpls { .. }))
            || matches!(before, Some(Header::Udp { .. }))
            // The number that announces LLC would be a length.
            || matches!(before, Some(Header::Sll { .. } | Header::Sll2 { .. }))
                && matches!(neighbour(at + 1), Some(Header::Snap));
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
        Header::Hsr { .. } | Header::Tag { .. } => Some(Field::OtherTags),
        _ => None,
    }
}

/// Whether the first byte of this link header has any value.
fn has_free_byte(kind: LinkType) -> bool {
    [LinkType::C_HDLC, LinkType::IPOIB].contains(&kind)
}

/// The changes of a header, from a table: name, ignorable field, header, change.
macro_rules! changes {
    ($header:ident: $($name:literal [$($field:ident)?] $pattern:pat => $change:expr;)*) => {{
        let mut all = Vec::new();
        $(
            let mut changed = $header.clone();
            if let $pattern = &mut changed {
                $change;
                let field = [$(Field::$field)?].first().copied();
                all.push(($name, field, changed));
            }
        )*
        all
    }};
}

fn changes(header: &Header) -> Vec<(&'static str, Option<Field>, Header)> {
    use Header::{
        Capture, Erspan, Ethernet, Geneve, Gre, GtpU, Hsr, Icmp, Icmpv6, Ipv4, Ipv6, L2tp, Link,
        Mpls, Pppoe, Sctp, Sll, Sll2, Tag, Tcp, Tzsp, Udp, Vlan, Vxlan, Wireless,
    };
    changes! { header:
        "source" [Mac] Ethernet { source, .. } => source[3] ^= 1;
        "destination" [Mac] Ethernet { destination, .. } => destination[5] ^= 1;
        "address" [Mac] Sll { address, .. } => address[0] ^= 1;
        "packet type" [Mac] Sll { packet_type, .. } => *packet_type ^= 1;
        "arphrd" [] Sll { arphrd, .. } => *arphrd ^= 1;
        "address" [Mac] Sll2 { address, .. } => address[7] ^= 1;
        "packet type" [Mac] Sll2 { packet_type, .. } => *packet_type ^= 1;
        "interface" [Mac] Sll2 { interface, .. } => *interface ^= 1;
        "arphrd" [] Sll2 { arphrd, .. } => *arphrd ^= 1;
        "tci" [Vlan] Vlan { tci, .. } => *tci ^= 1;
        "tpid" [Vlan] Vlan { tpid, .. } => *tpid ^= 0x8100 ^ 0x88a8;
        "label" [Mpls] Mpls { label, .. } => *label ^= 1;
        "class" [Mpls] Mpls { class, .. } => *class ^= 1;
        "ttl" [Ttl] Mpls { ttl, .. } => *ttl ^= 1;
        "last byte" [CaptureHeader] Capture { bytes, .. } => bytes.last_mut().map(|byte| *byte ^= 1);
        "duration" [] Wireless { duration, .. } => *duration ^= 1;
        "sequence" [] Wireless { sequence, .. } => *sequence ^= 0x10;
        "quality of service" [] Wireless { qos, .. } => *qos = !*qos;
        "first address" [Mac] Wireless { addresses, .. } => addresses[0][0] ^= 1;
        "third address" [Mac] Wireless { addresses, .. } => addresses[2][5] ^= 1;
        "fourth address" [Mac] Wireless { addresses, .. } => addresses[3][5] ^= 1;
        "first byte" [] Link { kind, bytes } => bytes.first_mut().filter(|_| has_free_byte(*kind)).map(|byte| *byte ^= 2);
        "path" [LanId] Hsr { path, .. } => *path ^= 1;
        "sequence" [OtherTags] Hsr { sequence, .. } => *sequence ^= 1;
        "last byte" [OtherTags] Tag { bytes, .. } => bytes.last_mut().map(|byte| *byte ^= 1);
        "session" [Pppoe] Pppoe { session } => *session ^= 1;

        "tos" [Tos] Ipv4(ip) => ip.tos ^= 4;
        "id" [IpId] Ipv4(ip) => ip.id ^= 1;
        "ttl" [Ttl] Ipv4(ip) => ip.ttl ^= 1;
        "checksum" [IpChecksum] Ipv4(ip) => ip.checksum = Some(7);
        "don't fragment" [] Ipv4(ip) => ip.fragment ^= 0x4000;
        "more fragments" [] Ipv4(ip) => ip.fragment ^= 0x2000;
        "offset" [] Ipv4(ip) => ip.fragment ^= 3;
        "source" [] Ipv4(ip) => ip.source[0] ^= 1;
        "destination" [] Ipv4(ip) => ip.destination[3] ^= 1;
        "protocol" [] Ipv4(ip) => ip.protocol ^= 1;
        "options" [IpOptions] Ipv4(ip) => ip.options = vec![7; 12];
        "no options" [IpOptions] Ipv4(ip) => ip.options.clear();
        "DSCP" [Tos] Ipv6(ip) => ip.class ^= 16;
        "ECN" [Tos] Ipv6(ip) => ip.class ^= 1;
        "label" [FlowLabel] Ipv6(ip) => ip.flow_label ^= 0x8_0001;
        "hop limit" [Ttl] Ipv6(ip) => ip.hop_limit ^= 1;
        "source" [] Ipv6(ip) => ip.source[15] ^= 1;
        "destination" [] Ipv6(ip) => ip.destination[0] ^= 1;
        "protocol" [] Ipv6(ip) => ip.protocol ^= 1;
        "options" [] Ipv6(ip) => ip.options = Some(vec![9; 14]);
        "no options" [] Ipv6(ip) => ip.options = None;
        "extension" [] Ipv6(ip) => ip.extensions.push((60, vec![9; 6]));
        "no extension" [] Ipv6(ip) => ip.extensions.pop();
        "fragment" [] Ipv6(ip) => ip.fragment = Some((8, 1));
        "whole fragment" [] Ipv6(ip) => ip.fragment = Some((0, 2));

        "source" [] Tcp(tcp) => tcp.source ^= 1;
        "destination" [] Tcp(tcp) => tcp.destination ^= 1;
        "seq" [TcpSeq] Tcp(tcp) => tcp.seq ^= 1;
        "ack" [TcpAck] Tcp(tcp) => tcp.ack ^= 1;
        "flags" [] Tcp(tcp) => tcp.flags ^= 1;
        "window" [TcpWindow] Tcp(tcp) => tcp.window ^= 1;
        "checksum" [TransportChecksum] Tcp(tcp) => tcp.checksum ^= 1;
        "urgent" [] Tcp(tcp) => tcp.urgent ^= 1;
        "options" [TcpOptions] Tcp(tcp) => tcp.options = vec![1; 8];
        "no options" [TcpOptions] Tcp(tcp) => tcp.options.clear();
        "source" [] Udp { source, .. } => *source ^= 1;
        "destination" [] Udp { destination, .. } => *destination ^= 1;
        "checksum" [TransportChecksum] Udp { checksum, .. } => *checksum ^= 1;
        "source" [] Sctp { source, .. } => *source ^= 1;
        "destination" [] Sctp { destination, .. } => *destination ^= 1;
        "verification" [] Sctp { verification, .. } => *verification ^= 1;
        "checksum" [TransportChecksum] Sctp { checksum, .. } => *checksum ^= 1;
        "kind" [] Icmp { kind, .. } | Icmpv6 { kind, .. } => *kind ^= 1;
        "code" [] Icmp { code, .. } | Icmpv6 { code, .. } => *code ^= 1;
        "rest" [] Icmp { rest, .. } | Icmpv6 { rest, .. } => *rest ^= 1;
        "checksum" [TransportChecksum] Icmp { checksum, .. } | Icmpv6 { checksum, .. } => *checksum ^= 1;

        "checksum" [] Gre { checksum, .. } => *checksum = !*checksum;
        "key" [] Gre { key, .. } => *key = Some(key.map_or(1, |key| key ^ 1));
        "session" [] Erspan { session } => *session ^= 1;
        "vni" [] Vxlan { vni } => *vni ^= 1;
        "vni" [] Geneve { vni, .. } => *vni ^= 1;
        "options" [] Geneve { options, .. } => options.extend([1; 4]);
        "fields" [] Tzsp { fields } => fields.push(0);
        "session" [] L2tp { session, .. } => *session ^= 1;
        "teid" [] GtpU { teid, .. } => *teid ^= 1;
        "extension" [] GtpU { extension, .. } => *extension = !*extension;
    }
}
