//! Shims: what stands between the link header and the network header.

use crate::bytes::{array, be16};

use super::link::version;
use super::network::IpVersion;
use super::serial::ppp_ethertype;

/// More nested shims than this are malformed.
const MAX_SHIMS: u8 = 8;

const MPLS_LABEL_LEN: usize = 4;
const PPPOE_LEN: usize = 6;

/// LLC and SNAP: two service access points, control, organisation, EtherType.
const SNAP_LEN: usize = 8;
/// The least number that is an EtherType; lower ones are the length of an LLC frame.
const LEAST_ETHERTYPE: u16 = 0x0600;
/// What stands for an EtherType where LLC has no length in front of it, in Linux cooked captures.
pub(crate) const ETHERTYPE_LLC: u16 = 4;

pub(super) const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;
pub(super) const ETHERTYPE_MPLS: u16 = 0x8847;
pub(super) const ETHERTYPE_MPLS_MULTICAST: u16 = 0x8848;
const ETHERTYPE_HSR: u16 = 0x892f;
/// IEEE 802.1CB: redundancy.
const ETHERTYPE_R_TAG: u16 = 0xf1c1;
/// Cisco's tag of network interfaces.
const ETHERTYPE_VN_TAG: u16 = 0x8926;
/// IEEE 802.1BR: port extenders.
const ETHERTYPE_E_TAG: u16 = 0x893f;
/// Cisco's metadata: security groups.
const ETHERTYPE_CMD: u16 = 0x8909;
/// Arista's time stamp.
const ETHERTYPE_ARISTA: u16 = 0xd28b;
/// IEEE 802.1ah: provider backbones, which carry a whole frame.
const ETHERTYPE_I_TAG: u16 = 0x88e7;
/// Cisco FabricPath, which carries a whole frame.
const ETHERTYPE_FABRIC_PATH: u16 = 0x8903;
/// The addresses of a frame in a frame.
const ADDRESSES_LEN: usize = 12;
/// 802.1Q, 802.1ad (QinQ), and the two numbers that older QinQ equipment uses.
const VLAN_TPIDS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
/// The tag control information, and the EtherType of what follows.
pub(super) const VLAN_LEN: usize = 4;

/// Whether this EtherType announces a VLAN tag.
#[inline]
pub(super) fn is_vlan(ethertype: u16) -> bool {
    VLAN_TPIDS.contains(&ethertype)
}

/// A kind of shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShimKind {
    /// A VLAN tag: the span is the tag control information, 2 bytes.
    Vlan,
    /// A whole MPLS label stack, 4 bytes for each label.
    Mpls,
    /// A PPPoE session header: version and type, code, session, length, PPP protocol; 8 bytes.
    Pppoe,
    /// LLC and SNAP, 8 bytes.
    Snap,
    /// A tag of High-availability Seamless Redundancy: path, length, sequence number; 4 bytes.
    Hsr,
    /// Any other tag: of redundancy (R-TAG), of ports (VN-Tag, E-TAG), of security groups (CMD), a
    /// time stamp (Arista), or with the addresses of a frame in a frame (I-TAG, FabricPath).
    Other,
}

/// One shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shim {
    /// The kind.
    pub kind: ShimKind,
    /// The EtherType that announces it.
    pub ethertype: u16,
    start: usize,
    end: usize,
}

impl Shim {
    /// The offset of its first byte.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// The offset behind it.
    #[must_use]
    pub fn end(&self) -> usize {
        self.end
    }
}

/// The shims of a frame, at most 8. They are read again where they are visited: most frames have
/// none, and a list would be moved with the layers of every packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shims {
    /// The offset of the first one, and the EtherType that announces it.
    start: usize,
    ethertype: u16,
    len: u8,
}

impl Shims {
    /// No shims.
    pub(super) const NONE: Self = Self {
        start: 0,
        ethertype: 0,
        len: 0,
    };

    /// The VLAN tags between `start`, behind the EtherType of the first one, and `end`.
    #[inline(always)]
    pub(super) fn vlan_tags(bytes: &[u8], start: usize, end: usize) -> Self {
        Self {
            start,
            ethertype: u16::from_be_bytes(array(bytes, start - 2)),
            len: ((end - start) / VLAN_LEN) as u8,
        }
    }

    /// The number of shims.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether the frame has none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The shims, outermost first. `bytes` are those that the layers were read from.
    pub fn iter<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = Shim> + use<'a> {
        let (mut at, mut ethertype) = (self.start, self.ethertype);
        (0..self.len).map_while(move |_| {
            let kind = announced(bytes, at, ethertype)?;
            let (end, next, next_type) = shim_end(bytes, at, kind, ethertype)?;
            let shim = Shim {
                kind,
                ethertype,
                start: at,
                end,
            };
            (at, ethertype) = (next, next_type);
            Some(shim)
        })
    }
}

/// What stands behind the shims.
pub(super) struct ShimContent {
    pub(super) shims: Shims,
    /// The offset of the content and its EtherType; 0 if it has none.
    pub(super) at: usize,
    pub(super) ethertype: u16,
    /// The wire ends here at the latest: the length in a PPPoE header.
    pub(super) wire_end: usize,
    /// A shim is cut, or there are too many.
    pub(super) incomplete: bool,
    /// The EtherType is only guessed from the content: that of an MPLS label.
    pub(super) is_guessed: bool,
}

/// Reads the shims in front of the content at `at`, which `ethertype` announces.
#[inline(always)]
pub(super) fn read(bytes: &[u8], at: usize, ethertype: u16, wire_end: usize) -> ShimContent {
    let mut content = ShimContent {
        shims: Shims {
            start: at,
            ethertype,
            len: 0,
        },
        at,
        ethertype,
        wire_end,
        incomplete: false,
        is_guessed: false,
    };
    while let Some(kind) = announced(bytes, content.at, content.ethertype) {
        let parsed = shim_end(bytes, content.at, kind, content.ethertype);
        let Some((_, next, next_type)) = parsed.filter(|_| content.shims.len < MAX_SHIMS) else {
            content.incomplete = true;
            break;
        };
        content.shims.len += 1;
        content.is_guessed |= kind == ShimKind::Mpls;
        if kind == ShimKind::Pppoe
            && let Some(length) = be16(bytes, content.at + 4)
        {
            let limit = content.at + PPPOE_LEN + usize::from(length);
            content.wire_end = content.wire_end.min(limit).max(next);
        }
        content.at = next;
        content.ethertype = next_type;
    }
    content
}

#[inline]
fn announced(bytes: &[u8], at: usize, ethertype: u16) -> Option<ShimKind> {
    match ethertype {
        // First, because nearly all frames have no shims.
        0x0800 | 0x86dd => None,
        ETHERTYPE_MPLS | ETHERTYPE_MPLS_MULTICAST => Some(ShimKind::Mpls),
        ETHERTYPE_PPPOE_SESSION => Some(ShimKind::Pppoe),
        ETHERTYPE_HSR => Some(ShimKind::Hsr),
        ETHERTYPE_R_TAG
        | ETHERTYPE_VN_TAG
        | ETHERTYPE_E_TAG
        | ETHERTYPE_CMD
        | ETHERTYPE_ARISTA
        | ETHERTYPE_I_TAG
        | ETHERTYPE_FABRIC_PATH => Some(ShimKind::Other),
        tpid if is_vlan(tpid) => Some(ShimKind::Vlan),
        ETHERTYPE_LLC..LEAST_ETHERTYPE if has_snap(bytes, at) => Some(ShimKind::Snap),
        _ => None,
    }
}

/// Whether there is LLC with a SNAP whose protocol is an EtherType: that of RFC 1042, or of
/// bridges. Any other LLC is content.
fn has_snap(bytes: &[u8], at: usize) -> bool {
    const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
    const ORGANISATIONS: [[u8; 3]; 2] = [[0, 0, 0], [0, 0, 0xf8]];
    let header = bytes.get(at..at + SNAP_LEN).unwrap_or_default();
    header.starts_with(&SNAP) && ORGANISATIONS.iter().any(|org| header[3..].starts_with(org))
}

/// The end of the shim at `at`, the offset of what follows, and its EtherType. `None` if it is cut,
/// or of a form that is not known.
fn shim_end(
    bytes: &[u8],
    at: usize,
    kind: ShimKind,
    ethertype: u16,
) -> Option<(usize, usize, u16)> {
    // A header of this length, then the EtherType of what follows.
    let tag = |len: usize| Some((at + len, at + len + 2, be16(bytes, at + len)?));
    match kind {
        // The tag control information.
        ShimKind::Vlan => tag(2),
        ShimKind::Hsr => tag(4),
        ShimKind::Other => tag(tag_len(bytes, at, ethertype)?),
        ShimKind::Mpls => {
            let labels = bytes.get(at..)?.chunks_exact(MPLS_LABEL_LEN);
            let last = labels.into_iter().position(|label| label[2] & 1 == 1)?;
            let end = at + (last + 1) * MPLS_LABEL_LEN;
            // The content is not announced: its first nibble identifies IP (RFC 4928).
            let content = version(&bytes[end..]).map_or(0, IpVersion::ethertype);
            Some((end, end, content))
        }
        ShimKind::Pppoe => {
            let end = at + PPPOE_LEN + 2;
            Some((end, end, ppp_ethertype(be16(bytes, at + PPPOE_LEN)?)))
        }
        ShimKind::Snap => {
            let end = at + SNAP_LEN;
            Some((end, end, be16(bytes, end - 2)?))
        }
    }
}

/// The length of a tag, without the EtherType in front of it and behind it.
fn tag_len(bytes: &[u8], at: usize, ethertype: u16) -> Option<usize> {
    match ethertype {
        ETHERTYPE_R_TAG | ETHERTYPE_VN_TAG => Some(4),
        ETHERTYPE_E_TAG => Some(6),
        // Version 1 with one option.
        ETHERTYPE_CMD => (be16(bytes, at)? == 0x0101).then_some(6),
        // Subtype 1 is a time stamp. A digit of the version tells its length.
        ETHERTYPE_ARISTA => match (be16(bytes, at)?, be16(bytes, at + 2)? >> 4 & 0xf) {
            (1, 1) => Some(4 + 8),
            (1, 2) => Some(4 + 6),
            (_, _) => None,
        },
        ETHERTYPE_I_TAG => Some(4 + ADDRESSES_LEN),
        ETHERTYPE_FABRIC_PATH => Some(2 + ADDRESSES_LEN),
        _ => None,
    }
}
