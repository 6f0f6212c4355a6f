//! Sections become filters: blocks overwrite lines, keys are observed again.

use std::ops::Range;

use super::error::StateError;
use super::header::Header;
use super::section::{Block, Commit, Keys, MOST_BLOCK_LINES, Section, is_empty};
use crate::error::SpecError;
use crate::filters::lines::{LineFilter, Progress};
use crate::filters::{Batch, Filter};
use crate::hash::KeyHash;
use crate::memory::{LINE_BYTES, Line};
use crate::partition::{Partitioned, Partitioning};
use crate::routing::RoutedBatch;

/// A filter, or its partitions, to which the sections of a state or of a journal are applied in
/// their order.
///
/// After each section the filter is that of a run that ended there, but for lines whose first block
/// is still to come; the counts are right after a [commit](Section::Commit).
///
/// [`StateWriter`](super::StateWriter) has an example.
#[derive(Debug)]
pub struct Replay {
    header: Header,
    filters: Vec<Box<dyn LineFilter>>,
    /// Of the whole filter; `None` for a part, which is one filter.
    partitioning: Option<Partitioning>,
    routed: RoutedBatch,
    /// The keys of a section, and the clock at each.
    keys: Vec<KeyHash>,
    clocks: Vec<u64>,
    /// The clock of the stream.
    clock: u64,
    /// The lines of which a block was applied.
    covered: Ranges,
    /// From here on, no line was written.
    untouched: u64,
    progress: Option<Progress>,
}

impl Replay {
    /// An empty filter in `count` partitions, or the part of it that the header has, in one.
    ///
    /// # Errors
    /// [`StateError::Build`] if it cannot be built, or `count` is not 1 to the number of lines, or
    /// not 1 for a part; [`StateError::Mismatch`] if it is a shared filter.
    pub fn new(header: &Header, count: usize) -> Result<Self, StateError> {
        let layers = header.spec.lines()?.needed_layers()?;
        let plan = layers.plan()?;
        let build = |lines| layers.build_lines(lines);
        let (partitioning, filters) = if header.is_whole() {
            let (partitioning, filters) = plan.partitions(count, build)?.into_parts();
            (Some(partitioning), filters)
        } else if count == 1 {
            (None, vec![plan.range(header.part.clone(), build)?])
        } else {
            let allowed = "1 for a part of a filter";
            return Err(SpecError::new("partitions", count.to_string(), allowed).into());
        };
        let of_keys = partitioning.clone().map_or(Partitioning::new(1, 1), Ok)?;
        Ok(Self {
            routed: RoutedBatch::new(of_keys, 0..count),
            keys: Vec::new(),
            clocks: Vec::new(),
            untouched: header.part.start,
            header: header.clone(),
            filters,
            partitioning,
            clock: 0,
            covered: Ranges::default(),
            progress: None,
        })
    }

    /// Applies the next section.
    ///
    /// # Errors
    /// [`StateError::Unreadable`] if a section does not follow those before: a block of an earlier
    /// clock, lines or keys of another part.
    pub fn apply(&mut self, section: &Section<'_>) -> Result<(), StateError> {
        match section {
            Section::Block(block) => self.load(block),
            Section::Keys(keys) => self.observe(keys),
            Section::Commit(commit) => {
                self.commit(commit);
                Ok(())
            }
            Section::End => Ok(()),
        }
    }

    fn load(&mut self, block: &Block<'_>) -> Result<(), StateError> {
        let lines = block.first..block.first + block.count;
        let invalid = |reason: String| {
            let section = format!("block of lines {} to {}", lines.start, lines.end - 1);
            Err(StateError::invalid(section, reason))
        };
        if lines.start < self.header.part.start || lines.end > self.header.part.end {
            return invalid("lines of another part".into());
        }
        self.advance_to(block.tick);
        // That of a clock is rounded, as that of the block was.
        let clock = self.filters[0].progress().tick;
        if clock > block.tick {
            return invalid(format!(
                "its tick {} is before the clock {clock}",
                block.tick
            ));
        }
        for filter in &mut self.filters {
            let held = filter.held();
            let shared = lines.start.max(held.start)..lines.end.min(held.end);
            if shared.is_empty() {
                continue;
            }
            let at = (shared.start - held.start) as usize;
            let of_block = |line: u64| (line - lines.start) as usize;
            match block.lines {
                Some(content) => {
                    filter.load_lines(at, &content[of_block(shared.start)..of_block(shared.end)]);
                }
                // What was never written is empty, and takes no memory until it is read.
                None if shared.start >= self.untouched => {}
                None => filter.clear_lines(at..at + (shared.end - shared.start) as usize),
            }
        }
        if block.lines.is_some() {
            self.untouched = self.untouched.max(lines.end);
        }
        self.covered.add(lines);
        Ok(())
    }

    fn observe(&mut self, keys: &Keys<'_>) -> Result<(), StateError> {
        let part = &self.header.part;
        let mut ticks = (keys.ticks()).flat_map(|(tick, count)| std::iter::repeat_n(tick, count));
        self.keys.clear();
        self.clocks.clear();
        for key in keys.keys() {
            if self.partitioning.is_none() && !part.contains(&key.line(self.header.lines)) {
                let line = key.line(self.header.lines);
                let reason = format!("a key of line {line}, which is of another part");
                return Err(StateError::invalid("keys", reason));
            }
            // A late key is judged at the clock, which keys of other partitions may have moved.
            self.clock = self.clock.max(ticks.next().unwrap_or(0));
            self.keys.push(key);
            self.clocks.push(self.clock);
        }
        let batch = Batch::at_each(&self.keys, &self.clocks);
        self.routed.route(batch);
        for (index, filter) in self.filters.iter_mut().enumerate() {
            let (part, verdicts) = self.routed.part(index, batch.ticks());
            if !part.keys().is_empty() {
                filter.observe_batch(part, verdicts);
                self.untouched = self.header.part.end;
            }
        }
        self.advance_to(keys.clock());
        Ok(())
    }

    fn commit(&mut self, commit: &Commit<'_>) {
        self.advance_to(commit.progress.tick);
        self.set_counts(commit.progress);
    }

    /// Sets the counts of the whole, as those of the first partition.
    pub(super) fn set_counts(&mut self, progress: Progress) {
        self.progress = Some(progress);
        let mut progress = progress;
        for filter in &mut self.filters {
            filter.set_counts(std::mem::take(&mut progress));
        }
    }

    /// Moves the clock of all partitions.
    pub(super) fn advance_to(&mut self, tick: u64) {
        self.clock = self.clock.max(tick);
        for filter in &mut self.filters {
            filter.advance_to(self.clock);
        }
    }

    /// The first lines of which there was no block.
    pub(super) fn missing(&self) -> Option<Range<u64>> {
        self.covered.first_gap(&self.header.part)
    }

    /// The counts and the clock of the last commit.
    #[must_use]
    pub const fn progress(&self) -> Option<Progress> {
        self.progress
    }

    /// What the filter is of.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The filters in the order of their lines. The first one has all counts, so only the [report
    /// of all](crate::report_of) is right.
    #[must_use]
    pub fn filters(&self) -> &[Box<dyn LineFilter>] {
        &self.filters
    }

    /// The partitions of the whole filter; `None` for a part of it.
    #[must_use]
    pub fn into_partitioned(self) -> Option<Partitioned<Box<dyn LineFilter>>> {
        Partitioned::new(self.partitioning?, self.filters).ok()
    }

    /// The filters in the order of their lines.
    #[must_use]
    pub fn into_filters(self) -> Vec<Box<dyn LineFilter>> {
        self.filters
    }

    /// Takes over the lines of a part that was replayed alone, up to its own clock.
    pub(super) fn load_part(&mut self, mut part: Self) {
        let clock = self.clock.max(part.clock);
        self.advance_to(clock);
        part.advance_to(clock);
        let untouched = part.untouched;
        let mut buffer = vec![Line::EMPTY; MOST_BLOCK_LINES];
        for from in &part.filters {
            let range = from.held();
            let mut first = range.start;
            while first < range.end.min(untouched) {
                let count = buffer.len().min((range.end - first) as usize);
                let lines = &mut buffer[..count];
                from.copy_lines((first - range.start) as usize, lines);
                let end_of_lines = first + count as u64;
                if is_empty(lines) {
                    // As they are: no line is in two parts.
                    first = end_of_lines;
                    continue;
                }
                for into in &mut self.filters {
                    let held = into.held();
                    let shared = first.max(held.start)..end_of_lines.min(held.end);
                    if !shared.is_empty() {
                        let of_buffer = |line: u64| (line - first) as usize;
                        let content = &lines[of_buffer(shared.start)..of_buffer(shared.end)];
                        into.load_lines((shared.start - held.start) as usize, content);
                    }
                }
                first = end_of_lines;
            }
        }
    }

    /// The memory of the filters, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.header.part.end - self.header.part.start) * LINE_BYTES
    }
}

/// Ranges of lines that neither overlap nor touch, in ascending order.
#[derive(Debug, Default)]
pub(super) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    pub(super) fn add(&mut self, mut lines: Range<u64>) {
        let from = self.0.partition_point(|range| range.end < lines.start);
        let end = self.0.partition_point(|range| range.start <= lines.end);
        for range in self.0.drain(from..end) {
            lines = lines.start.min(range.start)..lines.end.max(range.end);
        }
        self.0.insert(from, lines);
    }

    /// The first lines of `all` that are in no range.
    pub(super) fn first_gap(&self, all: &Range<u64>) -> Option<Range<u64>> {
        let mut start = all.start;
        for range in &self.0 {
            if range.start > start {
                break;
            }
            start = start.max(range.end);
        }
        let next = self.0.iter().find(|range| range.start > start);
        let end = next.map_or(all.end, |range| range.start.min(all.end));
        (start < all.end).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn gaps_are_those_of_a_set(
            added in prop::collection::vec((0_u64..40, 1_u64..12), 0..12),
            all in (0_u64..40, 1_u64..40),
        ) {
            let all = all.0..all.0 + all.1;
            let mut ranges = Ranges::default();
            let mut set = std::collections::BTreeSet::new();
            for (first, count) in added {
                ranges.add(first..first + count);
                set.extend(first..first + count);
            }
            prop_assert!(ranges.0.windows(2).all(|pair| pair[0].end < pair[1].start));
            let start = all.clone().find(|line| !set.contains(line));
            let expected = start.map(|start| {
                let end = (start..all.end).find(|line| set.contains(line)).unwrap_or(all.end);
                start..end
            });
            prop_assert_eq!(ranges.first_gap(&all), expected);
        }
    }
}
