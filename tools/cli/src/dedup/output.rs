//! Writes runs of records straight from a chunk, many per system call.

use std::io::{self, ErrorKind, IoSlice, Seek, Write};

use super::runs::Runs;
use crate::failure::Failure;
use crate::files::Opened;
use crate::records::chunk::Chunk;
use crate::records::format::{Format, SharedFormat};

/// The number of runs per system call. No system accepts more than 1024.
const RUNS_AT_ONCE: usize = 512;

/// A file that records are written to. It does not buffer: every call writes all of its records.
#[derive(Debug)]
pub(crate) struct Sink {
    target: Opened,
    /// Whether a reader that closes the pipe is no error.
    main_stream: bool,
    format: SharedFormat,
    /// The terminator to write before the next record, because the last one lacks its own.
    owed: Option<&'static [u8]>,
    bytes: u64,
}

impl Sink {
    /// A sink for the main output of records.
    pub(crate) fn main(target: Opened, format: SharedFormat) -> Self {
        Self {
            main_stream: target.is_stdout,
            ..Self::side(target, format)
        }
    }

    /// A sink for another output. It must be complete, so a reader that closes the pipe is an
    /// error.
    pub(crate) fn side(target: Opened, format: SharedFormat) -> Self {
        Self {
            target,
            main_stream: false,
            format,
            owed: None,
            bytes: 0,
        }
    }

    /// Truncates the file. Call it only once nothing can reject the run any more.
    pub(crate) fn truncate(&mut self) -> Result<(), Failure> {
        self.target.truncate()
    }

    /// The number of bytes of records written, headers included.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the runs of a chunk's records.
    pub(crate) fn write_runs(&mut self, chunk: &Chunk, runs: Runs<'_>) -> Result<(), Failure> {
        self.write_records(
            runs.map(|records| chunk.bytes_of(records)),
            chunk.terminator,
        )
    }

    /// Writes text that is not a record.
    pub(crate) fn write_text(&mut self, text: &str) -> Result<(), Failure> {
        self.target
            .file
            .write_all(text.as_bytes())
            .map_err(Failure::writing(&self.target.name, self.main_stream))
    }

    /// Writes runs of adjacent records. If the last one lacks its terminator, `terminator` is
    /// written before any later record.
    pub(crate) fn write_records<'a>(
        &mut self,
        runs: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>,
        terminator: &'static [u8],
    ) -> Result<(), Failure> {
        let runs = runs.into_iter();
        let before = self.bytes;
        self.try_write(runs.clone(), terminator).map_err(|error| {
            self.remove_partial(runs, self.bytes - before);
            Failure::writing(&self.target.name, self.main_stream)(error)
        })
    }

    fn try_write<'a>(
        &mut self,
        mut runs: impl Iterator<Item = &'a [u8]>,
        terminator: &'static [u8],
    ) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); RUNS_AT_ONCE];
        loop {
            // Records must not merge: supply a terminator that the input lacks once another record
            // follows.
            let terminators = usize::from(self.owed.is_some());
            slices[0] = IoSlice::new(self.owed.unwrap_or_default());
            let mut filled = terminators;
            let mut last = None;
            for (slice, run) in slices[terminators..].iter_mut().zip(&mut runs) {
                *slice = IoSlice::new(run);
                last = Some(run);
                filled += 1;
            }
            let Some(last) = last else {
                return Ok(());
            };
            write_slices(
                &mut self.target.file,
                &mut slices[..filled],
                &mut self.bytes,
            )?;
            let terminated = self.format.terminator_of(last).is_some();
            self.owed = (!terminated).then_some(terminator);
        }
    }

    /// Removes the part of a record that a failed call left at the end of a regular file, after
    /// `written` bytes of the call's `runs`.
    ///
    /// An error here is ignored: the caller reports the failure of the write.
    fn remove_partial<'a>(&mut self, runs: impl Iterator<Item = &'a [u8]>, written: u64) {
        let partial = partial_bytes(&*self.format, self.owed, runs, written);
        let Ok(metadata) = self.target.file.metadata() else {
            return;
        };
        let at_end = self.target.file.stream_position().ok() == Some(metadata.len());
        if partial > 0 && metadata.is_file() && at_end {
            let _ = self.target.file.set_len(metadata.len() - partial);
        }
    }
}

/// The number of the `written` bytes of `runs` that belong to an incomplete record.
fn partial_bytes<'a>(
    format: &dyn Format,
    owed: Option<&[u8]>,
    runs: impl Iterator<Item = &'a [u8]>,
    written: u64,
) -> u64 {
    let mut left = written;
    if let Some(terminator) = owed {
        let terminator = terminator.len() as u64;
        if left < terminator {
            return left;
        }
        left -= terminator;
    }
    for run in runs {
        if left < run.len() as u64 {
            let mut ends = Vec::new();
            format.record_ends(run, 0, &mut ends);
            let whole = ends
                .iter()
                .map(|end| *end as u64)
                .take_while(|end| *end <= left);
            return left - whole.last().unwrap_or(0);
        }
        left -= run.len() as u64;
    }
    0
}

/// Writes all slices. Adds the number of bytes written to `bytes`, also if writing fails halfway.
fn write_slices(
    file: &mut impl Write,
    mut slices: &mut [IoSlice<'_>],
    bytes: &mut u64,
) -> io::Result<()> {
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                *bytes += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::formats::lines;

    #[test]
    fn partial_bytes_are_those_after_the_last_whole_record() {
        let runs: [&[u8]; 2] = [b"ab\n\ncd\n", b"e\nf"];
        let expected = [0, 1, 2, 0, 0, 1, 2, 0, 1, 0, 0];
        let format = lines(b',').unwrap();
        for (written, expected) in (0..).zip(expected) {
            let partial = |owed, written| partial_bytes(&*format, owed, runs.into_iter(), written);
            let owed = Some(b"\r\n".as_slice());
            assert_eq!(partial(None, written), expected, "{written}");
            assert_eq!(partial(owed, written + 2), expected, "{written}");
            assert_eq!(partial(owed, 1), 1);
        }
    }

    /// Accepts two bytes per call, is interrupted at every second call, and is full after `room`
    /// bytes.
    struct Device {
        taken: Vec<u8>,
        room: usize,
        interrupt: bool,
    }

    impl Write for Device {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.interrupt = !self.interrupt;
            if self.interrupt {
                return Err(ErrorKind::Interrupted.into());
            }
            let taken = bytes.len().min(2).min(self.room - self.taken.len());
            if taken == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.taken.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn short_writes_are_continued_and_counted() {
        for (room, expected) in [(100, Ok(())), (9, Ok(())), (8, Err(ErrorKind::StorageFull))] {
            let mut device = Device {
                taken: Vec::new(),
                room,
                interrupt: false,
            };
            let mut slices = [b"abc".as_slice(), b"d", b"efghi"].map(IoSlice::new);
            let mut bytes = 0;
            let outcome = write_slices(&mut device, &mut slices, &mut bytes);
            assert_eq!(outcome.map_err(|error| error.kind()), expected);
            assert_eq!(device.taken, b"abcdefghi"[..room.min(9)]);
            assert_eq!(bytes, device.taken.len() as u64);
        }
    }
}
