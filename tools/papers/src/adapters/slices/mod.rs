//! Slices (paper 001, section 3): one filter cut into parts, each of which can fail alone.
//!
//! | module | holds |
//! |---|---|
//! | `horizontal` | a key belongs to one of S filters of M/S |
//! | `vertical` | the k cells of a key lie in up to k of S ranges of one table |
//! | `cut` | the ranges of a vertical cut, and the checks of the paths that name slices |
//!
//! Both nest ("diced" filters, section 3.3):
//!
//! - h-v, `horizontal/vertical/bloom`: S filters, each of them cut vertically.
//! - v-h, `vertical/horizontal/bloom`: one table, each of whose S vertical slices is a horizontal
//!   filter of S' pieces. The paper does not state whether these filters share one choice of the
//!   piece. Here each has a hash of its own, as it would as a filter of its own: the k cells of a
//!   key lie in pieces that are chosen independently, as the paper's rate for v-h assumes. With one
//!   choice for all, v-h would be h-v under another name. The policy for failed pieces is that of
//!   the vertical slices, because a missing piece costs a key one of its cells, and not all.

mod cut;
pub(crate) mod horizontal;
pub(crate) mod vertical;
