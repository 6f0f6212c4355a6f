//! The worker half: one partition, the ports that bring it keys, and the order in which they are applied.

use crate::error::Lost;
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::transport::{Consumer, PopError, Producer};

use super::message::{Kind, MESSAGE_KEYS, Request};

/// How many messages of one port are answered in one pass, before the thread looks around again: 2048 keys.
const MESSAGES_AT_ONCE: usize = 32;

/// The rings between one port and this partition.
#[derive(Debug)]
pub(super) struct Inlet {
    pub(super) requests: Consumer<Request>,
    pub(super) answers: Producer<u64>,
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
    keys: Vec<KeyHash>,
    answers: Vec<u64>,
}

/// What the front of an inlet is to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Front {
    /// A message that is due.
    Due,
    /// A message of a later batch.
    Early,
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
            answers: Vec::new(),
        }
    }

    pub(super) fn into_filter(self) -> F {
        self.filter
    }

    /// Answers some of the messages that are due; false if there was none.
    ///
    /// # Errors
    /// [`Lost`] if, in order of turns, the batch that is due can never come.
    pub(super) fn serve(&mut self) -> Result<bool, Lost> {
        let count = self.inlets.len();
        let mut served = false;
        let mut hopeless = true;
        for offset in 0..count {
            let index = (self.first + offset) % count;
            served |= self.answer(index);
            match (self.order, self.front(index)) {
                (Order::Turns, Front::Gone) => return Err(Lost::Peer(index)),
                (_, Front::Early | Front::Farewell | Front::Gone) => {}
                (_, Front::Due | Front::Nothing) => hopeless = false,
            }
        }
        self.first = (self.first + 1) % count.max(1);
        if hopeless && !served && self.order == Order::Turns && !self.is_finished() {
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
                        Front::Due | Front::Gone => return true,
                        Front::Nothing => hopeless = false,
                        Front::Early | Front::Farewell => {}
                    }
                }
                hopeless && !self.is_finished()
            }
        }
    }

    /// Whether no message is left or will come, and no port is missed.
    pub(super) fn is_finished(&self) -> bool {
        (0..self.inlets.len()).all(|index| match self.front(index) {
            Front::Farewell => true,
            Front::Gone => self.order == Order::Arrival,
            Front::Due | Front::Early | Front::Nothing => false,
        })
    }

    fn front(&self, index: usize) -> Front {
        match self.inlets[index].requests.peek(0) {
            Err(PopError::Empty) => Front::Nothing,
            Err(PopError::Closed) => Front::Gone,
            Ok(request) if request.kind == Kind::Farewell => Front::Farewell,
            Ok(request) if !self.is_due(&request) => Front::Early,
            Ok(_) => Front::Due,
        }
    }

    fn is_due(&self, request: &Request) -> bool {
        request.kind != Kind::Farewell
            && (self.order == Order::Arrival || request.turn == self.turn)
    }

    /// Answers the messages at the front of an inlet that are due and there, all in one pass through the filter; false if none is.
    fn answer(&mut self, index: usize) -> bool {
        self.keys.clear();
        let mut messages = 0;
        let mut ends_turn = false;
        while messages < MESSAGES_AT_ONCE && !ends_turn {
            let Ok(request) = self.inlets[index].requests.peek(messages) else {
                break;
            };
            if !self.is_due(&request) {
                break;
            }
            self.keys.extend_from_slice(request.keys());
            messages += 1;
            ends_turn = request.kind == Kind::LastOfTurn;
            // A message that is not full ends the pass: the words of the next ones would not be its answers.
            if request.keys().len() < MESSAGE_KEYS {
                break;
            }
        }
        if messages == 0 {
            return false;
        }
        self.answers.clear();
        self.answers.resize(messages, 0);
        let words = self.keys.len().div_ceil(MESSAGE_KEYS);
        self.filter
            .observe_words(&self.keys, &mut self.answers[..words]);
        let inlet = &mut self.inlets[index];
        // The port keeps no more questions open than there is room for answers, so this fails only if it is gone.
        let pushed = inlet.answers.push_batch(self.answers.iter().copied());
        debug_assert!(pushed == Ok(messages) || inlet.answers.is_closed());
        inlet.requests.release(messages);
        self.turn += u64::from(ends_turn && self.order == Order::Turns);
        true
    }
}
