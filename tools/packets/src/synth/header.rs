//! Headers as data, and their encoding.

use crate::packet::LinkType;

/// One header. Lengths and the number of what follows are computed by
/// [`Stack::bytes`](super::Stack::bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields have the names of the standards")]
pub enum Header {
    Ethernet {
        destination: [u8; 6],
        source: [u8; 6],
    },
    /// Linux cooked capture, version 1.
    Sll {
        packet_type: u16,
        arphrd: u16,
        address: [u8; 8],
    },
    /// Linux cooked capture, version 2.
    Sll2 {
        interface: u32,
        packet_type: u8,
        arphrd: u16,
        address: [u8; 8],
    },
    /// BSD loopback, of a little-endian machine.
    Null,
    /// OpenBSD loopback.
    Loop,
    /// What a capturing program puts in front of a frame: radiotap and the like.
    Capture {
        kind: LinkType,
        bytes: Vec<u8>,
    },
    /// A data frame of IEEE 802.11.
    Wireless {
        duration: u16,
        /// The fourth one is that of frames between access points.
        addresses: [[u8; 6]; 4],
        /// A multiple of 16: the number of the fragment is 0.
        sequence: u16,
        between_access_points: bool,
        qos: bool,
    },
    /// Any other link header: the bytes in front of what announces the next header.
    Link {
        kind: LinkType,
        bytes: Vec<u8>,
    },
    /// LLC and SNAP.
    Snap,
    /// A tag of High-availability Seamless Redundancy.
    Hsr {
        /// 4 bits.
        path: u8,
        sequence: u16,
    },
    /// Any other tag in front of an EtherType.
    Tag {
        ethertype: u16,
        bytes: Vec<u8>,
    },
    Vlan {
        tpid: u16,
        tci: u16,
    },
    /// One label; the last one before another header is the bottom of the stack.
    Mpls {
        label: u32,
        class: u8,
        ttl: u8,
    },
    /// The control word of an MPLS pseudowire.
    ControlWord,
    Pppoe {
        session: u16,
    },
    Ipv4(Ipv4),
    Ipv6(Ipv6),
    Tcp(Tcp),
    Udp {
        source: u16,
        /// Replaced by the port of a tunnel that follows.
        destination: u16,
        checksum: u16,
    },
    Sctp {
        source: u16,
        destination: u16,
        verification: u32,
        checksum: u32,
    },
    Icmp {
        kind: u8,
        code: u8,
        checksum: u16,
        rest: u32,
    },
    Icmpv6 {
        kind: u8,
        code: u8,
        checksum: u16,
        rest: u32,
    },
    Gre {
        checksum: bool,
        key: Option<u32>,
        sequence: Option<u32>,
    },
    /// ERSPAN type II, behind GRE with a sequence number.
    Erspan {
        session: u16,
    },
    Vxlan {
        vni: u32,
    },
    Geneve {
        vni: u32,
        /// A multiple of 4 bytes, at most 252.
        options: Vec<u8>,
    },
    GtpU {
        teid: u32,
        sequence: Option<u16>,
        /// Whether a header extension (PDU session container) follows.
        extension: bool,
    },
    Tzsp {
        /// The fields in front of the last one.
        fields: Vec<u8>,
    },
    /// In front of PPP.
    L2tp {
        tunnel: u16,
        session: u16,
    },
    /// Ethernet in IP.
    EtherIp,
    /// No header: what follows has this EtherType.
    Opaque {
        ethertype: u16,
    },
}

/// An IPv4 header.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields have the names of the standard")]
pub struct Ipv4 {
    pub tos: u8,
    pub id: u16,
    /// Flags and offset, as in the header.
    pub fragment: u16,
    pub ttl: u8,
    /// `None` for the correct one.
    pub checksum: Option<u16>,
    pub source: [u8; 4],
    pub destination: [u8; 4],
    /// A multiple of 4 bytes, at most 40.
    pub options: Vec<u8>,
    /// The protocol number of a payload without a header.
    pub protocol: u8,
}

/// An IPv6 header. Its length is 0, as segmentation offload leaves it, if the packet is longer than
/// the field can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields have the names of the standard")]
pub struct Ipv6 {
    pub class: u8,
    pub flow_label: u32,
    pub hop_limit: u8,
    pub source: [u8; 16],
    pub destination: [u8; 16],
    /// Extension headers in front of the others: kind, and content without the first two bytes.
    /// Their lengths are multiples of 8 with these.
    pub extensions: Vec<(u8, Vec<u8>)>,
    /// The contents of a destination options header: 6 bytes more than a multiple of 8.
    pub options: Option<Vec<u8>>,
    /// The offset and flags, and the identification, of a fragment header.
    pub fragment: Option<(u16, u32)>,
    /// The protocol number of a payload without a header.
    pub protocol: u8,
}

/// A TCP header.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields have the names of the standard")]
pub struct Tcp {
    pub source: u16,
    pub destination: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub checksum: u16,
    pub urgent: u16,
    /// A multiple of 4 bytes, at most 40.
    pub options: Vec<u8>,
}

/// Headers with fixed values, to start from.
impl Header {
    /// Ethernet between two locally administered addresses.
    #[must_use]
    pub fn ethernet() -> Self {
        Self::Ethernet {
            destination: [2, 0, 0, 0, 0, 1],
            source: [2, 0, 0, 0, 0, 2],
        }
    }

    /// A customer tag (802.1Q) of this VLAN, priority 0.
    #[must_use]
    pub fn vlan(id: u16) -> Self {
        Self::Vlan {
            tpid: 0x8100,
            tci: id,
        }
    }

    /// A label with the time to live 64.
    #[must_use]
    pub fn mpls(label: u32) -> Self {
        Self::Mpls {
            label,
            class: 0,
            ttl: 64,
        }
    }

    /// A radiotap header with a time and a signal strength.
    #[must_use]
    pub fn radiotap(time: u64, signal: u8) -> Self {
        let mut bytes = vec![0, 0, 17, 0, 0x21, 0, 0, 0];
        bytes.extend(time.to_le_bytes());
        bytes.push(signal);
        Self::Capture {
            kind: LinkType::RADIOTAP,
            bytes,
        }
    }

    /// A data frame of IEEE 802.11 to an access point.
    #[must_use]
    pub fn wireless() -> Self {
        Self::Wireless {
            duration: 44,
            addresses: [
                [2, 0, 0, 0, 0, 1],
                [2, 0, 0, 0, 0, 2],
                [2, 0, 0, 0, 0, 3],
                [0; 6],
            ],
            sequence: 0x1230,
            between_access_points: false,
            qos: false,
        }
    }

    /// IPv4 from 10.0.0.1 to 10.0.0.2, not fragmented, without options.
    #[must_use]
    pub fn ipv4() -> Self {
        Self::Ipv4(Ipv4 {
            tos: 0,
            id: 7,
            fragment: 0,
            ttl: 64,
            checksum: None,
            source: [10, 0, 0, 1],
            destination: [10, 0, 0, 2],
            options: Vec::new(),
            protocol: 253,
        })
    }

    /// IPv6 without extension headers.
    #[must_use]
    pub fn ipv6() -> Self {
        Self::Ipv6(Ipv6 {
            class: 0,
            flow_label: 0,
            hop_limit: 64,
            source: [0xfd; 16],
            destination: [0xfe; 16],
            extensions: Vec::new(),
            options: None,
            fragment: None,
            protocol: 253,
        })
    }

    /// A segment with payload from port 40000 to 443, without options.
    #[must_use]
    pub fn tcp() -> Self {
        Self::Tcp(Tcp {
            source: 40000,
            destination: 443,
            seq: 1,
            ack: 2,
            flags: 0x18,
            window: 512,
            checksum: 0,
            urgent: 0,
            options: Vec::new(),
        })
    }

    /// A datagram from port 40000 to 53.
    #[must_use]
    pub fn udp() -> Self {
        Self::Udp {
            source: 40000,
            destination: 53,
            checksum: 0,
        }
    }

    /// GRE without optional fields.
    #[must_use]
    pub fn gre() -> Self {
        Self::Gre {
            checksum: false,
            key: None,
            sequence: None,
        }
    }

    /// VXLAN of this network.
    #[must_use]
    pub fn vxlan(vni: u32) -> Self {
        Self::Vxlan { vni }
    }

    /// Geneve of this network, without options.
    #[must_use]
    pub fn geneve(vni: u32) -> Self {
        Self::Geneve {
            vni,
            options: Vec::new(),
        }
    }

    /// A GTP-U packet of this tunnel, without optional fields.
    #[must_use]
    pub fn gtp_u(teid: u32) -> Self {
        Self::GtpU {
            teid,
            sequence: None,
            extension: false,
        }
    }
}

impl Header {
    /// The EtherType that announces this header.
    pub(super) fn ethertype(&self) -> u16 {
        let (ethertype, _, _) = self.numbers();
        ethertype.unwrap_or_else(|| panic!("{self:?} has no EtherType"))
    }

    /// The IP protocol number of this header.
    pub(super) fn protocol(&self) -> u8 {
        let (_, protocol, _) = self.numbers();
        protocol.unwrap_or_else(|| panic!("{self:?} has no IP protocol number"))
    }

    /// The UDP port of this header, if it is that of a tunnel.
    pub(super) fn udp_port(&self) -> Option<u16> {
        let (_, _, port) = self.numbers();
        port
    }

    /// The EtherType, the IP protocol number and the UDP port that announce this header, those that
    /// it has.
    const fn numbers(&self) -> (Option<u16>, Option<u8>, Option<u16>) {
        match self {
            Self::Vlan { tpid, .. } => (Some(*tpid), None, None),
            Self::Mpls { .. } => (Some(0x8847), Some(137), Some(6635)),
            Self::Pppoe { .. } => (Some(0x8864), None, None),
            Self::Ipv4(_) => (Some(0x0800), Some(4), None),
            Self::Ipv6(_) => (Some(0x86dd), Some(41), None),
            Self::Ethernet { .. } => (Some(0x6558), None, None),
            Self::Erspan { .. } => (Some(0x88be), None, None),
            Self::Opaque { ethertype } | Self::Tag { ethertype, .. } => {
                (Some(*ethertype), None, None)
            }
            Self::Hsr { .. } => (Some(0x892f), None, None),
            Self::Icmp { .. } => (None, Some(1), None),
            Self::Tcp(_) => (None, Some(6), None),
            Self::Udp { .. } => (None, Some(17), None),
            Self::Gre { .. } => (None, Some(47), None),
            Self::Icmpv6 { .. } => (None, Some(58), None),
            Self::EtherIp => (None, Some(97), None),
            Self::Sctp { .. } => (None, Some(132), None),
            Self::Vxlan { .. } => (None, None, Some(4789)),
            Self::Geneve { .. } => (None, None, Some(6081)),
            Self::GtpU { .. } => (None, None, Some(2152)),
            Self::Tzsp { .. } => (None, None, Some(37008)),
            Self::L2tp { .. } => (None, None, Some(1701)),
            Self::Sll { .. }
            | Self::Sll2 { .. }
            | Self::Null
            | Self::Loop
            | Self::Capture { .. }
            | Self::Wireless { .. }
            | Self::Link { .. }
            | Self::Snap
            | Self::ControlWord => (None, None, None),
        }
    }
}
