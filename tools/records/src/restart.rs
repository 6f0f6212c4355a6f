//! Where a stream goes on that an earlier run has read in part.

use std::fs::File;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::files::RotatedBefore;

/// A stream that an earlier run has read in part.
#[derive(Debug, Clone, Default)]
pub struct StreamRestart {
    /// Where each input goes on; `None` for one that begins.
    pub inputs: Vec<Option<InputRestart>>,
    /// The files that are read first of the last input, if it is followed: those that had its name
    /// before, and that have more than what was read of them.
    pub earlier: Vec<EarlierFile>,
    /// The rotated files in the folder of that input: none of them comes after the `earlier` ones.
    pub rotated_before: RotatedBefore,
    /// Whether an unfinished last record is left to the next run: there is one input, which may
    /// grow.
    pub leaves_unfinished: bool,
    /// The length at which an earlier run has left such a one. If the file has it still, it is
    /// finished.
    pub left_at: Option<u64>,
    /// The header that the outputs have.
    pub header: Option<SavedHeader>,
    /// Whether a record was written, or could have been.
    pub has_begun: bool,
    /// The terminator of the last record that had one.
    pub terminator: String,
}

/// A file that had the name of an input that is followed, or has it still.
#[derive(Debug, Clone)]
pub struct EarlierFile {
    /// The file, open.
    pub file: Arc<File>,
    /// Where it goes on; `None` if nothing was read of it.
    pub restart: Option<InputRestart>,
    /// Whether another file has the name now. Such a one may be compressed.
    pub is_rotated: bool,
}

/// What is done of the current input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputPosition {
    /// Records, the header among them; packets of a capture.
    pub records: u64,
    /// The bytes of the input before it, decompressed.
    pub bytes: u64,
}

/// A kind of file whose first line announces comment lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Announced {
    /// Variants: `##fileformat=VCF`.
    Vcf,
    /// Features of a genome: `##gff-version`.
    Gff,
    /// Logs of Zeek.
    Zeek,
    /// Logs of web servers.
    W3c,
}

/// Where an input goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRestart {
    /// What is done of it.
    pub position: InputPosition,
    /// The lines that are done, in a format that counts lines.
    pub lines: u64,
    /// What its first line announces about comment lines.
    pub announced: Option<Announced>,
    /// Whether its records are values that follow one another, and not the lines of the format.
    pub joined_values: bool,
    /// The number of the names of its fields: 0 for those of the first header, n for number n-1 of
    /// the later ones.
    #[serde(default)]
    pub names: u32,
}

/// The header of the stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedHeader {
    /// The first one, with the byte order mark in front of it; `None` if the names are those of a
    /// comment line, or no record was written yet.
    pub record: Option<Vec<u8>>,
    /// The names of the fields.
    pub names: Vec<Vec<u8>>,
    /// Those of later comment lines.
    #[serde(default)]
    pub later: Vec<Vec<Vec<u8>>>,
}
