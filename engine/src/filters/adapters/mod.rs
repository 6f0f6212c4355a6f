//! Filters around other filters: they change which keys a filter sees, or how many filters see a
//! key.
//!
//! | module | adapter | changes |
//! |---|---|---|
//! | [`tracked`] | a fraction of the keys, chosen by hash | the verdicts of all other keys |
//! | [`tree`] | a tree of filters, with its leaves at the producers | where duplicates are found |
//! | `slices` | slices of a filter, each of which can fail alone | which keys a failure affects |
//! | `growing` | one more filter whenever the newest is full | how many keys fit |
//!
//! The adapters of the list below have a text form and nest in a
//! [`FilterSpec`](crate::FilterSpec): `horizontal:slices=8/growing:fpr=0.01/bloom:k=8`. `layers`
//! builds them from the outside to the inside.

mod adapter;
mod chain;
mod growing;
pub(crate) mod layers;
mod slices;
pub mod tracked;
pub mod tree;

pub(crate) use adapter::AdapterRow;
pub(crate) use chain::AdapterChain;

/// The only list of adapters, in the order of the catalogue.
static ADAPTERS: [&AdapterRow; 4] = [
    &slices::horizontal::ROW,
    &slices::vertical::ROW,
    &growing::ROW,
    &tree::ROW,
];
