//! An output of a run with a state, as a later run finds it.

use std::io;

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
