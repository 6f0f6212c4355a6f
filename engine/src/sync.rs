//! The primitives of the concurrent modules: those of the standard library, or loom's under `--cfg
//! loom`.
//!
//! No other file of the library names either, except in tests, so loom checks the code that runs in
//! production.

#[cfg(feature = "threads")]
mod threads;

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "threads")]
pub(crate) use threads::{
    Arc, AtomicBool, AtomicUsize, Condvar, ConstPtr, JoinHandle, MutPtr, Mutex, MutexGuard, Queue,
    Sender, UnsafeCell, available_parallelism, channel, check, contain, discard, fence, panicking,
    spawn, spin_loop, unpoisoned, yield_now,
};

/// What no model tracks: no model depends on the order of these accesses, and no modelled access is
/// made under one of the locks. Standard under loom as well, so that they add no interleavings.
pub(crate) mod unmodelled {
    #[cfg(feature = "threads")]
    pub(crate) use std::sync::OnceLock;
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
}
