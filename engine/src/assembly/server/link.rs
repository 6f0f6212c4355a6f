//! The two rings between a port and one partition, from the server's side: messages in, and answers
//! out once a whole pass is judged.

use crate::assembly::mailbox::ReadyMark;
use crate::assembly::message::{Answer, Request};
use crate::assembly::port_index::PortIndex;
use crate::sync::{Arc, check, unmodelled};
use crate::transport::{Consumer, Producer};

/// The server's ends of the rings from and to one port.
#[derive(Debug)]
pub(in crate::assembly) struct ServerLink {
    pub(super) requests: Consumer<Request>,
    answers: Producer<Answer>,
    /// How many messages at the front of `requests` belong to the current pass. They are released
    /// only when their answers are ready.
    pub(super) gathered: usize,
    /// The answers of the current pass, in the order of the messages.
    pub(super) answers_of_pass: Vec<Answer>,
}

impl ServerLink {
    pub(in crate::assembly) const fn new(
        requests: Consumer<Request>,
        answers: Producer<Answer>,
    ) -> Self {
        Self {
            requests,
            answers,
            gathered: 0,
            answers_of_pass: Vec::new(),
        }
    }

    /// Releases the messages of the current pass, and pushes their answers.
    pub(super) fn answer(&mut self) {
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
}

/// A link on its way to its server.
#[derive(Debug)]
pub(in crate::assembly) struct Attached {
    pub(in crate::assembly) link: ServerLink,
    pub(in crate::assembly) mark: Arc<ReadyMark>,
    /// Keeps the index from other ports while the link exists.
    pub(in crate::assembly) index: unmodelled::Arc<PortIndex>,
}

/// The links by the index of their port.
#[derive(Debug, Default)]
pub(super) struct LinksByPort(pub(super) Vec<Option<Attached>>);

impl LinksByPort {
    /// The link of a gathered message.
    pub(super) fn link(&mut self, index: usize) -> &mut ServerLink {
        let slot = self.0[index].as_mut();
        &mut slot
            .expect("a link stays while its messages are in a pass")
            .link
    }
}
