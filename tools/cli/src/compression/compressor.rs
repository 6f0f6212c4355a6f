//! Compression of an output on a thread of its own.
//!
//! ```text
//! writer -> pending bytes -> encoder, block by block -> file
//! ```
//!
//! The encoder gets blocks of one size for writes of any size: the same bytes are
//! compressed to the same bytes. Only a prompt compressor departs from that. It is for inputs that
//! may pause: no byte waits longer than [`LONGEST_WAIT`] before the encoder is flushed.

use std::io::{self, ErrorKind, IoSlice, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::codec::Compression;
use super::encoder::Encoder;
use crate::locks::lock;
use crate::writing::OutputFile;

/// The number of bytes that are encoded at once.
const BLOCK_BYTES: usize = 128 << 10;

/// The number of pending bytes from which on writers wait.
const MOST_PENDING: usize = 8 * BLOCK_BYTES;

/// The longest time that a byte waits in a prompt compressor.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A compressed output. Dropping it ends the frame; [`finish`](Self::finish) also returns errors.
#[derive(Debug)]
pub(crate) struct Compressor {
    shared: Arc<Shared>,
    /// `None` once it was waited for.
    thread: Option<JoinHandle<io::Result<()>>>,
    prompt: bool,
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
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        (self.changed.wait(state)).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Compressor {
    /// Begins a frame at the end of the file.
    pub(crate) fn start(
        file: OutputFile,
        compression: Compression,
        prompt: bool,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let counted = CountedFile {
            file,
            shared: Arc::clone(&shared),
        };
        let encoder = Encoder::new(compression, counted)?;
        let taking = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("echoless-zip".into())
            .spawn(move || {
                let _ending = EndsWithThread(&taking);
                compress(&taking, encoder)
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
            prompt,
        })
    }

    /// Writes all slices.
    ///
    /// # Errors
    /// The error that ended an earlier write to the file. The file then ends inside a frame.
    pub(crate) fn write_slices(&mut self, slices: &[IoSlice<'_>]) -> io::Result<()> {
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

    /// The number of bytes written to the file so far.
    pub(crate) fn written(&self) -> u64 {
        // Relaxed: the count is final once the thread was waited for, which orders it.
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Ends the frame and waits until the file has all of it. Does nothing if it was called before.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        self.shared.lock().finished = true;
        self.shared.changed.notify_all();
        let panicked = |_| io::Error::other("internal error: the thread that compresses panicked");
        thread.join().map_err(panicked)?
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

/// Waits until there is something to do and takes the pending bytes. Returns whether they are the
/// last, and whether the encoder must be flushed after them.
fn take(shared: &Shared, taken: &mut Vec<u8>) -> (bool, bool) {
    let mut state = shared.lock();
    let due = loop {
        let waited = state.unflushed_since.map(|since| since.elapsed());
        let due = waited.is_some_and(|waited| waited >= LONGEST_WAIT);
        if state.finished || due || state.pending.len() >= BLOCK_BYTES {
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

    use super::super::codec::Codec;
    use super::*;

    /// What the file holds after these bytes, written in slices of at most `step` bytes.
    fn compressed(codec: Codec, bytes: &[u8], step: usize) -> Vec<u8> {
        let compression = Compression::parse("--compress", codec.name()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut compressor =
            Compressor::start(OutputFile::new(file.reopen().unwrap()), compression, false).unwrap();
        let slices: Vec<IoSlice<'_>> = bytes.chunks(step).map(IoSlice::new).collect();
        for slices in slices.chunks(3) {
            compressor.write_slices(slices).unwrap();
        }
        compressor.finish().unwrap();
        let written = std::fs::read(file.path()).unwrap();
        assert_eq!(compressor.written(), written.len() as u64);
        written
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn the_lengths_of_writes_do_not_matter(
            seed: u64,
            len in 0..700_000_usize,
            step in 1000..300_000_usize,
        ) {
            let byte = |at: usize| (seed.wrapping_mul(at as u64 / 3) >> 60) as u8;
            let bytes: Vec<u8> = (0..len).map(byte).collect();
            for codec in [Codec::Zstd, Codec::Gzip, Codec::Lz4] {
                let expected = compressed(codec, &bytes, BLOCK_BYTES);
                prop_assert!(compressed(codec, &bytes, step) == expected, "{:?}", codec);
            }
        }
    }
}
