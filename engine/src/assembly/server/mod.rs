//! The worker half: the owner of one partition, its links to all ports, and the order in which it
//! applies messages.
//!
//! A [pass](pass::Pass) gathers all messages that are due into one array of keys; probes the filter
//! once for the whole array; and cuts the verdict bits into one answer for each message:
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
//!
//! Which messages are due is the difference between the two servers: [`ArrivalServer`], of an
//! engine, takes them as they come from any number of ports that come and go; [`NumberedServer`],
//! of a mesh, takes them by the numbers of their batches from a fixed set of nodes.

mod arrival;
mod numbered;
mod pass;

pub(super) use arrival::{ArrivalServer, Attached};
pub(super) use numbered::NumberedServer;
pub(super) use pass::OnPanic;

use super::message::{Answer, Request};
use crate::sync::check;
use crate::transport::{Consumer, Producer};

/// The server's ends of the rings from and to one port.
#[derive(Debug)]
pub(super) struct ServerLink {
    requests: Consumer<Request>,
    answers: Producer<Answer>,
    /// How many messages at the front of `requests` belong to the current pass. They are released
    /// only when their answers are ready.
    gathered: usize,
    /// The answers of the current pass, in the order of the messages.
    answers_of_pass: Vec<Answer>,
}

impl ServerLink {
    pub(super) const fn new(requests: Consumer<Request>, answers: Producer<Answer>) -> Self {
        Self {
            requests,
            answers,
            gathered: 0,
            answers_of_pass: Vec::new(),
        }
    }

    /// Releases the messages of the current pass, and pushes their answers.
    fn answer(&mut self) {
        // First, so that the wake for the answers covers this room, too.
        self.requests.release_without_notify(self.gathered);
        self.gathered = 0;
        if self.answers_of_pass.is_empty() {
            // No thread waits for an answer, but the port may wait for room.
            self.answers.hint();
            return;
        }
        let count = self.answers_of_pass.len();
        // The port never has more requests unanswered than `answers` has slots, so this fails only
        // if the port is gone.
        let pushed = self.answers.push_batch(self.answers_of_pass.drain(..));
        check!(pushed == Ok(count) || self.answers.is_closed());
    }

    /// Closes the server's ends. Answers in the ring can still be taken.
    fn close(&mut self) {
        self.requests.close();
        self.answers.close();
    }
}
