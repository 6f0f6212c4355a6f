//! Encodes the frames of an output on several threads, in their order.

use std::collections::VecDeque;
use std::io;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::codec::Compression;
use super::compressor::BLOCK_BYTES;
use super::encoder::Encoder;

/// The frames that are encoded, or wait for it.
pub(super) struct FrameEncoders {
    compression: Compression,
    /// The most threads, and those that are started: as many as there was work for.
    threads: usize,
    started: usize,
    jobs: (Sender<Job>, Receiver<Job>),
    under_way: VecDeque<Receiver<io::Result<Vec<u8>>>>,
}

/// The plain bytes of a frame, and where the encoded ones go.
struct Job {
    plain: Vec<u8>,
    encoded: Sender<io::Result<Vec<u8>>>,
}

impl FrameEncoders {
    /// Encoders on up to so many threads, or fewer if each takes much memory.
    pub(super) fn new(compression: Compression, threads: usize) -> Self {
        Self {
            compression,
            threads: threads.clamp(1, compression.most_encoders()),
            started: 0,
            jobs: unbounded(),
            under_way: VecDeque::new(),
        }
    }

    /// Whether there is work enough for all threads, and one frame more.
    pub(super) fn is_full(&self) -> bool {
        self.under_way.len() > self.threads
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Encodes a frame of these bytes behind the others.
    pub(super) fn push(&mut self, plain: Vec<u8>) -> io::Result<()> {
        if self.started < self.threads && self.started <= self.under_way.len() {
            let (compression, jobs) = (self.compression, self.jobs.1.clone());
            let work = move || {
                // Until the frames are dropped.
                for Job { plain, encoded } in &jobs {
                    // Fails only if nobody waits for it any more.
                    let _ = encoded.send(encode(compression, &plain));
                }
            };
            let named = thread::Builder::new().name("echoless-zip".into());
            match named.spawn(work) {
                Ok(_) => self.started += 1,
                Err(error) if self.started == 0 => return Err(error),
                // Those that there are suffice.
                Err(_) => self.threads = self.started,
            }
        }
        let (encoded, frame) = bounded(1);
        // Cannot fail: the other end is here, too.
        let _ = self.jobs.0.send(Job { plain, encoded });
        self.under_way.push_back(frame);
        Ok(())
    }

    /// The oldest frame, once it is encoded; `None` if there is none.
    pub(super) fn pop(&mut self) -> Option<io::Result<Vec<u8>>> {
        let frame = self.under_way.pop_front()?.recv();
        let panicked = |_| io::Error::other("internal error: a thread that compresses panicked");
        Some(frame.map_err(panicked).flatten())
    }
}

/// A frame of these bytes. An encoder gets blocks of one length.
fn encode(compression: Compression, plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::new(compression, Vec::new())?;
    for block in plain.chunks(BLOCK_BYTES) {
        encoder.write_all(block)?;
    }
    encoder.finish()
}
