//! The verdicts on a batch of keys, one bit each.
//!
//! A bit set is the unit that travels: filters write whole words, threads send words to each other,
//! and readers of long batches scan words rather than verdicts.

mod bit_set;
mod convert;
mod iter;

pub(crate) use bit_set::clear_tail;
pub use bit_set::{Verdict, Verdicts, scatter};
pub(crate) use convert::bits_of_words;
pub use iter::{Indices, Iter};
