//! Two Bloom filters used in turn, so that old keys leave a whole generation at a time.

mod pair;

pub(crate) use pair::ROWS;
