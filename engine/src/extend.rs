//! For crates that add filters: the rows of the catalogue, the layers that adapters build, and the
//! rules and kernels of filters in lines.
//!
//! A crate describes its filters and adapters in [`Rows`] and [registers](register) them; from then
//! on every specification in text can name them. `echoless-papers` does so with the filters as
//! published. Programs that use filters need nothing of this module, and what it names may change
//! with any version.
//!
//! # Examples
//! A filter that has seen nothing.
//! ```
//! use echoless::extend::{FilterRow, Head, Named, Rows, register};
//! use echoless::spec::{Facts, Form};
//! use echoless::{Batch, Filter, FilterSpec, KeyHash, Tally, Verdict};
//!
//! struct Nothing(u64);
//!
//! impl Filter for Nothing {
//!     fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
//!         batch.observe_each(duplicates, |_| false);
//!     }
//!     fn contains(&self, _: KeyHash) -> bool { false }
//!     fn clear(&mut self) {}
//!     fn tally(&self) -> Tally { Tally::new(self.0) }
//! }
//!
//! static FAMILY: [FilterRow; 1] = [FilterRow {
//!     head: Head { name: "nothing", options: |_| &[], complete: Named::as_given },
//!     default_form: Form::Scattered,
//!     scattered: Some(|_, memory, _| Ok(Box::new(Nothing(memory)))),
//!     lines: None,
//!     facts: |_, _, _| Facts { fpr_limit: Some(0.0), ..Facts::touching(0.0) },
//! }];
//! static ROWS: Rows = Rows { families: &[&FAMILY], adapters: &[] };
//!
//! assert!("nothing:memory=1KiB".parse::<FilterSpec>().is_err());
//! register(&ROWS);
//! let mut filter = "nothing:memory=1KiB".parse::<FilterSpec>()?.build()?;
//! let key = KeyHash::from_uniform(17);
//! assert_eq!([filter.observe_one(key), filter.observe_one(key)], [Verdict::Fresh; 2]);
//! # Ok::<(), echoless::BuildError>(())
//! ```

use std::ptr;
use std::sync::OnceLock;

pub use crate::filters::adapters::layers::Layers;
pub use crate::filters::adapters::{AdapterRow, BuildAdapter, CheckLines};
pub use crate::filters::lines::fingerprint::rows::{self, MOST_SLOTS};
pub use crate::filters::lines::fingerprint::spec::build as build_lines;
pub use crate::filters::lines::rule::Rule;
pub use crate::filters::lines::{Clock, LineAllocation, LinePlan};
pub use crate::filters::row::{BuildLines, BuildScattered, FilterRow, Head, Named, OptionRow};
pub use crate::filters::units::{self, Units};
pub use crate::filters::{SliceCounts, Sliced};
pub use crate::isa::{DetectedKernel, HotLoop, TargetIsa};
pub use crate::kernels::{Bucket, LineOps, Outcome, Slot, SlotOps, Token, scalar::Scalar, select};
#[cfg(target_arch = "x86_64")]
pub use crate::kernels::{avx2::Avx2, avx512::Avx512};
pub use crate::limits::{MOST_HASHES, rate_text, within};
pub use crate::memory::check_available;
pub use crate::options::{Allowed, Value, names};
pub use crate::theory::{binomial, poisson};
pub use crate::verdicts::scatter;

/// The filters and adapters that a crate adds.
#[derive(Debug)]
pub struct Rows {
    /// The filters, by families, in the order of the catalogue.
    pub families: &'static [&'static [FilterRow]],
    /// The adapters, in the order of the catalogue.
    pub adapters: &'static [&'static AdapterRow],
}

static ROWS: OnceLock<&'static Rows> = OnceLock::new();

/// Adds filters and adapters to those that a specification can name, for the whole process. Call it
/// before the first specification is parsed. A second call with the same rows does nothing.
///
/// # Panics
/// If other rows were registered before.
pub fn register(rows: &'static Rows) {
    let first = ROWS.get_or_init(|| rows);
    assert!(ptr::eq(*first, rows), "one set of rows for a process");
}

/// The rows that were registered, if any.
pub(crate) fn registered() -> impl Iterator<Item = &'static Rows> {
    ROWS.get().copied().into_iter()
}
