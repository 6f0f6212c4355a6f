//! The progress line on the terminal: bytes, rate and, if the length of the inputs is known, the
//! time left.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

const KNOWN_LENGTH: &str =
    "{decimal_bytes} of {decimal_total_bytes}  {percent} %  {decimal_bytes_per_sec}  {eta} left";
const UNKNOWN_LENGTH: &str = "{decimal_bytes}  {decimal_bytes_per_sec}  {elapsed}";

/// A progress line. Dropping it clears the line.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The bytes that are shown before those of this pass.
    before: u64,
}

impl Progress {
    /// Shows progress if standard error is a terminal, unless records go to a terminal as well.
    pub(crate) fn new(total_bytes: Option<u64>, wanted: bool, records_on_stdout: bool) -> Self {
        let among_records = records_on_stdout && io::stdout().is_terminal();
        if !wanted || !io::stderr().is_terminal() || among_records {
            return Self {
                bar: ProgressBar::hidden(),
                before: 0,
            };
        }
        let (bar, template) = match total_bytes {
            Some(total) => (ProgressBar::new(total), KNOWN_LENGTH),
            None => (ProgressBar::no_length(), UNKNOWN_LENGTH),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, before: 0 }
    }

    /// Begins another pass, after one of so many bytes.
    pub(crate) fn begin_after(&mut self, bytes: u64) {
        self.before = bytes;
    }

    /// Sets the number of bytes read so far in this pass.
    pub(crate) fn set(&self, bytes: u64) {
        self.bar.set_position(self.before + bytes);
    }

    /// Clears the line while something else is written.
    pub(crate) fn pause(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// Clears the line.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
