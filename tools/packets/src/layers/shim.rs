//! Shims: what stands between the link header and the network header.

use crate::bytes::be16;

use super::link::version;
use super::network::IpVersion;

/// More nested shims than this are malformed.
const MAX_SHIMS: u8 = 8;

const MPLS_LABEL_LEN: usize = 4;
const PPPOE_LEN: usize = 6;

const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;
pub(super) const ETHERTYPE_MPLS: u16 = 0x8847;
const ETHERTYPE_MPLS_MULTICAST: u16 = 0x8848;
/// 802.1Q, 802.1ad (QinQ), and the two numbers that older QinQ equipment uses.
const VLAN_TPIDS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];

/// A kind of shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShimKind {
    /// A VLAN tag: the span is the tag control information, 2 bytes.
    Vlan,
    /// A whole MPLS label stack, 4 bytes for each label.
    Mpls,
    /// A PPPoE session header: version and type, code, session, length, PPP protocol; 8 bytes.
    Pppoe,
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
            let kind = announced(ethertype)?;
            let (end, next, next_type) = shim_end(bytes, at, kind)?;
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
    while let Some(kind) = announced(content.ethertype) {
        let parsed = shim_end(bytes, content.at, kind);
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
fn announced(ethertype: u16) -> Option<ShimKind> {
    match ethertype {
        ETHERTYPE_MPLS | ETHERTYPE_MPLS_MULTICAST => Some(ShimKind::Mpls),
        ETHERTYPE_PPPOE_SESSION => Some(ShimKind::Pppoe),
        tpid if VLAN_TPIDS.contains(&tpid) => Some(ShimKind::Vlan),
        _ => None,
    }
}

/// The end of the shim at `at`, the offset of what follows, and its EtherType. `None` if it is cut.
fn shim_end(bytes: &[u8], at: usize, kind: ShimKind) -> Option<(usize, usize, u16)> {
    match kind {
        // The tag control information, then the EtherType of what follows.
        ShimKind::Vlan => Some((at + 2, at + 4, be16(bytes, at + 2)?)),
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
            let content = match be16(bytes, at + PPPOE_LEN)? {
                0x0021 => IpVersion::V4.ethertype(),
                0x0057 => IpVersion::V6.ethertype(),
                0x0281 => ETHERTYPE_MPLS,
                _ => 0,
            };
            Some((end, end, content))
        }
    }
}
