//! The progress line on the terminal: what is done, and if the whole is known, the time left.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// What a progress line counts, with the templates of a known and of an unknown whole.
#[derive(Debug, Clone, Copy)]
pub enum Counted {
    /// Bytes of the inputs.
    Bytes,
    /// Records.
    Records,
    /// Records of simulations.
    Simulated,
}

impl Counted {
    const fn template(self, is_known: bool) -> &'static str {
        match (self, is_known) {
            (Self::Bytes, true) => {
                "{decimal_bytes} of {decimal_total_bytes}  {percent} %  {decimal_bytes_per_sec}  \
                 {eta} left"
            }
            (Self::Bytes, false) => "{decimal_bytes}  {decimal_bytes_per_sec}  {elapsed}",
            (_, true) => "{human_pos} of {human_len} records  {percent} %  {eta} left",
            (Self::Records, false) => "{human_pos} records  {elapsed}",
            (Self::Simulated, false) => "{human_pos} records simulated  {elapsed}",
        }
    }
}

/// Whether records that go to standard output are on a terminal: they are progress enough.
#[must_use]
pub fn are_shown(on_stdout: bool) -> bool {
    on_stdout && io::stdout().is_terminal()
}

/// A progress line. Dropping it clears the line.
#[derive(Debug)]
pub struct ProgressLine {
    bar: ProgressBar,
    /// What is shown before that of this pass.
    before: u64,
}

impl ProgressLine {
    /// Shows progress, if that is `wanted` and standard error is a terminal.
    #[must_use]
    pub fn new(counted: Counted, total: Option<u64>, wanted: bool) -> Self {
        let bar = match total {
            _ if !wanted || !io::stderr().is_terminal() => ProgressBar::hidden(),
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::no_length(),
        };
        if let Ok(style) = ProgressStyle::with_template(counted.template(total.is_some())) {
            bar.set_style(style);
        }
        Self { bar, before: 0 }
    }

    /// Sets how much there is in all passes.
    pub fn set_total(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// Begins another pass, after one of so many bytes or records.
    pub fn begin_after(&mut self, done: u64) {
        self.before = done;
    }

    /// Sets what is done in this pass.
    pub fn set(&self, done: u64) {
        self.bar.set_position(self.before + done);
    }

    /// Adds to what is done.
    pub fn add(&self, done: u64) {
        self.bar.inc(done);
    }

    /// Clears the line while something else is written.
    pub fn pause(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// Clears the line.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.end();
    }
}
