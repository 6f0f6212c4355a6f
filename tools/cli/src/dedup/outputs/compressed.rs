//! The compressed form of an output: a frame that begins when the output is truncated and ends
//! after the last record that was written, also if the run fails.

use std::io::{self, IoSlice};

use echoless_records::compression::codec::Compression;
use echoless_records::compression::compressor::{Compressor, FrameStart};
use echoless_records::writing::OutputFile;

/// How an output is compressed, and its compressor once there may be one.
#[derive(Debug)]
pub(super) struct CompressedOutput {
    compression: Compression,
    /// Whether the input may pause: then no record may wait for the next ones.
    prompt: bool,
    /// The most threads that compress its frames.
    threads: usize,
    /// Where an output of several frames begins or goes on, if the run has a state.
    frames: Option<FrameStart>,
    /// Writes the head of a frame, so it is not started while the run may still be rejected.
    compressor: Option<Compressor>,
}

impl CompressedOutput {
    /// An output whose frame is not begun.
    pub(super) const fn new(compression: Compression, prompt: bool, threads: usize) -> Self {
        Self {
            compression,
            prompt,
            threads,
            frames: None,
            compressor: None,
        }
    }

    /// This output in several frames, after those of an earlier run.
    pub(super) fn in_frames(&mut self, start: FrameStart) {
        self.frames = Some(start);
    }

    /// Begins the frame. An earlier one must have ended. Other programs `may_append` to an output
    /// of several frames meanwhile.
    pub(super) fn begin(&mut self, file: &OutputFile, may_append: bool) -> io::Result<()> {
        let (file, compression) = (file.try_clone()?, self.compression);
        self.compressor = Some(match self.frames.take() {
            None => Compressor::start(file, compression, self.prompt, self.threads)?,
            Some(start) => {
                Compressor::start_frames(file, compression, start, may_append, self.threads)?
            }
        });
        Ok(())
    }

    /// Where an output of several frames could go on after a restart. Fails if an earlier write to
    /// the file has.
    pub(super) fn frame_start(&mut self) -> io::Result<FrameStart> {
        match (&mut self.compressor, &self.frames) {
            (Some(compressor), _) => compressor.frame_start(),
            (None, Some(start)) => Ok(start.clone()),
            (None, None) => Err(io::Error::other("internal error: an output of one frame")),
        }
    }

    /// Writes all slices. The error may be that of an earlier write to the file.
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

    /// The length of a file of several frames, if none is being written.
    pub(super) fn idle_end(&self) -> Option<u64> {
        self.compressor.as_ref()?.idle_end()
    }

    /// Notes that another program has appended to a file that is [idle](Self::idle_end).
    pub(super) fn note_appended(&self) {
        if let Some(compressor) = &self.compressor {
            compressor.note_appended();
        }
    }

    /// The length of the file before another program has appended to it, if one has.
    pub(super) fn appended_at(&self) -> Option<u64> {
        self.compressor.as_ref()?.appended_at()
    }
}
