//! From bytes to key hashes: where records end, what of them is the key, and what is wrong with one.

pub(crate) mod bom;
pub(crate) mod chunk;
pub(crate) mod fields;
pub(crate) mod framing;
pub(crate) mod header;
pub(crate) mod keys;
pub(crate) mod position;
pub(crate) mod quoting;
pub(crate) mod split;
pub(crate) mod terminators;
