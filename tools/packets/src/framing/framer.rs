//! The framer: recognises a file and finds one block after another.

use super::block::{BlockKind, Next, PacketBlock, Read};
use super::error::FrameError;
use super::magic::{FileKind, MAGIC_LEN, recognise, too_short};
use super::pcap::PcapFile;
use super::pcapng::PcapngFile;
use crate::bytes::array;

/// The longest block that is accepted unless [`Framer::with_max_block`] sets another limit: 16 MiB,
/// as in libpcap. A caller never has to buffer more than this.
pub const DEFAULT_MAX_BLOCK: usize = 16 << 20;

/// Finds the blocks of one capture file in a buffer that the caller fills.
///
/// The framer holds no bytes, only the state that later blocks depend on: byte order, link types,
/// clocks. After an error its state is unchanged, and another call returns the same error.
///
/// # Examples
/// ```
/// use echoless_packets::framing::{BlockKind, Framer, Next};
/// use echoless_packets::LinkType;
///
/// // A pcap file with one packet of 3 bytes.
/// let mut file = Vec::new();
/// for number in [0xa1b2_c3d4u32, 0x0002_0004, 0, 0, 65535, 1] {
///     file.extend(number.to_be_bytes());
/// }
/// for number in [7u32, 5, 3, 60] {
///     file.extend(number.to_be_bytes());
/// }
/// file.extend(b"abc");
///
/// let mut framer = Framer::new();
/// let header = framer.next_block(&file, 0, true)?;
/// assert_eq!(header, Next::Block { range: 0..24, kind: BlockKind::Header });
/// let Next::Block { range, kind: BlockKind::Packet(block) } = framer.next_block(&file, 24, true)?
/// else {
///     panic!("no packet");
/// };
/// assert_eq!(range, 24..43);
/// let packet = block.packet(&file);
/// assert_eq!((packet.bytes, packet.original_len), (&b"abc"[..], 60));
/// assert_eq!(packet.link, LinkType::ETHERNET);
/// assert_eq!(packet.timestamp, Some(7_000_005_000));
/// assert_eq!(framer.next_block(&file, 43, true)?, Next::End);
/// # Ok::<(), echoless_packets::framing::FrameError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Framer {
    state: State,
    max_block: usize,
    offset: u64,
    packets: u64,
}

#[derive(Debug, Clone)]
enum State {
    /// In front of the first byte.
    Start,
    Pcap(PcapFile),
    Pcapng(PcapngFile),
}

impl Framer {
    /// A framer in front of a file. Blocks have at most [`DEFAULT_MAX_BLOCK`] bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::with_max_block(DEFAULT_MAX_BLOCK)
    }

    /// A framer in front of a file, which rejects blocks of more than `bytes` bytes, headers
    /// included.
    #[must_use]
    pub fn with_max_block(bytes: usize) -> Self {
        Self {
            state: State::Start,
            max_block: bytes,
            offset: 0,
            packets: 0,
        }
    }

    /// The bytes of the file before the next block.
    #[must_use]
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The packets so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether the file is a pcap file of a version before 2.4, whose blocks
    /// [`upgrade`](Self::upgrade) changes. Known once its header is framed.
    #[must_use]
    pub fn is_old_pcap(&self) -> bool {
        match &self.state {
            State::Pcap(file) => file.is_old(),
            State::Start | State::Pcapng(_) => false,
        }
    }

    /// Rewrites a block that this framer has found in the form of pcap 2.4: the version in the
    /// header of the file, and the order of the lengths in the header of a packet. The block keeps
    /// its length. Blocks of other files stay as they are.
    ///
    /// # Panics
    /// If `block` is shorter than the block that was found.
    pub fn upgrade(&self, block: &mut [u8], kind: &BlockKind) {
        if let State::Pcap(file) = &self.state {
            file.upgrade(block, kind);
        }
    }

    /// Finds the block that begins at `buffer[at]`, which is the byte of the file at
    /// [`offset`](Self::offset). `last` is true if the file ends where the buffer ends.
    ///
    /// After [`Next::NeedMore`] the caller appends input and calls again for the same block.
    ///
    /// # Errors
    /// [`FrameError`] if the file is of no known kind, if a block contradicts the format, or if the
    /// file ends inside a block.
    ///
    /// # Panics
    /// If `at` is greater than the length of the buffer.
    #[inline]
    pub fn next_block(&mut self, buffer: &[u8], at: usize, last: bool) -> Result<Next, FrameError> {
        let input = &buffer[at..];
        if input.is_empty() && last && !matches!(self.state, State::Start) {
            return Ok(Next::End);
        }
        match self.read(input)? {
            Read::Block { len, mut kind } => {
                self.offset += len as u64;
                if let BlockKind::Packet(packet) = &mut kind {
                    self.packets += 1;
                    packet.data = packet.data.start + at..packet.data.end + at;
                }
                let range = at..at + len;
                Ok(Next::Block { range, kind })
            }
            Read::Needs(_) if last && self.offset == 0 && input.len() < MAGIC_LEN => {
                Err(too_short(input))
            }
            Read::Needs(expected) if last => Err(FrameError::Truncated {
                offset: self.offset,
                found: input.len(),
                expected,
                packets: self.packets,
            }),
            Read::Needs(expected) => Ok(Next::NeedMore(expected - input.len())),
        }
    }

    /// The next block, if it is a whole packet of a pcap file of the current version or an enhanced
    /// packet block, with its end in the buffer. If not, nothing changes, and
    /// [`next_block`](Self::next_block) says what is there.
    ///
    /// It finds most packets of most captures, in a loop of its own that moves no other blocks.
    ///
    /// # Panics
    /// If `at` is greater than the length of the buffer.
    #[inline(always)]
    pub fn next_packet(&mut self, buffer: &[u8], at: usize) -> Option<(usize, PacketBlock)> {
        let (input, max) = (&buffer[at..], self.max_block);
        let (len, mut packet) = match &self.state {
            State::Pcap(file) if !file.is_old() => match file.read_packet(input, max) {
                Ok(Read::Block {
                    len,
                    kind: BlockKind::Packet(packet),
                }) => (len, packet),
                _ => return None,
            },
            State::Pcapng(file) => file.read_packet(input, max)?,
            State::Pcap(_) | State::Start => return None,
        };
        self.offset += len as u64;
        self.packets += 1;
        packet.data = packet.data.start + at..packet.data.end + at;
        Some((at + len, packet))
    }

    #[inline]
    fn read(&mut self, input: &[u8]) -> Result<Read, FrameError> {
        let (offset, max) = (self.offset, self.max_block);
        match &mut self.state {
            State::Start => self.read_start(input),
            State::Pcap(file) => file.read_packet(input, max).map_err(|e| e.at(offset)),
            State::Pcapng(file) => file.read_block(input, max).map_err(|e| e.at(offset)),
        }
    }

    /// Recognises the file and reads its first header.
    #[cold]
    fn read_start(&mut self, input: &[u8]) -> Result<Read, FrameError> {
        if input.len() < MAGIC_LEN {
            return Ok(Read::Needs(MAGIC_LEN));
        }
        match recognise(array(input, 0))? {
            FileKind::Pcap { order, nanoseconds } => {
                let header = PcapFile::read_header(order, nanoseconds, input);
                let (read, file) = header.map_err(|e| e.at(0))?;
                if let Some(file) = file {
                    self.state = State::Pcap(file);
                }
                Ok(read)
            }
            FileKind::Pcapng => {
                let mut file = PcapngFile::new();
                let read = file
                    .read_block(input, self.max_block)
                    .map_err(|e| e.at(0))?;
                if let Read::Block { .. } = read {
                    self.state = State::Pcapng(file);
                }
                Ok(read)
            }
        }
    }
}

impl Default for Framer {
    fn default() -> Self {
        Self::new()
    }
}
