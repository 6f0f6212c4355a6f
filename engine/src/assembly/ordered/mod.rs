//! One filter for all threads, with the verdicts of a single thread: batches have tickets, and each
//! partition applies them in the order of the tickets. No key moves to another thread.

mod filter;
mod handle;
mod partition;
mod save;
mod turns;

pub use filter::{OrderedBuilder, OrderedFilter};
pub use handle::{OrderedHandle, Ticket};
pub use save::SaveError;
