//! Many partitions: the keys are sorted by owner, and the position in the batch of each key is
//! remembered.
//!
//! It is a counting sort. In the drawing, eight keys have three owners, and the answer of owner 1
//! has a bit for each of its four keys:
//!
//! ```text
//!   batch          k0 k1 k2 k3 k4 k5 k6 k7
//!   owners          2  1  1  0  1  2  0  1
//!   keys           k3 k6 | k1 k2 k4 k7 | k0 k5       by owner, in the order of the batch
//!   positions       3  6 |  1  2  4  7 |  0  5       of these keys in the batch
//!   ends           0      2             6      8
//!   answer                   1  0  1  0              k1 and k4 are duplicates
//!   deposit                  1     4                 the bits to set in the verdicts of the batch
//! ```
//!
//! The cost of a key does not depend on the number of partitions while the open lines of all of
//! them are cached, and the memory is in proportion to the keys: 16 bytes each while the batch is
//! routed, 4 until it is answered.

use crate::assembly::message::MESSAGE_KEYS;
use crate::hash::KeyHash;
use crate::kernels::isa::HotLoop;
use crate::partition::Partitioning;

/// The keys of one batch, sorted by owner. Its buffers are reused from batch to batch.
#[derive(Debug, Clone, Default)]
pub(super) struct SortedKeys {
    keys: Vec<KeyHash>,
    /// The owner of each key, in the order of the batch.
    owners: Vec<u32>,
    /// Where the keys of each owner end in `keys`, after a leading 0.
    ends: Vec<u32>,
}

/// The position in its batch of each key, sorted by owner, and how many keys are answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Positions {
    positions: Vec<u32>,
    /// Where those of each owner end in `positions`, after a leading 0.
    ends: Vec<u32>,
    /// For each owner, the index in `positions` of its next key without an answer.
    next: Vec<u32>,
}

impl SortedKeys {
    pub(super) fn keys_of(&self, owner: usize) -> &[KeyHash] {
        &self.keys[self.ends[owner] as usize..self.ends[owner + 1] as usize]
    }
}

/// Sorts the keys of a batch, of fewer than 2^32 keys, by owner.
pub(super) struct Sort<'a> {
    pub(super) partitioning: &'a Partitioning,
    pub(super) keys: &'a [KeyHash],
    pub(super) sorted: &'a mut SortedKeys,
    pub(super) positions: &'a mut Positions,
}

impl HotLoop for Sort<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            partitioning,
            keys,
            sorted,
            positions:
                Positions {
                    positions,
                    ends,
                    next,
                },
        } = self;
        let SortedKeys {
            keys: by_owner,
            owners,
            ends: owner_ends,
        } = sorted;
        // Each partition has rings of its own: memory ends long before 2^32 of them.
        owners.resize(keys.len(), 0);
        partitioning.partitions_of(keys, owners);
        // Until the keys are placed, `ends[owner + 1]` counts the keys of the owner, and then says
        // where its next key goes; after its last key, that is its end.
        ends.clear();
        ends.resize(partitioning.count() + 1, 0);
        let of_owner = &mut ends[1..];
        for owner in &*owners {
            of_owner[*owner as usize] += 1;
        }
        let mut start = 0;
        for end in &mut *of_owner {
            start += std::mem::replace(end, start);
        }
        next.clear();
        next.extend_from_slice(of_owner);
        positions.resize(keys.len(), 0);
        for (position, owner) in (0u32..).zip(&*owners) {
            let end = &mut of_owner[*owner as usize];
            positions[*end as usize] = position;
            *end += 1;
        }
        // The keys follow their positions. Reads from all over the batch overlap each other;
        // writes to all owners at once would not, so only the positions, half as long, are written
        // in that way.
        by_owner.clear();
        by_owner.extend(positions.iter().map(|position| keys[*position as usize]));
        owner_ends.clear();
        owner_ends.extend_from_slice(ends);
    }
}

impl Positions {
    /// Deposits the answer to the next message of an owner, one bit for each of its keys, into the
    /// verdicts of the batch.
    pub(super) fn deposit(&mut self, owner: usize, answer: u64, verdicts: &mut [u64]) {
        let next = &mut self.next[owner];
        let unanswered = &self.positions[*next as usize..self.ends[owner + 1] as usize];
        // Every message but the last of a batch is full.
        let message = &unanswered[..unanswered.len().min(MESSAGE_KEYS)];
        *next += message.len() as u32;
        // Bits behind the last key say nothing. A shift by 64 would overflow.
        let mut set = answer & !u64::MAX.checked_shl(message.len() as u32).unwrap_or(0);
        while set != 0 {
            let position = message[set.trailing_zeros() as usize];
            verdicts[(position / 64) as usize] |= 1 << (position % 64);
            set &= set - 1;
        }
    }

    /// Whether the owner has no key of the batch.
    pub(super) fn is_empty(&self, owner: usize) -> bool {
        self.ends[owner] == self.ends[owner + 1]
    }

    /// Sets the bits of all keys of an owner behind the first `sent` ones.
    #[cold]
    pub(super) fn mark_unsent(&self, owner: usize, sent: usize, unknown: &mut [u64]) {
        let owned = &self.positions[self.ends[owner] as usize..self.ends[owner + 1] as usize];
        for position in owned.iter().skip(sent) {
            unknown[(position / 64) as usize] |= 1 << (position % 64);
        }
    }
}
