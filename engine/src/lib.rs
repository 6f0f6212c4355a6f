//! Tells, at line rate and in fixed memory, whether a record of an endless stream was seen before.

pub mod cpu;
pub mod error;
pub mod filters;
pub mod hash;
pub mod spec;
pub mod theory;
pub mod verdicts;

pub use cpu::Kernel;
pub use error::{BuildError, MemoryError, SpecError};
pub use filters::Filter;
pub use hash::{KeyHash, KeyHasher};
pub use spec::FilterSpec;
pub use verdicts::{Verdict, Verdicts};
