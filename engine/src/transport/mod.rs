//! Messages between threads: a bounded ring between two threads, and parking while any number of
//! rings are empty or full.
//!
//! Nothing here depends on keys or filters. A thread that takes part owns one [`Parker`] and any
//! number of ring ends. Every end carries the [`Doorbell`] of the thread at the other end, so a
//! published message, a released slot and a closed ring all wake the thread that may be parked for
//! them, unless the caller publishes or releases without that and wakes it in another way.

pub mod parker;
// The rings are public only for the model checks (`loom-tests`), the stress test (`engine/tests`)
// and the benchmark of a bare ring (`bench/benches`), which are crates of their own. Users of the
// library reach them through ports.
#[doc(hidden)]
pub mod ring;

#[doc(hidden)]
pub use parker::Attention;
pub(crate) use parker::deadline_after;
pub use parker::{Doorbell, Parker, Wait};
#[doc(hidden)]
pub use ring::{Consumer, PopError, Producer, PushError};
