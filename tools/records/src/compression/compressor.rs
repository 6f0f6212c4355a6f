//! Compression of an output on a thread of its own, and of its frames on several.
//!
//! ```text
//! writer -> pending bytes -> encoder, block by block ------> file
//!                         -> frame by frame -> encoders -> file
//! ```
//!
//! An encoder gets blocks of one size for writes of any size: the same bytes are
//! compressed to the same bytes. Only a prompt compressor departs from that. It is for inputs that
//! may pause: no byte waits longer than `LONGEST_WAIT` before its one encoder is flushed.
//!
//! Other outputs are frames of `FRAME_BYTES` plain bytes each, for any number of threads, unless
//! the codec compresses them much worse (`Compression::is_for_frames`).
//!
//! The output of a run with a state is frames, whenever the run commits. A commit has the bytes of
//! the frame that is not complete, so a run that goes on writes the very frames of one that was
//! never interrupted. A frame is written at once, so what another program appends meanwhile is
//! between two of them, and is noticed.

use std::io::{self, ErrorKind, IoSlice, Seek, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::codec::Compression;
use super::encoder::Encoder;
use super::frame_encoders::FrameEncoders;
use crate::failure::lock;
use crate::writing::OutputFile;

/// The number of bytes that are encoded at once.
pub(super) const BLOCK_BYTES: usize = 128 << 10;

/// The number of pending bytes from which on writers wait.
const MOST_PENDING: usize = 8 * BLOCK_BYTES;

/// The plain bytes of a frame, if an output has several: whole blocks.
pub(crate) const FRAME_BYTES: usize = 8 * BLOCK_BYTES;

/// The longest time that a byte waits in a prompt compressor.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A compressed output. Dropping it ends the frame; [`finish`](Self::finish) also returns errors.
#[derive(Debug)]
pub struct Compressor {
    shared: Arc<Shared>,
    /// `None` once it was waited for.
    thread: Option<JoinHandle<io::Result<()>>>,
    /// The error that ended it.
    failed: Option<ErrorKind>,
    prompt: bool,
    /// What was written of the frame that is not complete, if the output has several.
    frame: Option<OpenFrame>,
}

/// The frame of an output that is not complete, in an output of several.
#[derive(Debug, Default)]
struct OpenFrame {
    /// Its plain bytes.
    plain: Vec<u8>,
    /// The number of frames before it.
    before: u64,
}

/// Where an output of several frames can go on.
#[derive(Debug, Clone, Default)]
pub struct FrameStart {
    /// The length of the file with all complete frames.
    pub file_bytes: u64,
    /// The plain bytes behind them.
    pub plain: Vec<u8>,
}

/// What the writer and the thread share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when there is a block, a first pending byte, room again, or an end.
    changed: Condvar,
    /// The number of bytes written to the file.
    written: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<u8>,
    /// When the first byte was written that is not flushed; only in a prompt compressor.
    unflushed_since: Option<Instant>,
    /// Set by the writer: no more bytes follow.
    finished: bool,
    /// Set by the thread: it takes no more bytes.
    ended: bool,
    /// Set by the writer: it waits for the complete frames, which less than a block may complete.
    awaits_frames: bool,
    /// The number of complete frames, and the length of the file with them.
    frames: u64,
    frames_end: u64,
    /// The length of the file before another program has appended to it.
    appended_at: Option<u64>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        (self.changed.wait(state)).unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether there is a block to take, or nothing more to come.
    fn is_due(&self) -> bool {
        self.finished || self.pending.len() >= BLOCK_BYTES
    }

    /// Notes that another program has appended to the file behind the complete frames. A record may
    /// begin before it and end behind it.
    fn note_appended(&mut self) {
        self.appended_at.get_or_insert(self.frames_end);
    }
}

impl Compressor {
    /// Begins a frame at the end of the file. Up to so many `threads` encode.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        file: OutputFile,
        compression: Compression,
        prompt: bool,
        threads: usize,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let counted = CountedFile {
            file,
            shared: Arc::clone(&shared),
        };
        let compressing = move |taking: &_| {
            if prompt || !compression.is_for_frames() {
                return compress(taking, Encoder::new(compression, counted)?);
            }
            compress_frames(
                taking,
                FrameEncoders::new(compression, threads),
                counted,
                false,
            )
        };
        Self::start_thread(shared, compressing, prompt, None)
    }

    /// Goes on with an output of several frames, whose file ends with the complete ones. If other
    /// programs `may_append` to it meanwhile, it is open for appending.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start_frames(
        file: OutputFile,
        compression: Compression,
        start: FrameStart,
        may_append: bool,
        threads: usize,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        shared.lock().frames_end = start.file_bytes;
        let counted = CountedFile {
            file,
            shared: Arc::clone(&shared),
        };
        let encoders = FrameEncoders::new(compression, threads);
        let compressing = move |taking: &_| compress_frames(taking, encoders, counted, may_append);
        let frame = Some(OpenFrame::default());
        let mut compressor = Self::start_thread(shared, compressing, false, frame)?;
        compressor.write_slices(&[IoSlice::new(&start.plain)])?;
        Ok(compressor)
    }

    fn start_thread(
        shared: Arc<Shared>,
        compressing: impl FnOnce(&Shared) -> io::Result<()> + Send + 'static,
        prompt: bool,
        frame: Option<OpenFrame>,
    ) -> io::Result<Self> {
        let taking = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("echoless-zip".into())
            .spawn(move || {
                let _ending = EndsWithThread(&taking);
                compressing(&taking)
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
            failed: None,
            prompt,
            frame,
        })
    }

    /// Where the output could go on after a restart: waits until the file has all complete frames.
    ///
    /// # Errors
    /// The error that ended an earlier write to the file.
    pub fn frame_start(&mut self) -> io::Result<FrameStart> {
        let Some(frame) = &self.frame else {
            return Err(io::Error::other("internal error: an output of one frame"));
        };
        if let Some(failed) = self.failed {
            return Err(failed.into());
        }
        if self.thread.is_none() {
            // Finished: what follows begins a frame.
            return Ok(FrameStart {
                file_bytes: self.shared.lock().frames_end,
                plain: Vec::new(),
            });
        }
        let mut state = self.shared.lock();
        while state.frames < frame.before && !state.ended {
            state.awaits_frames = true;
            self.shared.changed.notify_all();
            state = self.shared.wait(state);
        }
        let (frames, file_bytes) = (state.frames, state.frames_end);
        drop(state);
        if frames < frame.before {
            return Err(self.cause());
        }
        Ok(FrameStart {
            file_bytes,
            plain: frame.plain.clone(),
        })
    }

    /// Writes all slices.
    ///
    /// # Errors
    /// The error that ended an earlier write to the file. The file then ends inside a frame.
    pub fn write_slices(&mut self, slices: &[IoSlice<'_>]) -> io::Result<()> {
        for mut bytes in slices.iter().map(|slice| &**slice) {
            while !bytes.is_empty() {
                let mut state = self.shared.lock();
                while !state.ended && state.pending.len() >= MOST_PENDING {
                    state = self.shared.wait(state);
                }
                if state.ended {
                    drop(state);
                    return Err(self.cause());
                }
                let before = state.pending.len();
                let (taken, rest) = bytes.split_at(bytes.len().min(MOST_PENDING - before));
                state.pending.extend_from_slice(taken);
                if let Some(frame) = &mut self.frame {
                    frame.plain.extend_from_slice(taken);
                    let complete = frame.plain.len() / FRAME_BYTES;
                    frame.plain.drain(..complete * FRAME_BYTES);
                    frame.before += complete as u64;
                }
                bytes = rest;
                let first = self.prompt && state.unflushed_since.is_none();
                if first {
                    state.unflushed_since = Some(Instant::now());
                }
                if first || before < BLOCK_BYTES && state.pending.len() >= BLOCK_BYTES {
                    self.shared.changed.notify_all();
                }
            }
        }
        Ok(())
    }

    /// The length of the file with the complete frames, if nothing more is written to it before
    /// more is written here.
    pub fn idle_end(&self) -> Option<u64> {
        let before = self.frame.as_ref()?.before;
        let state = self.shared.lock();
        let is_idle = self.thread.is_none() || state.frames == before;
        is_idle.then_some(state.frames_end)
    }

    /// Notes that another program has appended to a file that is [idle](Self::idle_end).
    pub fn note_appended(&self) {
        self.shared.lock().note_appended();
    }

    /// The length of the file before another program has appended to it, if one has.
    pub fn appended_at(&self) -> Option<u64> {
        self.shared.lock().appended_at
    }

    /// The number of bytes written to the file so far.
    pub fn written(&self) -> u64 {
        // Relaxed: the count is final once the thread was waited for, which orders it.
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Ends the frame and waits until the file has all of it. Does nothing if it was called before.
    ///
    /// # Errors
    /// The error that ended a write to the file.
    pub fn finish(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        self.shared.lock().finished = true;
        self.shared.changed.notify_all();
        let panicked = |_| io::Error::other("internal error: the thread that compresses panicked");
        let ended = thread.join().map_err(panicked).flatten();
        self.failed = ended.as_ref().err().map(io::Error::kind);
        ended
    }

    /// The error that ended the thread.
    fn cause(&mut self) -> io::Error {
        match self.finish() {
            Err(error) => error,
            Ok(()) => ErrorKind::WriteZero.into(),
        }
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // A run that fails reports its own error.
        let _ = self.finish();
    }
}

/// Notifies the writer that the thread takes no more bytes, also if it panics.
struct EndsWithThread<'a>(&'a Shared);

impl Drop for EndsWithThread<'_> {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_all();
    }
}

/// Encodes what is written until the writer has finished.
fn compress(shared: &Shared, mut encoder: Encoder<CountedFile>) -> io::Result<()> {
    let mut taken = Vec::new();
    // Less than a block, taken but not encoded.
    let mut rest: Vec<u8> = Vec::new();
    loop {
        let (finished, due) = take(shared, &mut taken);
        let mut bytes = taken.as_slice();
        while rest.len() + bytes.len() >= BLOCK_BYTES {
            let (block, after) = bytes.split_at(BLOCK_BYTES - rest.len());
            if rest.is_empty() {
                encoder.write_all(block)?;
            } else {
                rest.extend_from_slice(block);
                encoder.write_all(&rest)?;
                rest.clear();
            }
            bytes = after;
        }
        rest.extend_from_slice(bytes);
        taken.clear();
        if (finished || due) && !rest.is_empty() {
            encoder.write_all(&rest)?;
            rest.clear();
        }
        if finished {
            return encoder.finish()?.file.close();
        }
        if due {
            encoder.flush()?;
        }
    }
}

/// Encodes what is written as frames of one length, until the writer has finished. No empty frame
/// follows a complete one, but a file without content is an empty frame.
fn compress_frames(
    shared: &Shared,
    mut encoders: FrameEncoders,
    mut file: CountedFile,
    may_append: bool,
) -> io::Result<()> {
    let mut taken = Vec::new();
    // Less than a frame.
    let mut rest: Vec<u8> = Vec::new();
    loop {
        // A frame does not wait for the next bytes.
        while encoders.is_full() || !encoders.is_empty() && !shared.lock().is_due() {
            file.append_oldest(&mut encoders, may_append)?;
        }
        let (finished, _) = take(shared, &mut taken);
        rest.append(&mut taken);
        while rest.len() >= FRAME_BYTES {
            let behind = rest.split_off(FRAME_BYTES);
            encoders.push(std::mem::replace(&mut rest, behind))?;
        }
        if finished {
            while !encoders.is_empty() {
                file.append_oldest(&mut encoders, may_append)?;
            }
            if !rest.is_empty() || shared.lock().frames_end == 0 {
                encoders.push(rest)?;
                file.append_oldest(&mut encoders, may_append)?;
            }
            return file.file.close();
        }
    }
}

/// Waits until there is something to do and takes the pending bytes. Returns whether they are the
/// last, and whether the encoder must be flushed after them.
fn take(shared: &Shared, taken: &mut Vec<u8>) -> (bool, bool) {
    let mut state = shared.lock();
    let due = loop {
        let waited = state.unflushed_since.map(|since| since.elapsed());
        let due = waited.is_some_and(|waited| waited >= LONGEST_WAIT);
        let is_awaited = std::mem::take(&mut state.awaits_frames);
        if due || is_awaited || state.is_due() {
            break due;
        }
        state = match waited {
            None => shared.wait(state),
            Some(waited) => {
                let left = LONGEST_WAIT.saturating_sub(waited);
                let woken = shared.changed.wait_timeout(state, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
    };
    std::mem::swap(&mut state.pending, taken);
    if due {
        state.unflushed_since = None;
    }
    let finished = state.finished;
    drop(state);
    // The writer may wait for room.
    shared.changed.notify_all();
    (finished, due)
}

/// A file that counts the bytes written to it.
#[derive(Debug)]
struct CountedFile {
    file: OutputFile,
    shared: Arc<Shared>,
}

impl CountedFile {
    /// Appends the oldest frame of the encoders, once it is encoded.
    fn append_oldest(&mut self, encoders: &mut FrameEncoders, may_append: bool) -> io::Result<()> {
        encoders
            .pop()
            .map_or(Ok(()), |frame| self.append_frame(&frame?, may_append))
    }

    /// Appends a complete frame, also behind what another program has appended before.
    fn append_frame(&mut self, frame: &[u8], may_append: bool) -> io::Result<()> {
        self.write_all(frame)?;
        let mut state = self.shared.lock();
        let end = state.frames_end + frame.len() as u64;
        if may_append {
            let found = self.file.stream_position()?;
            if found < end {
                let problem = "was cut while it was written: move it away to begin another one";
                return Err(io::Error::other(problem));
            }
            if found > end {
                state.note_appended();
            }
        }
        state.frames += 1;
        state.frames_end = end;
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }
}

impl Write for CountedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        (self.shared.written).fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::codec::{Codec, Detection};
    use super::super::decoder::decoder;
    use super::super::reader::PlainBytes;
    use super::*;
    use crate::reading::Read;
    use crate::signals::Patience;

    /// What the file holds after these bytes, written in slices of at most `step` bytes.
    fn compressed(codec: Codec, bytes: &[u8], step: usize, threads: usize) -> Vec<u8> {
        let compression = Compression::parse("--compress", codec.name()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let output = OutputFile::new(file.reopen().unwrap());
        let mut compressor = Compressor::start(output, compression, false, threads).unwrap();
        let slices: Vec<IoSlice<'_>> = bytes.chunks(step).map(IoSlice::new).collect();
        for slices in slices.chunks(3) {
            compressor.write_slices(slices).unwrap();
        }
        compressor.finish().unwrap();
        let written = std::fs::read(file.path()).unwrap();
        assert_eq!(compressor.written(), written.len() as u64);
        written
    }

    /// What the file holds after these bytes in frames, if the run ends behind `cut` of them and
    /// another one goes on.
    fn in_frames(codec: Codec, bytes: &[u8], cut: usize) -> Vec<u8> {
        let compression = Compression::parse("--compress", codec.name()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let output = || OutputFile::new(file.reopen().unwrap());
        let start = FrameStart::default();
        let mut first = Compressor::start_frames(output(), compression, start, false, 1).unwrap();
        first.write_slices(&[IoSlice::new(&bytes[..cut])]).unwrap();
        let start = first.frame_start().unwrap();
        // What it wrote behind that is lost.
        drop(first);
        file.as_file().set_len(start.file_bytes).unwrap();
        let mut rest = output();
        io::Seek::seek(&mut rest, io::SeekFrom::End(0)).unwrap();
        let mut second = Compressor::start_frames(rest, compression, start, false, 3).unwrap();
        second.write_slices(&[IoSlice::new(&bytes[cut..])]).unwrap();
        second.finish().unwrap();
        std::fs::read(file.path()).unwrap()
    }

    #[test]
    fn complete_frames_are_waited_for_behind_writes_of_any_length() {
        let compression = Compression::parse("--compress", "lz4").unwrap();
        for step in [1000, 70_000, BLOCK_BYTES + 1] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let output = OutputFile::new(file.reopen().unwrap());
            let start = FrameStart::default();
            let mut compressor =
                Compressor::start_frames(output, compression, start, false, 2).unwrap();
            let mut written = 0;
            while written < 2 * FRAME_BYTES {
                let bytes = vec![7; step];
                compressor.write_slices(&[IoSlice::new(&bytes)]).unwrap();
                written += step;
                let start = compressor.frame_start().unwrap();
                assert_eq!(start.plain.len(), written % FRAME_BYTES);
                assert_eq!(start.file_bytes > 0, written >= FRAME_BYTES);
            }
        }
    }

    #[test]
    fn an_output_in_frames_goes_on_where_it_was() {
        let byte = |at: usize| ((at / 7) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as u8 >> 4;
        let bytes: Vec<u8> = (0..2 * FRAME_BYTES + 5000).map(byte).collect();
        for codec in [
            Codec::Zstd,
            Codec::Gzip,
            Codec::Lz4,
            Codec::Xz,
            Codec::Bzip2,
        ] {
            for len in [
                0,
                3,
                FRAME_BYTES - 1,
                FRAME_BYTES,
                FRAME_BYTES + 1,
                bytes.len(),
            ] {
                let expected = in_frames(codec, &bytes[..len], len);
                for cut in [
                    0,
                    1,
                    BLOCK_BYTES,
                    FRAME_BYTES - 1,
                    FRAME_BYTES,
                    FRAME_BYTES + 2,
                ] {
                    let cut = cut.min(len);
                    let written = in_frames(codec, &bytes[..len], cut);
                    assert!(written == expected, "{codec:?} {len} {cut}");
                }
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(&expected).unwrap();
                io::Seek::rewind(&mut file).unwrap();
                let mut plain = PlainBytes::new(file, Detection::Text, None);
                let (mut found, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
                while let Read::Bytes(read @ 1..) = plain.read(Patience::Wait, &mut buffer).unwrap()
                {
                    found.extend_from_slice(&buffer[..read]);
                }
                assert!(found == bytes[..len], "{codec:?} {len}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn the_lengths_of_writes_do_not_matter(
            seed: u64,
            len in prop_oneof![0..700_000_usize, 0..5 * FRAME_BYTES],
            step in 1000..300_000_usize,
        ) {
            let byte = |at: usize| (seed.wrapping_mul(at as u64 / 3) >> 60) as u8;
            let bytes: Vec<u8> = (0..len).map(byte).collect();
            for codec in [Codec::Zstd, Codec::Gzip, Codec::Lz4] {
                let expected = compressed(codec, &bytes, BLOCK_BYTES, 1);
                for threads in [1, 2, 4] {
                    let found = compressed(codec, &bytes, step, threads);
                    prop_assert!(found == expected, "{:?} {}", codec, threads);
                }
                let mut plain = Vec::new();
                let mut decoder = decoder(Some(codec), &expected[..]);
                io::Read::read_to_end(&mut decoder, &mut plain).unwrap();
                prop_assert!(plain == bytes, "{:?}", codec);
            }
        }
    }
}
