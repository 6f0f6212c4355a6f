//! Filters around another filter: one changes which keys it sees, the other in which order.
//!
//! | module | adapter | changes |
//! |---|---|---|
//! | [`tracked`] | a fraction of the keys, chosen by hash | the verdicts of all other keys |
//! | [`region_order`] | large batches, sorted by memory region | the speed only |

pub mod region_order;
pub mod tracked;
