//! Model checks of the lock-free parts, in `tests/`, named by the property that they check; `README.md` says what each models.
//!
//! Without `--cfg loom` there is nothing here.

#![cfg(loom)]

mod exact;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use loom::model::Builder;

pub use exact::{Exact, PANICS, expected, heard, key};

/// How often, in one execution, a thread that could go on may be stopped for another.
#[derive(Debug, Clone, Copy)]
pub enum Preemptions {
    /// As often as may be.
    Any,
    /// So often.
    AtMost(usize),
}

/// How many scheduling points one execution may have; a model that needs more fails.
const BRANCHES: usize = 10_000;

/// Runs `model` under loom's search within the bounds, which it prints with the number of executions.
///
/// # Panics
/// If the model does in any execution, or loom finds a race, a deadlock or a leak.
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
    // Written past the test harness, which swallows what passing tests print.
    writeln!(
        std::io::stderr(),
        "{property}: preemptions {preemptions:?}, branches at most {BRANCHES}: {executions} executions",
    )
    .ok();
}

/// Something that must happen in some execution, or the model checks less than it says.
#[derive(Debug)]
pub struct Sometimes(AtomicBool);

impl Sometimes {
    /// It has not happened yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Whether it happened in this execution.
    pub fn note(&self, happened: bool) {
        self.0.fetch_or(happened, Ordering::Relaxed);
    }

    /// To be called after the model.
    ///
    /// # Panics
    /// If it never happened.
    pub fn assert(&self) {
        assert!(self.0.load(Ordering::Relaxed));
    }
}

impl Default for Sometimes {
    fn default() -> Self {
        Self::new()
    }
}
