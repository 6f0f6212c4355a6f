//! A plain model of keys: the compared fields of a packet as text, from its headers as data.
//!
//! It reads no bytes of headers, so it shares nothing with the code under test.

use echoless_packets::key::{Field, From, KeyOptions};
use echoless_packets::synth::{Header, Ipv4, Ipv6, Stack, Tcp};

/// A packet as data.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) stack: Stack,
    pub(crate) payload: Vec<u8>,
    /// What follows the packet in the frame.
    pub(crate) padding: Vec<u8>,
}

impl Sample {
    /// Whether the innermost packet is IPv6 without anything behind its header: what follows in the
    /// frame is its content then, and no padding.
    pub(crate) fn is_bare(&self) -> bool {
        let last = self.stack.headers.last();
        let bare =
            |ip: &Ipv6| ip.extensions.is_empty() && ip.options.is_none() && ip.fragment.is_none();
        self.payload.is_empty() && matches!(last, Some(Header::Ipv6(ip)) if bare(ip))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.stack.bytes(&self.payload);
        bytes.extend(&self.padding);
        bytes
    }
}

/// One packet in the headers of a stack, which may hold several in tunnels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level {
    pub(crate) start: usize,
    pub(crate) ip: Option<usize>,
    transport: Option<usize>,
    pub(crate) payload: usize,
    next: Option<usize>,
}

/// The packets of a stack, outermost first.
pub(crate) fn levels(headers: &[Header]) -> Vec<Level> {
    let (mut found, mut start) = (Vec::new(), Some(0));
    while let Some(at) = start {
        let level = level_at(headers, at);
        start = level.next;
        found.push(level);
    }
    found
}

fn level_at(headers: &[Header], start: usize) -> Level {
    let is_ip = |at: usize| matches!(headers.get(at), Some(Header::Ipv4(_) | Header::Ipv6(_)));
    let mut at = start;
    while at < headers.len() && !is_ip(at) && headers[at] != Header::ControlWord {
        at += 1;
    }
    let mut level = Level {
        start,
        ip: None,
        transport: None,
        payload: at,
        next: None,
    };
    if headers.get(at) == Some(&Header::ControlWord) {
        level.next = Some(at + 1);
        return level;
    }
    if !is_ip(at) {
        return level;
    }
    level.ip = Some(at);
    at += 1;
    level.payload = at;
    if is_fragment(&headers[at - 1]) {
        return level;
    }
    if matches!(
        headers.get(at),
        Some(
            Header::Tcp(_)
                | Header::Udp { .. }
                | Header::Sctp { .. }
                | Header::Icmp { .. }
                | Header::Icmpv6 { .. }
        )
    ) {
        level.transport = Some(at);
        at += 1;
        level.payload = at;
    }
    level.next = match headers.get(at) {
        Some(Header::Ipv4(_) | Header::Ipv6(_)) => Some(at),
        Some(Header::EtherIp) => Some(at + 1),
        // A label behind a tunnel is a shim of the packet in it.
        Some(Header::Mpls { .. }) => Some(at),
        Some(Header::Gre { .. }) if matches!(headers.get(at + 1), Some(Header::Erspan { .. })) => {
            Some(at + 2)
        }
        Some(
            Header::Gre { .. }
            | Header::Vxlan { .. }
            | Header::Geneve { .. }
            | Header::GtpU { .. }
            | Header::Tzsp { .. }
            | Header::L2tp { .. },
        ) => Some(at + 1),
        Some(other) => panic!("{other:?} in a payload"),
        None => None,
    };
    level
}

fn is_fragment(header: &Header) -> bool {
    match header {
        Header::Ipv4(ip) => ip.fragment & 0x3fff != 0,
        Header::Ipv6(ip) => ip.fragment.is_some_and(|(offset, _)| offset != 0),
        _ => false,
    }
}

/// The level that keys with these options compare.
pub(crate) fn chosen(headers: &[Header], options: &KeyOptions) -> usize {
    if options.ignore.contains(Field::Tunnel) {
        levels(headers).len() - 1
    } else {
        0
    }
}

/// The compared fields of a packet, as text.
pub(crate) fn compared(sample: &Sample, options: &KeyOptions) -> Vec<String> {
    let headers = &sample.stack.headers;
    let all = levels(headers);
    let number = chosen(headers, options);
    let level = all[number];
    let first_ip = all[..=number].iter().position(|level| level.ip.is_some());

    let mut payload = Stack::new(headers[level.payload..].to_vec()).bytes(&sample.payload);
    if first_ip.is_none() {
        payload.extend(&sample.padding);
    }
    let padding = if first_ip == Some(number) {
        &sample.padding[..]
    } else {
        &[]
    };

    let has_layer = match options.from {
        From::Link => true,
        From::Network => level.ip.is_some(),
        From::Transport => {
            level.ip.is_some_and(|ip| !is_fragment(&headers[ip]))
                && (level.transport.is_some() || !payload.is_empty())
        }
        From::Payload => level.transport.is_some() && !payload.is_empty(),
    };
    let from = if has_layer { options.from } else { From::Link };

    let mut out = Fields {
        list: Vec::new(),
        options,
    };
    if from == From::Link {
        if number == 0 {
            out.add(format!("link type {}", sample.stack.link().0));
        }
        for (at, header) in headers[level.start..].iter().enumerate() {
            if level.ip.unwrap_or(level.payload) == level.start + at {
                break;
            }
            out.link(header);
        }
        out.field(Field::Padding, format!("padding {padding:?}"));
    }
    if let (From::Link | From::Network, Some(at)) = (from, level.ip) {
        match &headers[at] {
            Header::Ipv4(ip) => out.ipv4(ip, is_fragment(&headers[at])),
            Header::Ipv6(ip) => out.ipv6(ip),
            other => panic!("{other:?} is not IP"),
        }
    }
    if from != From::Payload
        && let Some(ip) = level.ip
    {
        let next = headers.get(ip + 1).map(std::mem::discriminant);
        let own = match &headers[ip] {
            Header::Ipv4(ip) => ip.protocol,
            Header::Ipv6(ip) => ip.protocol,
            other => panic!("{other:?} is not IP"),
        };
        // A payload without a header has the number that the IP header gives.
        let protocol = if next.is_none() {
            format!("{own}")
        } else {
            format!("{next:?}")
        };
        out.add(format!("protocol {protocol}"));
        if let Some(at) = level.transport {
            out.transport(&headers[at]);
        }
    }
    let limit = options
        .payload_bytes
        .filter(|_| level.transport.is_some())
        .map_or(usize::MAX, |limit| limit as usize);
    out.add(format!(
        "payload {} {:?}",
        payload.len(),
        &payload[..payload.len().min(limit)]
    ));
    out.list
}

struct Fields<'a> {
    list: Vec<String>,
    options: &'a KeyOptions,
}

impl Fields<'_> {
    fn add(&mut self, text: String) {
        self.list.push(text);
    }

    fn field(&mut self, field: Field, text: String) {
        if !self.options.ignore.contains(field) {
            self.add(text);
        }
    }

    fn link(&mut self, header: &Header) {
        match header {
            Header::Ethernet { .. } => self.field(Field::Mac, format!("{header:?}")),
            Header::Sll {
                packet_type,
                arphrd,
                address,
            } => {
                self.add(format!("arphrd {arphrd}"));
                self.field(Field::Mac, format!("{packet_type} {address:?}"));
            }
            Header::Sll2 {
                interface,
                packet_type,
                arphrd,
                address,
            } => {
                self.add(format!("arphrd {arphrd}"));
                self.field(Field::Mac, format!("{interface} {packet_type} {address:?}"));
            }
            Header::Vlan { .. } => self.field(Field::Vlan, format!("{header:?}")),
            Header::Mpls { label, class, ttl } => {
                self.field(Field::Mpls, format!("label {label} {class}"));
                if !self.options.ignore.contains(Field::Mpls) {
                    self.field(Field::Ttl, format!("label ttl {ttl}"));
                }
            }
            Header::Pppoe { .. } => self.field(Field::Pppoe, format!("{header:?}")),
            Header::Capture { .. } => self.field(Field::CaptureHeader, format!("{header:?}")),
            Header::Wireless {
                duration,
                addresses,
                sequence,
                between_access_points: four,
                qos,
            } => {
                self.add(format!("wireless {duration} {sequence} {four} {qos}"));
                let addresses = &addresses[..if *four { 4 } else { 3 }];
                self.field(Field::Mac, format!("addresses {addresses:?}"));
            }
            Header::Tag { .. } => self.field(Field::OtherTags, format!("{header:?}")),
            Header::Hsr { path, sequence } => {
                self.field(Field::OtherTags, format!("hsr {sequence}"));
                if !self.options.ignore.contains(Field::OtherTags) {
                    self.field(Field::LanId, format!("hsr path {path}"));
                }
            }
            other => self.add(format!("{other:?}")),
        }
    }

    fn ipv4(&mut self, ip: &Ipv4, fragment: bool) {
        let Ipv4 {
            tos,
            id,
            fragment: word,
            ttl,
            checksum,
            source,
            destination,
            options,
            ..
        } = ip;
        self.add(format!("ipv4 {word} {source:?} {destination:?}"));
        if fragment {
            self.add(format!("fragment of {id}"));
        } else {
            self.field(Field::IpId, format!("id {id}"));
        }
        self.field(Field::Tos, format!("tos {tos}"));
        self.field(Field::Ttl, format!("ttl {ttl}"));
        let checksum = checksum.expect("models have explicit checksums");
        self.field(Field::IpChecksum, format!("checksum {checksum}"));
        self.field(Field::IpOptions, format!("options {options:?}"));
    }

    fn ipv6(&mut self, ip: &Ipv6) {
        let Ipv6 {
            class,
            flow_label,
            hop_limit,
            source,
            destination,
            extensions,
            options,
            fragment,
            ..
        } = ip;
        self.add(format!(
            "ipv6 {source:?} {destination:?} {extensions:?} {options:?} {fragment:?}"
        ));
        self.field(Field::Tos, format!("class {class}"));
        self.field(Field::FlowLabel, format!("label {flow_label}"));
        self.field(Field::Ttl, format!("hop limit {hop_limit}"));
    }

    fn transport(&mut self, header: &Header) {
        let checksum = match header {
            Header::Tcp(tcp) => {
                self.tcp(tcp);
                u32::from(tcp.checksum)
            }
            Header::Udp {
                source,
                destination,
                checksum,
            } => {
                self.add(format!("udp {source} {destination}"));
                u32::from(*checksum)
            }
            Header::Sctp {
                source,
                destination,
                verification,
                checksum,
            } => {
                self.add(format!("sctp {source} {destination} {verification}"));
                *checksum
            }
            Header::Icmp {
                kind,
                code,
                checksum,
                rest,
            }
            | Header::Icmpv6 {
                kind,
                code,
                checksum,
                rest,
            } => {
                self.add(format!("icmp {kind} {code} {rest}"));
                u32::from(*checksum)
            }
            other => panic!("{other:?} is no transport header"),
        };
        self.field(Field::TransportChecksum, format!("checksum {checksum}"));
    }

    fn tcp(&mut self, tcp: &Tcp) {
        let Tcp {
            source,
            destination,
            seq,
            ack,
            flags,
            window,
            urgent,
            options,
            ..
        } = tcp;
        self.add(format!("tcp {source} {destination} {flags} {urgent}"));
        self.field(Field::TcpSeq, format!("seq {seq}"));
        self.field(Field::TcpAck, format!("ack {ack}"));
        self.field(Field::TcpWindow, format!("window {window}"));
        self.field(Field::TcpOptions, format!("options {options:?}"));
    }
}
