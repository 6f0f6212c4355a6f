//! Why a push or a pop failed: for now, or for good.

use std::error::Error;
use std::fmt;

/// Why an item was not pushed. The error returns the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushError<T = ()> {
    /// Every slot holds an item that the consumer has not released.
    Full(T),
    /// One of the ends was closed or dropped.
    Closed(T),
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the ring is full",
            Self::Closed(_) => "the ring is closed",
        })
    }
}

impl<T: fmt::Debug> Error for PushError<T> {}

impl PushError {
    pub(super) fn with<T>(self, item: T) -> PushError<T> {
        match self {
            Self::Full(()) => PushError::Full(item),
            Self::Closed(()) => PushError::Closed(item),
        }
    }
}

/// Why no item was popped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PopError {
    /// The ring is empty; items may follow.
    Empty,
    /// The ring is empty and closed, so no item will follow. One exception: if the consumer closed
    /// it, a push that was in progress may still succeed.
    Closed,
}

impl fmt::Display for PopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the ring is empty",
            Self::Closed => "the ring is closed",
        })
    }
}

impl Error for PopError {}
