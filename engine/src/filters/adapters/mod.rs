//! Filters around another filter: what they keep from it, or the order in which it gets its keys.

pub mod region_order;
pub mod tracked;
