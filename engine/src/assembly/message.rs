//! What travels on the rings: up to 64 key hashes one way, one word of verdict bits back.

use crate::hash::KeyHash;

/// How many keys a message holds at most: as many as a word has bits.
pub(super) const MESSAGE_KEYS: usize = 64;

/// Some keys of one partition, in their order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// The number of the batch, where batches are numbered.
    pub(super) turn: u64,
    pub(super) kind: Kind,
    pub(super) count: usize,
    keys: [KeyHash; MESSAGE_KEYS],
}

/// What a message means for the order of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// More of this batch may follow.
    Part,
    /// The last of this batch for this partition; it may hold no key.
    LastOfTurn,
    /// The sender has nothing more to say and leaves in good order.
    Farewell,
}

impl Default for Request {
    fn default() -> Self {
        Self::new()
    }
}

impl Request {
    pub(super) const fn new() -> Self {
        Self {
            turn: 0,
            kind: Kind::Part,
            count: 0,
            keys: [KeyHash(0); MESSAGE_KEYS],
        }
    }

    pub(super) fn keys(&self) -> &[KeyHash] {
        &self.keys[..self.count]
    }

    /// Adds a key; true if the message is full now.
    #[inline(always)]
    pub(super) fn push(&mut self, key: KeyHash) -> bool {
        self.keys[self.count] = key;
        self.count += 1;
        self.count == MESSAGE_KEYS
    }
}
