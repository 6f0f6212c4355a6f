//! The segments of a folder: which of them are needed, whether they follow each other, and the
//! filter that they lead to.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use echoless::state::{Header, Replay, StateReader};

use crate::error::{At, JournalError};
use crate::segment::{Scan, Wanted, name_of, number_of};
use crate::storage::Storage;

/// The segments that the content of a filter follows from, and other files.
#[derive(Debug)]
pub(crate) struct Segments {
    /// In their order: the first one has a complete base, and only the last one has a tail.
    pub(crate) needed: Vec<Scan>,
    /// Those before, with their numbers.
    pub(crate) older: Vec<(PathBuf, u64)>,
    /// Those of which no commit is wanted, from the newest one on.
    pub(crate) unwanted: Vec<PathBuf>,
    /// Those that were never complete.
    pub(crate) aside: Vec<PathBuf>,
}

impl Segments {
    /// Reads the segments of a folder from the one with the newest commit that is wanted back to
    /// one with a complete base.
    ///
    /// `needed` is empty if the folder has no journal.
    pub(crate) fn load(
        storage: &dyn Storage,
        folder: &Path,
        is_wanted: Wanted<'_>,
    ) -> Result<Self, JournalError> {
        let (mut numbers, mut aside) = (Vec::new(), Vec::new());
        for name in storage.list(folder).at(folder)? {
            match number_of(&name) {
                Some((number, true)) => numbers.push(number),
                Some((_, false)) => aside.push(folder.join(name)),
                None => {}
            }
        }
        // Names of more than ten digits are not sorted as numbers.
        numbers.sort_unstable();
        let mut needed: Vec<Scan> = Vec::new();
        let mut unwanted = Vec::new();
        while let Some(number) = numbers.pop() {
            let path = folder.join(name_of(number));
            let is_wanted = if needed.is_empty() { is_wanted } else { None };
            let Some(scan) = Scan::of(storage, &path, number, is_wanted)? else {
                unwanted.push(path);
                continue;
            };
            if let Some(next) = needed.last() {
                check_order(&scan, next)?;
            }
            let is_base = scan.is_base();
            needed.push(scan);
            if is_base {
                break;
            }
        }
        let goes_back =
            !unwanted.is_empty() || needed.first().is_some_and(|newest| newest.unwanted > 0);
        let is_complete = needed.last().map(Scan::is_base);
        if goes_back && is_complete != Some(true) {
            return Err(JournalError::NoCommit(folder.to_owned()));
        }
        if let Some(oldest) = needed.last().filter(|oldest| !oldest.is_base()) {
            let reason = "the segment before it is missing";
            return Err(JournalError::segments(&oldest.path, reason));
        }
        needed.reverse();
        let older = numbers
            .into_iter()
            .map(|number| (folder.join(name_of(number)), number));
        Ok(Self {
            needed,
            older: older.collect(),
            unwanted,
            aside,
        })
    }

    /// The filter after the last commit. Fails if it cannot be built in so many partitions, or a
    /// file has changed since it was scanned.
    pub(crate) fn replay(
        &self,
        storage: &dyn Storage,
        partitions: usize,
    ) -> Result<Replay, JournalError> {
        let first = &self.needed[0];
        let mut replay = Replay::new(&first.header, partitions).at(&first.path)?;
        for scan in &self.needed {
            let path = &scan.path;
            let input = storage.read(path).at(path)?;
            let mut reader = StateReader::open(BufReader::new(input)).at(path)?;
            while reader.mark().position < scan.end.position {
                match reader.read_section().at(path)? {
                    Some(section) => replay.apply(&section).at(path)?,
                    None => return Err(JournalError::segments(path, "it has become shorter")),
                }
            }
        }
        Ok(replay)
    }
}

/// Checks that a segment ends where the next one begins.
fn check_order(scan: &Scan, next: &Scan) -> Result<(), JournalError> {
    let plain = |header: &Header| header.clone().segment(0).starts_empty(false);
    let wrong = |reason: String| Err(JournalError::segments(&next.path, reason));
    if scan.header.segment + 1 != next.header.segment {
        return wrong("the segment before it is missing".into());
    }
    if plain(&scan.header) != plain(&next.header) {
        return wrong("it is of another filter than the segment before it".into());
    }
    if next.first.as_ref() != Some(&scan.last) || scan.tail != 0 {
        return wrong("it does not begin where the segment before it ends".into());
    }
    Ok(())
}
