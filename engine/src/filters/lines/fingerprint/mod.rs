//! The fingerprint line filter: one cache line for each key, its slots an ageing list of fingerprints.
//!
//! ```text
//!  line (64 bytes), 16-bit slots
//!  +-----+-----+-----+-----+- ... -+-----+
//!  |  0  |  1  |  2  |  3  |       | 31  |    newest first; 0 is an empty slot
//!  +-----+-----+-----+-----+- ... -+-----+
//!     ^ a new key enters here          ^ and the oldest falls out here
//! ```

mod lines;
mod replacement;
mod sizing;
mod spec;

pub use lines::FingerprintLines;
pub use replacement::Replacement;
pub use sizing::{FingerprintGeometry, SlotWidth};
pub use spec::FingerprintSpec;
