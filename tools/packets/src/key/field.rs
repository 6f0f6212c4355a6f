//! The fields that a key can leave out, sets of them, and rejected options.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A rejected option, in the form of all errors of the project.
///
/// # Examples
/// ```
/// use echoless_packets::key::FieldSet;
/// let error = "ttl,colour".parse::<FieldSet>().unwrap_err();
/// assert!(error.to_string().starts_with("invalid ignore=colour: expected capture-header, mac, "));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid {option}={value}: expected {allowed}")]
pub struct KeyError {
    /// The name of the option.
    pub option: &'static str,
    /// The rejected value.
    pub value: String,
    /// The values that are accepted, as a phrase that follows "expected".
    pub allowed: String,
}

impl KeyError {
    pub(super) fn new(
        option: &'static str,
        value: impl ToString,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            option,
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }
}

/// Gives the variants of an enum names.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident {
        $($(#[$of_variant:meta])* $variant:ident = $name:literal,)*
    }) => {
        $(#[$meta])*
        pub enum $type {
            $($(#[$of_variant])* $variant,)*
        }

        impl $type {
            /// All of them, in their order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in options and reports.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}
pub(super) use named;

named! {
    /// A field, or group of fields, that a key can leave out. The [module](super) has the table.
    ///
    /// The fields are in the order of the layers, outermost first. The order decides what a key
    /// that begins at a layer leaves out: all fields in front of the first one of that layer.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Field {
        /// What the capturing program put in front of the frame.
        CaptureHeader = "capture-header",
        /// Link addresses.
        Mac = "mac",
        /// VLAN tags.
        Vlan = "vlan",
        /// Tags of switches and redundant networks.
        OtherTags = "other-tags",
        /// The network of a redundant copy.
        LanId = "lan-id",
        /// MPLS labels.
        Mpls = "mpls",
        /// PPPoE session headers.
        Pppoe = "pppoe",
        /// What follows the IP packet or ARP message in the frame, and the PRP trailer of any
        /// frame.
        Padding = "padding",
        /// IPv4 type of service and IPv6 traffic class.
        Tos = "tos",
        /// IPv4 and MPLS time to live, IPv6 hop limit.
        Ttl = "ttl",
        /// IPv4 identification, except of fragments.
        IpId = "ip-id",
        /// IPv4 header checksum.
        IpChecksum = "ip-checksum",
        /// IPv4 options.
        IpOptions = "ip-options",
        /// IPv6 flow label.
        FlowLabel = "flow-label",
        /// Checksum of the transport header.
        TransportChecksum = "transport-checksum",
        /// TCP sequence number.
        TcpSeq = "tcp-seq",
        /// TCP acknowledgment number.
        TcpAck = "tcp-ack",
        /// TCP window.
        TcpWindow = "tcp-window",
        /// TCP options.
        TcpOptions = "tcp-options",
        /// The headers in front of the innermost packet.
        Tunnel = "tunnel",
    }
}

/// The name that stands for both checksums.
const CHECKSUM: &str = "checksum";
/// The name of the empty set.
const NONE: &str = "none";

impl Field {
    /// The number of fields.
    pub(super) const COUNT: usize = Self::ALL.len();

    /// The position in [`ALL`](Self::ALL).
    #[inline]
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// A set of fields.
///
/// # Examples
/// ```
/// use echoless_packets::key::{Field, FieldSet};
/// let fields: FieldSet = "ttl,checksum".parse()?;
/// assert!(fields.contains(Field::IpChecksum) && fields.contains(Field::TransportChecksum));
/// assert_eq!(fields.to_string(), "ttl,ip-checksum,transport-checksum");
/// assert_eq!("none".parse(), Ok(FieldSet::EMPTY));
/// # Ok::<(), echoless_packets::key::KeyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FieldSet(u32);

impl FieldSet {
    /// No field.
    pub const EMPTY: Self = Self(0);

    /// What redundant networks and routers change: `lan-id,ttl,checksum`.
    pub const DEFAULT: Self = Self::of(&[
        Field::LanId,
        Field::Ttl,
        Field::IpChecksum,
        Field::TransportChecksum,
    ]);

    /// The set with these fields.
    #[must_use]
    pub const fn of(fields: &[Field]) -> Self {
        let mut set = Self::EMPTY;
        let mut index = 0;
        while index < fields.len() {
            set = set.with(fields[index]);
            index += 1;
        }
        set
    }

    /// This set and `field`.
    #[must_use]
    pub const fn with(self, field: Field) -> Self {
        Self(self.0 | 1 << field.index())
    }

    /// This set without `field`.
    #[must_use]
    pub fn without(self, field: Field) -> Self {
        Self(self.0 & !(1 << field.index()))
    }

    /// The fields of either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `field` is in the set.
    #[inline]
    #[must_use]
    pub const fn contains(self, field: Field) -> bool {
        self.0 & 1 << field.index() != 0
    }

    /// Whether the set has no field.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// The fields of the set, outermost first.
    pub fn iter(self) -> impl Iterator<Item = Field> {
        Field::ALL
            .iter()
            .copied()
            .filter(move |field| self.contains(*field))
    }
}

/// The names with commas between them, or `none`.
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str(NONE);
        }
        let names: Vec<&str> = self.iter().map(Field::name).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for FieldSet {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text == NONE {
            return Ok(Self::EMPTY);
        }
        text.split(',').try_fold(Self::EMPTY, |set, name| {
            if name == CHECKSUM {
                return Ok(set.with(Field::IpChecksum).with(Field::TransportChecksum));
            }
            let found = Field::ALL.iter().find(|field| field.name() == name);
            found.map(|field| set.with(*field)).ok_or_else(|| {
                let mut names: Vec<&str> = Field::ALL.iter().map(|field| field.name()).collect();
                names.push(CHECKSUM);
                let allowed = format!("{} or none alone", names.join(", "));
                KeyError::new("ignore", name, allowed)
            })
        })
    }
}
