//! Slices (paper 001, section 3): one filter cut into parts, each of which can fail alone.
//!
//! | module | holds |
//! |---|---|
//! | [`horizontal`] | a key belongs to one of S filters of M/S |
//! | [`vertical`] | the k cells of a key lie in up to k of S ranges of one table |
//! | `cut` | the ranges of a vertical cut |
//! | [`sliced`] | failing and restoring slices, and their counters |
//!
//! Both nest ("diced" filters): `horizontal/vertical/bloom` (h-v) is S filters, each of them cut
//! vertically; `vertical/horizontal/bloom` (v-h) is one table, whose vertical slices are each cut
//! into pieces.

mod cut;
pub mod horizontal;
pub mod sliced;
pub mod vertical;
