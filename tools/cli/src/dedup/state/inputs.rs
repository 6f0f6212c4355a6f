//! The inputs that a state knows: which files they were, and how far they were read.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::files::{FileId, InputIdentity, SAMPLE_BYTES, Sample, Source};
use crate::records::chunk::Chunk;
use crate::records::position::InputPosition;
use crate::records::restart::InputRestart;

/// The most inputs that a state knows: every commit has all of them, some 500 bytes each.
const MOST_INPUTS: usize = 10_000;

/// A regular file that was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SavedInput {
    /// Its name when it was read last.
    pub(crate) name: String,
    #[serde(flatten)]
    identity: InputIdentity,
    is_compressed: bool,
    /// The bytes in front of the position, decompressed.
    before: Sample,
    #[serde(flatten)]
    pub(crate) restart: InputRestart,
    /// The length of the file, compressed as it is, when it was read to its end.
    pub(crate) end: Option<u64>,
    /// Whether the run that has committed this has read it.
    in_run: bool,
}

impl SavedInput {
    /// Which file it was.
    pub(super) fn file(&self) -> FileId {
        self.identity.file
    }

    /// The file at a path, if it is this one.
    pub(super) fn open(&self, path: &Path) -> io::Result<Option<File>> {
        let file = File::open(path)?;
        let was = match InputIdentity::of(&file)? {
            Some(now) => self.was(&file, &now)?,
            None => false,
        };
        Ok(was.then_some(file))
    }

    /// Whether this was the file, which has this identity now. It may have grown since, but not
    /// shrunk.
    fn was(&self, file: &File, now: &InputIdentity) -> io::Result<bool> {
        if self.identity.file != now.file || !self.identity.start.is_at(0, file)? {
            return Ok(false);
        }
        if self.is_compressed {
            return Ok(self.end <= Some(file.metadata()?.len()));
        }
        let start = self.restart.position.bytes - self.before.bytes as u64;
        self.before.is_at(start, file)
    }
}

/// What a state knows of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing: it is new, or no regular file.
    Nothing,
    /// It was read in part, or has grown since.
    InPart(InputRestart),
    /// It was read to its end, perhaps in the run that goes on.
    Whole { in_run: bool, restart: InputRestart },
}

/// The regular files that were read, in this order.
#[derive(Debug, Clone, Default)]
pub(super) struct SavedInputs {
    all: Vec<SavedInput>,
    /// The index among the inputs of this run of the last one of `all`.
    last: Option<usize>,
}

impl SavedInputs {
    /// The inputs of a commit. If its run had ended, none is of this one.
    pub(super) fn new(mut all: Vec<SavedInput>, ended: bool) -> Self {
        for input in &mut all {
            input.in_run &= !ended;
        }
        // The oldest are read again if they come once more, which drops their records as
        // duplicates.
        all.drain(..all.len().saturating_sub(MOST_INPUTS));
        Self { all, last: None }
    }

    pub(super) fn all(&self) -> &[SavedInput] {
        &self.all
    }

    /// The file of this name that was not read to its end, if there is one: with `--follow` the one
    /// that was followed.
    pub(super) fn unfinished(&self, name: &str) -> Option<&SavedInput> {
        let is_unfinished = |input: &&SavedInput| input.end.is_none() && input.name == name;
        self.all.iter().rev().find(is_unfinished)
    }

    /// What is known of an input.
    ///
    /// # Errors
    /// [`Failure`] if the file cannot be read.
    pub(super) fn find(&self, source: &Source) -> Result<Known, Failure> {
        // Opening a pipe could end its writer.
        match source {
            Source::File(path) if source.len().is_some() => {
                let known = File::open(path).and_then(|file| self.find_file(&file));
                known.map_err(Failure::file(source.name()))
            }
            Source::File(_) | Source::Stdin => Ok(Known::Nothing),
        }
    }

    pub(super) fn find_file(&self, file: &File) -> io::Result<Known> {
        let Some(now) = InputIdentity::of(file)? else {
            return Ok(Known::Nothing);
        };
        for input in &self.all {
            if input.was(file, &now)? {
                let is_whole = input.end == Some(file.metadata()?.len());
                return Ok(if is_whole {
                    let (in_run, restart) = (input.in_run, input.restart);
                    Known::Whole { in_run, restart }
                } else {
                    Known::InPart(input.restart)
                });
            }
        }
        Ok(Known::Nothing)
    }

    /// Notes what is done of the input `name` of a chunk that was delivered: records and bytes, and
    /// lines in a format that counts them.
    pub(super) fn pass(
        &mut self,
        chunk: &mut Chunk,
        name: impl Fn() -> String,
        position: InputPosition,
        lines: u64,
    ) {
        if let Some(identity) = chunk.input.file.identity.take() {
            let is_same = |input: &mut SavedInput| input.identity.file == identity.file;
            let known = self.all.extract_if(.., is_same).last();
            let before = match (known, &chunk.input.restart) {
                (Some(known), Some(_)) => known.before,
                _ => Sample::default(),
            };
            self.last = Some(chunk.input.source);
            self.all.push(SavedInput {
                name: name(),
                identity: *identity,
                is_compressed: chunk.input.file.is_compressed,
                before,
                restart: InputRestart::default(),
                end: None,
                in_run: true,
            });
        }
        if self.last != Some(chunk.input.source) {
            return;
        }
        let Some(input) = self.all.last_mut() else {
            return;
        };
        input.restart = InputRestart {
            position,
            lines,
            announced: chunk.input.announced,
            joined_values: chunk.input.has_joined_values,
            names: (chunk.header.field_names.as_ref()).map_or(0, |names| names.number),
        };
        input.end = chunk.input.file.end;
        // A chunk that closes its input may have no bytes.
        if chunk.bytes.filled > 0 {
            let bytes = chunk.bytes.all();
            input.before = Sample::of(&bytes[bytes.len() - bytes.len().min(SAMPLE_BYTES)..]);
        }
    }
}
