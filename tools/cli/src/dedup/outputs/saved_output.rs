//! An output of a run with a state, as a later run finds it. It is recognised by its content, under
//! any name and number, and nothing is cut that is not proven to be the content of the state.
//!
//! A run cuts an output to its last commit if the run before was killed: then the file begins with
//! what was committed, and what follows is from that run, which writes it again. After a run that
//! has closed its outputs, it cuts one only if that is the whole file that was closed; mostly there
//! is nothing to cut, and this run appends.

use std::fs::{self, File};
use std::io;

use echoless_records::failure::{self, Failure, without_controls};
use echoless_records::files::{ContentSample, FileBirth, FileId, Opened};
use serde::{Deserialize, Serialize};

use super::sink::{Sink, SinkPosition};

/// How far an output was written, and which file it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::dedup) struct SavedOutput {
    /// The option that names it.
    pub(super) option: String,
    /// Its name in messages.
    pub(in crate::dedup) name: String,
    /// The file; `None` for a pipe, or standard output.
    file: Option<FileId>,
    /// Tells the file from all others of its file system, if that has such times.
    #[serde(default)]
    birth: Option<FileBirth>,
    #[serde(flatten)]
    pub(in crate::dedup) position: SinkPosition,
    /// The content up to the position; `None` in a state of an earlier version.
    #[serde(default)]
    written: Option<ContentSample>,
    /// The whole file, if the run has closed it.
    #[serde(default)]
    closed: Option<ContentSample>,
}

impl SavedOutput {
    pub(super) fn new(option: &str, sink: &mut Sink) -> Result<Self, Failure> {
        let position = sink.position()?;
        let closed = sink.closed.clone();
        let target = &sink.target;
        let sample = |file: &File| {
            let birth = FileBirth::of(&file.metadata()?);
            Ok((ContentSample::of(file, position.bytes)?, birth))
        };
        let file = target.file.durable().ok().flatten();
        let sampled = file.as_ref().filter(|_| target.id.is_some()).map(sample);
        let sampled = sampled.transpose();
        let sampled = sampled.map_err(Failure::file(target.name.as_str()))?;
        let (written, birth) = sampled.unzip();
        Ok(Self {
            option: option.into(),
            name: target.name.clone(),
            file: target.id,
            birth: birth.flatten(),
            written: written.or_else(|| closed.clone()),
            position,
            closed,
        })
    }

    /// Notes that the output was closed, behind what the position leaves of it.
    pub(super) fn close(&mut self, sink: &Sink) {
        // What others have appended since the position, or cut, or put in its place, is not to be
        // taken for what this run wrote behind it: the next run finds another length than this, and
        // leaves the file as it is.
        let bytes = self.position.bytes;
        self.closed = match &sink.closed {
            Some(closed) if sink.from <= bytes && closed.length >= bytes => Some(closed.clone()),
            None if sink.from <= bytes && !sink.is_refused => None,
            _ => self.written.clone(),
        };
    }

    /// An output of a state of an earlier version, whose run had ended, was closed.
    pub(in crate::dedup) fn complete(&mut self) {
        if self.written.is_none() {
            self.closed = Some(ContentSample::of_length(self.position.bytes));
        }
    }

    /// What is saved of an output: of its name, else of its file under another name. Fails if the
    /// file is the output of another option, or none of the state and not empty.
    pub(super) fn of<'a>(
        target: &Opened,
        option: &str,
        saved: &'a [Self],
    ) -> Result<Option<&'a Self>, Failure> {
        let Some(found) = Found::of(target)? else {
            return Ok(None);
        };
        let files = || saved.iter().filter(|output| output.file.is_some());
        let is_own = |output: &&Self| output.option == option;
        let named = || files().filter(|output| output.name == target.name);
        if let Some(own) = named().find(is_own) {
            return Ok(Some(own));
        }
        if found.length == 0 {
            return Ok(None);
        }
        let same = |other: &Self| Failure::SameFile {
            name: target.name.clone(),
            other: format!("the file of {} in the state", other.option),
        };
        if let Some(other) = named().next() {
            return Err(same(other));
        }
        let mut of_other_option = None;
        for output in files() {
            let begins = match output.closed.as_ref().or(output.written.as_ref()) {
                Some(content) => content.length > 0 && found.begins(content)?,
                None => output.file == target.id,
            };
            if begins && is_own(&output) {
                return Ok(Some(output));
            }
            if begins {
                of_other_option = Some(output);
            }
        }
        Err(match of_other_option {
            Some(other) => same(other),
            None => found.refused(&format!(
                "has {} bytes that the state has not written",
                found.length
            )),
        })
    }

    /// Whether a killed run has left records that are in no complete frame of the file.
    pub(super) const fn has_open_frame(&self) -> bool {
        self.file.is_some() && self.closed.is_none() && !self.position.plain.is_empty()
    }

    /// Another output has the records that are in no complete frame of this one.
    pub(super) fn leave_open_frame(&mut self) {
        if self.closed.is_none() {
            self.position.plain.clear();
        }
    }

    /// Whether it is none of these that are written, under any name, and either still has its name
    /// or records that no file has.
    pub(super) fn is_other_than(&self, written: &[(&'static str, String, Option<FileId>)]) -> bool {
        let metadata = fs::metadata(&self.name).ok();
        let now = metadata.as_ref().and_then(FileId::of);
        let is_written = written.iter().any(|(option, name, id)| {
            *option == self.option && (*name == self.name || now.is_some() && now == *id)
        });
        let is_there = metadata.is_some_and(|metadata| metadata.len() > 0);
        self.file.is_some() && (is_there || self.has_open_frame()) && !is_written
    }

    /// The position in the file that the option names now. An empty file begins anew, and so does
    /// what cannot be taken back: a pipe, or standard output. Fails if the file is not the one that
    /// the state has written.
    pub(super) fn position_in(&self, target: &Opened) -> Result<SinkPosition, Failure> {
        let Some(found) = Found::of(target)? else {
            return Ok(SinkPosition::default());
        };
        if found.length == 0 {
            return Ok(match self.closed {
                Some(_) => SinkPosition::default(),
                // They are in no complete frame of any file.
                None => self.position.unfinished(),
            });
        }
        let is_own = match (&self.closed, &self.written) {
            (Some(closed), _) => {
                found.check_length(closed.length)?;
                // Nothing is cut of a file that ends at the position, so it may have been edited.
                self.position.bytes == found.length || found.begins(closed)?
            }
            (None, Some(written)) => {
                found.check_least(written.length)?;
                match written.length {
                    0 => self.birth.is_some() && self.birth == found.birth,
                    _ => found.begins(written)?,
                }
            }
            (None, None) => {
                found.check_least(self.position.bytes)?;
                self.file == target.id
            }
        };
        if is_own {
            Ok(self.position.clone())
        } else {
            Err(found.refused("has other content than the state has written"))
        }
    }

    /// Warns if the run goes on in another file than this one.
    pub(super) fn warn_if_left(&self, target: &Opened) {
        let bytes = self.position.bytes;
        if self.name != target.name && target.id.is_some() && self.file.is_some() && bytes > 0 {
            failure::warn(&format!(
                "{}: begins anew: the {bytes} bytes before are in another file, {}",
                target.name,
                without_controls(&self.name)
            ));
        }
    }
}

/// A regular file that an option names.
struct Found<'a> {
    name: &'a str,
    file: File,
    length: u64,
    birth: Option<FileBirth>,
}

impl<'a> Found<'a> {
    /// `None` if it is no regular file, or standard output.
    fn of(target: &'a Opened) -> Result<Option<Self>, Failure> {
        if target.id.is_none() {
            return Ok(None);
        }
        let name = target.name.as_str();
        let found = target.file.durable().and_then(|file| {
            let with_metadata = |file: File| Ok((file.metadata()?, file));
            file.map(with_metadata).transpose()
        });
        let found = found.map_err(Failure::file(name))?;
        Ok(found.map(|(metadata, file)| Self {
            name,
            file,
            length: metadata.len(),
            birth: FileBirth::of(&metadata),
        }))
    }

    fn begins(&self, content: &ContentSample) -> Result<bool, Failure> {
        content.begins(&self.file).map_err(Failure::file(self.name))
    }

    /// Checks that the file has these bytes and no more.
    fn check_length(&self, expected: u64) -> Result<(), Failure> {
        self.check_least(expected)?;
        if self.length == expected {
            return Ok(());
        }
        Err(self.refused(&format!(
            "has {} bytes, and the state has written {expected} of them",
            self.length
        )))
    }

    /// Checks that the file has so many bytes.
    fn check_least(&self, expected: u64) -> Result<(), Failure> {
        if self.length >= expected {
            return Ok(());
        }
        Err(self.refused(&format!(
            "has {} bytes, of the {expected} that the state has written",
            self.length
        )))
    }

    fn refused(&self, problem: &str) -> Failure {
        let problem = format!("{problem}: move it away to begin another one");
        Failure::file(self.name)(io::Error::other(problem))
    }
}
