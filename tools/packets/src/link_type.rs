//! The kinds of link header, by the numbers that capture files use.

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
    /// IPv4 or IPv6 without a link header.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: the address family in 4 bytes, big-endian.
    pub const LOOP: Self = Self(108);
    /// Linux cooked capture, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// IPv4 without a link header.
    pub const IPV4: Self = Self(228);
    /// IPv6 without a link header.
    pub const IPV6: Self = Self(229);
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
