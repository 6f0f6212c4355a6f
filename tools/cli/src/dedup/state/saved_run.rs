//! The caller's bytes of a commit: JSON, and behind it what has no text.
//!
//! ```text
//!  8 length | JSON | 8 length | audit | for each output: 8 length | plain bytes of its open frame
//! ```

use std::path::Path;

use echoless_records::failure::Failure;
use echoless_records::restart::SavedHeader;
use serde::{Deserialize, Serialize};

use super::inputs::{AwaitedInput, SavedInput};
use crate::dedup::clock::StreamClock;
use crate::dedup::exact::SavedKeys;
use crate::dedup::outputs::SavedOutput;
use crate::dedup::reports::stats::{RunCounts, RunTotals};

/// The version of the JSON.
const VERSION: u32 = 1;

/// What a run needs beside its filter to go on.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SavedRun {
    pub(in crate::dedup) version: u32,
    /// Whether the run had ended: the next one counts its records from 0.
    pub(in crate::dedup) ended: bool,
    /// The options that must not change, each with its value if it takes one.
    pub(crate) options: Vec<(String, Option<String>)>,
    /// The regular files that were read.
    pub(crate) inputs: Vec<SavedInput>,
    /// The input that is followed, if no file had its name yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::dedup) awaited: Option<AwaitedInput>,
    /// Why records of an input were lost.
    pub(in crate::dedup) lost: Option<String>,
    /// Whether the outputs were begun.
    pub(in crate::dedup) begun: bool,
    pub(in crate::dedup) header: Option<SavedHeader>,
    /// The terminator of the last record that had one.
    pub(in crate::dedup) terminator: String,
    pub(in crate::dedup) clock: StreamClock,
    pub(in crate::dedup) counts: RunCounts,
    /// The sums of the runs before this one; `None` in a state of an earlier version.
    #[serde(default)]
    pub(in crate::dedup) totals: Option<RunTotals>,
    pub(in crate::dedup) outputs: Vec<SavedOutput>,
    /// When the first commit and this one were made, in seconds since 1970 by the clock of the
    /// system, for people alone. `None` if the clock is before that, or in a state without times.
    #[serde(default)]
    pub(in crate::dedup) first_commit: Option<u64>,
    #[serde(default)]
    pub(in crate::dedup) last_commit: Option<u64>,
    /// The keys that were passed on, if the runs are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exact: Option<SavedKeys>,
    /// The estimates of errors.
    #[serde(skip)]
    pub(in crate::dedup) audit: Vec<u8>,
}

impl SavedRun {
    pub(in crate::dedup) fn new(options: Vec<(String, Option<String>)>) -> Self {
        Self {
            version: VERSION,
            options,
            totals: Some(RunTotals::default()),
            ..Self::default()
        }
    }

    /// The bytes of the commit.
    pub(super) fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_vec(self)
            .unwrap_or_else(|error| unreachable!("numbers, text and lists are JSON: {error}"));
        let open_frames = self.outputs.iter().map(|output| &output.position.plain);
        let mut bytes = Vec::new();
        for part in [&json, &self.audit].into_iter().chain(open_frames) {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
        bytes
    }

    /// When the first commit and the last one were made, in seconds since 1970.
    pub(crate) fn commit_times(&self) -> Option<(u64, u64)> {
        self.first_commit.zip(self.last_commit)
    }

    /// The names of the outputs, and how many bytes of each were written.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (&str, u64)> {
        let outputs = self.outputs.iter();
        outputs.map(|output| (output.name.as_str(), output.position.bytes))
    }

    /// What is text of the commit.
    pub(crate) fn json(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(keys) = &self.exact {
            value["exact"] = keys.json();
        }
        value
    }

    /// Reads the bytes of a commit. The error says what is wrong with them.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Self, String> {
        let json = part(&mut bytes)?;
        let mut commit: Self =
            serde_json::from_slice(json).map_err(|error| format!("its commit: {error}"))?;
        if commit.version != VERSION {
            let version = commit.version;
            return Err(format!(
                "its commit has version {version}, and this command reads {VERSION}"
            ));
        }
        commit.audit = part(&mut bytes)?.to_vec();
        for output in &mut commit.outputs {
            output.position.plain = part(&mut bytes)?.to_vec();
            if commit.ended {
                output.complete();
            }
        }
        if bytes.is_empty() {
            Ok(commit)
        } else {
            Err(format!("its commit has {} bytes too many", bytes.len()))
        }
    }

    /// As [`decode`](Self::decode), of any state, at this path; `None` if another program has written
    /// it.
    pub(crate) fn of(path: &Path, bytes: &[u8]) -> Result<Option<Self>, Failure> {
        // The first part is a table, with its length in front.
        if bytes.get(8) != Some(&b'{') {
            return Ok(None);
        }
        let decoded = Self::decode(bytes).map(Some);
        decoded.map_err(|problem| Failure::Capture {
            name: path.display().to_string(),
            problem,
        })
    }
}

/// Takes a part with its length in front off the bytes.
fn part<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let too_short = || "its commit ends early".to_owned();
    let (length, rest) = bytes.split_first_chunk().ok_or_else(too_short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| too_short())?;
    let (part, rest) = rest.split_at_checked(length).ok_or_else(too_short)?;
    *bytes = rest;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_as_it_was_written_and_damage_is_an_error() {
        let commit = SavedRun {
            audit: vec![7; 30],
            terminator: "\r\n".into(),
            header: Some(SavedHeader {
                record: Some(b"a,\xff\n".to_vec()),
                names: vec![b"a".to_vec(), b"\xff".to_vec()],
                later: vec![vec![b"b".to_vec()]],
            }),
            ..SavedRun::new(vec![("--key".into(), Some("2".into()))])
        };
        let mut bytes = commit.encode();
        let read = SavedRun::decode(&bytes).unwrap();
        assert_eq!(read.encode(), bytes);
        assert_eq!((read.audit, read.header), (commit.audit, commit.header));
        for length in 0..bytes.len() {
            assert!(SavedRun::decode(&bytes[..length]).is_err(), "{length}");
        }
        bytes.push(0);
        assert_eq!(
            SavedRun::decode(&bytes).unwrap_err(),
            "its commit has 1 bytes too many"
        );
    }
}
