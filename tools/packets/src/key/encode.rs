//! Encodes the compared fields of the headers: items of tag, length and bytes.

use super::field::{Field, FieldSet};
use super::visit::{Sink, Tag};

/// The length field of an item.
const LEN: usize = 4;

/// Appends items to a buffer. Ignored fields leave no trace, nor do items whose owner is ignored.
pub(super) struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    ignore: FieldSet,
    /// Where the bytes of the current item begin; `None` if it is ignored.
    item: Option<usize>,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, ignore: FieldSet) -> Self {
        Self {
            out,
            ignore,
            item: None,
        }
    }

    /// Writes the length of the current item.
    pub(super) fn close(&mut self) {
        if let Some(start) = self.item.take() {
            // Headers are inside one packet, whose length has 32 bits.
            let len = (self.out.len() - start) as u32;
            self.out[start - LEN..start].copy_from_slice(&len.to_le_bytes());
        }
    }
}

impl Sink for Encoder<'_> {
    #[inline]
    fn item(&mut self, tag: Tag, owner: Option<Field>) {
        self.close();
        if owner.is_some_and(|field| self.ignore.contains(field)) {
            return;
        }
        self.out.push(tag as u8);
        self.out.extend_from_slice(&[0; LEN]);
        self.item = Some(self.out.len());
    }

    #[inline]
    fn fixed(&mut self, bytes: &[u8]) {
        if self.item.is_some() {
            self.out.extend_from_slice(bytes);
        }
    }

    #[inline]
    fn field(&mut self, field: Field, bytes: &[u8]) {
        if !self.ignore.contains(field) {
            self.fixed(bytes);
        }
    }
}
