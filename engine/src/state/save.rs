//! Saving: a filter in lines, all its partitions or a part of its lines, or a shared filter, to
//! bytes.

use std::cell::Cell;
use std::io::Write;
use std::ops::Range;

use super::error::StateError;
use super::header::{Header, line_parameters};
use super::section::MOST_BLOCK_LINES;
use super::writer::StateWriter;
use crate::error::SpecError;
use crate::filters::lines::{LineFilter, Progress};
use crate::hash::KeyHasher;
use crate::memory::Line;
use crate::shared::{SharedFilter, SharedSpec};
use crate::spec::FilterSpec;

impl FilterSpec {
    /// Writes the state of a filter that [`build_lines`](Self::build_lines) built from this
    /// specification, or of all its partitions in their order, with up to 64 MiB of the caller,
    /// such as its position in an input. [`StateReader::restore`](super::StateReader::restore) reads it.
    ///
    /// The state contains the [id](KeyHasher::id) of the hasher of the keys, and not its seed or
    /// secret key. The clocks of the partitions advance to the latest one; nothing else changes.
    /// Writes in pieces of 1 MiB, at most as many bytes as the filter has memory and some more, and
    /// flushes `output`.
    ///
    /// A crash in the middle leaves half a state, so pass a file that replaces the old one when it
    /// is complete (`replace_file` of `echoless-durable`).
    ///
    /// # Errors
    /// [`StateError::Build`] if [`build_lines`](Self::build_lines) would reject the specification,
    /// or the filters have another one, or are not all of its lines in their order, or there are
    /// too many `bytes`; [`StateError::Io`] if `output` fails.
    pub fn save<F: LineFilter>(
        &self,
        partitions: &mut [F],
        hasher: &KeyHasher,
        bytes: &[u8],
        output: impl Write,
    ) -> Result<(), StateError> {
        let lines = 0..line_parameters(self)?.0;
        self.save_part(partitions, lines, hasher, bytes, output)
    }

    /// As [`save`](Self::save), of some lines alone: whole buckets, those of a page in a dense
    /// filter. `filters` are those of the lines, in their order: all partitions, or some of them.
    /// [`restore_parts`](super::restore_parts) joins the parts of a filter.
    ///
    /// Counts cannot be divided: a part has the counts of the filters whose first line it has.
    ///
    /// # Errors
    /// As [`save`](Self::save), and if the filters do not hold the lines.
    pub fn save_part<F: LineFilter>(
        &self,
        filters: &mut [F],
        lines: Range<u64>,
        hasher: &KeyHasher,
        bytes: &[u8],
        output: impl Write,
    ) -> Result<(), StateError> {
        let header = Header::new(self, hasher)?.part(lines.clone());
        check_filters(self, filters, &header)?;
        let tick = filters.iter().map(|part| part.progress().tick).max();
        let each = filters.iter_mut().map(|filter| {
            // Its clock may be in an earlier era.
            filter.advance_to(tick.unwrap_or(0));
            let progress = filter.progress();
            let tick = progress.tick;
            let has_counts = lines.contains(&filter.range().first);
            let none = Progress::default();
            let counts = if has_counts { progress } else { none };
            Progress { tick, ..counts }
        });
        let sum: Progress = each.sum();
        let copy = |lines: &Range<u64>, buffer: &mut [Line]| copy_range(filters, lines, buffer);
        write_lines(&header, sum.tick, copy, || sum, bytes, output)
    }
}

impl SharedFilter {
    /// Writes the state of the filter, with up to 64 MiB of the caller. Otherwise as
    /// [`FilterSpec::save`].
    ///
    /// Other threads can use the filter meanwhile, and none of them waits, also if `output` does.
    /// The state has the keys that were observed before the call (as far as the filter still holds
    /// them), and each key that is observed meanwhile or not: it is not that of one point in
    /// time. Its counts are those at the end of the call; with rows, fresh keys that were not evicted
    /// and are not in the state do not count. With a window, its clock is that of the
    /// beginning, and keys of later ticks are recorded at it. Where `bytes` are a position in an
    /// input, read it before the call: the keys behind it are then observed again, and those of
    /// them that the state has are duplicates.
    ///
    /// # Errors
    /// [`StateError::Build`] if there are too many `bytes`; [`StateError::Io`] if `output` fails.
    ///
    /// # Examples
    /// ```
    /// use echoless::state::StateReader;
    /// use echoless::{KeyHasher, SharedSpec, Verdict};
    /// let hasher = KeyHasher::seeded(0);
    /// let spec: SharedSpec = "row4x16:memory=1MiB".parse()?;
    /// let filter = spec.build()?;
    /// filter.observe_one(hasher.hash(b"call 17"));
    /// let mut file = Vec::new();
    /// filter.save(&hasher, b"line 1", &mut file)?;
    ///
    /// let saved = StateReader::open(&file[..])?;
    /// saved.check(&spec, &hasher)?;
    /// let restored = saved.restore_shared()?;
    /// assert_eq!(restored.bytes, b"line 1");
    /// assert_eq!(restored.filter.observe_one(hasher.hash(b"call 17")), Verdict::Duplicate);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(
        &self,
        hasher: &KeyHasher,
        bytes: &[u8],
        output: impl Write,
    ) -> Result<(), StateError> {
        let spec = SharedSpec::new(self.memory_bytes()).layout(self.layout());
        let tick = self.tick();
        let copied = Cell::new(0);
        // Behind the lines, so that a key that is observed meanwhile is not in a line alone.
        let progress = || {
            let tally = self.report().tally;
            let evictions = tally.evictions.unwrap_or(0);
            let fresh = if self.counts_slots() {
                // Keys that came behind their lines would be evicted ones in the restored filter.
                copied.get() + evictions
            } else {
                tally.fresh.unwrap_or(0)
            };
            Progress {
                // Duplicates are not counted.
                observed: fresh,
                fresh,
                evictions,
                tick,
            }
        };
        let header = Header::new(&spec, hasher)?;
        let copy = |lines: &Range<u64>, buffer: &mut [Line]| {
            self.copy_lines(lines.start as usize, tick, buffer);
            if self.counts_slots() {
                copied.set(copied.get() + self.occupied_slots(buffer));
            }
        };
        write_lines(&header, tick, copy, progress, bytes, output)
    }
}

/// Writes the state of the lines of a header, and flushes `output`. `copy` copies each block of them
/// as they were at the clock `tick`; while it is written, keys may change the others, if `copy` knows
/// what they were. The counts are those that `progress` returns in the end. What saves lines alone
/// goes through this.
///
/// # Errors
/// [`StateError::Build`] if there are too many `bytes`; [`StateError::Io`] if `output` fails.
pub fn write_lines(
    header: &Header,
    tick: u64,
    mut copy: impl FnMut(&Range<u64>, &mut [Line]),
    progress: impl FnOnce() -> Progress,
    bytes: &[u8],
    output: impl Write,
) -> Result<(), StateError> {
    let mut writer = StateWriter::new(output, header)?;
    let lines = &header.part;
    // The blocks do not depend on the partitions.
    for first in lines.clone().step_by(MOST_BLOCK_LINES) {
        let block = first..lines.end.min(first + MOST_BLOCK_LINES as u64);
        let count = (block.end - first) as usize;
        let copy = |buffer: &mut [Line]| copy(&block, buffer);
        writer.append_block_with(first, tick, count, copy)?;
    }
    writer.append_commit(progress(), bytes)?;
    writer.end().map(drop)
}

/// Copies a range of lines, which the filters hold, of several of them if it must.
fn copy_range(filters: &[impl LineFilter], lines: &Range<u64>, into: &mut [Line]) {
    for filter in filters {
        let held = filter.held();
        let shared = lines.start.max(held.start)..lines.end.min(held.end);
        if !shared.is_empty() {
            let [from, to] = [shared.start, shared.end].map(|line| (line - lines.start) as usize);
            filter.copy_lines((shared.start - held.start) as usize, &mut into[from..to]);
        }
    }
}

/// Checks that the filters are those of the specification, and hold the lines of the header.
pub(crate) fn check_filters<F: LineFilter>(
    spec: &FilterSpec,
    filters: &[F],
    header: &Header,
) -> Result<(), StateError> {
    let (lines, parameters) = line_parameters(spec)?;
    let invalid = |asked: String, allowed: String| -> Result<(), StateError> {
        Err(SpecError::new("partitions", asked, allowed).into())
    };
    let Some(first) = filters.first() else {
        return invalid("none".into(), "those of the lines to save".into());
    };
    let Range { start, end } = header.part;
    let bucket = first.bucket_lines();
    if start >= end || end > lines || start % bucket != 0 || end % bucket != 0 {
        let asked = format!("{start}..{end}");
        let allowed = format!("a range of whole buckets of {bucket} lines, of 0..{lines}");
        return Err(SpecError::new("lines", asked, allowed).into());
    }
    let mut next = if header.is_whole() {
        0
    } else {
        first.range().first
    };
    let held_first = next;
    for filter in filters {
        let range = filter.range();
        if (range.total, range.first) != (lines, next) {
            let asked = format!("those from line {} of {}", range.first, range.total);
            let allowed =
                format!("all partitions in their order, the next from line {next} of {lines}");
            return invalid(asked, allowed);
        }
        if filter.parameters() != parameters {
            let asked = "those of another specification".into();
            return invalid(asked, format!("filters of {spec}"));
        }
        next = filter.held().end;
    }
    if held_first > start || next < end {
        let asked = format!("lines {held_first}..{next}");
        return invalid(asked, format!("partitions that hold lines {start}..{end}"));
    }
    Ok(())
}
