//! Filters around other filters: they change which keys a filter sees, or how many filters see a
//! key.
//!
//! | module | adapter | changes |
//! |---|---|---|
//! | [`tree`] | a tree of filters, with its leaves at the producers | where duplicates are found |
//! | `slices` | slices of a filter, each of which can fail alone | which keys a failure affects |
//! | `growing` | one more filter whenever the newest is full | how many keys fit |
//!
//! # Examples
//! ```
//! use echoless::{Filter, KeyHasher, Verdict};
//! let key = KeyHasher::seeded(0).hash_u64(1);
//! let spec = echoless_papers::parse("horizontal:failed=duplicate,slices=1/bloom:memory=1KiB")?;
//! let mut filter = spec.build()?;
//! filter.slices_mut().unwrap().fail(&[0])?;
//! assert_eq!(filter.observe_one(key), Verdict::Duplicate);
//! filter.slices_mut().unwrap().restore(&[0])?;
//! assert_eq!(filter.observe_one(key), Verdict::Fresh);
//! assert_eq!(filter.slices().unwrap().counts().unavailable, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod cell_table;
pub(crate) mod growing;
pub(crate) mod slices;
pub mod tree;
