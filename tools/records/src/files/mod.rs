//! Inputs and outputs by name. `-` is a standard stream, everything is a [`File`](std::fs::File)
//! once open, and no file is both read and written.

mod descriptors;
pub(crate) mod follow;
mod identity;
mod inputs;
pub mod rotated;
mod standard_streams;
mod targets;

pub use descriptors::check_stdout;
pub use identity::{
    ContentDigest, ContentSample, FileBirth, FileId, FoundFile, InputIdentity, OpenedFile,
    SAMPLE_BYTES, Sample,
};
pub use inputs::Source;
pub use rotated::{RotatedBefore, folder_of};
pub use standard_streams::{standard_output, write_stdout};
pub use targets::{Opened, Target, Targets, check_outside_of_state};
