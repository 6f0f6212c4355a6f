//! What all bindings of the engine have in common, so that C, Python, Go and others agree in
//! errors, sizes and names.
//!
//! Bytes flow one way: [`Keys`] in the form in which a caller has them become hashes, a [`Filter`]
//! or a [`Shared`] filter judges them, and the verdicts are bits in the memory of the caller.
//! Everything that can be wrong with a call is a [`Failure`] with a stable [`Code`] and one line of
//! text; nothing panics. The crate has no unsafe code: a binding turns pointers into slices, and
//! calls it.
//!
//! # Examples
//! ```
//! use echoless::KeyHasher;
//! use echoless_foreign::{Code, Filter, Fixed, Keys};
//!
//! let mut filter = Filter::new("fingerprint:fpr=1e-8,memory=1MiB", KeyHasher::seeded(0))?;
//! let keys = Fixed::new(b"call 17 call 18 call 17 ", 8, 8, 3)?;
//! let mut duplicates = [0];
//! assert_eq!(filter.observe(&keys, None, &mut duplicates)?, 1);
//! assert_eq!(duplicates, [0b100]);
//!
//! let failure = filter.observe(&keys, None, &mut []).unwrap_err();
//! assert_eq!(failure.code, Code::InvalidArgument);
//! assert_eq!(failure.to_string(), "invalid length of duplicates=0 words: expected 1 for 3 keys");
//! # Ok::<(), echoless_foreign::Failure>(())
//! ```

mod calls;
mod engine;
mod exact;
mod failure;
mod filter;
mod handles;
mod keys;
mod object;
mod ordered;
mod partitions;
mod report;
mod shared;
mod snapshot;
mod timed;

pub use calls::Call;
pub use engine::{Port, Workers};
pub use exact::{Digester, Exact, FILTER_FILE, is_saved};
pub use failure::{CODES, Code, Failure, catch};
pub use filter::Filter;
pub use handles::{Handle, Table, TableEntry, TableKeys};
pub use keys::{
    Fixed, Hashes, Keys, Numbers, Packed, check_masks, check_offsets, give_back, hash_all,
    no_digests,
};
pub use object::{Kind, Object, Source, Target};
pub use ordered::{Cut, Ordered, Thread};
pub use partitions::Partitions;
pub use report::{ReportFields, UNKNOWN_COUNT};
pub use shared::Shared;
pub use snapshot::Snapshot;
pub use timed::{TimeRules, fate};
