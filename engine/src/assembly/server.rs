//! The worker half: one partition, the ports that bring it keys, and the order in which they are applied.

use crate::error::Lost;
use crate::filters::Filter;
use crate::transport::{Consumer, PopError, Producer};

use super::message::{Kind, Request};

/// How many messages are answered before the thread looks around again.
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
}

/// What the front of an inlet is to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Front {
    /// A message that is due, with room for its answer.
    Due,
    /// A message that is due, but the port has not taken its earlier answers.
    Blocked,
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
        let mut served = 0;
        let mut hopeless = true;
        for offset in 0..count {
            let index = (self.first + offset) % count;
            while served < MESSAGES_AT_ONCE && self.front(index) == Front::Due {
                self.answer(index);
                served += 1;
            }
            match (self.order, self.front(index)) {
                (Order::Turns, Front::Gone) => return Err(Lost::Peer(index)),
                (_, Front::Early | Front::Farewell | Front::Gone) => {}
                (_, Front::Due | Front::Blocked | Front::Nothing) => hopeless = false,
            }
        }
        self.first = (self.first + 1) % count.max(1);
        if hopeless && served == 0 && self.order == Order::Turns && !self.is_finished() {
            return Err(Lost::Turn(self.turn));
        }
        Ok(served > 0)
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
                        Front::Blocked | Front::Nothing => hopeless = false,
                        Front::Early | Front::Farewell => {}
                    }
                }
                hopeless && !self.is_finished()
            }
        }
    }

    /// Whether no message is left or will come.
    pub(super) fn is_finished(&self) -> bool {
        (0..self.inlets.len())
            .all(|index| matches!(self.front(index), Front::Gone | Front::Farewell))
    }

    fn front(&self, index: usize) -> Front {
        let inlet = &self.inlets[index];
        match inlet.requests.peek(0) {
            Err(PopError::Empty) => Front::Nothing,
            Err(PopError::Closed) => Front::Gone,
            Ok(request) if request.kind == Kind::Farewell => Front::Farewell,
            Ok(request) if self.order == Order::Turns && request.turn != self.turn => Front::Early,
            // A port that is gone takes no answers, but its keys count.
            Ok(_) if inlet.answers.is_ready() => Front::Due,
            Ok(_) => Front::Blocked,
        }
    }

    /// Answers the front message of an inlet, which is due.
    fn answer(&mut self, index: usize) {
        let inlet = &mut self.inlets[index];
        let mut mask = [0];
        let last_of_turn = {
            let Ok(request) = inlet.requests.peek(0) else {
                return;
            };
            if let Ok(next) = inlet.requests.peek(1) {
                self.filter.prefetch(next.keys());
            }
            let words = request.count.div_ceil(64);
            self.filter
                .observe_words(request.keys(), &mut mask[..words]);
            request.kind == Kind::LastOfTurn
        };
        // Fails only if the port is gone, and then nobody waits for the answer.
        let _ = inlet.answers.try_push(mask[0]);
        inlet.requests.release(1);
        if last_of_turn && self.order == Order::Turns {
            self.turn += 1;
        }
    }
}
