//! The filters of five papers as published, for the engine `echoless`: scattered over the memory,
//! in cache lines, and the adapters around them.
//!
//! | module | holds |
//! |---|---|
//! | `scattered` | the filters as published: the bits of a key lie all over the memory |
//! | `lines` | their forms in lines: all that a key reads and writes lies in one cache line |
//! | `kernels` | the operations of the kernels on the bits of a line |
//! | [`adapters`] | filters around another filter: slices, growing filters, trees |
//! | [`theory`] | the formulas that filters, benchmarks and tests here compute with |
//!
//! [`register`] adds all of them to what a [`FilterSpec`] can name. They are the reference for the
//! tables that the papers print, and for comparisons; the filters to use are those of the engine.
//!
//! To add
//!
//! - a scattered filter, write a file in `scattered` with its `Mechanism` and its row
//!   ([`FilterRow`](echoless::extend::FilterRow)): name, options, build functions and facts, and
//!   name the row in the list below;
//! - a form in lines, write a file in `lines` with its [`Rule`](echoless::extend::Rule) and a
//!   `build` function, and name that function in the row of the filter that it is a form of;
//! - an adapter, write a file in `adapters` with its mechanism and its row
//!   ([`AdapterRow`](echoless::extend::AdapterRow)), and name the row in the list below.
//!
//! # Examples
//! ```
//! use echoless::{KeyHasher, Verdict};
//! let mut filter = echoless_papers::parse("sbf:k=4,d=3,memory=1MiB")?.build()?;
//! let key = KeyHasher::seeded(0).hash_u64(17);
//! assert_eq!(filter.observe_one(key), Verdict::Fresh);
//! assert_eq!(filter.observe_one(key), Verdict::Duplicate);
//! # Ok::<(), echoless::BuildError>(())
//! ```

pub mod adapters;
mod kernels;
mod limits;
mod lines;
mod scattered;
#[cfg(test)]
#[path = "../../../engine/tests/kernels/mod.rs"]
mod tested;
pub mod theory;

pub use adapters::tree::{BloomTree, SharedTree, TreeMode, TreeSpec};
#[cfg(test)]
use echoless::Kernel;
use echoless::extend::Rows;
use echoless::{FilterSpec, SpecError};
use scattered::{bits, buffers, cells, generations, rows, windows};

/// The filters and adapters, in the order of the catalogue.
static ROWS: Rows = Rows {
    families: &[
        &bits::ROWS,
        &cells::STABLE,
        &cells::FINGERPRINT_STABLE,
        &cells::DECAYING,
        &rows::SQF,
        &rows::RANDOM_ROWS,
        &rows::QUEUES,
        &rows::CUCKOO,
        &generations::ROWS,
        &buffers::ROWS,
        &windows::TIMERS,
        &windows::JUMPING,
        &windows::AGE_PARTITIONED,
    ],
    adapters: &[
        &adapters::slices::horizontal::ROW,
        &adapters::slices::vertical::ROW,
        &adapters::growing::ROW,
        &adapters::tree::ROW,
    ],
};

/// Adds the filters and adapters of this crate to those that a specification can name. Any number
/// of calls; the first one must come before the first specification that names one is parsed.
///
/// # Panics
/// If rows of another crate were registered before.
pub fn register() {
    echoless::extend::register(&ROWS);
}

/// Parses a specification that may name filters of this crate.
///
/// # Errors
/// [`SpecError`] if the text is no specification.
///
/// # Panics
/// As [`register`].
///
/// # Examples
/// ```
/// let spec = echoless_papers::parse("growing:fpr=0.01/bloom:k=8,memory=1MiB")?;
/// assert_eq!(spec.name(), "bloom");
/// # Ok::<(), echoless::SpecError>(())
/// ```
pub fn parse(text: &str) -> Result<FilterSpec, SpecError> {
    register();
    text.parse()
}
