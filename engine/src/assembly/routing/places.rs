//! Many partitions: one pass writes each key to a message of its owner, and remembers the place
//! where it went.
//!
//! The first message of each owner has the owner's number; a full one is followed by the next that
//! is free. In the drawing, eight keys have three owners, a message has space for two keys, and `-`
//! is free space:
//!
//! ```text
//!   batch            k0 k1 k2 k3 k4 k5 k6 k7
//!   owners            2  1  1  0  1  2  0  1
//!   message           0:k3 k6   1:k1 k2   2:k0 k5   3:k4 k7   4:- -   5:- -   6:- -
//!   owner             0         1         2         1         0       2       1
//!   places            4  2  3  0  6  5  1  7        message times 2, and the index in it
//!   answer to 3                   1  0              k4 is a duplicate
//!   verdicts          the bit of each key in the answers, at its place
//! ```
//!
//! The verdicts are looked up once, when all answers are there. The cost of a key does not depend
//! on the number of partitions while the open messages of all of them are cached. The memory is in
//! proportion to the keys, and to the partitions: a message for each, where a ring has four or
//! more.

use std::ops::Range;

use super::MessageIndex;
use crate::assembly::message::MESSAGE_KEYS;
use crate::hash::KeyHash;
use crate::kernels::isa::{DetectedKernel, HotLoop};
use crate::partition::Partitioning;
use crate::verdicts::Verdicts;

/// The number of keys whose places are found before the keys are written to them.
const BLOCK: usize = 64;

/// Where the keys of one batch went, and the answers so far. Its buffers are reused.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    /// The place of each key: the number of its message times [`MESSAGE_KEYS`], plus its index in
    /// the message.
    places: Vec<u32>,
    /// For each owner, the place behind its last key: in its last message, or in an empty one that
    /// follows it.
    ends: Vec<u32>,
    /// For each full message, the next one of the same owner. Says nothing of other messages.
    following: Vec<u32>,
    /// For each owner, its first message without an answer.
    unanswered: Vec<u32>,
    /// The answer to each message; zero before it arrives.
    answers: Vec<u64>,
    /// The keys of each message that have no verdict; empty while there are none.
    unknown: Vec<u64>,
}

/// Writes the keys of a batch, of fewer than 2^31 keys, to messages of their owners.
pub(super) struct Place<'a> {
    pub(super) partitioning: &'a Partitioning,
    pub(super) keys: &'a [KeyHash],
    /// The messages, [`MESSAGE_KEYS`] keys each. Behind the keys of a message are some of earlier
    /// batches.
    pub(super) messages: &'a mut Vec<KeyHash>,
    pub(super) places: &'a mut Places,
}

impl HotLoop for Place<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            partitioning,
            keys,
            messages,
            places,
        } = self;
        let mut free = places.reset(partitioning.count(), keys.len());
        if messages.len() < places.answers.len() * MESSAGE_KEYS {
            messages.resize(places.answers.len() * MESSAGE_KEYS, KeyHash(0));
        }
        let Places {
            places,
            ends,
            following,
            ..
        } = places;
        let mut owners = [0; BLOCK];
        for (keys, places) in keys.chunks(BLOCK).zip(places.chunks_mut(BLOCK)) {
            let owners = &mut owners[..keys.len()];
            partitioning.partitions_of(keys, owners);
            // Two loops: the address of a key depends on a count that was just read. If it were
            // written at once, the CPU could read no further count before it has that address,
            // because the two may overlap for all it can tell.
            for (owner, place) in owners.iter().zip(&mut *places) {
                let end = &mut ends[*owner as usize];
                *place = *end;
                *end += 1;
                if (*end as usize).is_multiple_of(MESSAGE_KEYS) {
                    following[*place as usize / MESSAGE_KEYS] = free;
                    *end = free * MESSAGE_KEYS as u32;
                    free += 1;
                }
            }
            for (key, place) in keys.iter().zip(places) {
                messages[*place as usize] = *key;
            }
        }
    }
}

impl Places {
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
        self.places.resize(keys, 0);
        self.ends.clear();
        self.ends
            .extend((0..owners).map(|owner| owner * MESSAGE_KEYS as u32));
        self.following.resize(messages, 0);
        self.unanswered.clear();
        self.unanswered.extend(0..owners);
        self.answers.clear();
        self.answers.resize(messages, 0);
        self.unknown.clear();
        owners
    }

    /// The places of a message of an owner, its first one for `None`, and the next message. Only an
    /// owner without keys has an empty message.
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
        let message = self.next_unanswered(owner);
        self.answers[message] = answer;
    }

    /// The next message of an owner has no verdicts.
    #[cold]
    pub(super) fn answer_unknown(&mut self, owner: usize) {
        let message = self.next_unanswered(owner);
        self.mark_unknown(message);
    }

    fn next_unanswered(&mut self, owner: usize) -> usize {
        let message = self.unanswered[owner] as usize;
        // Behind the last message this says nothing, and no answer follows.
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
        self.unknown.resize(self.answers.len(), 0);
        self.unknown[message] = u64::MAX;
    }

    /// Writes the verdicts of all keys, and which keys have none.
    pub(super) fn look_up(&self, kernel: DetectedKernel, verdicts: &mut Verdicts) {
        kernel.run(LookUp {
            places: &self.places,
            answers: &self.answers,
            bits: verdicts.words_mut(),
        });
        if !self.unknown.is_empty() {
            kernel.run(LookUp {
                places: &self.places,
                answers: &self.unknown,
                bits: verdicts.unknown_words_mut(),
            });
        }
    }
}

/// The bit of each key in the answers, at its place.
struct LookUp<'a> {
    places: &'a [u32],
    answers: &'a [u64],
    bits: &'a mut [u64],
}

impl HotLoop for LookUp<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (places, bits) in self.places.chunks(64).zip(self.bits) {
            // The last key first: its bit is shifted up most.
            *bits = places.iter().rev().fold(0, |bits, place| {
                let (message, key) = (*place as usize / MESSAGE_KEYS, *place % MESSAGE_KEYS as u32);
                bits << 1 | self.answers[message] >> key & 1
            });
        }
    }
}
