//! The rotated files that are in a folder before a name in it is followed: they are not read.

use std::io;

use serde::{Deserialize, Serialize};

use super::follow::Sibling;
use super::identity::{InputIdentity, OpenedFile, SAMPLE_BYTES, Sample};
use crate::compression::codec::Detection;
use crate::compression::reader::PlainBytes;

/// Which files they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RotatedBefore(Vec<InputIdentity>);

impl RotatedBefore {
    /// Those of these files whose names have a number or a time.
    pub fn of(siblings: &[Sibling]) -> Self {
        let identity = |sibling: &Sibling| {
            let opened = sibling.open().ok().flatten();
            let opened = opened.and_then(|file| OpenedFile::of(&file).ok().flatten());
            opened.map_or_else(|| sibling.unread(), |opened| opened.identity)
        };
        let labelled = siblings.iter().filter(|sibling| sibling.is_labelled());
        Self(labelled.map(identity).collect())
    }

    /// Whether a file is one of these, which may have another name by now, have grown, or be
    /// compressed.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn has(&self, sibling: &Sibling, detection: Detection) -> io::Result<bool> {
        // Known without its content: it could not be opened then.
        let unread = sibling.unread();
        if self.0.contains(&unread) {
            return Ok(true);
        }
        let Some(file) = sibling.open()? else {
            return Ok(false);
        };
        let Some(opened) = OpenedFile::of(&file)? else {
            return Ok(false);
        };
        // A new file may get the number of a removed one.
        let is_it = |known: &InputIdentity| {
            let start = opened.start.get(..known.start.bytes);
            known.file.number() == sibling.id.number()
                && !known.is_of_another_time(&opened.identity)
                && start.is_some_and(|start| Sample::of(start) == known.start)
        };
        if self.0.iter().any(is_it) {
            return Ok(true);
        }
        if !sibling.is_compressed || detection == Detection::Off {
            return Ok(false);
        }
        let mut start = vec![0; SAMPLE_BYTES];
        let filled = PlainBytes::new(file, detection, None).fill(&mut start)?;
        // Of few bytes all of them: many files have the same first line.
        let start = (filled > 0).then(|| Sample::of(&start[..filled]));
        Ok(self
            .0
            .iter()
            .any(|known| Some(&known.start) == start.as_ref()))
    }
}
