//! What travels on the rings: up to 64 key hashes one way, one word of verdict bits back.

use crate::hash::KeyHash;

/// How many keys a message holds at most: as many as a word has bits. Models have turns of several messages, so theirs are small.
pub(super) const MESSAGE_KEYS: usize = if cfg!(loom) { 2 } else { 64 };

/// Some keys of one partition, in their order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// The number of the batch, where batches are numbered.
    pub(super) batch_number: u64,
    pub(super) kind: Kind,
    count: usize,
    keys: [KeyHash; MESSAGE_KEYS],
}

/// What a message means for the order of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// More of this batch may follow.
    Part,
    /// The last of this batch for this partition; it may hold no key.
    LastOfBatch,
    /// The sender has nothing more to say and leaves in good order.
    Finish,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            batch_number: 0,
            kind: Kind::Part,
            count: 0,
            keys: [KeyHash(0); MESSAGE_KEYS],
        }
    }
}

impl Request {
    pub(super) fn keys(&self) -> &[KeyHash] {
        &self.keys[..self.count]
    }

    /// Fills the message with these keys, at most [`MESSAGE_KEYS`].
    pub(super) fn fill(&mut self, batch_number: u64, kind: Kind, keys: &[KeyHash]) {
        self.batch_number = batch_number;
        self.kind = kind;
        self.count = keys.len();
        self.keys[..keys.len()].copy_from_slice(keys);
    }
}
