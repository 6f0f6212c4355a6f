//! What the modules with threads of their own need besides atomic words: locks, cells, a queue and
//! threads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{LockResult, PoisonError};

#[cfg(loom)]
pub(crate) use loom::{
    cell::{ConstPtr, MutPtr, UnsafeCell},
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicUsize, fence},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicUsize, fence},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{JoinHandle, yield_now},
};
// Standard under loom as well. No model pins threads, so none uses the channel on which pinning is
// reported; none uses the number of cores, and none drops a worker while it unwinds.
pub(crate) use std::{
    sync::mpsc::{Sender, channel},
    thread::{available_parallelism, panicking},
};

#[cfg(not(loom))]
pub(crate) use cell::{ConstPtr, MutPtr, UnsafeCell};

/// A queue without a bound, from any number of threads to any number of threads. Under loom it is a
/// lock around a plain queue: its users are checked, and not the queue itself.
#[cfg(not(loom))]
pub(crate) use crossbeam_queue::SegQueue as Queue;

#[cfg(loom)]
pub(crate) use queue::Queue;

#[cfg(loom)]
mod queue {
    use std::collections::VecDeque;

    use loom::sync::{Mutex, MutexGuard};

    #[derive(Debug)]
    pub(crate) struct Queue<T>(Mutex<VecDeque<T>>);

    impl<T> Queue<T> {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(VecDeque::new()))
        }

        pub(crate) fn push(&self, item: T) {
            self.lock().push_back(item);
        }

        pub(crate) fn pop(&self) -> Option<T> {
            self.lock().pop_front()
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.lock().is_empty()
        }

        fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
            self.0.lock().expect("no holder panics")
        }
    }
}

/// An assertion that is checked in debug builds and under loom. It is too expensive for a release
/// build, but models, which are built as releases, need it.
macro_rules! check {
    ($($assertion:tt)*) => {
        if cfg!(any(loom, debug_assertions)) {
            assert!($($assertion)*);
        }
    };
}
pub(crate) use check;

/// The guard of a lock, or of a wait, also if a thread panicked while it held the lock: what the
/// locks of this library protect is never left half changed.
pub(crate) fn unpoisoned<G>(locked: LockResult<G>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}

/// Calls code of the caller on a thread whose work must go on if that code panics. The panic ends
/// here; the panic hook has reported it.
pub(crate) fn contain(call: impl FnOnce()) {
    if cfg!(loom) {
        // Any panic is to end the model.
        return call();
    }
    // Unwind safe: `call` owns what it uses.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        discard(panic);
    }
}

/// Drops the payload of a panic, which is a value of the caller. If that panics as well, its own
/// payload is leaked, because it could go on without end.
pub(crate) fn discard(panic: Box<dyn Any + Send>) {
    std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(panic))));
}

/// Spawns a named thread that owns `state`: it calls `run`, and returns the result of `end` to the
/// thread that joins it.
pub(crate) fn spawn<S: Send + 'static, T: Send + 'static>(
    name: String,
    state: S,
    run: fn(&mut S),
    end: fn(S) -> T,
) -> std::io::Result<JoinHandle<T>> {
    #[cfg(not(loom))]
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        let mut state = state;
        run(&mut state);
        end(state)
    });
    #[cfg(loom)]
    let thread = (loom::thread::Builder::new().name(name))
        .spawn(move || panicking::contained(state, run, end))
        .map(JoinHandle);
    thread
}

#[cfg(loom)]
pub(crate) use panicking::JoinHandle;

/// Threads that may panic: loom ends the model at any panic.
#[cfg(loom)]
mod panicking {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::thread::Result;

    #[derive(Debug)]
    pub(crate) struct JoinHandle<T>(pub(super) loom::thread::JoinHandle<Result<T>>);

    impl<T> JoinHandle<T> {
        pub(crate) fn join(self) -> Result<T> {
            self.0.join().flatten()
        }
    }

    /// Runs a thread whose state is dropped after the unwinding. Drops switch between loom's
    /// threads, which are one thread for the standard library: during an unwinding it would take
    /// all of them for panicking, and poison their locks.
    pub(super) fn contained<S, T>(mut state: S, run: fn(&mut S), end: fn(S) -> T) -> Result<T> {
        match catch_unwind(AssertUnwindSafe(|| run(&mut state))) {
            Ok(()) => Ok(end(state)),
            // A panic with a message is a failed assertion or loom's own, and ends the model.
            Err(panic) if panic.is::<&str>() || panic.is::<String>() => resume_unwind(panic),
            Err(panic) => {
                drop(state);
                Err(panic)
            }
        }
    }
}

/// The standard cell with the interface of loom's cell, whose pointers are guards: loom takes an
/// access to last as long as its pointer lives.
#[cfg(not(loom))]
mod cell {
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    #[derive(Debug)]
    pub(crate) struct ConstPtr<T>(*const T);

    #[derive(Debug)]
    pub(crate) struct MutPtr<T>(*mut T);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) const fn get(&self) -> ConstPtr<T> {
            ConstPtr(self.0.get())
        }

        #[inline(always)]
        pub(crate) const fn get_mut(&self) -> MutPtr<T> {
            MutPtr(self.0.get())
        }
    }

    impl<T> ConstPtr<T> {
        #[inline(always)]
        pub(crate) fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
            access(self.0)
        }
    }

    impl<T> MutPtr<T> {
        #[inline(always)]
        pub(crate) fn with<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
            access(self.0)
        }
    }
}
