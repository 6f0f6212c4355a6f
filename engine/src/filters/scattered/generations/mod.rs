//! Two Bloom filters used in turn, so that old keys leave a whole generation at a time.

mod pair;

pub(in crate::filters) use pair::ROWS;
