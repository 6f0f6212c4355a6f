//! How messages go from thread to thread: a bounded [`ring`] between two threads, and a way to [`wait`] for any number of them.
//!
//! Nothing here knows of keys or filters. A thread that takes part owns one [`Parker`] and any number of ring ends; every end
//! carries the [`Doorbell`] of the thread at the other end, so that a published message, a slot given back and a closed ring all
//! wake whoever waits for them.
//!
//! # Examples
//! ```
//! use echoless::transport::{Doorbell, Parker, Wait, ring};
//! # fn main() -> Result<(), echoless::BuildError> {
//! let (mut asker, mut answerer) = (Parker::new(), Parker::new());
//! let (mut questions, mut asked) = ring::bounded::<u64>(4)?;
//! let (mut answers, mut answered) = ring::bounded::<u64>(4)?;
//! questions.set_doorbell(answerer.doorbell());
//! answered.set_doorbell(answerer.doorbell());
//! asked.set_doorbell(asker.doorbell());
//! answers.set_doorbell(asker.doorbell());
//! let wait = Wait::auto(2);
//!
//! let server = std::thread::spawn(move || {
//!     loop {
//!         answerer.wait_until(wait, || asked.is_ready());
//!         match asked.try_pop() {
//!             Ok(number) => answers.try_push(number * number).expect("one request at a time"),
//!             Err(_) => break, // the asker has closed its end
//!         }
//!     }
//! });
//! for number in 0..100 {
//!     questions.try_push(number).expect("the server lives");
//!     asker.wait_until(wait, || answered.is_ready());
//!     assert_eq!(answered.try_pop(), Ok(number * number));
//! }
//! drop(questions);
//! server.join().expect("the server ends when the questions do");
//! # Ok(())
//! # }
//! ```

pub mod ring;
pub mod wait;

pub use ring::{Consumer, PopError, Producer, PushError};
pub use wait::{Doorbell, Parker, Wait};
