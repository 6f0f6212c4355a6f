//! Filters around other filters: they change which keys a filter sees, in which order, or how many
//! filters see a key.
//!
//! | module | adapter | changes |
//! |---|---|---|
//! | [`tracked`] | a fraction of the keys, chosen by hash | the verdicts of all other keys |
//! | [`region_order`] | large batches, sorted by memory region | the speed only |
//! | [`tree`] | a tree of filters, with its leaves at the producers | where duplicates are found |

pub mod region_order;
pub mod tracked;
pub mod tree;
