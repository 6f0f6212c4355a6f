//! What made a copy, by what differs between it and its original.

use echoless_packets::InterfaceId;
use echoless_packets::key::{Field, FieldSet};

use super::super::distances::Distance;

/// How two packets are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    /// As they are.
    Whole,
    /// As the packets in two tunnels between the same addresses.
    Inner,
    /// As the packets in other tunnels, or one in a tunnel and one outside.
    Tunnels,
    /// As far as the one goes that has fewer captured bytes.
    Snapped,
}

/// A packet and the last equal one before it. Pairs that agree in all of this are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    /// Whether the later packet can be a copy, for all that was known when it came.
    pub(super) may_be_copy: bool,
    pub(super) matching: Match,
    /// The fields outside of the key that differ.
    pub(super) differing: FieldSet,
    /// Whether the time to live of the packet itself differs, and not only that of a label.
    pub(super) is_routed: bool,
    /// Whether the sender has numbered both, which are equal in that.
    pub(super) is_numbered: bool,
    /// Whether both have an IP header.
    pub(super) has_network: bool,
    /// Whether they are for one link only, so that each link may have its own.
    pub(super) is_on_link: bool,
    pub(super) crosses_interfaces: bool,
    pub(super) distance: Distance,
    /// The same with the window in the place of the time.
    pub(super) window: Distance,
    /// `None` if there are very many.
    pub(super) places: Option<Places>,
}

/// Where both packets of a pair were captured: the earlier one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Places {
    pub(super) interfaces: (InterfaceId, InterfaceId),
    pub(super) vlans: (Option<u16>, Option<u16>),
}

/// What made a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    Snapped,
    Tunnel,
    Mpls,
    Routed,
    Vlan,
    Tags,
    Tos,
    Mac,
    CaptureHeader,
    Padding,
    Checksum,
    Interfaces,
    Equal,
}

/// What a host may change itself when it sends a packet again, or the capture when it comes again.
const OF_SENDER: FieldSet = FieldSet::of(&[
    Field::CaptureHeader,
    Field::Padding,
    Field::Tos,
    Field::IpChecksum,
    Field::TransportChecksum,
    // What is around a packet in the same tunnel.
    Field::Tunnel,
]);

/// What tells hosts and links apart, which may send the same if it is for one link only.
const OF_LINK: FieldSet = FieldSet::of(&[Field::Mac, Field::Vlan, Field::Pppoe]);

impl Pair {
    pub(super) fn cause(&self) -> Cause {
        let any = |fields: &[Field]| fields.iter().any(|it| self.differing.contains(*it));
        match self.matching {
            Match::Snapped => Cause::Snapped,
            Match::Tunnels => Cause::Tunnel,
            _ if any(&[Field::Mpls]) => Cause::Mpls,
            _ if self.is_routed => Cause::Routed,
            _ if any(&[Field::Vlan]) => Cause::Vlan,
            _ if any(&[Field::OtherTags, Field::LanId, Field::Pppoe]) => Cause::Tags,
            _ if any(&[Field::Tos]) => Cause::Tos,
            _ if any(&[Field::Mac]) => Cause::Mac,
            _ if any(&[Field::CaptureHeader]) => Cause::CaptureHeader,
            _ if any(&[Field::Padding]) => Cause::Padding,
            _ if !self.differing.without(Field::Tunnel).is_empty() => Cause::Checksum,
            _ if self.crosses_interfaces => Cause::Interfaces,
            _ => Cause::Equal,
        }
    }

    /// Whether nothing differs that only the network changes.
    pub(super) fn is_equal(&self) -> bool {
        let of_sender = match self.is_on_link {
            true => OF_SENDER.union(OF_LINK),
            false => OF_SENDER,
        };
        matches!(self.matching, Match::Whole | Match::Inner)
            && self.differing.union(of_sender) == of_sender
    }

    /// Whether only the network can have made the later packet, however late it came.
    pub(super) fn is_proved(&self) -> bool {
        !self.is_equal() || self.is_numbered && self.crosses_interfaces
    }

    /// Whether the sender may have sent the packet again, however soon.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.is_equal() && !self.is_numbered
    }
}

impl Cause {
    /// The name in the statistics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Snapped => "snapped",
            Self::Tunnel => "tunnel",
            Self::Mpls => "mpls",
            Self::Routed => "routed",
            Self::Vlan => "vlan",
            Self::Tags => "tags",
            Self::CaptureHeader => "capture-header",
            Self::Mac => "mac",
            Self::Tos => "tos",
            Self::Padding => "padding",
            Self::Checksum => "checksum",
            Self::Interfaces => "interfaces",
            Self::Equal => "equal",
        }
    }

    /// What it is, in words that follow the name.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Snapped => "cut at another length, by captures with different snap lengths",
            Self::Tunnel => "in a tunnel and outside of it, or in tunnels of other addresses",
            Self::Mpls => "with MPLS labels and without, or with others",
            Self::Routed => "another time to live: in front of a router and behind it",
            Self::Vlan => "with a VLAN tag and without, or with another one",
            Self::Tags => "with tags in front of the packet and without, or with others",
            Self::CaptureHeader => "captured twice, with another header of the capturing program",
            Self::Mac => "other MAC addresses only: both sides of a bridge or a transparent router",
            Self::Tos => "another type of service: remarked on the way",
            Self::Padding => "other padding: in front of a network card or switch and behind it",
            Self::Checksum => "other checksums only: captured before a network card computed them",
            Self::Interfaces => {
                "equal in every byte on two interfaces: both see one link, or a bond and its member"
            }
            Self::Equal => {
                "equal in every byte on one interface: a mirror of both directions, or a bond and \
                 its member"
            }
        }
    }
}
