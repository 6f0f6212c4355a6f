//! Specifications: one way to name a filter, in text, in a file, or in code; saved states of
//! filters.
//!
//! The command, the planner, the lab and the engine all use [`FilterSpec`]. This module also
//! re-exports the parameter types of every kind of filter, which are defined next to the mechanism
//! that they configure. [`catalogue`] lists every filter with its options; as a page:
//!
#![doc = include_str!("../../FILTERS.md")]

mod build;
mod catalogue;
mod filter;
mod information;
#[cfg(feature = "serde")]
mod serde_form;
#[cfg(feature = "serde")]
mod serde_text;
mod state;
mod text;

pub use crate::filters::adapters::growing::{GrowingSpec, Threshold};
pub use crate::filters::adapters::slices::horizontal::{FailedKeys, HorizontalSpec};
pub use crate::filters::adapters::slices::vertical::{MissingCells, Probing, VerticalSpec};
pub use crate::filters::adapters::tracked::TrackedFraction;
pub use crate::filters::adapters::tree::{TreeMode, TreeSpec};
pub use crate::filters::adapters::{AdapterChain, AdapterSpec, MOST_ADAPTERS};
pub use crate::filters::lines::{DenseSpec, FingerprintSpec, TimedSpec, Timing};
pub use crate::filters::scattered::bits::{Ageing, BitsSpec, Reservoir};
pub use crate::filters::scattered::buffers::{Accounting, BufferSpec};
pub use crate::filters::scattered::cells::{
    DecayingSpec, Decrement, DecrementCount, FingerprintStableSpec, Refill, StableSpec, Update,
};
pub use crate::filters::scattered::generations::{GenerationSpec, Rotate, Succession};
pub use crate::filters::scattered::rows::{CuckooSpec, RowEncoding, RowPolicy, RowSpec, SqfSpec};
pub use crate::filters::scattered::windows::{AgePartitionedSpec, JumpingSpec, TimerSpec};
pub use crate::filters::{FilterKind, Form, Replacement, Workload};
pub use crate::options::{OptionInfo, Options};
pub use crate::shared::{SharedLayout, SharedSpec};
pub use crate::size::{format_bytes, parse_bytes};
pub use crate::theory::fingerprints::{FingerprintGeometry, SlotWidth};
pub use catalogue::{CatalogueEntry, catalogue};
pub use filter::FilterSpec;
pub use state::{SavedState, StateError};
