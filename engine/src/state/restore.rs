//! Restoring: all sections of a state, as a filter.

use std::io::Read;
use std::ops::Range;

use super::error::StateError;
use super::header::Header;
use super::reader::StateReader;
use super::replay::Replay;
use super::section::Section;
use crate::filters::lines::{LineFilter, Progress};
use crate::partition::Partitioned;
use crate::shared::SharedFilter;

/// The partitions of a whole filter.
type Partitions = Partitioned<Box<dyn LineFilter>>;

/// What a state holds.
#[derive(Debug)]
#[non_exhaustive]
pub struct Restored<F, B = Vec<u8>> {
    /// The filter.
    pub filter: F,
    /// Its counts and its clock.
    pub progress: Progress,
    /// What the caller added when it was saved.
    pub bytes: B,
}

/// Restores what was saved, before any section was read.
impl<R: Read> StateReader<R> {
    /// Builds the filter and reads its lines. That of a [part](crate::FilterSpec::save_part) has
    /// its lines alone, and takes keys of no others.
    ///
    /// # Errors
    /// [`StateError::Build`] if this machine cannot build the filter,
    /// [`Damaged`](StateError::Damaged), [`Truncated`](StateError::Truncated) or
    /// [`Unreadable`](StateError::Unreadable) if the sections are not those of a state, or bytes
    /// follow it; [`StateError::Io`] if the input fails. One that stays open, such as a socket, is
    /// read until its end.
    ///
    /// # Examples
    /// ```
    /// use echoless::state::StateReader;
    /// use echoless::{Filter, FilterSpec, KeyHasher, Verdict};
    /// let hasher = KeyHasher::seeded(0);
    /// let spec: FilterSpec = "fingerprint:fpr=1e-8,memory=1MiB".parse()?;
    /// let mut filter = spec.build_lines()?;
    /// filter.observe_one(hasher.hash(b"call 17"));
    /// let mut file = Vec::new();
    /// spec.save(&mut [filter], &hasher, b"line 1", &mut file)?;
    ///
    /// // After a restart.
    /// let saved = StateReader::open(&file[..])?;
    /// saved.check(&spec, &hasher)?;
    /// let mut restored = saved.restore()?;
    /// assert_eq!(restored.bytes, b"line 1");
    /// assert_eq!(restored.filter.observe_one(hasher.hash(b"call 17")), Verdict::Duplicate);
    ///
    /// // With other memory, no key of the state would be found.
    /// let error = StateReader::open(&file[..])?.check(&spec.memory(2 << 20), &hasher);
    /// let text = error.unwrap_err().to_string();
    /// assert_eq!(text, "invalid state with memory=1MiB: expected memory=2MiB");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restore(self) -> Result<Restored<Box<dyn LineFilter>>, StateError> {
        let (replay, progress, bytes) = self.replay(1)?;
        let mut filters = replay.into_filters();
        Ok(Restored {
            filter: filters.swap_remove(0),
            progress,
            bytes,
        })
    }

    /// Restores a [`SharedFilter`]. The report goes on as well: the keys that were recorded are
    /// those of the state.
    ///
    /// # Errors
    /// As [`restore`](Self::restore); [`StateError::Mismatch`] if the state is that of a filter in
    /// lines, as `restore` has it for that of a shared filter.
    pub fn restore_shared(self) -> Result<Restored<SharedFilter>, StateError> {
        let lines = self.header().lines;
        let mut filter = self.spec().shared()?.build()?;
        let (mut next, mut first_tick, mut is_of_one_tick) = (0, None, true);
        let (progress, bytes) = self.read_all(|section| match section {
            Section::Block(block) if block.first == next => {
                is_of_one_tick &= *first_tick.get_or_insert(block.tick) == block.tick;
                filter.load_lines(next as usize, block.lines.unwrap_or_default());
                next += block.count;
                Ok(())
            }
            Section::End if next == lines => Ok(()),
            Section::End => Err(no_lines(&(next..lines))),
            Section::Commit(_) => Ok(()),
            Section::Block(_) | Section::Keys(_) => {
                let reason = "expected blocks of all lines in their order, and no keys";
                Err(StateError::invalid("the state of a shared filter", reason))
            }
        })?;
        if !is_of_one_tick || first_tick.is_some_and(|tick| tick != progress.tick) {
            let reason = "expected blocks and a commit of one tick";
            return Err(StateError::invalid("the state of a shared filter", reason));
        }
        filter.set_progress(&progress);
        Ok(Restored {
            filter,
            progress,
            bytes,
        })
    }

    /// Applies all sections to a filter in lines.
    fn replay(self, count: usize) -> Result<(Replay, Progress, Vec<u8>), StateError> {
        let mut replay = Replay::new(self.header(), count)?;
        let (progress, bytes) = self.read_all(|section| {
            if let Section::End = section
                && !replay.header().starts_empty
                && let Some(missing) = replay.missing()
            {
                return Err(no_lines(&missing));
            }
            replay.apply(section)
        })?;
        Ok((replay, progress, bytes))
    }

    /// Passes all sections to a function. Returns what the commit has.
    fn read_all(
        mut self,
        mut apply: impl FnMut(&Section<'_>) -> Result<(), StateError>,
    ) -> Result<(Progress, Vec<u8>), StateError> {
        let mut found = None;
        loop {
            let position = self.mark().position;
            let Some(section) = self.read_section()? else {
                return Err(StateError::truncated(format!(
                    "byte {position}, without its end section"
                )));
            };
            match &section {
                Section::End => {
                    apply(&section)?;
                    break;
                }
                _ if found.is_some() => {
                    let section = format!("the section at byte {position}");
                    return Err(StateError::invalid(section, "it follows the commit"));
                }
                Section::Commit(commit) => found = Some((commit.progress, commit.bytes.to_vec())),
                Section::Block(_) | Section::Keys(_) => {}
            }
            apply(&section)?;
        }
        self.check_end()?;
        found.ok_or_else(|| StateError::Unreadable("it has no commit".into()))
    }
}

fn no_lines(lines: &Range<u64>) -> StateError {
    let reason = format!("it has no lines {} to {}", lines.start, lines.end - 1);
    StateError::Unreadable(reason)
}

/// Restores a whole filter in `count` partitions, which need not be as many as there were, from its
/// state or from those of its parts, in any order. Each part was saved from the same filter, at the
/// same point of the stream. The counts are the sum of theirs, and the bytes of the caller are those
/// of each, in the order of their lines.
///
/// The first partition has all counts, so only the [report of all](crate::report_of) is right. If
/// that one is lost, the evictions before the restart are no longer counted.
/// [`build_line_partition`](crate::FilterSpec::build_line_partition) replaces one.
///
/// A part takes its memory beside that of the filter while it is read, unless it is the whole.
///
/// # Errors
/// As [`StateReader::restore`] for each; [`StateError::Build`] also if `count` is not 1 to the
/// number of lines; [`StateError::Mismatch`] if they are of different filters;
/// [`StateError::Unreadable`] if lines are in none or in two of them.
///
/// # Examples
/// ```
/// use echoless::state::{StateReader, restore_parts};
/// use echoless::{Filter, FilterSpec, KeyHasher, Verdict};
/// let hasher = KeyHasher::seeded(0);
/// let spec: FilterSpec = "fingerprint:fpr=1e-8,memory=1MiB".parse()?;
/// let mut filters = [spec.build_lines()?];
/// filters[0].observe_one(hasher.hash(b"call 17"));
/// let mut files = [Vec::new(), Vec::new()];
/// let quarter = 16384 / 4;
/// spec.save_part(&mut filters, 0..quarter, &hasher, b"", &mut files[0])?;
/// spec.save_part(&mut filters, quarter..16384, &hasher, b"", &mut files[1])?;
///
/// let [one, two] = &files;
/// let parts = vec![StateReader::open(&two[..])?, StateReader::open(&one[..])?];
/// let mut whole = restore_parts(parts, 1)?.filter;
/// assert_eq!(whole.filters_mut()[0].observe_one(hasher.hash(b"call 17")), Verdict::Duplicate);
///
/// let error = restore_parts([StateReader::open(&two[..])?], 1).unwrap_err();
/// assert_eq!(error.to_string(), "cannot read the saved state: it has no lines 0 to 4095");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn restore_parts<R: Read>(
    parts: impl IntoIterator<Item = StateReader<R>>,
    count: usize,
) -> Result<Restored<Partitions, Vec<Vec<u8>>>, StateError> {
    let mut parts: Vec<StateReader<R>> = parts.into_iter().collect();
    parts.sort_by_key(|part| part.header().part.start);
    let Some(first) = parts.first() else {
        return Err(StateError::Unreadable("there are no parts".into()));
    };
    let whole = Header {
        part: 0..first.header().lines,
        ..first.header().clone()
    };
    let mut next = 0;
    for part in &parts {
        let header = part.header();
        header.check_same(&whole)?;
        if header.part.start > next {
            return Err(no_lines(&(next..header.part.start)));
        }
        if header.part.start < next {
            let (first, last) = (header.part.start, header.part.end.min(next) - 1);
            let reason = format!("lines {first} to {last} are in two parts");
            return Err(StateError::Unreadable(reason));
        }
        next = header.part.end;
    }
    if next != whole.lines {
        return Err(no_lines(&(next..whole.lines)));
    }
    if parts.len() == 1 {
        let (replay, progress, bytes) = parts.swap_remove(0).replay(count)?;
        return into_whole(replay, progress, vec![bytes]);
    }
    let mut replay = Replay::new(&whole, count)?;
    let (mut each, mut bytes) = (Vec::new(), Vec::new());
    for part in parts {
        let (part, progress, of_caller) = part.replay(1)?;
        each.push(progress);
        bytes.push(of_caller);
        replay.load_part(part);
    }
    let sum = each.into_iter().sum();
    replay.set_counts(sum);
    into_whole(replay, sum, bytes)
}

fn into_whole(
    replay: Replay,
    progress: Progress,
    bytes: Vec<Vec<u8>>,
) -> Result<Restored<Partitions, Vec<Vec<u8>>>, StateError> {
    let filter = replay.into_partitioned();
    let filter = filter.ok_or_else(|| StateError::Unreadable("it is a part".into()))?;
    Ok(Restored {
        filter,
        progress,
        bytes,
    })
}
