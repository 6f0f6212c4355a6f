//! The primitives of the concurrent parts: those of the standard library, or loom's under `--cfg loom`.
//!
//! The only file that names either, so that what loom checks is the code that runs.

#[cfg(loom)]
pub(crate) use loom::{
    cell::{ConstPtr, MutPtr, UnsafeCell},
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Arc, Condvar, Mutex},
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Arc, Condvar, Mutex},
    thread::{JoinHandle, yield_now},
};
/// What is the same under loom: no model asks for cores, or pins its threads and hears over the channel how that went.
pub(crate) use std::{
    sync::PoisonError,
    sync::mpsc::{Sender, channel},
    thread::available_parallelism,
};

#[cfg(not(loom))]
pub(crate) use cell::{ConstPtr, MutPtr, UnsafeCell};

/// An assertion that costs too much for a release and too much to miss for a model, which is built as one.
macro_rules! check {
    ($($assertion:tt)*) => {
        if cfg!(any(loom, debug_assertions)) {
            assert!($($assertion)*);
        }
    };
}
pub(crate) use check;

/// Starts a named thread, which runs on a state of its own; what `end` makes of the state is for the one who joins.
#[cfg(not(loom))]
pub(crate) fn spawn<S: Send + 'static, T: Send + 'static>(
    name: String,
    mut state: S,
    run: fn(&mut S),
    end: fn(S) -> T,
) -> std::io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name).spawn(move || {
        run(&mut state);
        end(state)
    })
}

#[cfg(loom)]
pub(crate) use panicking::{JoinHandle, spawn};

/// Threads that may panic, which loom's may not.
#[cfg(loom)]
mod panicking {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::thread::Result;

    #[derive(Debug)]
    pub(crate) struct JoinHandle<T>(loom::thread::JoinHandle<Result<T>>);

    impl<T> JoinHandle<T> {
        pub(crate) fn join(self) -> Result<T> {
            self.0.join().flatten()
        }
    }

    /// As the standard one, but that the state is dropped after the unwinding: drops switch threads, and to the standard library,
    /// which sees one thread only, all of them would be unwinding and poison their locks.
    pub(crate) fn spawn<S: Send + 'static, T: Send + 'static>(
        name: String,
        mut state: S,
        run: fn(&mut S),
        end: fn(S) -> T,
    ) -> std::io::Result<JoinHandle<T>> {
        let thread = loom::thread::Builder::new().name(name).spawn(move || {
            match catch_unwind(AssertUnwindSafe(|| run(&mut state))) {
                Ok(()) => Ok(end(state)),
                // A panic with words is a failed assertion, or loom's own, and ends the model.
                Err(panic) if panic.is::<&str>() || panic.is::<String>() => resume_unwind(panic),
                Err(panic) => {
                    drop(state);
                    Err(panic)
                }
            }
        })?;
        Ok(JoinHandle(thread))
    }
}

/// The standard cell in the shape of loom's, whose pointers are guards: an access lasts as long as its pointer.
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
