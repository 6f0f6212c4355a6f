//! The worker half: the owner of one partition, its links to all ports, and the order in which it
//! applies messages.
//!
//! A pass gathers all messages that are due, from all links, into one array of keys; probes the
//! filter once for the whole array; and cuts the verdict bits into one answer for each message:
//!
//! ```text
//!   link 0: [a b c] [d]   link 1: [e f]
//!   keys:     a b c   d   e f            one pass, with lines prefetched across messages
//!   verdicts: 0 1 0   0   1 0            one bit for each key
//!   answers:  link 0 <- 0b010, link 0 <- 0b0, link 1 <- 0b01
//! ```
//!
//! A message with a later tick than the clock ends the pass: the keys before it are judged at the
//! clock as it is, and the next pass begins with the new tick.
//!
//! A pass in which the filter panics has changed the state of the server already, and its keys have
//! no verdicts. The server therefore either goes on without the filter, and answers every message
//! of this and later passes with *unknown*, or fails: it closes its links and applies no further
//! message. No panic of a filter unwinds through the server.

use crate::error::Disconnected;
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::sync::check;
use crate::transport::{Consumer, PopError, Producer};

use super::loss::PartitionState;
use super::message::{Answer, Kind, Request};
use super::owned::{Judged, OwnedFilter, Panic};

/// The limit of messages in one pass, 4096 keys. After a pass the thread checks its stop flag, its
/// port and the other links again.
const MESSAGES_PER_PASS: usize = 64;

/// The server's ends of the rings from and to one port.
#[derive(Debug)]
pub(super) struct ServerLink {
    requests: Consumer<Request>,
    answers: Producer<Answer>,
    /// How many messages at the front of `requests` belong to the current pass. They are released
    /// only after their answers are pushed.
    gathered: usize,
    /// The answers of the current pass, in the order of the messages.
    pass_answers: Vec<Answer>,
}

impl ServerLink {
    pub(super) const fn new(requests: Consumer<Request>, answers: Producer<Answer>) -> Self {
        Self {
            requests,
            answers,
            gathered: 0,
            pass_answers: Vec::new(),
        }
    }

    /// Closes the server's ends. Answers in the ring can still be taken.
    fn close(&mut self) {
        self.requests.close();
        self.answers.close();
    }
}

/// What a server does when its filter panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnPanic {
    /// It answers without verdicts until the partition is replaced.
    GoOn,
    /// It fails, and keeps the panic for the caller to resume.
    Fail,
}

/// The order in which a server applies the messages of several ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// In order of arrival. A port may be dropped at any time.
    Arrival,
    /// By batch number, from 0. A port that is dropped before its [`Kind::Finish`] may leave a gap,
    /// so that is an error.
    Numbered,
}

/// The owner of one partition.
#[derive(Debug)]
pub(super) struct PartitionServer<F> {
    /// The first field, because it must be dropped before the links close.
    owned: OwnedFilter<F>,
    on_panic: OnPanic,
    /// The panic of the filter, with [`OnPanic::Fail`].
    panic: Option<Panic>,
    /// The error that ended this server: its links are closed, and it applies no message.
    failed: Option<Disconnected>,
    /// The number of the partition.
    partition: usize,
    links: Vec<ServerLink>,
    order: Order,
    /// With [`Order::Numbered`], the number of the batch that is due; all earlier batches are
    /// applied.
    next_batch: u64,
    /// The link that the next pass gathers from first; rotates, so that no port starves.
    first: usize,
    /// The latest tick of all messages gathered so far.
    tick: u64,
    /// The keys of the current pass.
    keys: Vec<KeyHash>,
    /// The messages of the current pass: the link and the number of keys of each.
    messages: Vec<(usize, usize)>,
    /// The verdict bits of the current pass, in the order of `keys`.
    verdicts: Vec<u64>,
}

/// The state of the front of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Front {
    /// A message that can be applied now.
    Due,
    /// A message of a later batch.
    Early,
    /// A message of a batch that is already complete: its number was used twice, or numbers fell.
    Late(u64),
    /// No message; one may follow.
    Empty,
    /// The port has finished.
    Finish,
    /// The port is gone, and no message is left.
    LinkClosed,
}

impl<F: Filter> PartitionServer<F> {
    pub(super) const fn new(
        partition: usize,
        owned: OwnedFilter<F>,
        links: Vec<ServerLink>,
        order: Order,
        on_panic: OnPanic,
    ) -> Self {
        Self {
            owned,
            on_panic,
            panic: None,
            failed: None,
            partition,
            links,
            order,
            next_batch: 0,
            first: 0,
            tick: 0,
            keys: Vec::new(),
            messages: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// The filter, or the message of its panic if the partition is lost.
    pub(super) fn into_filter(self) -> Result<F, String> {
        self.owned.into_filter(self.tick)
    }

    /// The number of the partition.
    pub(super) const fn partition(&self) -> usize {
        self.partition
    }

    pub(super) fn state(&self) -> &PartitionState<F> {
        self.owned.state()
    }

    /// The panic to resume, with [`OnPanic::Fail`].
    pub(super) const fn take_panic(&mut self) -> Option<Panic> {
        self.panic.take()
    }

    pub(super) const fn has_panicked(&self) -> bool {
        self.panic.is_some()
    }

    /// Closes the rings to new messages. Those already in them, or being pushed at this moment, can
    /// still be applied.
    pub(super) fn close(&mut self) {
        for link in &mut self.links {
            link.requests.close();
        }
    }

    /// Applies and answers messages that are due, in one pass through the filter. Returns false if
    /// there was none.
    ///
    /// # Errors
    /// [`Disconnected`] if, with [`Order::Numbered`], the batch that is due can never arrive, or a
    /// number arrives again; or, with [`OnPanic::Fail`], if the filter panicked. The server is then
    /// closed, and every later call returns the same error.
    pub(super) fn serve(&mut self) -> Result<bool, Disconnected> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let served = self.serve_open();
        if let Err(failed) = served {
            self.failed = Some(failed);
            // Peers must not wait for answers that will never be pushed, nor may a later pass mix
            // with the messages of this one.
            self.links.iter_mut().for_each(ServerLink::close);
        }
        served
    }

    fn serve_open(&mut self) -> Result<bool, Disconnected> {
        self.gather();
        let served = !self.messages.is_empty();
        if served {
            self.answer()?;
        }
        let mut stalled = !served;
        for index in 0..self.links.len() {
            match (self.order, self.front(index)) {
                (Order::Numbered, Front::LinkClosed) => return Err(Disconnected::Peer(index)),
                (_, Front::Late(number)) => return Err(Disconnected::Repeated(number)),
                (_, Front::Early | Front::Finish | Front::LinkClosed) => {}
                (_, Front::Due | Front::Empty) => stalled = false,
            }
        }
        // Every link is at a later batch or has finished, so the batch that is due can never
        // arrive.
        if stalled && self.order == Order::Numbered && !self.is_finished() {
            return Err(Disconnected::MissingBatch(self.next_batch));
        }
        Ok(served)
    }

    /// Whether [`serve`](Self::serve) would answer a message or return an error. This is the
    /// condition that the owner parks on.
    pub(super) fn is_ready(&self) -> bool {
        if self.failed.is_some() {
            return true;
        }
        let mut fronts = (0..self.links.len()).map(|index| self.front(index));
        match self.order {
            Order::Arrival => fronts.any(|front| front == Front::Due),
            Order::Numbered => {
                let mut stalled = true;
                for front in fronts {
                    match front {
                        Front::Due | Front::Late(_) | Front::LinkClosed => return true,
                        Front::Empty => stalled = false,
                        Front::Early | Front::Finish => {}
                    }
                }
                stalled && !self.is_finished()
            }
        }
    }

    /// Whether every port has finished and all of its messages are applied.
    pub(super) fn is_finished(&self) -> bool {
        (0..self.links.len()).all(|index| self.front(index) == Front::Finish)
    }

    fn front(&self, index: usize) -> Front {
        match self.links[index].requests.peek(0) {
            Err(PopError::Empty) => Front::Empty,
            Err(PopError::Closed) => Front::LinkClosed,
            Ok(request) if request.header.kind == Kind::Finish => Front::Finish,
            Ok(request) if self.is_due(&request) => Front::Due,
            Ok(request) if request.header.batch_number < self.next_batch => {
                Front::Late(request.header.batch_number)
            }
            Ok(_) => Front::Early,
        }
    }

    fn is_due(&self, request: &Request) -> bool {
        request.header.kind != Kind::Finish
            && (self.order == Order::Arrival || request.header.batch_number == self.next_batch)
    }

    /// Copies the keys of messages that are due into one array. A long pass keeps the prefetching
    /// busy across messages; only the first few lines of a pass are probed without it.
    fn gather(&mut self) {
        self.keys.clear();
        self.messages.clear();
        let count = self.links.len();
        // By number, the end of a batch in one link makes the next batch due in another, so go
        // round until a whole round yields nothing. In order of arrival, one round is enough.
        let mut unproductive = 0;
        while unproductive < count && self.messages.len() < MESSAGES_PER_PASS {
            let before = self.messages.len();
            self.gather_from(self.first);
            unproductive += 1;
            if self.order == Order::Numbered && self.messages.len() > before {
                unproductive = 0;
            }
            self.first = (self.first + 1) % count;
        }
    }

    /// Copies the messages that are due in one link; with [`Order::Numbered`], at most to the end
    /// of the batch. Stops at a message that moves the clock, unless it is the first of the pass.
    fn gather_from(&mut self, index: usize) {
        let batch = self.next_batch;
        while self.messages.len() < MESSAGES_PER_PASS && self.next_batch == batch {
            let link = &self.links[index];
            let Ok(request) = link.requests.peek(link.gathered) else {
                return;
            };
            if !self.is_due(&request) {
                return;
            }
            if request.header.tick > self.tick {
                if !self.messages.is_empty() {
                    return;
                }
                self.tick = request.header.tick;
            }
            self.keys.extend_from_slice(request.keys());
            self.messages.push((index, request.keys().len()));
            let ends_batch =
                request.header.kind == Kind::LastOfBatch && self.order == Order::Numbered;
            self.next_batch += u64::from(ends_batch);
            self.links[index].gathered += 1;
        }
    }

    /// Probes the filter with the gathered keys, and pushes the answer to each message into its
    /// link.
    ///
    /// # Errors
    /// If the filter panicked, with [`OnPanic::Fail`]. No answer was pushed.
    fn answer(&mut self) -> Result<(), Disconnected> {
        self.verdicts.clear();
        self.verdicts
            .resize(self.keys.len().div_ceil(u64::BITS as usize), 0);
        let judged = self.owned.judge(self.tick, &self.keys, &mut self.verdicts);
        let unknown = match (judged, self.on_panic) {
            (Judged::Known, _) => false,
            (Judged::Panicked(panic), OnPanic::Fail) => {
                self.panic = Some(panic);
                return Err(Disconnected::Panicked(self.partition));
            }
            (Judged::Panicked(_), OnPanic::GoOn) | (Judged::Lost, _) => true,
        };
        let mut start = 0;
        for (index, count) in self.messages.drain(..) {
            let answer = Answer {
                bits: bits(&self.verdicts, start, count),
                unknown,
            };
            self.links[index].pass_answers.push(answer);
            start += count;
        }
        for link in self.links.iter_mut().filter(|link| link.gathered > 0) {
            // The port never has more requests unanswered than `answers` has slots, so this fails
            // only if the port is gone.
            let pushed = link.answers.push_batch(link.pass_answers.drain(..));
            check!(pushed == Ok(link.gathered) || link.answers.is_closed());
            link.requests.release(link.gathered);
            link.gathered = 0;
        }
        Ok(())
    }
}

/// The `count` bits (at most 64) of the words from bit `start` on, in the low bits of the result.
fn bits(words: &[u64], start: usize, count: usize) -> u64 {
    let (word, shift) = (start / 64, start % 64);
    let low = words.get(word).map_or(0, |word| word >> shift);
    // Two shifts, because at `shift` 0 a single one would be by 64; the result is then 0, as it
    // must be.
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
