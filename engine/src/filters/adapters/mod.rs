//! What filters around other filters, adapters, are to a specification: they change which keys a
//! filter sees, or how many filters see a key. They are [registered](crate::extend) by the crates
//! that have them; only the fraction of keys that is [`tracked`] is part of every specification.
//!
//! Adapters have a text form and nest in a [`FilterSpec`](crate::FilterSpec):
//! `horizontal:slices=8/growing:fpr=0.01/bloom:k=8`. `layers` builds them from the outside to the
//! inside.

pub(crate) mod adapter;
mod chain;
pub(crate) mod layers;
pub(crate) mod tracked;

pub use adapter::{AdapterRow, Build as BuildAdapter, CheckLines};
pub(crate) use chain::AdapterChain;
