//! The compressed form of an output: a frame that begins when the output is truncated and ends
//! after the last record that was written, also if the run fails.

use std::io::{self, IoSlice};

use crate::compression::codec::Compression;
use crate::compression::compressor::Compressor;
use crate::writing::OutputFile;

/// How an output is compressed, and its compressor once there may be one.
#[derive(Debug)]
pub(super) struct CompressedOutput {
    compression: Compression,
    /// Whether the input may pause: then no record may wait for the next ones.
    prompt: bool,
    /// Writes the head of a frame, so it is not started while the run may still be rejected.
    compressor: Option<Compressor>,
}

impl CompressedOutput {
    /// An output whose frame is not begun.
    pub(super) const fn new(compression: Compression, prompt: bool) -> Self {
        Self {
            compression,
            prompt,
            compressor: None,
        }
    }

    /// Begins the frame.
    pub(super) fn begin(&mut self, file: &OutputFile) -> io::Result<()> {
        let compressor = Compressor::start(file.try_clone()?, self.compression, self.prompt)?;
        self.compressor = Some(compressor);
        Ok(())
    }

    /// Writes all slices.
    ///
    /// # Errors
    /// The error of an earlier write to the file, or of a frame that was not begun.
    pub(super) fn write_slices(&mut self, slices: &[IoSlice<'_>]) -> io::Result<()> {
        match &mut self.compressor {
            Some(compressor) => compressor.write_slices(slices),
            None => Err(io::Error::other("internal error: no frame was begun")),
        }
    }

    /// Ends the frame, if it was begun.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.compressor.as_mut().map_or(Ok(()), Compressor::finish)
    }

    /// The number of bytes written to the file.
    pub(super) fn written(&self) -> u64 {
        self.compressor.as_ref().map_or(0, Compressor::written)
    }
}
