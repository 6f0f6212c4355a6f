//! An output of a run with a state, as a later run finds it.

use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::sink::{Sink, SinkPosition};
use crate::failure::{self, Failure, without_controls};
use crate::files::{FileId, Opened};

/// How far an output was written, and which file it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::dedup) struct SavedOutput {
    /// The option that names it.
    pub(super) option: String,
    /// Its name in messages.
    pub(in crate::dedup) name: String,
    /// The file; `None` for a pipe, or standard output.
    file: Option<FileId>,
    #[serde(flatten)]
    pub(in crate::dedup) position: SinkPosition,
}

impl SavedOutput {
    pub(super) fn new(option: &str, sink: &mut Sink) -> Result<Self, Failure> {
        let position = sink.position()?;
        let target = sink.target();
        Ok(Self {
            option: option.into(),
            name: target.name.clone(),
            file: target.id,
            position,
        })
    }

    /// What is saved of an output: of its file, else of the output that the option named before.
    ///
    /// # Errors
    /// [`Failure`] if the file is the output of another option.
    pub(super) fn of<'a>(
        target: &Opened,
        option: &str,
        saved: &'a [Self],
    ) -> Result<Option<&'a Self>, Failure> {
        let is_file = |output: &&Self| target.id.is_some() && output.file == target.id;
        match saved.iter().find(is_file) {
            Some(own) if own.option != option => Err(Failure::SameFile {
                name: target.name.clone(),
                other: format!("the file of {} in the state", own.option),
            }),
            Some(own) => Ok(Some(own)),
            None => Ok(saved.iter().find(|output| output.option == option)),
        }
    }

    /// Whether it is none of these files, and still has its name.
    pub(super) fn is_other_than(&self, written: &[FileId]) -> bool {
        let id = fs::metadata(&self.name).ok().as_ref().and_then(FileId::of);
        self.file.is_some() && id == self.file && !written.iter().any(|file| Some(*file) == id)
    }

    /// The position in the file that the option names now. Another file begins anew, and so does
    /// what cannot be taken back: a pipe, or standard output.
    ///
    /// # Errors
    /// [`Failure`] if the file is shorter than the position.
    pub(super) fn position_in(
        &self,
        target: &Opened,
        run_goes_on: bool,
    ) -> Result<SinkPosition, Failure> {
        if target.id.is_none() || target.id != self.file {
            let bytes = self.position.bytes;
            if run_goes_on && target.id.is_some() && self.file.is_some() && bytes > 0 {
                failure::warn(&format!(
                    "{}: begins anew: the {bytes} bytes before are in another file, {}",
                    target.name,
                    without_controls(&self.name)
                ));
            }
            return Ok(SinkPosition::default());
        }
        let metadata = target.file.metadata();
        let length = metadata.map_err(Failure::file(target.name.as_str()))?.len();
        if length < self.position.bytes {
            let problem = format!(
                "has {length} bytes, of the {} that the state has written: move it away to begin \
                 another one",
                self.position.bytes
            );
            return Err(Failure::file(target.name.as_str())(io::Error::other(
                problem,
            )));
        }
        Ok(self.position.clone())
    }
}
