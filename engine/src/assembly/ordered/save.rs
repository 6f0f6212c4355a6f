//! Saving an ordered filter while threads use it.
//!
//! A block of lines is copied in a turn, so it is the block at one point of the stream. Later
//! blocks are of later points; the keys in between, which change lines that were copied, are
//! recorded and written before them:
//!
//! ```text
//!   tickets        s   .   .   .   s   .   .   s   .   .   .   s   .       s: those of the saver
//!   partition 0    copy ---------> take -----> take ---------> take
//!   partition 1    |               copy -----> take ---------> take
//!   partition 2    |               |           copy ---------> take
//!                  |               |           |               |
//!   state          block 0         keys 0,     keys 0 and 1,   keys, commit, end
//!                                  block 1     block 2
//! ```
//!
//! A turn takes as long as the copy of one block, of at most 1 MiB; everything is written outside.
//! Keys of lines that are still to be copied are not recorded, because their block has them.
//!
//! The saver sleeps after each block (`saver_rest`): where all cores are busy, a thread that does
//! not would take a share of them as large as that of any other thread, for as long as it runs.
//! Only the time of the block counts, and not that of the keys: their number grows with the sleep,
//! so where they come faster than a saver that rests could write them, the save would not end. Of a
//! block it counts at most [`MOST_WORK`], and an output that hangs is a rest itself.
//!
//! While an output hangs, keys are recorded. Their number has a limit (`saver_keys`), beyond which
//! the partition stops recording, the save ends with [`SaveError::Keys`], and the batches go on.
//!
//! A ticket of the saver passes all partitions that record, so what is taken is a consistent cut,
//! and so is the state: that of a run that ended at the last ticket.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::slice;
use std::thread;
use std::time::{Duration, Instant};

use super::filter::{OrderedFilter, OrderedState};
use super::handle::{OrderedHandle, Ticket};
use crate::assembly::loss::ExchangeError;
use crate::assembly::owned::OwnedFilter;
use crate::assembly::recorder::{Recorded, Recorder, write_recorded};
use crate::filters::lines::{LineFilter, Progress};
use crate::hash::KeyHasher;
use crate::memory::Line;
use crate::spec::FilterSpec;
use crate::state::{Header, MOST_BLOCK_LINES, StateError, StateWriter, check_filters};
use crate::sync::{Ordering, unpoisoned};

/// The reason why an ordered filter could not be saved. The filter is as if it had not been tried.
#[derive(Debug)]
#[non_exhaustive]
pub enum SaveError {
    /// The filter has another specification, or writing failed.
    State(StateError),
    /// A partition is lost, or was replaced meanwhile; or the filter was shut down, or the process
    /// was forked.
    Exchange(ExchangeError),
    /// Another thread saves the filter.
    Busy,
    /// More keys came during a write of the output than
    /// [`saver_keys`](crate::assembly::OrderedBuilder::saver_keys) allows, which is this number.
    Keys(u64),
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(error) => error.fmt(f),
            Self::Exchange(error) => write!(f, "cannot save the filter: {error}"),
            Self::Busy => write!(f, "cannot save the filter: another thread saves it"),
            Self::Keys(most) => write!(
                f,
                "cannot save the filter: its output is too slow: expected at most {most} keys to \
                 remember while a block is written"
            ),
        }
    }
}

impl Error for SaveError {
    /// The error of the operating system, if there is one.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // Its text is that of the error inside.
            Self::State(error) => error.source(),
            Self::Exchange(_) | Self::Busy | Self::Keys(_) => None,
        }
    }
}

impl From<StateError> for SaveError {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl From<ExchangeError> for SaveError {
    fn from(error: ExchangeError) -> Self {
        Self::Exchange(error)
    }
}

impl<F: LineFilter> OrderedFilter<F> {
    /// Writes the [state](crate::state) of the filter, whose partitions were built from `spec`,
    /// while other threads observe batches. No batch waits longer than the copy of 1 MiB takes.
    /// [`saver_rest`](crate::assembly::OrderedBuilder::saver_rest) limits how much of a core this
    /// takes.
    ///
    /// `cut` takes the ticket at which the state ends, and returns it with the bytes of the caller
    /// for its [commit](crate::state::Commit), such as a position in an input: under the lock of
    /// the input, both are of the same point. The state is that of a run that ended there. Keys
    /// that are observed meanwhile are kept in memory until the block before them is written, and
    /// are part of the state, so that it takes more bytes than the filter has memory.
    /// [`saver_keys`](crate::assembly::OrderedBuilder::saver_keys) limits their number. An error of
    /// `cut` ends the save, and the state stays without a commit.
    ///
    /// # Errors
    /// [`SaveError`]. `output` has part of a state then, so it should be a file that
    /// replaces the old one when it is complete (`replace_file` of `echoless-durable`).
    ///
    /// # Examples
    /// ```
    /// use echoless::state::StateReader;
    /// use echoless::{FilterSpec, KeyHasher, OrderedFilter, Verdicts};
    /// let hasher = KeyHasher::seeded(0);
    /// let spec: FilterSpec = "fingerprint:fpr=1e-8,memory=1MiB".parse()?;
    /// let filter = OrderedFilter::builder(spec.build_line_partitions(2)?).build();
    /// let mut handle = filter.handle();
    /// handle.observe(&[hasher.hash("a")], &mut Verdicts::new())?;
    /// let mut file = Vec::new();
    /// filter.save(&spec, &hasher, &mut file, |saver| Ok((saver.ticket(), b"line 1".to_vec())))?;
    ///
    /// let restored = StateReader::open(&file[..])?.restore()?;
    /// assert_eq!((restored.progress.observed, &restored.bytes[..]), (1, &b"line 1"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(
        &self,
        spec: &FilterSpec,
        hasher: &KeyHasher,
        output: impl Write,
        cut: impl for<'a> FnOnce(&'a mut OrderedHandle<F>) -> io::Result<(Ticket<'a, F>, Vec<u8>)>,
    ) -> Result<(), SaveError> {
        let header = Header::new(spec, hasher)?;
        let mut handle = self.handle();
        // Dropped after all tickets.
        let recording = Recording::begin(self.state())?;
        let mut writer = StateWriter::new(output, &header)?;
        let count = self.partitioning().count();
        let mut keys: Vec<Recorded> = (0..count).map(|_| Recorded::default()).collect();
        let mut block = Vec::new();
        let all_buckets = self.partitioning().buckets_of(count - 1).end;
        let bucket_lines = header.lines / all_buckets.min(header.lines);
        for partition in 0..count {
            let buckets = self.partitioning().buckets_of(partition);
            let lines = buckets.start * bucket_lines..buckets.end * bucket_lines;
            let part = header.clone().part(lines.clone());
            for first in lines.clone().step_by(MOST_BLOCK_LINES) {
                let end = lines.end.min(first + MOST_BLOCK_LINES as u64);
                block.resize((end - first) as usize, Line::EMPTY);
                let (mut clock, mut tick) = (0, 0);
                handle.ticket().visit(partition + 1, |index, owned| {
                    clock = owned.clock();
                    if index == partition {
                        let filter = filter(index, owned)?;
                        let duplicates = filter.duplicates_change_lines();
                        if first == lines.start {
                            check_filters(spec, slice::from_ref(filter), &part)?;
                        }
                        tick = filter.progress().tick;
                        filter.copy_lines((first - lines.start) as usize, &mut block);
                        if first == lines.start {
                            let most = self.state().saver_keys / count as u64;
                            owned.record(Recorder::new(duplicates, all_buckets, most));
                        }
                    }
                    let recorder = recorder(index, owned)?;
                    take(recorder, &mut keys[index], self.state())?;
                    if index == partition {
                        recorder.set_copied(end / bucket_lines);
                    }
                    Ok::<_, SaveError>(())
                })?;
                write_recorded(&mut keys, &mut writer, clock)?;
                let start = Instant::now();
                writer.append_block(first, tick, &block)?;
                thread::sleep(rest(start.elapsed(), self.state().saver_rest));
            }
        }
        let (ticket, bytes) = cut(&mut handle).map_err(StateError::from)?;
        let mut parts: Vec<Progress> = Vec::with_capacity(count);
        let mut clock = 0;
        ticket.visit(count, |index, owned| {
            clock = owned.clock();
            take(recorder(index, owned)?, &mut keys[index], self.state())?;
            owned.end_recording();
            parts.push(filter(index, owned)?.progress());
            Ok::<_, SaveError>(())
        })?;
        drop(recording);
        write_recorded(&mut keys, &mut writer, clock)?;
        writer.append_commit(parts.into_iter().sum(), &bytes)?;
        writer.end()?;
        Ok(())
    }
}

/// The most time of a block of 1 MiB that counts as work of the saver, and not of the output: 250
/// MB/s, about what an output that compresses takes.
const MOST_WORK: Duration = Duration::from_millis(4);

/// How long the saver sleeps after a block that took `elapsed`: `times` as long as it worked, less
/// the time for which it waited for the output.
fn rest(elapsed: Duration, times: u32) -> Duration {
    let work = elapsed.min(MOST_WORK);
    (work * times).saturating_sub(elapsed - work)
}

/// Takes the keys of a recorder, if it has all of them.
fn take<F>(
    recorder: &mut Recorder,
    into: &mut Recorded,
    state: &OrderedState<F>,
) -> Result<(), SaveError> {
    recorder.take(into).ok_or(SaveError::Keys(state.saver_keys))
}

/// The filter of a partition.
fn filter<F: LineFilter>(index: usize, owned: &mut OwnedFilter<F>) -> Result<&F, ExchangeError> {
    owned.present().ok_or(ExchangeError::Panicked(index))
}

/// The recorder of a partition, which ends if the filter is lost.
fn recorder<F: LineFilter>(
    index: usize,
    owned: &mut OwnedFilter<F>,
) -> Result<&mut Recorder, ExchangeError> {
    owned.recorder().ok_or(ExchangeError::Panicked(index))
}

/// The partitions may record. They end when this is dropped, also by a panic of the writer.
struct Recording<'a, F>(&'a OrderedState<F>);

impl<'a, F: LineFilter> Recording<'a, F> {
    fn begin(shared: &'a OrderedState<F>) -> Result<Self, SaveError> {
        // Acquire: pairs with the Release of the one before, whose recorders have ended.
        if shared.is_saved.swap(true, Ordering::Acquire) {
            return Err(SaveError::Busy);
        }
        Ok(Self(shared))
    }
}

impl<F> Drop for Recording<'_, F> {
    fn drop(&mut self) {
        // In a fork, a thread that does not exist may hold a lock, and none records.
        if self.0.check_process().is_ok() {
            for partition in &self.0.partitions {
                // Not in a turn of this thread: a batch is complete while nobody holds the lock.
                if let Some(owned) = &mut *unpoisoned(partition.owned.lock()) {
                    owned.end_recording();
                }
            }
        }
        // Release: pairs with the Acquire in `begin`.
        self.0.is_saved.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_a_multiple_of_the_work_and_not_of_the_wait() {
        let ms = Duration::from_millis;
        for (elapsed, times, expected) in [
            (1, 0, 0),
            (1, 3, 3),
            (4, 3, 12),
            (5, 3, 11),
            (16, 3, 0),
            (10_000, 3, 0),
            (10_000, 7, 0),
        ] {
            assert_eq!(rest(ms(elapsed), times), ms(expected), "{elapsed} ms");
        }
    }
}
