//! Specifications: one way to name a filter, in text, in a file, or in code.
//!
//! The command, the planner, the lab and the engine all use [`FilterSpec`], which names any filter
//! in text; [`FingerprintSpec`] builds the default one, [`SharedSpec`](crate::SharedSpec) the one
//! that threads share. [`catalogue()`] lists every filter with its options; as a page:
//!
#![doc = include_str!("../../FILTERS.md")]

mod build;
mod filter;
mod fingerprint;
mod information;
#[cfg(feature = "serde")]
mod serde_form;
mod text;

pub use crate::filters::adapters::tracked::TrackedFraction;
pub use crate::filters::{Facts, Form};
pub use crate::options::{OptionInfo, Options};
pub use crate::size::{format_bytes, parse_bytes};
pub use filter::FilterSpec;
pub use fingerprint::FingerprintSpec;
pub use information::{CatalogueEntry, catalogue};
