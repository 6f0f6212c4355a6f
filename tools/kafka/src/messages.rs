//! What a member says on standard error.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use echoless::message::without_controls;
use rdkafka::error::KafkaError;

/// Between two lines about one error.
const PAUSE: Duration = Duration::from_secs(10);

/// Writes a line, with names and errors as a terminal can show them. Nobody may be there to read
/// it, and the run goes on.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "echoless-kafka: {}", without_controls(text));
}

/// Writes lines as they are, but for characters that a terminal would obey.
pub(crate) fn say_lines(text: &str) {
    let lines = text.split('\n').map(without_controls).collect::<Vec<_>>();
    let _ = io::stderr().write_all(lines.join("\n").as_bytes());
}

/// Locks; a panic elsewhere ends the process anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says what librdkafka reports again and again, while brokers are away, once in a while.
#[derive(Debug, Default)]
pub(crate) struct Repeats(Mutex<BTreeMap<String, Instant>>);

impl Repeats {
    /// Writes a line about an error, unless there was one with its code a short time ago: the
    /// reasons differ in counts and times, and most errors come twice.
    pub(crate) fn say(&self, error: &KafkaError, reason: &str) {
        let code = format!("{:?}", error.rdkafka_error_code());
        let mut said = lock(&self.0);
        if said.get(&code).is_none_or(|at| at.elapsed() > PAUSE) {
            say(&format!("{error}: {reason}"));
            said.insert(code, Instant::now());
        }
    }
}
