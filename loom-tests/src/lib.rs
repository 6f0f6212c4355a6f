//! Helpers of the model checks in `tests/`. Each check is named by its property; `README.md` lists
//! what it models.
//!
//! Without `--cfg loom` the library is empty.

#![cfg(loom)]

mod exact;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use echoless::transport::{Consumer, PopError, Producer, PushError};
use loom::model::Builder;

pub use exact::{Exact, PANICS, duplicates, expected, key, unknown};

/// The limit of preemptions in one execution. A preemption switches away from a thread that could
/// continue.
#[derive(Debug, Clone, Copy)]
pub enum Preemptions {
    /// No limit.
    Any,
    /// At most this many.
    AtMost(usize),
}

/// The limit of scheduling points in one execution. A model that exceeds it fails.
const BRANCHES: usize = 10_000;

/// Runs `model` in every execution that loom finds within the bounds. Prints the bounds and the
/// number of executions.
///
/// # Panics
/// If the model panics in any execution, or loom finds a race, a deadlock or a leak.
pub fn check(property: &str, preemptions: Preemptions, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.max_branches = BRANCHES;
    builder.preemption_bound = match preemptions {
        Preemptions::Any => None,
        Preemptions::AtMost(most) => Some(most),
    };
    let executions = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&executions);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let executions = executions.load(Ordering::Relaxed);
    // Bypasses the test harness, which captures the output of passing tests.
    writeln!(
        std::io::stderr(),
        "{property}: preemptions {preemptions:?}, branches at most {BRANCHES}: {executions} executions",
    )
    .ok();
}

/// Pushes one item, as a port pushes a message.
///
/// # Errors
/// If the ring is full or closed.
pub fn push<T>(producer: &mut Producer<T>, item: T) -> Result<(), PushError> {
    let mut slot = producer.vacant()?;
    *slot = item;
    slot.publish();
    producer.notify();
    Ok(())
}

/// Pops one item, as a partition server pops a message.
///
/// # Errors
/// If the ring is empty, or empty and closed.
pub fn pop<T: Copy>(consumer: &mut Consumer<T>) -> Result<T, PopError> {
    let item = *consumer.peek(0)?;
    consumer.release(1);
    Ok(item)
}

/// An outcome that must occur in at least one execution; otherwise the model checks less than it
/// claims.
#[derive(Debug)]
pub struct Sometimes(AtomicBool);

impl Sometimes {
    /// An outcome that has not occurred yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Records whether the outcome occurred in this execution.
    pub fn note(&self, occurred: bool) {
        self.0.fetch_or(occurred, Ordering::Relaxed);
    }

    /// Checks, after the model, that the outcome occurred.
    ///
    /// # Panics
    /// If it never occurred.
    pub fn assert(&self) {
        assert!(self.0.load(Ordering::Relaxed));
    }
}

impl Default for Sometimes {
    fn default() -> Self {
        Self::new()
    }
}
