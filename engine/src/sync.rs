//! The primitives of the concurrent parts: those of the standard library, or loom's under `--cfg loom`.
//!
//! The only file that names either, so that what loom checks is the code that runs.

#[cfg(loom)]
pub(crate) use loom::{
    cell::{ConstPtr, MutPtr, UnsafeCell},
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Arc, Condvar, Mutex},
    thread::{JoinHandle, yield_now},
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Arc, Condvar, Mutex},
    thread::{JoinHandle, yield_now},
};
pub(crate) use std::{sync::PoisonError, thread::available_parallelism};

#[cfg(not(loom))]
pub(crate) use cell::{ConstPtr, MutPtr, UnsafeCell};

/// Starts a named thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    #[cfg(loom)]
    return loom::thread::Builder::new().name(name).spawn(run);
    #[cfg(not(loom))]
    return std::thread::Builder::new().name(name).spawn(run);
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
