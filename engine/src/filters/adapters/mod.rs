//! Filters around other filters: they change which keys a filter sees, or how many filters see a
//! key.
//!
//! | module | adapter | changes |
//! |---|---|---|
//! | [`tracked`] | a fraction of the keys, chosen by hash | the verdicts of all other keys |
//! | [`tree`] | a tree of filters, with its leaves at the producers | where duplicates are found |
//! | [`slices`] | slices of a filter, each of which can fail alone | which keys a failure affects |
//! | [`growing`] | one more filter whenever the newest is full | how many keys fit |
//!
//! The adapters of the list below have a text form and nest in a
//! [`FilterSpec`](crate::FilterSpec): `horizontal:slices=8/growing:fpr=0.01/bloom:k=8`. `layers`
//! builds them from the outside to the inside.

mod adapter;
mod chain;
pub mod growing;
pub(crate) mod layers;
pub mod slices;
pub mod tracked;
pub mod tree;

pub use chain::{AdapterChain, MOST_ADAPTERS};

use crate::error::{BuildError, SpecError};
use crate::filters::Filter;
use crate::options::{Options, one_of};
use crate::theory::RateModel;
use crate::window::Window;
use adapter::{AdapterKind, adapters};
use growing::GrowingSpec;
use layers::Layers;
use slices::horizontal::HorizontalSpec;
use slices::vertical::VerticalSpec;
use tree::TreeSpec;

// The only list of adapters in text: names, parsing and building follow from it.
adapters! {
    /// `horizontal`.
    Horizontal(HorizontalSpec);
    /// `vertical`.
    Vertical(VerticalSpec);
    /// `growing`.
    Growing(GrowingSpec);
    /// `tree`.
    Tree(TreeSpec);
}
