//! Partitions at one point of the stream, which are saved while their filters go on.
//!
//! Nothing is copied when a snapshot begins. The lines are divided into pages; the page of a key is
//! copied before the key changes it, and the others when they are saved:
//!
//! ```text
//! page      | saved and freed | copied, since a key came | as at the cut, in the filter |
//! ```
//!
//! Within an era of the clock a line changes with its keys alone. A batch that begins an era copies
//! what is left of its partition first.

use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use echoless::filters::lines::Progress;
use echoless::memory::Line;
use echoless::state::{Header, write_lines};
use echoless::{KeyHash, LineFilter};

use crate::failure::Failure;
use crate::partitions::Identity;

/// The lines of a page, 4 KiB: a batch of new keys copies one for each of them.
pub(crate) const PAGE: usize = 64;

/// The filters of the owned partitions, and the snapshots of them that are not saved yet. One
/// thread observes, others save.
#[derive(Debug)]
pub(crate) struct Filters {
    pub(crate) filters: Vec<Box<dyn LineFilter>>,
    cuts: Vec<Cut>,
    /// The number of the next snapshot.
    next: u64,
}

/// The filters as they were at a point of the stream, as far as they differ from then.
#[derive(Debug)]
struct Cut {
    number: u64,
    /// `None` if the partition was saved.
    parts: Vec<Option<Part>>,
}

/// A partition at the cut.
#[derive(Debug)]
struct Part {
    progress: Progress,
    /// The pages that have changed since.
    copies: Vec<Option<Box<[Line]>>>,
    /// The pages before this one are saved.
    saved: usize,
    /// Whether a call saves it.
    is_taken: bool,
}

/// A panic while keys are judged poisons the handle of the partitions, too, which says so. Here a
/// snapshot before it can still be saved: it has the pages that the batch might have changed.
pub(crate) fn lock(filters: &Mutex<Filters>) -> MutexGuard<'_, Filters> {
    filters.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Filters {
    pub(crate) const fn new(filters: Vec<Box<dyn LineFilter>>) -> Self {
        Self {
            filters,
            cuts: Vec::new(),
            next: 0,
        }
    }

    /// Prepares the snapshots for keys of a partition, whose clock will be at `tick` or earlier.
    pub(crate) fn before_keys(&mut self, index: usize, keys: &[KeyHash], tick: u64) {
        if self.cuts.is_empty() {
            return;
        }
        if tick >= self.filters[index].next_era() {
            return self.before_all(index);
        }
        let filter = &*self.filters[index];
        let range = filter.range();
        for part in self
            .cuts
            .iter_mut()
            .filter_map(|cut| cut.parts[index].as_mut())
        {
            for key in keys {
                part.copy(filter, range.position(*key) / PAGE);
            }
        }
    }

    /// Prepares the snapshots for a change of any lines of a partition.
    pub(crate) fn before_all(&mut self, index: usize) {
        let filter = &*self.filters[index];
        for part in self
            .cuts
            .iter_mut()
            .filter_map(|cut| cut.parts[index].as_mut())
        {
            for page in part.saved..part.copies.len() {
                part.copy(filter, page);
            }
        }
    }
}

impl Part {
    fn copy(&mut self, filter: &dyn LineFilter, page: usize) {
        if page < self.saved {
            return;
        }
        // The filter panics at a key of another partition.
        if let Some(copy @ None) = self.copies.get_mut(page) {
            let first = page * PAGE;
            let count = PAGE.min(filter.lines().len() - first);
            let mut lines = vec![Line::EMPTY; count];
            filter.copy_lines(first, &mut lines);
            *copy = Some(lines.into());
        }
    }

    /// Takes lines from `first` on, whole pages of them, as they were at the cut.
    fn take(&mut self, filter: &dyn LineFilter, first: usize, into: &mut [Line]) {
        // Almost all of them are there, as long as saving keeps up.
        filter.copy_lines(first, into);
        for (page, into) in (first / PAGE..).zip(into.chunks_mut(PAGE)) {
            if let Some(copy) = self.copies[page].take() {
                into.copy_from_slice(&copy);
            }
            self.saved = page + 1;
        }
    }
}

/// The partitions of a task at one point of its stream; see
/// [`Partitions::snapshot`](crate::Partitions::snapshot). Each partition can be saved once, from
/// any thread.
#[derive(Debug)]
pub struct Snapshot {
    identity: Identity,
    filters: Arc<Mutex<Filters>>,
    number: u64,
}

impl Snapshot {
    pub(crate) fn new(identity: Identity, filters: Arc<Mutex<Filters>>) -> Self {
        let mut held = lock(&filters);
        let parts = held.filters.iter().map(|filter| {
            let mut copies = Vec::new();
            copies.resize_with(filter.lines().len().div_ceil(PAGE), || None);
            Some(Part {
                progress: filter.progress(),
                copies,
                saved: 0,
                is_taken: false,
            })
        });
        let parts = parts.collect();
        let number = held.next;
        held.next += 1;
        held.cuts.push(Cut { number, parts });
        drop(held);
        Self {
            identity,
            filters,
            number,
        }
    }

    /// Writes the state of one partition, as [`Partitions::save`](crate::Partitions::save) would
    /// have at the point of the snapshot. What is written is freed, so a partition can be saved
    /// once, also if `output` fails.
    ///
    /// # Errors
    /// [`Failure`] if the partition is not owned, or was saved; [`Code::Io`](crate::Code::Io) if
    /// `output` fails.
    pub fn save(&self, partition: usize, output: impl Write) -> Result<(), Failure> {
        let index = self.identity.index(partition)?;
        let (lines, progress) = self.begin(index, partition)?;
        let result = self.write(index, lines, progress, output);
        self.with(index, |_, part| *part = None);
        result
    }

    /// The lines and the counts of a partition that no other call saves or has saved.
    fn begin(&self, index: usize, partition: usize) -> Result<(Range<u64>, Progress), Failure> {
        self.with(index, |filter, part| match part {
            Some(part) if !part.is_taken => {
                part.is_taken = true;
                Ok((filter.held(), part.progress))
            }
            _ => {
                let allowed = "one that was not saved from this snapshot yet";
                Err(Failure::argument("partition", partition, allowed))
            }
        })
    }

    fn write(
        &self,
        index: usize,
        lines: Range<u64>,
        progress: Progress,
        output: impl Write,
    ) -> Result<(), Failure> {
        let header = Header::new(&self.identity.spec, &self.identity.hasher)?.part(lines.clone());
        // Written without the lock.
        let copy = |block: &Range<u64>, into: &mut [Line]| {
            self.with(index, |filter, part| {
                let part = part.as_mut().expect("this call has taken it");
                part.take(filter, (block.start - lines.start) as usize, into);
            });
        };
        Ok(write_lines(
            &header,
            progress.tick,
            copy,
            || progress,
            b"",
            output,
        )?)
    }

    /// Runs `with` on a filter and what is different at the cut.
    fn with<T>(
        &self,
        index: usize,
        with: impl FnOnce(&dyn LineFilter, &mut Option<Part>) -> T,
    ) -> T {
        let mut held = lock(&self.filters);
        let Filters { filters, cuts, .. } = &mut *held;
        let cut = cuts.iter_mut().find(|cut| cut.number == self.number);
        let cut = cut.expect("a cut goes with its snapshot");
        with(&*filters[index], &mut cut.parts[index])
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let number = self.number;
        lock(&self.filters).cuts.retain(|cut| cut.number != number);
    }
}
