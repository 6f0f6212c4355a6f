//! The worker half: one partition, the ports that bring it keys, and the order in which they are applied.

use crate::error::Lost;
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::sync::check;
use crate::transport::{Consumer, PopError, Producer};

use super::message::{Kind, Request};

/// How many messages are answered in one pass, before the thread looks around again: 4096 keys.
const MESSAGES_AT_ONCE: usize = 64;

/// The rings between one port and this partition.
#[derive(Debug)]
pub(super) struct Inlet {
    requests: Consumer<Request>,
    answers: Producer<u64>,
    /// How many messages at the front are in the pass that is made.
    taken: usize,
    /// The answers to them.
    answered: Vec<u64>,
}

impl Inlet {
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
    Turns,
}

/// The owner of one partition.
#[derive(Debug)]
pub(super) struct PartitionServer<F> {
    filter: F,
    inlets: Vec<Inlet>,
    order: Order,
    /// The batch that is applied now, in order of turns.
    turn: u64,
    /// The inlet that is looked at first.
    first: usize,
    /// The keys of the pass that is made.
    keys: Vec<KeyHash>,
    /// Its messages: the inlet of each and how many of the keys are its own.
    messages: Vec<(usize, usize)>,
    /// Its verdicts, in the order of the keys.
    verdicts: Vec<u64>,
}

/// What the front of an inlet is to a server.
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
    Farewell,
    /// The port is gone.
    Gone,
}

impl<F: Filter> PartitionServer<F> {
    pub(super) const fn new(filter: F, inlets: Vec<Inlet>, order: Order) -> Self {
        Self {
            filter,
            inlets,
            order,
            turn: 0,
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
        for inlet in &mut self.inlets {
            inlet.requests.close();
        }
    }

    /// Answers the messages that are due, all in one pass through the filter; false if there was none.
    ///
    /// # Errors
    /// [`Lost`] if, in order of turns, the batch that is due can never come, or one comes again.
    pub(super) fn serve(&mut self) -> Result<bool, Lost> {
        self.gather();
        let served = !self.messages.is_empty();
        self.answer();
        let mut hopeless = !served;
        for index in 0..self.inlets.len() {
            match (self.order, self.front(index)) {
                (Order::Turns, Front::Gone) => return Err(Lost::Peer(index)),
                (_, Front::Late(number)) => return Err(Lost::Repeated(number)),
                (_, Front::Early | Front::Farewell | Front::Gone) => {}
                (_, Front::Due | Front::Nothing) => hopeless = false,
            }
        }
        if hopeless && self.order == Order::Turns && !self.is_finished() {
            return Err(Lost::Turn(self.turn));
        }
        Ok(served)
    }

    /// Whether [`serve`](Self::serve) would do something: answer, or find an error.
    pub(super) fn is_ready(&self) -> bool {
        let mut fronts = (0..self.inlets.len()).map(|index| self.front(index));
        match self.order {
            Order::Arrival => fronts.any(|front| front == Front::Due),
            Order::Turns => {
                let mut hopeless = true;
                for front in fronts {
                    match front {
                        Front::Due | Front::Late(_) | Front::Gone => return true,
                        Front::Nothing => hopeless = false,
                        Front::Early | Front::Farewell => {}
                    }
                }
                hopeless && !self.is_finished()
            }
        }
    }

    /// Whether every port has left in good order, and no message of theirs is left.
    pub(super) fn is_finished(&self) -> bool {
        (0..self.inlets.len()).all(|index| self.front(index) == Front::Farewell)
    }

    fn front(&self, index: usize) -> Front {
        match self.inlets[index].requests.peek(0) {
            Err(PopError::Empty) => Front::Nothing,
            Err(PopError::Closed) => Front::Gone,
            Ok(request) if request.kind == Kind::Farewell => Front::Farewell,
            Ok(request) if self.is_due(&request) => Front::Due,
            Ok(request) if request.turn < self.turn => Front::Late(request.turn),
            Ok(_) => Front::Early,
        }
    }

    fn is_due(&self, request: &Request) -> bool {
        request.kind != Kind::Farewell
            && (self.order == Order::Arrival || request.turn == self.turn)
    }

    /// Copies the keys of messages that are due: the longer the pass, the more of it runs with its lines fetched ahead.
    fn gather(&mut self) {
        self.keys.clear();
        self.messages.clear();
        let count = self.inlets.len();
        // In order of turns, one inlet after the other becomes due; in order of arrival, each is looked at once.
        let mut fruitless = 0;
        while fruitless < count && self.messages.len() < MESSAGES_AT_ONCE {
            let before = self.messages.len();
            self.gather_from(self.first);
            fruitless += 1;
            if self.order == Order::Turns && self.messages.len() > before {
                fruitless = 0;
            }
            self.first = (self.first + 1) % count;
        }
    }

    /// Copies what is due at one inlet: in order of turns, as far as the turn goes.
    fn gather_from(&mut self, index: usize) {
        let turn = self.turn;
        while self.messages.len() < MESSAGES_AT_ONCE && self.turn == turn {
            let inlet = &self.inlets[index];
            let Ok(request) = inlet.requests.peek(inlet.taken) else {
                return;
            };
            if !self.is_due(&request) {
                return;
            }
            self.keys.extend_from_slice(request.keys());
            self.messages.push((index, request.keys().len()));
            let ends_turn = request.kind == Kind::LastOfTurn && self.order == Order::Turns;
            self.turn += u64::from(ends_turn);
            self.inlets[index].taken += 1;
        }
    }

    /// Judges the keys that were gathered, and answers each message in its inlet.
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
            self.inlets[index].answered.push(answer);
            start += count;
        }
        for inlet in self.inlets.iter_mut().filter(|inlet| inlet.taken > 0) {
            // The port keeps no more questions open than there is room for answers, so this fails only if it is gone.
            let pushed = inlet.answers.push_batch(inlet.answered.drain(..));
            check!(pushed == Ok(inlet.taken) || inlet.answers.is_closed());
            inlet.requests.release(inlet.taken);
            inlet.taken = 0;
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
