//! Messages between threads: a bounded ring between two threads, and parking while any number of
//! rings are empty or full.
//!
//! Nothing here depends on keys or filters. A thread that takes part owns one [`Parker`] and any
//! number of ring ends. Every end carries the [`Doorbell`] of the thread at the other end, so a
//! published message, a released slot and a closed ring all wake the thread that may be parked for
//! them, unless the caller publishes or releases without that and wakes it in another way.
//!
//! # Examples
//! ```
//! use echoless::transport::{Doorbell, Parker, Wait, ring};
//! # fn main() -> Result<(), echoless::BuildError> {
//! let (mut client, mut server) = (Parker::new(), Parker::new());
//! let (mut requests, mut inbox) = ring::bounded::<u64>(4)?;
//! let (mut outbox, mut answers) = ring::bounded::<u64>(4)?;
//! requests.set_doorbell(server.doorbell());
//! answers.set_doorbell(server.doorbell());
//! inbox.set_doorbell(client.doorbell());
//! outbox.set_doorbell(client.doorbell());
//! let wait = Wait::auto(2);
//!
//! let serving = std::thread::spawn(move || {
//!     loop {
//!         server.wait_until(wait, || inbox.is_ready());
//!         match inbox.try_pop() {
//!             Ok(number) => outbox.try_push(number * number).expect("one request at a time"),
//!             Err(_) => break, // the client has closed its end
//!         }
//!     }
//! });
//! for number in 0..100 {
//!     requests.try_push(number).expect("the server runs");
//!     client.wait_until(wait, || answers.is_ready());
//!     assert_eq!(answers.try_pop(), Ok(number * number));
//! }
//! drop(requests);
//! serving.join().expect("the server ends with the requests");
//! # Ok(())
//! # }
//! ```

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
