//! Transport headers: TCP, UDP, SCTP, ICMP.

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const SCTP: u8 = 132;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Without options.
pub(super) const TCP_LEN: usize = 20;
pub(super) const UDP_LEN: usize = 8;

/// A kind of transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// RFC 9293: 20 bytes and options.
    Tcp,
    /// RFC 768: 8 bytes.
    Udp,
    /// RFC 9260: the common header, 12 bytes; chunks are payload.
    Sctp,
    /// RFC 792: 8 bytes.
    Icmp,
    /// RFC 4443: 8 bytes.
    Icmpv6,
    /// Any other protocol, and headers that are cut or malformed: no header, all bytes are payload.
    Other,
}

/// A transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transport {
    /// The kind.
    pub kind: TransportKind,
    /// The IP protocol number.
    pub protocol: u8,
    /// The offset of its first byte.
    pub start: usize,
    /// The offset behind it, options included.
    pub end: usize,
}

/// Reads the header at `start`. Returns it, and whether it is of a known kind but does not fit in
/// `bytes` or contradicts itself.
#[inline(always)]
pub(super) fn read(bytes: &[u8], start: usize, protocol: u8) -> (Transport, bool) {
    let header = bytes.get(start..).unwrap_or_default();
    let (kind, len) = match protocol {
        TCP => (TransportKind::Tcp, tcp_len(header)),
        UDP => (TransportKind::Udp, Some(UDP_LEN)),
        SCTP => (TransportKind::Sctp, Some(12)),
        ICMP => (TransportKind::Icmp, Some(8)),
        ICMPV6 => (TransportKind::Icmpv6, Some(8)),
        _ => (TransportKind::Other, Some(0)),
    };
    let whole = len.filter(|len| *len <= header.len());
    let transport = Transport {
        kind: if whole.is_some() {
            kind
        } else {
            TransportKind::Other
        },
        protocol,
        start,
        end: start + whole.unwrap_or(0),
    };
    (transport, whole.is_none())
}

fn tcp_len(header: &[u8]) -> Option<usize> {
    let words = usize::from(header.get(12)? >> 4);
    Some(words * 4).filter(|len| *len >= TCP_LEN)
}
