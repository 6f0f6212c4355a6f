//! Encodes the compared fields of the headers: items of tag, length and bytes.

use super::field::{Field, FieldSet};
use super::visit::{Sink, Tag};
use crate::layers::PLAIN_HEADERS;

/// The length field of an item.
const LEN: usize = 4;

/// The most bytes of items that are not bytes of headers: the tags and lengths of at most 20 items
/// (link, EtherType, 8 shims, 2 of IP, 2 of the transport, group, payload, trailer, PRP), and at
/// most 16 bytes in each.
const OVERHEAD: usize = 20 * (1 + LEN + 16);

/// The most bytes of the items of headers of [`PLAIN_HEADERS`] bytes.
const PLAIN_ITEMS: usize = PLAIN_HEADERS + OVERHEAD;

/// The fields that an encoder leaves out.
pub(super) trait Ignored: Copy {
    fn contains(self, field: Field) -> bool;
}

impl Ignored for FieldSet {
    #[inline(always)]
    fn contains(self, field: Field) -> bool {
        FieldSet::contains(self, field)
    }
}

/// [`FieldSet::DEFAULT`], known when the encoder is compiled: which fields are written where needs
/// no test then.
#[derive(Debug, Clone, Copy)]
pub(super) struct IgnoredByDefault;

impl Ignored for IgnoredByDefault {
    #[inline(always)]
    fn contains(self, field: Field) -> bool {
        FieldSet::DEFAULT.contains(field)
    }
}

/// Writes items into a buffer. Ignored fields leave no trace, nor do items whose owner is ignored.
pub(super) struct Encoder<'a, I> {
    out: &'a mut [u8],
    /// The end of what is written.
    at: usize,
    ignore: I,
    /// Where the bytes of the current item begin; `None` if it is ignored.
    item: Option<usize>,
}

impl<'a, I: Ignored> Encoder<'a, I> {
    /// An encoder for headers of `header_bytes` bytes. The buffer grows if they may not fit, so
    /// that no write has to make room.
    #[inline(always)]
    pub(super) fn new(out: &'a mut Vec<u8>, header_bytes: usize, ignore: I) -> Self {
        let room = header_bytes + OVERHEAD;
        if out.len() < room {
            out.resize(room, 0);
        }
        Self::within(out, ignore)
    }

    /// An encoder for [plain](crate::layers::Plain) headers. The length of its buffer is known when
    /// it is compiled, so writes at known positions are not checked.
    #[inline(always)]
    pub(super) fn plain(out: &'a mut Vec<u8>, ignore: I) -> Self {
        if out.len() < PLAIN_ITEMS {
            out.resize(PLAIN_ITEMS, 0);
        }
        Self::within(&mut out[..PLAIN_ITEMS], ignore)
    }

    #[inline(always)]
    fn within(out: &'a mut [u8], ignore: I) -> Self {
        Self {
            out,
            at: 0,
            ignore,
            item: None,
        }
    }

    /// Writes the length of the current item.
    #[inline(always)]
    fn close(&mut self) {
        if let Some(start) = self.item.take() {
            // Headers are inside one packet, whose length has 32 bits.
            let len = (self.at - start) as u32;
            self.out[start - LEN..start].copy_from_slice(&len.to_le_bytes());
        }
    }

    /// Closes the last item. Returns all items.
    #[inline(always)]
    pub(super) fn finish(mut self) -> &'a [u8] {
        self.close();
        &self.out[..self.at]
    }
}

impl<I: Ignored> Sink for Encoder<'_, I> {
    #[inline(always)]
    fn item(&mut self, tag: Tag, owner: Option<Field>) {
        self.close();
        if owner.is_some_and(|field| self.ignore.contains(field)) {
            return;
        }
        self.out[self.at] = tag as u8;
        self.at += 1 + LEN;
        self.item = Some(self.at);
    }

    #[inline(always)]
    fn fixed(&mut self, bytes: &[u8]) {
        if self.item.is_some() {
            let end = self.at + bytes.len();
            self.out[self.at..end].copy_from_slice(bytes);
            self.at = end;
        }
    }

    #[inline(always)]
    fn field(&mut self, field: Field, bytes: &[u8]) {
        if !self.ignore.contains(field) {
            self.fixed(bytes);
        }
    }
}
