//! One captured packet, the same for every kind of capture file, and the kind of its link header.

/// The interface that captured a packet, unique in one file.
///
/// A pcapng file numbers its interfaces anew in each section. A pcap file has one interface:
/// section 0, index 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InterfaceId {
    /// The number of the section in the file, from 0.
    pub section: u32,
    /// The number of the interface in its section, from 0.
    pub index: u32,
}

/// One captured packet. The bytes are borrowed from the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The interface that captured the packet.
    pub interface: InterfaceId,
    /// The kind of link header that the bytes begin with.
    pub link: LinkType,
    /// The captured bytes, from the link header on; fewer than 4 GiB, as in every capture file.
    pub bytes: &'a [u8],
    /// The length of the packet on the wire in bytes. Greater than the number of captured bytes if
    /// the capture cut the packet to its snap length.
    pub original_len: u32,
    /// Nanoseconds since 1970-01-01 00:00 UTC, rounded down. `None` for simple packet blocks, which
    /// have no time, and for times that an `i64` cannot hold (before 1677 or after 2262).
    pub timestamp: Option<i64>,
}

/// The kind of link header of a packet: a LINKTYPE number of the tcpdump registry
/// (<https://www.tcpdump.org/linktypes.html>).
///
/// # Examples
/// ```
/// use echoless_packets::LinkType;
/// assert_eq!(LinkType(1), LinkType::ETHERNET);
/// assert!(LinkType(12).is_raw_ip());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: the address family in 4 bytes, in the byte order of the capturing machine.
    pub const NULL: Self = Self(0);
    /// Ethernet, with or without VLAN tags.
    pub const ETHERNET: Self = Self(1);
    /// Token ring.
    pub const TOKEN_RING: Self = Self(6);
    /// PPP, with or without the address and control bytes of HDLC.
    pub const PPP: Self = Self(9);
    /// FDDI.
    pub const FDDI: Self = Self(10);
    /// PPP in HDLC-like framing, or Cisco HDLC.
    pub const PPP_HDLC: Self = Self(50);
    /// A PPPoE session header, without the Ethernet header in front of it.
    pub const PPP_ETHER: Self = Self(51);
    /// LLC and SNAP, as in ATM.
    pub const ATM_RFC1483: Self = Self(100);
    /// IPv4 or IPv6 without a link header.
    pub const RAW: Self = Self(101);
    /// Cisco HDLC.
    pub const C_HDLC: Self = Self(104);
    /// IEEE 802.11.
    pub const IEEE802_11: Self = Self(105);
    /// Frame relay.
    pub const FRAME_RELAY: Self = Self(107);
    /// OpenBSD loopback: the address family in 4 bytes, big-endian.
    pub const LOOP: Self = Self(108);
    /// IPsec as OpenBSD captures it: address family, index, flags.
    pub const ENC: Self = Self(109);
    /// Linux cooked capture, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// The log of the packet filter pf.
    pub const PFLOG: Self = Self(117);
    /// IEEE 802.11 behind a Prism header.
    pub const PRISM: Self = Self(119);
    /// IP over Fibre Channel.
    pub const IP_OVER_FC: Self = Self(122);
    /// IEEE 802.11 behind a radiotap header.
    pub const RADIOTAP: Self = Self(127);
    /// IEEE 802.11 behind an AVS header.
    pub const AVS: Self = Self(163);
    /// PPP with the direction in the place of the address byte.
    pub const PPP_PPPD: Self = Self(166);
    /// Ethernet behind a header of Juniper routers.
    pub const JUNIPER_ETHERNET: Self = Self(178);
    /// A frame of any kind behind a PPI header.
    pub const PPI: Self = Self(192);
    /// A frame behind an ERF header of Endace.
    pub const ERF: Self = Self(197);
    /// PPP behind a byte for the direction.
    pub const PPP_WITH_DIR: Self = Self(204);
    /// Cisco HDLC behind a byte for the direction.
    pub const C_HDLC_WITH_DIR: Self = Self(205);
    /// Frame relay behind a byte for the direction.
    pub const FRAME_RELAY_WITH_DIR: Self = Self(206);
    /// MPLS without a link header.
    pub const MPLS: Self = Self(219);
    /// IPv4 without a link header.
    pub const IPV4: Self = Self(228);
    /// IPv6 without a link header.
    pub const IPV6: Self = Self(229);
    /// The log of Linux netfilter.
    pub const NFLOG: Self = Self(239);
    /// Ethernet behind a header of netANALYZER.
    pub const NETANALYZER: Self = Self(240);
    /// IP over InfiniBand.
    pub const IPOIB: Self = Self(242);
    /// A frame of any kind behind a PKTAP header of Apple systems.
    pub const PKTAP: Self = Self(258);
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);

    /// The DLT numbers of raw IP, which some programs write in place of the LINKTYPE number: 12 on
    /// most systems, 14 on OpenBSD.
    const RAW_DLT: [Self; 2] = [Self(12), Self(14)];

    /// Whether packets begin with an IP header of either version.
    #[must_use]
    pub fn is_raw_ip(self) -> bool {
        self == Self::RAW || Self::RAW_DLT.contains(&self)
    }
}
