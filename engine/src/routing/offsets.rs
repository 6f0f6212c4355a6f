//! Many partitions: one pass writes each key to a message of its owner, and keeps its offset in the
//! buffer of all messages.
//!
//! The first message of each owner has the owner's number; a full one is followed by the next that
//! is free. In the drawing, eight keys have three owners, a message has space for two keys, and `-`
//! is free space:
//!
//! ```text
//!   batch            k0 k1 k2 k3 k4 k5 k6 k7
//!   owners            2  1  1  0  1  2  0  1
//!   message           0:k3 k6   1:k1 k2   2:k0 k5   3:k4 k7   4:- -   5:- -   6:- -
//!   owner             0         1         2         1         2       0       1
//!   offsets           4  2  3  0  6  5  1  7        message times 2, and the index in it
//!   answer to 3                   1  0              k4 is a duplicate
//!   verdicts          the answer for each key, at its offset
//! ```
//!
//! The verdicts are looked up once, when all answers are there: for that, each bit of an answer is
//! a byte. The cost of a key does not depend on the number of partitions while the open messages of
//! all of them are cached. The memory is in proportion to the keys, and to the partitions: a
//! message for each, where a ring has four or more.

use std::ops::Range;

use super::MESSAGE_KEYS;
use super::messages::MessageIndex;
use crate::hash::KeyHash;
use crate::isa::{DetectedKernel, HotLoop};
use crate::partition::Partitioning;
use crate::verdicts::Verdicts;

/// The number of keys whose offsets are computed before the keys are written there, and of verdicts
/// in a word. A block is an array: the compiler unrolls loops over a known length.
const BLOCK: usize = 64;

/// The offsets of the keys of one batch, and the answers so far. Its buffers are reused.
#[derive(Debug, Clone, Default)]
pub(super) struct Offsets {
    /// The offset of each key: the number of its message times [`MESSAGE_KEYS`], plus its index in
    /// the message.
    offsets: Vec<u32>,
    /// For each owner, the offset behind its last key: in its last message, or in an empty one that
    /// follows it.
    ends: Vec<u32>,
    /// For each full message, the next one of the same owner. Undefined for other messages.
    following: Vec<u32>,
    /// For each owner, its first message without an answer.
    unanswered: Vec<u32>,
    /// The answer for each key: the highest bit of the byte at its offset. Undefined before it
    /// arrives.
    answers: Vec<u8>,
    /// The same for the keys that have no verdict; empty while there are none.
    unknown: Vec<u8>,
}

/// Writes the keys of a batch, of fewer than 2^31 keys, to messages of their owners.
pub(super) struct WriteMessages<'a> {
    pub(super) partitioning: &'a Partitioning,
    pub(super) keys: &'a [KeyHash],
    /// The messages, [`MESSAGE_KEYS`] keys each. Behind the keys of a message are some of earlier
    /// batches.
    pub(super) messages: &'a mut Vec<KeyHash>,
    pub(super) offsets: &'a mut Offsets,
}

impl HotLoop for WriteMessages<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            partitioning,
            keys,
            messages,
            offsets,
        } = self;
        let free = offsets.reset(partitioning.count(), keys.len());
        if messages.len() < offsets.answers.len() {
            messages.resize(offsets.answers.len(), KeyHash(0));
        }
        let Offsets {
            offsets,
            ends,
            following,
            ..
        } = offsets;
        let mut open = OpenMessages {
            messages,
            ends,
            following,
            free,
        };
        let mut owners = [0; BLOCK];
        let (blocks, last) = keys.as_chunks::<BLOCK>();
        let (offsets_of_blocks, last_offsets) = offsets.as_chunks_mut::<BLOCK>();
        for (keys, offsets) in blocks.iter().zip(offsets_of_blocks) {
            partitioning.partitions_of(keys, 0, &mut owners);
            open.write(keys, &owners, offsets);
        }
        let owners = &mut owners[..last.len()];
        partitioning.partitions_of(last, 0, owners);
        open.write(last, owners, last_offsets);
    }
}

/// The messages that are being written, one of each owner. The fields are slices: those of vectors
/// would be read again after each store.
struct OpenMessages<'a> {
    messages: &'a mut [KeyHash],
    ends: &'a mut [u32],
    following: &'a mut [u32],
    /// The next message that is free.
    free: u32,
}

impl OpenMessages<'_> {
    /// Writes keys to messages of their owners, and their offsets to `offsets`.
    #[inline(always)]
    fn write(&mut self, keys: &[KeyHash], owners: &[u32], offsets: &mut [u32]) {
        // Two loops: the address of a key depends on a count that was just read. If the key were
        // written at once, the CPU could not read the next count before it has that address,
        // because the two might overlap.
        for (owner, offset) in owners.iter().zip(&mut *offsets) {
            let end = &mut self.ends[*owner as usize];
            *offset = *end;
            *end += 1;
            if (*end as usize).is_multiple_of(MESSAGE_KEYS) {
                self.following[*offset as usize / MESSAGE_KEYS] = self.free;
                *end = self.free * MESSAGE_KEYS as u32;
                self.free += 1;
            }
        }
        for (key, offset) in keys.iter().zip(offsets) {
            self.messages[*offset as usize] = *key;
        }
    }
}

impl Offsets {
    /// Prepares for a batch, and returns the first message that is free once each owner has one.
    pub(super) fn reset(&mut self, owners: usize, keys: usize) -> u32 {
        // Each full message is followed by another.
        let messages = owners + keys / MESSAGE_KEYS;
        assert!(
            u32::try_from(messages * MESSAGE_KEYS).is_ok(),
            "a batch of {keys} keys for {owners} partitions"
        );
        // Each partition has rings of its own: memory ends long before 2^32 of them.
        let owners = owners as u32;
        self.offsets.resize(keys, 0);
        self.ends.clear();
        self.ends
            .extend((0..owners).map(|owner| owner * MESSAGE_KEYS as u32));
        self.following.resize(messages, 0);
        self.unanswered.clear();
        self.unanswered.extend(0..owners);
        self.answers.resize(messages * MESSAGE_KEYS, 0);
        self.unknown.clear();
        owners
    }

    /// The offsets of a message of an owner, its first one for `None`, and the next message. Only
    /// an owner without keys has an empty message.
    pub(super) fn message(
        &self,
        owner: usize,
        index: Option<MessageIndex>,
    ) -> (Range<usize>, Option<MessageIndex>) {
        let message = index.map_or(owner, MessageIndex::number);
        let start = message * MESSAGE_KEYS;
        let end = self.ends[owner] as usize;
        if end / MESSAGE_KEYS == message {
            return (start..end, None);
        }
        let next = self.following[message];
        let is_last = next as usize * MESSAGE_KEYS == end;
        (
            start..start + MESSAGE_KEYS,
            (!is_last).then_some(MessageIndex(next)),
        )
    }

    /// Takes the answer to the next message of an owner, one bit for each of its keys.
    pub(super) fn answer(&mut self, owner: usize, answer: u64) {
        let start = self.next_unanswered(owner) * MESSAGE_KEYS;
        spread(answer, &mut self.answers[start..start + MESSAGE_KEYS]);
    }

    /// The next message of an owner has no verdicts.
    #[cold]
    pub(super) fn answer_unknown(&mut self, owner: usize) {
        let message = self.next_unanswered(owner);
        self.mark_unknown(message);
    }

    fn next_unanswered(&mut self, owner: usize) -> usize {
        let message = self.unanswered[owner] as usize;
        // Undefined behind the last message, which no answer follows.
        self.unanswered[owner] = self.following[message];
        message
    }

    /// The messages of an owner from this one on have no verdicts.
    #[cold]
    pub(super) fn mark_unsent(&mut self, owner: usize, mut index: Option<MessageIndex>) {
        loop {
            let (_, next) = self.message(owner, index);
            self.mark_unknown(index.map_or(owner, MessageIndex::number));
            if next.is_none() {
                return;
            }
            index = next;
        }
    }

    fn mark_unknown(&mut self, message: usize) {
        let bytes = message * MESSAGE_KEYS..(message + 1) * MESSAGE_KEYS;
        self.unknown.resize(self.answers.len(), 0);
        self.unknown[bytes.clone()].fill(u8::MAX);
        self.answers[bytes].fill(0);
    }

    /// Writes the verdicts of all keys, and which keys have none.
    pub(super) fn look_up(&self, kernel: DetectedKernel, verdicts: &mut Verdicts) {
        kernel.run(LookUp {
            offsets: &self.offsets,
            answers: &self.answers,
            bits: verdicts.words_mut(),
        });
        if !self.unknown.is_empty() {
            kernel.run(LookUp {
                offsets: &self.offsets,
                answers: &self.unknown,
                bits: verdicts.unknown_words_mut(),
            });
        }
    }
}

/// The answer for each key, at its offset.
struct LookUp<'a> {
    offsets: &'a [u32],
    answers: &'a [u8],
    bits: &'a mut [u64],
}

impl HotLoop for LookUp<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (blocks, last) = self.offsets.as_chunks::<BLOCK>();
        let mut words = self.bits.iter_mut();
        for (offsets, bits) in blocks.iter().zip(&mut words) {
            *bits = answers_at(offsets, self.answers);
        }
        if let Some(bits) = words.next() {
            *bits = answers_at(last, self.answers);
        }
    }
}

/// The answers at up to 64 offsets, one bit for each.
#[inline(always)]
fn answers_at(offsets: &[u32], answers: &[u8]) -> u64 {
    let mut found = [0; BLOCK];
    for (found, offset) in found.iter_mut().zip(offsets) {
        *found = answers[*offset as usize];
    }
    let (groups, _) = found.as_chunks();
    u64::from_le_bytes(std::array::from_fn(|group| highest_bits(groups[group])))
}

/// Moves each bit of a word to the highest bit of a byte, the lowest bit to the first byte.
fn spread(bits: u64, bytes: &mut [u8]) {
    for (bits, bytes) in bits.to_le_bytes().into_iter().zip(bytes.chunks_mut(8)) {
        // Byte `i` keeps bit `i`. The sum sets its highest bit if it is not zero, without a carry.
        let kept = (u64::from(bits) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
        let spread = (kept + 0x7f7f_7f7f_7f7f_7f7f).to_le_bytes();
        bytes.copy_from_slice(&spread[..bytes.len()]);
    }
}

/// The highest bits of bytes: [`spread`] reversed.
#[inline(always)]
fn highest_bits(bytes: [u8; 8]) -> u8 {
    // The product moves bit `8 i` to bit `56 + i`; its terms do not overlap.
    let lowest = (u64::from_le_bytes(bytes) >> 7) & 0x0101_0101_0101_0101;
    (lowest.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}
