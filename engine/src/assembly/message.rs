//! The messages on the rings: up to 64 key hashes one way, one word of verdict bits back, or a mark
//! that there are none.

use crate::hash::KeyHash;

/// The capacity of a message in keys.
// One bit of the answer for each key, and the answer is one word. Models need batches of several
// messages, so theirs are small.
pub(super) const MESSAGE_KEYS: usize = if cfg!(loom) { 2 } else { 64 };

/// Some keys of one batch and one partition, in the order of the batch.
///
/// Aligned to cache lines, so that the end that writes a request and the end that reads the one
/// before it share no line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Request {
    /// The tick at which the keys are judged; `None` keeps the clock of the partition where it is.
    pub(super) tick: Option<u64>,
    /// Whether the keys are looked up, and not observed.
    pub(super) looks_up: bool,
    /// At most [`MESSAGE_KEYS`]; the keys behind it are left over from earlier uses of the slot.
    count: usize,
    keys: [KeyHash; MESSAGE_KEYS],
}

/// The answer of a partition server to one request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answer {
    /// Bit `i` is set if key `i` of the request is a duplicate; all zero if `unknown`.
    pub(super) bits: u64,
    /// The partition is lost, so there are no verdicts. No live filter holds the keys because of
    /// this request.
    pub(super) unknown: bool,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            tick: None,
            looks_up: false,
            count: 0,
            keys: [KeyHash(0); MESSAGE_KEYS],
        }
    }
}

impl Request {
    pub(super) fn keys(&self) -> &[KeyHash] {
        &self.keys[..self.count]
    }

    /// Overwrites the message with at most [`MESSAGE_KEYS`] keys.
    pub(super) fn write(&mut self, tick: Option<u64>, looks_up: bool, keys: &[KeyHash]) {
        self.tick = tick;
        self.looks_up = looks_up;
        self.count = keys.len();
        self.keys[..keys.len()].copy_from_slice(keys);
    }
}
