//! Handles: numbers of things in tables.
//!
//! A key of a table has the generation of its place, so a handle that was freed is not found, even
//! when the place has another owner. Its upper four bits are free for the kind. What a call uses
//! stays until the call ends, even if the handle is freed during the call.

use std::sync::{LazyLock, Mutex, MutexGuard, TryLockError};

use sharded_slab::{Config, Entry, Slab};

use crate::failure::{Code, Failure};

/// What a program of another language holds in place of a reference. C sees a pointer that points
/// to nothing, Java a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(usize);

impl Handle {
    /// The handle as a number.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0 as i64
    }

    /// The handle as a pointer, from which nothing is ever read.
    #[must_use]
    pub const fn pointer<H>(self) -> *mut H {
        std::ptr::without_provenance_mut(self.0)
    }
}

impl From<i64> for Handle {
    fn from(number: i64) -> Self {
        Self(number as usize)
    }
}

impl<H> From<*const H> for Handle {
    fn from(pointer: *const H) -> Self {
        Self(pointer.addr())
    }
}

impl<H> From<*mut H> for Handle {
    fn from(pointer: *mut H) -> Self {
        Self(pointer.addr())
    }
}

/// The keys of the tables leave room for a kind.
#[derive(Debug)]
pub struct TableKeys;

impl Config for TableKeys {
    const RESERVED_BITS: usize = KIND_BITS;
    /// The threads that live at the same time and have made or freed a handle; those that have
    /// ended do not count. A table has a pointer for each, 512 KiB.
    const MAX_THREADS: usize = 1 << 16;
    /// Two million handles of a kind for each thread. This leaves 21 bits for generations: a freed
    /// handle would be that of another owner of its place after two million of them.
    const MAX_PAGES: usize = 16;
}

const KIND_BITS: usize = 4;
const KIND_SHIFT: u32 = usize::BITS - KIND_BITS as u32;

/// A thing of a table, which stays while this is held.
pub type TableEntry<'a, T> = Entry<'a, T, TableKeys>;

/// The things of one kind.
#[derive(Debug)]
pub struct Table<T> {
    /// 1 to 15, so that no handle is NULL.
    kind: usize,
    name: &'static str,
    slab: LazyLock<Slab<T, TableKeys>>,
}

impl<T> Table<T> {
    /// The table of a kind, 1 to 15. Kinds of one library have different numbers.
    ///
    /// # Panics
    /// If the kind is another number.
    #[must_use]
    pub const fn new(kind: usize, name: &'static str) -> Self {
        assert!(kind > 0 && kind < 1 << KIND_BITS);
        Self {
            kind,
            name,
            slab: LazyLock::new(Slab::new_with_config),
        }
    }

    /// The handle of a new thing.
    ///
    /// # Errors
    /// [`Failure`] if the table is full.
    pub fn insert(&self, value: T) -> Result<Handle, Failure> {
        let key = self
            .slab
            .insert(value)
            .ok_or_else(|| Failure::new(Code::OutOfMemory, "there are too many handles"))?;
        Ok(Handle(key | self.kind << KIND_SHIFT))
    }

    /// The thing of a handle. It stays while this is held.
    ///
    /// # Errors
    /// [`Failure`] if the handle is NULL, of another kind, or freed.
    #[inline]
    pub fn get(&self, handle: impl Into<Handle>) -> Result<TableEntry<'_, T>, Failure> {
        let handle = handle.into();
        let entry = self.key(handle).and_then(|key| self.slab.get(key));
        entry.ok_or_else(|| self.unknown(handle))
    }

    /// Frees a handle. NULL has no effect. The thing is dropped now, or when the last call that
    /// uses it ends.
    ///
    /// # Errors
    /// [`Failure`] if the handle is of another kind, or freed.
    pub fn remove(&self, handle: impl Into<Handle>) -> Result<(), Failure> {
        let handle = handle.into();
        if handle.0 == 0 || self.key(handle).is_some_and(|key| self.slab.remove(key)) {
            return Ok(());
        }
        Err(self.unknown(handle))
    }

    /// Whether a handle is of this table, be it freed or not.
    pub fn is_of(&self, handle: impl Into<Handle>) -> bool {
        handle.into().0 >> KIND_SHIFT == self.kind
    }

    /// The key of a handle of this kind.
    fn key(&self, Handle(number): Handle) -> Option<usize> {
        (number >> KIND_SHIFT == self.kind).then_some(number & !(self.kind << KIND_SHIFT))
    }

    #[cold]
    fn unknown(&self, Handle(number): Handle) -> Failure {
        let name = self.name;
        if number == 0 {
            return Failure::argument(name, "NULL", "a handle");
        }
        let kind = number >> KIND_SHIFT;
        let allowed = if kind == 0 || kind == self.kind {
            "one that is not freed"
        } else {
            "a handle of its own kind, and this one is of another"
        };
        Failure::argument(name, format!("{number:#x}"), allowed)
    }
}

/// Locks a thing that one thread at a time may use, without waiting. Fails with [`Code::Busy`] if
/// another thread uses it, [`Code::Panicked`] if a call panicked with it.
#[inline]
pub(crate) fn exclusive<'a, T>(
    name: &'static str,
    thing: &'a Mutex<T>,
) -> Result<MutexGuard<'a, T>, Failure> {
    match thing.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::WouldBlock) => {
            let text = format!("another thread uses the {name}: expected one thread at a time");
            Err(Failure::new(Code::Busy, text))
        }
        Err(TryLockError::Poisoned(_)) => {
            let text = format!("an earlier call with the {name} panicked: expected a new one");
            Err(Failure::new(Code::Panicked, text))
        }
    }
}
