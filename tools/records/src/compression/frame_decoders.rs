//! Decompression of a file of many frames on several threads, in the order of the file.
//!
//! ```text
//!               +-> whole frames -> decoder -+
//! file -> cut --+-> whole frames -> decoder -+-> plain bytes, in turns
//!               +-> whole frames -> decoder -+
//! ```
//!
//! A thread whose turn it is cuts the next group of whole frames off the file, by their
//! [extents](super::extent) alone. Each group has the [decoder](super::decoder) of a file. It gives
//! what one decoder of the whole file would, if it passes to the end of the group without an error:
//! both are between two frames then. From anything else on, one decoder goes on: from damage, the
//! end of the file, a frame without an extent, or one that is longer than it says. So no byte and
//! no message depends on the threads, and no extent has to be right.

use std::io::{self, Cursor, Read};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::codec::Codec;
use super::decoder::{Decoder, READ_BYTES, decoder};
use super::extent::{Extent, Unfound, extent};
use crate::reading::CHUNK_BYTES;

/// The bytes from which on a group is long enough: it takes longer to decode than to wake a thread.
/// In tests, groups have one frame or two.
const GROUP_BYTES: usize = if cfg!(test) { 300 } else { 256 << 10 };
const GROUP_PLAIN: usize = if cfg!(test) { 300 } else { 1 << 20 };

/// The most threads: their groups, of which each may be of
/// [`MOST_FRAME`](super::extent::MOST_FRAME) bytes and more, take some 300 MiB at most.
const MOST_THREADS: usize = 16;

/// A decoder of a file: on one thread, or on several as far as that is possible.
pub(super) struct FileDecoder<R: Read> {
    state: State<R>,
    file_bytes: Arc<AtomicU64>,
}

enum State<R: Read> {
    Several(Several<R>),
    One(Box<dyn Decoder>),
}

impl<R: Read + Send + 'static> FileDecoder<R> {
    /// A decoder of a file that begins with `first`; these bytes are read already. Without a codec,
    /// it begins with frames that are skipped. It has up to so many `threads` unless the file may
    /// wait for data: they decode a frame once all of it was read.
    pub(super) fn new(
        codec: Option<Codec>,
        first: Vec<u8>,
        file: R,
        threads: usize,
        may_wait: bool,
    ) -> Self {
        let mut undecoded = Undecoded {
            file,
            ahead: first,
            position: 0,
            codec,
        };
        let file_bytes = Arc::default();
        if !may_wait {
            // What was read in order to detect the codec may end anywhere.
            undecoded.read_more(0);
        }
        let several = if !may_wait && threads > 1 && undecoded.has_several_groups() {
            Several::start(undecoded, threads.min(MOST_THREADS))
        } else {
            Err(undecoded)
        };
        let state = match several {
            Ok(several) => State::Several(several),
            Err(undecoded) => State::One(undecoded.one(&file_bytes)),
        };
        Self { state, file_bytes }
    }

    /// The bytes of the file that were decoded, and those that were read together with them.
    pub(super) fn file_bytes(&self) -> u64 {
        // Relaxed: one thread stores and loads it.
        self.file_bytes.load(Ordering::Relaxed)
    }

    /// The codec, once it is known.
    pub(super) fn codec(&self) -> Option<Codec> {
        match &self.state {
            State::Several(several) => several.codec,
            State::One(decoder) => decoder.codec(),
        }
    }

    /// As [`Decoder::bytes_behind`].
    pub(super) fn bytes_behind(&self) -> u64 {
        match &self.state {
            State::Several(_) => 0,
            State::One(decoder) => decoder.bytes_behind(),
        }
    }

    /// Writes plain bytes to the start of a buffer of [`CHUNK_BYTES`] or more, in whose place it
    /// may put another one, and returns how many; 0 at the end of the last frame.
    ///
    /// # Panics
    /// If one of the threads has panicked.
    pub(super) fn fill(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            let several = match &mut self.state {
                // What comes in front of an error depends on the length of the reads.
                State::One(decoder) => return decoder.read(&mut buffer[..CHUNK_BYTES]),
                State::Several(several) => several,
            };
            let Some((filled, end)) = several.fill(buffer) else {
                self.state = State::One(several.undecoded().one(&self.file_bytes));
                continue;
            };
            self.file_bytes.store(end, Ordering::Relaxed);
            if filled > 0 {
                return Ok(filled);
            }
        }
    }
}

/// The rest of a file, which begins between two frames.
struct Undecoded<R> {
    file: R,
    /// The bytes that are read, and where they are in the file.
    ahead: Vec<u8>,
    position: u64,
    codec: Option<Codec>,
}

impl<R: Read> Undecoded<R> {
    /// Reads at least so many bytes more, if there are any, up to a place where one decoder would
    /// read to as well. An error comes again when that reads there.
    fn read_more(&mut self, least: usize) -> bool {
        let before = self.ahead.len();
        let end = self.position + (before + least) as u64;
        let most = end.next_multiple_of(READ_BYTES as u64) - self.position - before as u64;
        let _ = (&mut self.file).take(most).read_to_end(&mut self.ahead);
        self.ahead.len() > before
    }

    /// The extent of the next whole frames together; `None` if none is found.
    fn next_group(&mut self) -> Option<Extent> {
        let mut group = Extent {
            codec: self.codec,
            length: 0,
            most_plain: 0,
        };
        while group.length < GROUP_BYTES && group.most_plain < GROUP_PLAIN {
            let bytes = &self.ahead[group.length..];
            match extent(bytes) {
                Ok(frame) => {
                    group.codec = group.codec.or(frame.codec);
                    group.length += frame.length;
                    group.most_plain += frame.most_plain;
                }
                Err(Unfound::Short(length)) => {
                    let lacking = length - bytes.len();
                    if !self.read_more(lacking) {
                        break;
                    }
                }
                Err(Unfound::Unknown) => break,
            }
        }
        (group.length > 0).then_some(group)
    }

    fn has_several_groups(&mut self) -> bool {
        let first = self.next_group();
        first.is_some_and(|first| self.ahead.len() > first.length || self.read_more(1))
    }

    /// Cuts the next whole frames off. What is behind them goes to the `spare` buffer.
    fn cut(&mut self, mut spare: Vec<u8>) -> Option<Group> {
        let Extent {
            codec,
            length,
            most_plain,
        } = self.next_group()?;
        spare.clear();
        spare.extend_from_slice(&self.ahead[length..]);
        self.ahead.truncate(length);
        let group = Group {
            bytes: mem::replace(&mut self.ahead, spare),
            position: self.position,
            codec: self.codec,
            most_plain,
        };
        self.position += length as u64;
        self.codec = codec;
        Some(group)
    }
}

impl<R: Read + Send + 'static> Undecoded<R> {
    /// One decoder of all of it, which counts the bytes of the file.
    fn one(self, file_bytes: &Arc<AtomicU64>) -> Box<dyn Decoder> {
        file_bytes.store(self.position, Ordering::Relaxed);
        let file = Counted {
            file: Cursor::new(self.ahead).chain(self.file),
            bytes: Arc::clone(file_bytes),
        };
        decoder(self.codec, file)
    }
}

/// Counts the bytes that are read.
struct Counted<R> {
    file: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Up to the same places wherever reading began: the count at an error depends on no thread.
        let before = self.bytes.load(Ordering::Relaxed) as usize % READ_BYTES;
        let most = buffer.len().min(READ_BYTES - before);
        let read = self.file.read(&mut buffer[..most])?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Whole frames, adjacent in the file.
struct Group {
    bytes: Vec<u8>,
    position: u64,
    /// The codec of the file, as far as it is known before them.
    codec: Option<Codec>,
    most_plain: usize,
}

/// A group and its plain bytes.
struct Decoded {
    group: Group,
    codec: Option<Codec>,
    plain: Vec<u8>,
    /// The number of plain bytes; `None` if anything was not as expected.
    filled: Option<usize>,
}

impl Group {
    fn decode(self, mut plain: Vec<u8>) -> Decoded {
        // A byte more than there may be shows that there are too many.
        let room = self.most_plain + 1;
        plain.resize(plain.len().max(room), 0);
        let mut decoder = decoder(self.codec, &self.bytes[..]);
        let mut len = 0;
        let filled = loop {
            match decoder.read(&mut plain[len..room]) {
                Ok(0) => break (len < room && decoder.bytes_behind() == 0).then_some(len),
                Ok(read) => len += read,
                Err(_) => break None,
            }
        };
        let codec = decoder.codec();
        drop(decoder);
        Decoded {
            group: self,
            codec,
            plain,
            filled,
        }
    }
}

/// A file from which threads cut groups in turns.
struct Cutter<R> {
    /// `None` once one decoder has it.
    undecoded: Option<Undecoded<R>>,
    /// Gets what becomes of each group, in the order of the file; `None` once none follows.
    groups: Option<Sender<Receiver<Decoded>>>,
}

impl<R: Read> Cutter<R> {
    /// The next group, and where its plain bytes go.
    fn cut(&mut self, spare: Vec<u8>) -> Option<(Group, Sender<Decoded>)> {
        let groups = self.groups.take()?;
        let group = self.undecoded.as_mut()?.cut(spare)?;
        let (send, decoded) = bounded(1);
        // Fails only if nobody reads any more. There is room: a group has a buffer.
        groups.send(decoded).ok()?;
        self.groups = Some(groups);
        Some((group, send))
    }
}

/// Buffers that were used: memory that is there already.
struct Buffers {
    bytes: Vec<u8>,
    plain: Vec<u8>,
}

/// The threads, seen from the one that gets their plain bytes.
struct Several<R> {
    cutter: Arc<Mutex<Cutter<R>>>,
    groups: Receiver<Receiver<Decoded>>,
    recycle: Sender<Buffers>,
    /// The codec behind the groups so far.
    codec: Option<Codec>,
    /// The group that is left to one decoder.
    failed: Option<Group>,
}

impl<R: Read + Send + 'static> Several<R> {
    /// Starts so many threads, or as many as the system allows; without any, returns the file.
    fn start(undecoded: Undecoded<R>, threads: usize) -> Result<Self, Undecoded<R>> {
        // One is read, one waits, and each thread fills one.
        let buffers = threads + 2;
        let (send, groups) = bounded(buffers);
        let (recycle, recycled) = bounded(buffers);
        for _ in 0..buffers {
            // Cannot fail: the channel has room for all buffers.
            let _ = recycle.try_send(Buffers {
                bytes: Vec::new(),
                plain: vec![0; CHUNK_BYTES],
            });
        }
        let codec = undecoded.codec;
        let cutter = Arc::new(Mutex::new(Cutter {
            undecoded: Some(undecoded),
            groups: Some(send),
        }));
        let started = (0..threads).take_while(|_| {
            let (cutter, recycled) = (Arc::clone(&cutter), recycled.clone());
            // Not joined: they end when what is returned here is dropped.
            let thread = thread::Builder::new().name("echoless-unzip".into());
            let thread = thread.spawn(move || decode_groups(&cutter, &recycled));
            thread.is_ok()
        });
        let started = started.count();
        let mut several = Self {
            cutter,
            groups,
            recycle,
            codec,
            failed: None,
        };
        if started == 0 {
            return Err(several.undecoded());
        }
        Ok(several)
    }

    /// Puts the plain bytes of the next group in the place of the buffer. Returns how many, and
    /// where the group ends in the file; `None` if one decoder has to go on.
    fn fill(&mut self, buffer: &mut Vec<u8>) -> Option<(usize, u64)> {
        let decoded = received(&self.groups.recv().ok()?);
        let Some(filled) = decoded.filled else {
            self.failed = Some(decoded.group);
            return None;
        };
        self.codec = decoded.codec;
        let Group {
            bytes, position, ..
        } = decoded.group;
        let end = position + bytes.len() as u64;
        let plain = mem::replace(buffer, decoded.plain);
        // Fails only after all threads have ended.
        let _ = self.recycle.send(Buffers { bytes, plain });
        Some((filled, end))
    }

    /// The file from the group on that is left to one decoder.
    fn undecoded(&mut self) -> Undecoded<R> {
        let mut cutter = self.cutter.lock().expect(PANICKED);
        cutter.groups = None;
        let mut undecoded = cutter.undecoded.take().expect("it is asked for once");
        drop(cutter);
        let later = self.groups.iter().map(|group| received(&group).group);
        let groups: Vec<Group> = self.failed.take().into_iter().chain(later).collect();
        if let Some(first) = groups.first() {
            (undecoded.position, undecoded.codec) = (first.position, first.codec);
        }
        let bytes = groups.iter().map(|group| &group.bytes[..]);
        let bytes: Vec<&[u8]> = bytes.chain([&undecoded.ahead[..]]).collect();
        undecoded.ahead = bytes.concat();
        undecoded
    }
}

const PANICKED: &str = "a thread that decompresses has panicked";

/// What became of a group, once it is decoded.
fn received(group: &Receiver<Decoded>) -> Decoded {
    group.recv().expect(PANICKED)
}

/// Decodes groups until none follows, or nobody reads them.
fn decode_groups<R: Read>(cutter: &Mutex<Cutter<R>>, recycled: &Receiver<Buffers>) {
    while let Ok(Buffers { bytes, plain }) = recycled.recv() {
        let cut = cutter.lock().ok().and_then(|mut cutter| cutter.cut(bytes));
        let Some((group, decoded)) = cut else {
            return;
        };
        if decoded.send(group.decode(plain)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::super::decoder::tests::{frames, legacy, skippable};
    use super::super::extent::MOST_FRAME;
    use super::super::extent::tests::bgzf_member;
    use super::*;

    /// What a decoder makes of a file.
    #[derive(Debug, PartialEq)]
    struct Outcome {
        plain: Vec<u8>,
        error: Option<(io::ErrorKind, String)>,
        codec: Option<Codec>,
        bytes_behind: u64,
        file_bytes: u64,
    }

    /// Decodes a file of which so many bytes are read already.
    fn decoded(codec: Option<Codec>, file: &[u8], first: usize, threads: usize) -> Outcome {
        let (first, rest) = file.split_at(first.min(file.len()));
        let rest = Cursor::new(rest.to_vec());
        let mut decoder = FileDecoder::new(codec, first.to_vec(), rest, threads, false);
        let (mut plain, mut buffer) = (Vec::new(), vec![0; CHUNK_BYTES]);
        let error = loop {
            match decoder.fill(&mut buffer) {
                Ok(0) => break None,
                Ok(filled) => plain.extend_from_slice(&buffer[..filled]),
                Err(error) => break Some((error.kind(), error.to_string())),
            }
        };
        Outcome {
            plain,
            error,
            codec: decoder.codec(),
            bytes_behind: decoder.bytes_behind(),
            file_bytes: decoder.file_bytes(),
        }
    }

    /// The codec of a file whose frames are mostly of this kind, as its first bytes tell.
    fn codec_of(file: &[u8]) -> Option<Codec> {
        use super::super::codec::{Detected, Detection};
        match Codec::detect(file, Detection::Binary) {
            Detected::Compressed(codec) => Some(codec),
            _ => None,
        }
    }

    fn frame(kind: usize, part: &[u8]) -> Vec<u8> {
        let parts = [part.to_vec()];
        match kind {
            0 => frames(Codec::Zstd, &parts),
            1 => zstd::bulk::compress(part, 1).unwrap(),
            2 => frames(Codec::Lz4, &parts),
            3 => bgzf_member(part),
            4 => frames(Codec::Gzip, &parts),
            5 => skippable(5, part.len()),
            6 => legacy(part),
            _ => part.to_vec(),
        }
    }

    /// Files of frames of one kind, mixed with those of another kind and with bytes of no kind.
    fn file() -> impl Strategy<Value = Vec<u8>> {
        let zeros = (any::<u8>(), 0..3000_usize).prop_map(|(byte, len)| vec![byte; len]);
        let part = prop_oneof![vec(any::<u8>(), 0..400), zeros];
        let kinds = select(vec![
            [0, 0, 5],
            [0, 1, 0],
            [5, 0, 0],
            [2, 2, 5],
            [2, 2, 6],
            [3, 3, 3],
            [3, 3, 4],
        ]);
        let other = prop_oneof![9 => Just(0), 1 => 0..8_usize];
        (kinds, vec((0..3_usize, other, part), 1..12)).prop_map(|(kinds, parts)| {
            (parts.into_iter())
                .flat_map(|(kind, other, part)| match other {
                    0 => frame(kinds[kind], &part),
                    other => frame(other, &part),
                })
                .collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn threads_decode_what_one_does(
            file in file(),
            flips in vec((any::<Index>(), 1..=255_u8), 0..3),
            cut in prop_oneof![Just(None), any::<Index>().prop_map(Some)],
            behind in prop_oneof![3 => Just(Vec::new()), 1 => vec(any::<u8>(), 0..20)],
            firsts: [Index; 2],
            threads in 2..5_usize,
        ) {
            let codec = codec_of(&file);
            let mut file = [&file[..], &behind].concat();
            if let Some(cut) = cut {
                file.truncate(cut.index(file.len() + 1));
            }
            // The first bytes have shown the codec.
            for (at, flip) in flips {
                if let Some(behind @ [_, ..]) = file.get_mut(4..) {
                    behind[at.index(behind.len())] ^= flip;
                }
            }
            let [first, other] = firsts.map(|first| first.index(file.len() + 1));
            let one = decoded(codec, &file, first, 1);
            let several = decoded(codec, &file, other, threads);
            prop_assert_eq!(several, one);
        }
    }

    #[test]
    fn frames_that_are_too_long_are_left_to_one_decoder_with_all_behind_them() {
        let short = vec![1; 5000];
        let long = vec![2; MOST_FRAME + 1];
        let parts = [&short[..], &short, &long, &short];
        for kind in [0, 1] {
            let file: Vec<u8> = parts.iter().flat_map(|part| frame(kind, part)).collect();
            let several = decoded(codec_of(&file), &file, 0, 3);
            assert_eq!((several.error, several.bytes_behind), (None, 0));
            assert!(several.plain == parts.concat(), "{kind}");
            assert_eq!(several.file_bytes, file.len() as u64);
        }
    }

    #[test]
    fn a_group_that_says_too_little_is_left_to_one_decoder() {
        let mut member = bgzf_member(&[7; 1000]);
        let length = member.len();
        let file = [&member[..], &member, &member].concat();
        // The plain length, of which nothing is allocated.
        member[length - 4..].copy_from_slice(&10_u32.to_le_bytes());
        let damaged = [&file[..], &member, &file].concat();
        let several = decoded(Some(Codec::Gzip), &damaged, 10, 2);
        assert_eq!(several, decoded(Some(Codec::Gzip), &damaged, 10, 1));
        assert_eq!(several.plain.len(), 4000);
        assert!(several.error.is_some());
    }

    #[test]
    fn only_files_of_several_groups_get_threads() {
        let begin = |file: &[u8], threads| {
            let rest = Cursor::new(file.to_vec());
            let decoder = FileDecoder::new(codec_of(file), Vec::new(), rest, threads, false);
            matches!(decoder.state, State::Several(_))
        };
        for kind in [0, 1, 3] {
            let one = frame(kind, &(0..=255).collect::<Vec<u8>>().repeat(2));
            assert!(!begin(&one, 4), "{kind}");
            assert!(begin(&one.repeat(3), 2), "{kind}");
            assert!(!begin(&one.repeat(3), 1), "{kind}");
        }
        for kind in [2, 4, 6, 7] {
            assert!(!begin(&frame(kind, b"text").repeat(3), 4), "{kind}");
        }
    }
}
