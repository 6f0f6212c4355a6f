//! Selects the part of a packet that its key compares.

use super::field::Field;
use super::options::{From, KeyOptions};
use crate::layers::{Layers, PRP_LEN, Shims};
use crate::packet::Packet;

/// How a packet was read, for statistics. Everything is false for a packet that was captured whole
/// and has the layer that the key begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Conditions {
    /// The packet has no layer of the kind that the key begins at, and was compared whole.
    pub whole: bool,
    /// The capture cut the packet, or it was cut before, or the packet ends inside a header.
    pub truncated: bool,
    /// A header contradicts itself or the lengths around it; from there on, bytes were compared.
    pub malformed: bool,
    /// The packet is an IP fragment.
    pub fragment: bool,
    /// The capture has fewer bytes than [`KeyOptions::snap_safe`] compares: copies from captures
    /// with more bytes have other keys.
    pub short: bool,
    /// The key is that of a packet in a tunnel.
    pub inner: bool,
}

/// The part of a packet that its key compares.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    /// The packet up to the last compared byte.
    pub(super) bytes: &'a [u8],
    /// The shims in front of any tunnel.
    pub(super) outermost_shims: Shims,
    /// The compared layers.
    pub(super) layers: Layers,
    /// The layer that the key begins at.
    pub(super) from: From,
    /// The PRP trailer, which is not in the layers then.
    pub(super) prp: Option<[u8; PRP_LEN]>,
    pub(super) conditions: Conditions,
}

impl<'a> Selection<'a> {
    pub(super) fn new(packet: &Packet<'a>, options: &KeyOptions) -> Self {
        let mut selection = Self::of_captured(packet, packet.bytes, options);
        let truncated = selection.conditions.truncated;
        if let Some(snap) = options.snap_safe {
            let snap = snap as usize;
            // The headers are read again as if nothing more had been captured, so that copies with
            // different snap lengths are read alike. If the cut hides the layer that the limit
            // counts from, the packet begins earlier and is cut again.
            loop {
                let limit = selection.start() + snap;
                if limit >= selection.bytes.len() {
                    break;
                }
                let cut = &selection.bytes[..limit];
                selection = Self::of_captured(packet, cut, options);
            }
            let wire_end = selection.wire_end();
            let end = selection.bytes.len().min(wire_end);
            selection.conditions.short = end < wire_end.min(selection.start() + snap);
        }
        // What the option cuts was captured.
        selection.conditions.truncated = truncated;
        selection
    }

    /// Whether these options select in the outermost layers of all captured bytes.
    pub(super) fn is_outermost(options: &KeyOptions) -> bool {
        options.snap_safe.is_none()
            && !options.ignore.contains(Field::Tunnel)
            && options.skip_bytes == 0
    }

    /// [`new`](Self::new) where [`is_outermost`](Self::is_outermost) holds. It is inlined with all
    /// that it calls and lends the layers to no call, so they stay in registers. Returned through
    /// memory they cost a third of the time of a key.
    #[inline(always)]
    pub(super) fn outermost(packet: &Packet<'a>, options: &KeyOptions) -> Self {
        Self::of_outermost(packet, Layers::outermost(packet), options)
    }

    /// The same of layers that are known: those of `packet`.
    #[inline(always)]
    pub(super) fn of_outermost(packet: &Packet<'a>, layers: Layers, options: &KeyOptions) -> Self {
        Self::of_layers(packet, packet.bytes, layers, layers, options)
    }

    /// Selects in `bytes`, as many as the capture shall have.
    fn of_captured(packet: &Packet<'a>, bytes: &'a [u8], options: &KeyOptions) -> Self {
        let part = Packet {
            bytes,
            original_len: packet.original_len.max(packet.bytes.len() as u32),
            ..*packet
        };
        let mut outermost = Layers::outermost(&part);
        let skip = options.skip_bytes as usize;
        if skip > 0 && Self::of_layers(packet, bytes, outermost, outermost, options).start() < skip
        {
            outermost = Layers::behind(&part, skip).unwrap_or(outermost);
        }
        let mut layers = outermost;
        if options.ignore.contains(Field::Tunnel) {
            while let Some(inner) = layers.inner(bytes) {
                layers = inner;
            }
        }
        Self::of_layers(packet, bytes, outermost, layers, options)
    }

    /// Selects in these layers of `bytes`.
    #[inline(always)]
    fn of_layers(
        packet: &Packet<'a>,
        bytes: &'a [u8],
        outermost: Layers,
        mut layers: Layers,
        options: &KeyOptions,
    ) -> Self {
        let has_header = layers.has_transport_header();
        let has_payload = layers.payload.captured_len() > 0;
        let has_layer = match options.from {
            From::Link => true,
            From::Network => layers.network.is_some(),
            // Without a byte of it nothing would be compared.
            From::Transport => layers.transport.is_some() && (has_header || has_payload),
            From::Payload => has_header && has_payload,
        };
        let contradicts = (packet.original_len as usize) < packet.bytes.len();
        let conditions = Conditions {
            whole: !has_layer,
            truncated: layers.truncated,
            malformed: layers.malformed || contradicts,
            fragment: layers.network.is_some_and(|ip| ip.fragment),
            short: false,
            inner: layers.start != outermost.start,
        };
        let from = if has_layer { options.from } else { From::Link };
        let prp = match from {
            From::Link => {
                layers.end_arp(bytes);
                layers.split_prp(bytes)
            }
            From::Network | From::Transport | From::Payload => None,
        };
        Self {
            bytes,
            outermost_shims: outermost.shims,
            layers,
            from,
            prp,
            conditions,
        }
    }

    /// The offset of the first compared byte.
    fn start(&self) -> usize {
        let layers = &self.layers;
        let start = match self.from {
            From::Link => Some(layers.start),
            From::Network => layers.network.map(|ip| ip.start),
            From::Transport => layers.transport.map(|transport| transport.start),
            From::Payload => Some(layers.payload.start),
        };
        start.unwrap_or(layers.start)
    }

    /// The offset behind the last compared byte on the wire.
    fn wire_end(&self) -> usize {
        match self.from {
            From::Link => self
                .layers
                .trailer
                .wire_end
                .max(self.layers.payload.wire_end),
            From::Network | From::Transport | From::Payload => self.layers.payload.wire_end,
        }
    }
}
