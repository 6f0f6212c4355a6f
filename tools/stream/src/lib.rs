//! Time as data: spans of a stream, windows in ticks, and clocks.
//!
//! Nothing here reads the clock of the system: the time of a stream is that of its records.
//!
//! ```text
//!  90s, 10k     Span: nanoseconds, milliseconds or records
//!      |
//!  Window       2,000 to 4,999 ticks of 1, 2 or 5 times a power of ten
//!      |
//!  Clock        the latest time so far, without times that are too far ahead
//!  TaskClock    the same for the partitions of a task, with a watermark
//! ```
//!
//! A filter begins at tick 0, so the first tick is 1 ([`tick_since`]): that of 1970 in Kafka and
//! Flink, whose partitions have no first record in common, and that of the first time in the
//! command, where records before it are as old as it is.

mod ahead;
mod clock;
mod count;
mod span;
mod task;
mod window;

pub use ahead::AheadRun;
pub use clock::{Clock, MaxAdvance, is_late, tick_since};
pub use count::{format_count, parse_count};
pub use span::{Span, Unit, nanoseconds, parse_time};
pub use task::{Place, TaskClock};
pub use window::{Window, resolution};
