//! The worker half: one partition, the ports that bring it keys, and the order in which they are applied.

use crate::error::Disconnected;
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::sync::check;
use crate::transport::{Consumer, PopError, Producer};

use super::message::{Kind, Request};

/// How many messages are answered in one pass, before the thread looks around again: 4096 keys.
const MESSAGES_AT_ONCE: usize = 64;

/// The rings between one port and this partition.
#[derive(Debug)]
pub(super) struct ServerLink {
    requests: Consumer<Request>,
    answers: Producer<u64>,
    /// How many messages at the front are in the pass that is made.
    taken: usize,
    /// The answers to them.
    answered: Vec<u64>,
}

impl ServerLink {
    pub(super) const fn new(requests: Consumer<Request>, answers: Producer<u64>) -> Self {
        Self {
            requests,
            answers,
            taken: 0,
            answered: Vec::new(),
        }
    }
}

/// In which order the messages of several ports are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// As they come. A port may go at any time.
    Arrival,
    /// By the numbers of their batches, from 0 on. A port that goes without farewell leaves a gap, which is an error.
    Numbered,
}

/// The owner of one partition.
#[derive(Debug)]
pub(super) struct PartitionServer<F> {
    filter: F,
    links: Vec<ServerLink>,
    order: Order,
    /// The batch that is applied now, in order of turns.
    next_batch: u64,
    /// The link that is looked at first.
    first: usize,
    /// The keys of the pass that is made.
    keys: Vec<KeyHash>,
    /// Its messages: the link of each and how many of the keys are its own.
    messages: Vec<(usize, usize)>,
    /// Its verdicts, in the order of the keys.
    verdicts: Vec<u64>,
}

/// What the front of an link is to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Front {
    /// A message that is due.
    Due,
    /// A message of a later batch.
    Early,
    /// A message of a batch that has ended.
    Late(u64),
    /// Nothing yet.
    Nothing,
    /// The port has left in good order.
    Finish,
    /// The port is gone.
    LinkClosed,
}

impl<F: Filter> PartitionServer<F> {
    pub(super) const fn new(filter: F, links: Vec<ServerLink>, order: Order) -> Self {
        Self {
            filter,
            links,
            order,
            next_batch: 0,
            first: 0,
            keys: Vec::new(),
            messages: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    pub(super) fn into_filter(self) -> F {
        self.filter
    }

    /// Takes no more messages than are there, but for those that are being pushed at this moment.
    pub(super) fn close(&mut self) {
        for link in &mut self.links {
            link.requests.close();
        }
    }

    /// Answers the messages that are due, all in one pass through the filter; false if there was none.
    ///
    /// # Errors
    /// [`Disconnected`] if, in order of turns, the batch that is due can never come, or one comes again.
    pub(super) fn serve(&mut self) -> Result<bool, Disconnected> {
        self.gather();
        let served = !self.messages.is_empty();
        self.answer();
        let mut stalled = !served;
        for index in 0..self.links.len() {
            match (self.order, self.front(index)) {
                (Order::Numbered, Front::LinkClosed) => return Err(Disconnected::Peer(index)),
                (_, Front::Late(number)) => return Err(Disconnected::Repeated(number)),
                (_, Front::Early | Front::Finish | Front::LinkClosed) => {}
                (_, Front::Due | Front::Nothing) => stalled = false,
            }
        }
        if stalled && self.order == Order::Numbered && !self.is_finished() {
            return Err(Disconnected::MissingBatch(self.next_batch));
        }
        Ok(served)
    }

    /// Whether [`serve`](Self::serve) would do something: answer, or find an error.
    pub(super) fn is_ready(&self) -> bool {
        let mut fronts = (0..self.links.len()).map(|index| self.front(index));
        match self.order {
            Order::Arrival => fronts.any(|front| front == Front::Due),
            Order::Numbered => {
                let mut stalled = true;
                for front in fronts {
                    match front {
                        Front::Due | Front::Late(_) | Front::LinkClosed => return true,
                        Front::Nothing => stalled = false,
                        Front::Early | Front::Finish => {}
                    }
                }
                stalled && !self.is_finished()
            }
        }
    }

    /// Whether every port has left in good order, and no message of theirs is left.
    pub(super) fn is_finished(&self) -> bool {
        (0..self.links.len()).all(|index| self.front(index) == Front::Finish)
    }

    fn front(&self, index: usize) -> Front {
        match self.links[index].requests.peek(0) {
            Err(PopError::Empty) => Front::Nothing,
            Err(PopError::Closed) => Front::LinkClosed,
            Ok(request) if request.kind == Kind::Finish => Front::Finish,
            Ok(request) if self.is_due(&request) => Front::Due,
            Ok(request) if request.batch_number < self.next_batch => {
                Front::Late(request.batch_number)
            }
            Ok(_) => Front::Early,
        }
    }

    fn is_due(&self, request: &Request) -> bool {
        request.kind != Kind::Finish
            && (self.order == Order::Arrival || request.batch_number == self.next_batch)
    }

    /// Copies the keys of messages that are due: the longer the pass, the more of it runs with its lines fetched ahead.
    fn gather(&mut self) {
        self.keys.clear();
        self.messages.clear();
        let count = self.links.len();
        // In order of turns, one link after the other becomes due; in order of arrival, each is looked at once.
        let mut fruitless = 0;
        while fruitless < count && self.messages.len() < MESSAGES_AT_ONCE {
            let before = self.messages.len();
            self.gather_from(self.first);
            fruitless += 1;
            if self.order == Order::Numbered && self.messages.len() > before {
                fruitless = 0;
            }
            self.first = (self.first + 1) % count;
        }
    }

    /// Copies what is due at one link: in order of turns, as far as the batch goes.
    fn gather_from(&mut self, index: usize) {
        let batch = self.next_batch;
        while self.messages.len() < MESSAGES_AT_ONCE && self.next_batch == batch {
            let link = &self.links[index];
            let Ok(request) = link.requests.peek(link.taken) else {
                return;
            };
            if !self.is_due(&request) {
                return;
            }
            self.keys.extend_from_slice(request.keys());
            self.messages.push((index, request.keys().len()));
            let ends_batch = request.kind == Kind::LastOfBatch && self.order == Order::Numbered;
            self.next_batch += u64::from(ends_batch);
            self.links[index].taken += 1;
        }
    }

    /// Judges the keys that were gathered, and answers each message in its link.
    fn answer(&mut self) {
        if self.messages.is_empty() {
            return;
        }
        self.verdicts.clear();
        self.verdicts
            .resize(self.keys.len().div_ceil(u64::BITS as usize), 0);
        self.filter.observe_words(&self.keys, &mut self.verdicts);
        let mut start = 0;
        for (index, count) in self.messages.drain(..) {
            let answer = bits(&self.verdicts, start, count);
            self.links[index].answered.push(answer);
            start += count;
        }
        for link in self.links.iter_mut().filter(|link| link.taken > 0) {
            // The port keeps no more questions open than there is room for answers, so this fails only if it is gone.
            let pushed = link.answers.push_batch(link.answered.drain(..));
            check!(pushed == Ok(link.taken) || link.answers.is_closed());
            link.requests.release(link.taken);
            link.taken = 0;
        }
    }
}

/// `count` bits (at most 64) from bit `start` of the words on.
fn bits(words: &[u64], start: usize, count: usize) -> u64 {
    let (word, shift) = (start / 64, start % 64);
    let low = words.get(word).map_or(0, |word| word >> shift);
    // Not needed at shift 0, where there is nothing to shift in from the next word.
    let high = words
        .get(word + 1)
        .map_or(0, |word| word << 1 << (63 - shift));
    (low | high) & u64::MAX.checked_shr(64 - count as u32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::bits;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_are_cut_out_of_words(words in prop::collection::vec(any::<u64>(), 1..4), start in 0usize..256, count in 0usize..=64) {
            prop_assume!(start + count <= words.len() * 64);
            let bit = |at: usize| words[at / 64] >> (at % 64) & 1;
            let expected = (0..count).fold(0, |bits, at| bits | bit(start + at) << at);
            prop_assert_eq!(bits(&words, start, count), expected);
        }
    }
}
