//! What a member says on standard error.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// Writes a line. Nobody may be there to read it, and the run goes on.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "echoless-kafka: {text}");
}

/// Says what librdkafka reports again and again once.
#[derive(Debug, Default)]
pub(crate) struct Repeats(Mutex<String>);

impl Repeats {
    /// Writes a line that differs from the last one.
    pub(crate) fn say(&self, text: &str) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != text {
            say(text);
            text.clone_into(&mut last);
        }
    }
}
