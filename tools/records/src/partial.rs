//! Inputs that cannot be read to their end: what is before is passed on, the rest is left out, a
//! warning names the input, and the run goes on with the next one. `--strict` ends the run instead.
//!
//! A feed hands such an input to its [`PartialInputs`]. The next chunk carries it to the delivery,
//! which warns, so the order of messages does not depend on the threads.

use crate::failure::Failure;

/// What the part of an input that is left out may have held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing: bytes behind the data are none of it.
    Nothing,
    /// At most one record whose end is missing: the writer of the input was stopped. The run ends
    /// well.
    UnfinishedEnd,
    /// Records that the input has. The run ends with the exit code of a failure.
    Records,
}

/// An input of which only the beginning was read.
#[derive(Debug)]
pub struct PartialInput {
    /// What would have ended the run.
    pub failure: Failure,
    /// What is lost.
    pub loss: Loss,
}

impl PartialInput {
    /// The line about it in a run that goes on.
    pub fn warning(&self) -> String {
        match self.loss {
            Loss::Nothing => format!("{}, ignored", self.failure),
            Loss::UnfinishedEnd | Loss::Records => {
                format!("{} (--strict ends the run at such an input)", self.failure)
            }
        }
    }
}

/// The partial inputs that no chunk carries yet, and the policy on them.
#[derive(Debug)]
pub struct PartialInputs {
    strict: bool,
    pending: Vec<PartialInput>,
}

impl PartialInputs {
    /// With `strict`, a partial input ends the run.
    pub const fn new(strict: bool) -> Self {
        Self {
            strict,
            pending: Vec::new(),
        }
    }

    /// Leaves out the rest of the current input.
    ///
    /// # Errors
    /// The failure, if a partial input ends the run.
    pub fn leave(&mut self, failure: Failure, loss: Loss) -> Result<(), Failure> {
        if self.strict {
            return Err(failure);
        }
        self.pending.push(PartialInput { failure, loss });
        Ok(())
    }

    /// Those since the last call.
    pub fn take(&mut self) -> Vec<PartialInput> {
        std::mem::take(&mut self.pending)
    }
}
