//! What a key is made of.

use std::fmt;
use std::str::FromStr;

use super::field::{Field, FieldSet, KeyError, named};

/// The least value of [`KeyOptions::snap_safe`]: an IPv6 header without extensions.
pub const MIN_SNAP: u32 = 40;

named! {
    /// The layer that a key begins at. A packet without this layer is compared whole, from the link
    /// layer on; ignored fields stay ignored.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum From {
        /// The link header.
        Link = "link",
        /// The IP header: link header, shims and padding are not compared.
        #[default]
        Network = "network",
        /// The header of TCP, UDP, SCTP or ICMP, or what follows the IP header of another protocol:
        /// addresses are not compared. Fragments have no transport layer.
        Transport = "transport",
        /// What follows the transport header. Packets without payload, and other protocols than
        /// those above, have no such layer.
        Payload = "payload",
    }
}

impl From {
    /// The fields in front of this layer, which a key that begins there leaves out.
    pub(super) fn fields_before(self) -> FieldSet {
        // The first field of the layer; of the payload, the one behind all headers.
        let first = match self {
            Self::Link => return FieldSet::EMPTY,
            Self::Network => Field::Tos,
            Self::Transport => Field::TransportChecksum,
            Self::Payload => Field::Tunnel,
        };
        FieldSet::of(&Field::ALL[..first.index()])
    }
}

named! {
    /// What copies must have in common besides the packet.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Group {
        /// Nothing: copies count wherever they were captured.
        #[default]
        None = "none",
        /// The interface that captured them, with its section.
        Interface = "interface",
        /// The identifiers of all VLAN tags of the outermost frame, or that there are none.
        Vlan = "vlan",
    }
}

/// The one of these values of `option` whose name is `text`.
fn by_name<T: Copy>(
    option: &'static str,
    text: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, KeyError> {
    let found = all.iter().find(|value| name(**value) == text);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|value| name(*value)).collect();
        KeyError::new(option, text, names.join(", "))
    })
}

impl FromStr for From {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        by_name("from", text, Self::ALL, Self::name)
    }
}

impl FromStr for Group {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        by_name("group", text, Self::ALL, Self::name)
    }
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a key is made of.
///
/// # Examples
/// ```
/// use echoless_packets::key::{Field, FieldSet, From, KeyOptions};
/// let options = KeyOptions::default();
/// assert_eq!(options.from, From::Network);
/// assert_eq!(Ok(options.ignore), "lan-id,ttl,checksum".parse());
/// // The packets that tunnels carry.
/// let inner = KeyOptions { ignore: options.ignore.with(Field::Tunnel), ..options };
/// assert_eq!(inner.ignore.to_string(), "lan-id,ttl,ip-checksum,transport-checksum,tunnel");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOptions {
    /// The layer that the key begins at, of the outermost packet; of the innermost one if
    /// [`Field::Tunnel`] is ignored.
    pub from: From,
    /// The fields that are left out.
    pub ignore: FieldSet,
    /// The most bytes that are compared behind a whole header of TCP, UDP, SCTP or ICMP, from the
    /// first on; all without a limit, and all of other packets and fragments. The length of the
    /// payload on the wire is always compared.
    pub payload_bytes: Option<u32>,
    /// Compares at most this many bytes of each packet, counted from the layer that the key begins
    /// at, and the length on the wire.
    ///
    /// Copies that were captured with different snap lengths then have equal keys, if each capture
    /// has at least this many bytes from that layer on, or the whole packet. A copy with fewer has
    /// another key than the others, and [`Conditions::short`](super::Conditions::short) is set.
    ///
    /// Packets of equal length that differ only behind these bytes count as copies. Compare
    /// `transport-checksum` to tell most of them apart. The least value is [`MIN_SNAP`]; choose one
    /// that includes the headers.
    pub snap_safe: Option<u32>,
    /// Leaves out this many bytes of each frame, from its first on: a header that nobody can read.
    ///
    /// If the layer that the key begins at lies behind them, nothing changes. Otherwise the key
    /// begins behind them: with the IP packet if one can be recognised there (an IPv4 header with
    /// the right checksum, an IPv6 header with the length of the rest), else with the bytes as they
    /// are. A frame of at most this many bytes is compared as without the option.
    pub skip_bytes: u32,
    /// What copies must have in common besides the packet.
    pub group: Group,
}

impl Default for KeyOptions {
    fn default() -> Self {
        Self {
            from: From::default(),
            ignore: FieldSet::DEFAULT,
            payload_bytes: None,
            snap_safe: None,
            skip_bytes: 0,
            group: Group::default(),
        }
    }
}

impl KeyOptions {
    /// Checks the options.
    pub(super) fn check(&self) -> Result<(), KeyError> {
        if let Some(snap) = self.snap_safe.filter(|snap| *snap < MIN_SNAP) {
            let allowed = format!("at least {MIN_SNAP} bytes");
            return Err(KeyError::new("snap_safe", snap, allowed));
        }
        if self.from == From::Payload && self.payload_bytes == Some(0) {
            return Err(KeyError::new(
                "payload_bytes",
                0,
                "at least 1 with from=payload",
            ));
        }
        if self.group == Group::Vlan && self.ignore.contains(Field::Vlan) {
            let allowed = "none or interface if vlan is ignored";
            return Err(KeyError::new("group", self.group, allowed));
        }
        Ok(())
    }
}
