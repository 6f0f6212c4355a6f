//! Tells, at line rate and in fixed memory, whether a record of an endless stream was seen before.
//!
//! A record becomes a 64-bit [`KeyHash`]; the hash picks one 64-byte line; everything the key reads or writes lies in that line.
//!
//! # Examples
//! ```
//! use echoless::{Filter, FingerprintSpec, KeyHasher, Verdict};
//!
//! let hasher = KeyHasher::seeded(0);
//! let mut filter = FingerprintSpec::new(1 << 20).max_fpr(1e-8).build()?;
//! assert_eq!(filter.observe_one(hasher.hash(b"call 17")), Verdict::Fresh);
//! assert_eq!(filter.observe_one(hasher.hash(b"call 17")), Verdict::Duplicate);
//! # Ok::<(), echoless::BuildError>(())
//! ```

pub mod assembly;
mod audit;
mod error;
pub mod filters;
pub mod hash;
mod kernels;
mod limits;
pub mod memory;
mod options;
mod partition;
mod report;
pub mod shared;
pub mod spec;
mod sync;
pub mod theory;
pub mod transport;
mod verdicts;
mod window;

pub use assembly::{Engine, EngineBuilder, Mesh, MeshBuilder, Node, Pinning, Port, ShutdownError};
pub use audit::Audit;
pub use error::{BuildError, Disconnected, MemoryError, SpecError};
pub use filters::adapters::region_order::RegionOrdered;
pub use filters::lines::{FingerprintSpec, LineFilter};
pub use filters::{Filter, Replacement, report_of};
pub use hash::{KeyHash, KeyHasher};
pub use kernels::Kernel;
pub use partition::{Partitioned, Partitioning};
pub use report::{AgeUnit, Cells, MissAge, Report, Tally};
pub use shared::{SharedFilter, SharedLayout, SharedSpec};
pub use spec::FilterSpec;
pub use theory::fingerprints::{FingerprintGeometry, SlotWidth};
pub use verdicts::{Verdict, Verdicts};
pub use window::Window;
