//! Reads the frames of the queues of an interface, burst by burst: those that wait in the ring of a
//! queue when it is looked at have the time of the look, as AF_XDP has none of its own.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

use super::program::Attached;
use super::socket::{Layout, XdpSocket};
use super::umem::{Umem, contradiction};
use super::{is_busy, while_busy};
use crate::block::Frame;
use crate::filter::FrameFilter;
use crate::options::{KernelCounts, Method, Options};
use crate::socket::{Hardware, PacketSocket};

/// The bytes of a chunk for frames of the usual MTU, and for longer ones: a page.
const CHUNK: u32 = 2048;
const LONG_CHUNK: u32 = 4096;
/// What the kernel leaves in front of a frame: `XDP_PACKET_HEADROOM`.
const HEADROOM: u32 = 256;
/// The least chunks of a queue.
const LEAST_CHUNKS: u64 = 64;

/// Parts are passed back to the kernel by so many, and counts are read once per so many.
const PASSED_TOGETHER: u32 = 64;
const PARTS_BETWEEN_COUNTS: u64 = 4096;

/// The queues of an interface, and how far their rings are read.
#[derive(Debug)]
pub(crate) struct XdpReader {
    queues: Vec<Umem>,
    /// Those of the queues.
    sockets: Vec<XdpSocket>,
    /// While it is there, frames come.
    program: Option<Attached>,
    filter: Option<FrameFilter>,
    /// The address of the interface.
    address: [u8; 6],
    /// The queue whose burst is read, the time of that, and the parts that are left of it.
    queue: usize,
    time: u64,
    left: u32,
    /// The parts of the next frame, or 0, and its bytes if they are several.
    parts: u32,
    joined: Vec<u8>,
    /// The parts that the kernel has not seen yet, and all that were passed back.
    unpublished: u32,
    passed_back: u64,
    /// The frames that were taken, and what the kernel had counted, at the last count.
    taken: u64,
    dropped: u64,
    ran_out: u64,
}

impl XdpReader {
    /// A reader in front of the first frame of queues, which have no sockets yet.
    fn new(queues: Vec<Umem>, address: [u8; 6], filter: Option<FrameFilter>) -> Self {
        Self {
            queues,
            sockets: Vec::new(),
            program: None,
            filter,
            address,
            queue: 0,
            time: 0,
            left: 0,
            parts: 0,
            joined: Vec::new(),
            unpublished: 0,
            passed_back: 0,
            taken: 0,
            dropped: 0,
            ran_out: 0,
        }
    }

    /// Takes the frames of an Ethernet interface from the host, as far as `filter` selects them.
    /// Errors have words that follow the name of the interface.
    pub(crate) fn open(
        (socket, hardware): (&PacketSocket, &Hardware),
        name: &str,
        options: &Options,
        filter: Option<FrameFilter>,
        longest_frame: u32,
    ) -> io::Result<Self> {
        let chunk_bytes = match longest_frame + HEADROOM <= CHUNK {
            true => CHUNK,
            false => LONG_CHUNK,
        };
        let queues = socket.queues(name).filter(|queues| *queues > 0);
        let chunks = options.buffer / u64::from(queues.unwrap_or(1)) / u64::from(chunk_bytes);
        let layout = Layout {
            chunk_bytes,
            chunks: u32::try_from(chunks.max(LEAST_CHUNKS)).map_err(io::Error::other)?,
            fits: longest_frame + HEADROOM <= chunk_bytes,
        };
        let open = || {
            let (sockets, queues) = open_queues(hardware.index, queues, layout)?;
            let program =
                Attached::new(hardware.index, &sockets).map_err(|error| match is_busy(&error) {
                    true => busy(format!(
                        "has another XDP program: expected none (ip link set {name} xdp off)"
                    )),
                    false => error,
                })?;
            io::Result::Ok((sockets, queues, program))
        };
        let (sockets, queues, program) =
            open().map_err(|error| explained(error, options.buffer))?;
        Ok(Self {
            sockets,
            program: Some(program),
            ..Self::new(queues, hardware.address, filter)
        })
    }

    /// How frames come.
    pub(crate) fn method(&self) -> io::Result<Method> {
        let mut is_zero_copy = true;
        for socket in &self.sockets {
            is_zero_copy &= socket.is_zero_copy()?;
        }
        let is_generic = self.program.as_ref().is_some_and(|it| it.is_generic);
        Ok(match (is_generic, is_zero_copy) {
            (true, _) => Method::AfXdpGeneric,
            (false, true) => Method::AfXdpZeroCopy,
            (false, false) => Method::AfXdpCopy,
        })
    }

    /// Looks for the next frame. Returns whether there is one.
    #[inline]
    pub(crate) fn find(&mut self, now: u64) -> io::Result<bool> {
        // So many bursts at most: a filter may select nothing of them.
        for _ in 0..=self.queues.len() {
            if self.parts > 0 || self.left == 0 && !self.find_burst(now) {
                break;
            }
            self.seek()?;
        }
        Ok(self.parts > 0)
    }

    /// Looks for the next burst, in all queues in turn.
    fn find_burst(&mut self, now: u64) -> bool {
        self.time = now;
        for _ in 0..self.queues.len() {
            self.queue = (self.queue + 1) % self.queues.len();
            self.left = self.queues[self.queue].find();
            if self.left > 0 {
                return true;
            }
        }
        false
    }

    /// Goes to the next frame of the burst that the filter selects.
    #[inline]
    fn seek(&mut self) -> io::Result<()> {
        self.parts = 0;
        while self.left > 0 {
            let memory = &self.queues[self.queue];
            let first = memory.part(0)?;
            let (mut bytes, mut parts) = (first.bytes, 1);
            if first.continues {
                self.joined.clear();
                let mut part = first;
                for behind in 0..self.left {
                    part = memory.part(behind)?;
                    self.joined.extend_from_slice(part.bytes);
                    parts = behind + 1;
                    if !part.continues {
                        break;
                    }
                }
                // The kernel shows whole frames only.
                if part.continues {
                    return Err(contradiction());
                }
                bytes = &self.joined;
            }
            if self.filter.as_ref().is_none_or(|it| it.selects(bytes)) {
                self.parts = parts;
                break;
            }
            self.pass_back(parts);
        }
        Ok(())
    }

    /// Passes the first parts of the burst back to the kernel.
    #[inline]
    fn pass_back(&mut self, parts: u32) {
        let memory = &mut self.queues[self.queue];
        memory.pass_back(parts);
        self.left -= parts;
        self.unpublished += parts;
        self.passed_back += u64::from(parts);
        if self.unpublished >= PASSED_TOGETHER || self.left == 0 {
            memory.publish();
            self.unpublished = 0;
        }
    }

    /// Whether there is a frame that was found and not taken.
    pub(crate) const fn has_frame(&self) -> bool {
        self.parts > 0
    }

    /// The frame that was found.
    #[inline]
    pub(crate) fn next_frame(&self) -> io::Result<Option<Frame<'_>>> {
        let bytes = match self.parts {
            0 => return Ok(None),
            1 => self.queues[self.queue].part(0)?.bytes,
            _ => &self.joined,
        };
        Ok(Some(Frame {
            time: self.time,
            bytes,
            original_len: bytes.len() as u32,
            tag: None,
            packet_type: packet_type(bytes, self.address),
            has_partial_checksum: false,
        }))
    }

    /// Passes the next frames of the burst to `take`, at most so many, up to one that it does not
    /// take: that stays the next one. Returns how many were taken.
    #[inline(always)]
    pub(crate) fn take_frames(
        &mut self,
        most: u64,
        mut take: impl FnMut(&Frame<'_>) -> bool,
    ) -> io::Result<u64> {
        let mut taken = 0;
        while taken < most
            && let Some(frame) = self.next_frame()?
            && take(&frame)
        {
            taken += 1;
            self.pass_back(self.parts);
            self.seek()?;
        }
        self.taken += taken;
        Ok(taken)
    }

    /// A number that grows with what was passed back to the kernel.
    pub(crate) const fn released(&self) -> u64 {
        self.passed_back / PARTS_BETWEEN_COUNTS
    }

    /// Whether half of a queue or more waits to be read.
    pub(crate) fn is_behind(&self) -> bool {
        let mut queues = self.queues.iter();
        queues.any(|queue| queue.waiting() >= queue.chunks() / 2)
    }

    /// Whether no queue has a frame.
    pub(crate) fn is_idle(&self) -> bool {
        self.queues.iter().all(|queue| queue.waiting() == 0)
    }

    /// The sockets, which are readable while frames wait.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(XdpSocket::as_fd)
    }

    /// Leaves the frames to the host from now on. Those before are in the rings.
    pub(crate) fn stop(&mut self) {
        self.program = None;
    }

    /// The counts of the kernel since the last call.
    pub(crate) fn take_counts(&mut self) -> io::Result<KernelCounts> {
        let (mut dropped, mut ran_out) = (0, 0);
        for socket in &self.sockets {
            let counted = socket.statistics()?;
            dropped += counted.rx_dropped + counted.rx_ring_full;
            ran_out += counted.rx_fill_ring_empty_descs;
        }
        let since = dropped.saturating_sub(self.dropped);
        let counts = KernelCounts {
            received: self.taken + since,
            dropped: since,
            // Of each frame that finds no chunk, one is counted.
            freezes: u64::from(ran_out > self.ran_out),
        };
        (self.taken, self.dropped, self.ran_out) = (0, dropped, ran_out);
        Ok(counts)
    }
}

/// The sockets of so many queues of an interface, of all if the number is not known, and their
/// memory.
fn open_queues(
    index: u32,
    queues: Option<u32>,
    layout: Layout,
) -> io::Result<(Vec<XdpSocket>, Vec<Umem>)> {
    let (mut sockets, mut memories) = (Vec::new(), Vec::new());
    for queue in 0..queues.unwrap_or(u32::MAX) {
        match while_busy(|| XdpSocket::open(index, queue, layout)) {
            Ok((socket, memory)) => {
                sockets.push(socket);
                memories.push(memory);
            }
            // There are no more queues.
            Err(error) if error.kind() == ErrorKind::InvalidInput && !sockets.is_empty() => break,
            Err(error) if is_busy(&error) => {
                return Err(busy(format!("another program has queue {queue} by AF_XDP")));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((sockets, memories))
}

fn busy(problem: String) -> io::Error {
    io::Error::new(ErrorKind::ResourceBusy, problem)
}

/// An error of the system in words for people.
fn explained(error: io::Error, buffer: u64) -> io::Error {
    let problem = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "no permission to capture by AF_XDP: expected root, or the capabilities that `sudo \
             setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep $(command -v echoless)` \
             gives to the command"
                .into()
        }
        Some(libc::ENOBUFS) => format!(
            "no locked memory for a ring of {buffer} bytes (--buffer): expected a higher limit \
             (ulimit -l), or the capability cap_ipc_lock"
        ),
        Some(libc::ENOMEM) => {
            format!("no memory for a ring of {buffer} bytes (--buffer): {error}")
        }
        Some(libc::EAFNOSUPPORT | libc::ENOSYS) => {
            format!("this system has no AF_XDP (CONFIG_XDP_SOCKETS, CONFIG_BPF_SYSCALL): {error}")
        }
        Some(libc::EOPNOTSUPP) => format!("takes no XDP program: {error}"),
        _ => return error,
    };
    io::Error::new(error.kind(), problem)
}

/// To whom a frame is that an Ethernet interface of this address has received: a `PACKET_`
/// constant.
#[inline]
fn packet_type(frame: &[u8], address: [u8; 6]) -> u8 {
    match frame.first_chunk::<6>() {
        Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => libc::PACKET_BROADCAST,
        Some([first, ..]) if first & 1 == 1 => libc::PACKET_MULTICAST,
        Some(to) if *to == address => libc::PACKET_HOST,
        _ => libc::PACKET_OTHERHOST,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use libc::xdp_ring_offset;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::umem::{EMPTY_ENTRY, FILLED_ENTRY, Ring};
    use super::*;
    use crate::memory::Mapping;

    const CHUNK_BYTES: u64 = 512;
    const CHUNKS: u32 = 8;
    const PRODUCER: u64 = 0;
    const CONSUMER: u64 = 64;
    const ENTRIES: u64 = 128;

    /// The kernel's half of a queue, by the files that the reader maps.
    struct Kernel {
        frames: File,
        filled: File,
        empty: File,
        produced: u32,
        consumed: u32,
    }

    impl Kernel {
        /// A queue whose positions begin here, and the reader's half.
        fn new(begin: u32) -> (Self, Umem) {
            let [frames, filled, empty] = [(); 3].map(|()| tempfile::tempfile().unwrap());
            let length = CHUNK_BYTES * u64::from(CHUNKS);
            frames.set_len(length).unwrap();
            let offsets = xdp_ring_offset {
                producer: PRODUCER,
                consumer: CONSUMER,
                desc: ENTRIES,
                flags: 0,
            };
            let ring = |file: &File, entry_bytes| {
                let bytes = Ring::bytes(&offsets, entry_bytes, CHUNKS);
                file.set_len(bytes as u64).unwrap();
                for position in [PRODUCER, CONSUMER] {
                    file.write_all_at(&begin.to_ne_bytes(), position).unwrap();
                }
                let memory = Mapping::of_file(file.as_fd(), 0, bytes).unwrap();
                Ring::new(memory, &offsets, entry_bytes, CHUNKS)
            };
            let rings = (ring(&filled, FILLED_ENTRY), ring(&empty, EMPTY_ENTRY));
            let memory = Mapping::of_file(frames.as_fd(), 0, length as usize).unwrap();
            let memory = Umem::new(memory, CHUNK_BYTES as usize, rings.0, rings.1);
            let kernel = Self {
                frames,
                filled,
                empty,
                produced: begin,
                consumed: begin,
            };
            (kernel, memory)
        }

        /// The chunks that the reader has passed to the kernel.
        fn empty_chunks(&self) -> u32 {
            let mut producer = [0; 4];
            self.empty.read_exact_at(&mut producer, PRODUCER).unwrap();
            u32::from_ne_bytes(producer).wrapping_sub(self.consumed)
        }

        /// Puts a frame in parts, if there are so many chunks. Returns whether there were.
        fn put(&mut self, parts: &[Vec<u8>]) -> bool {
            if self.empty_chunks() < parts.len() as u32 {
                return false;
            }
            for (index, part) in parts.iter().enumerate() {
                let entry = u64::from(self.consumed % CHUNKS) * 8;
                let mut address = [0; 8];
                self.empty
                    .read_exact_at(&mut address, ENTRIES + entry)
                    .unwrap();
                self.consumed = self.consumed.wrapping_add(1);
                let address = u64::from_ne_bytes(address);
                assert!(address.is_multiple_of(CHUNK_BYTES));
                let address = address + u64::from(HEADROOM);
                self.frames.write_all_at(part, address).unwrap();
                let continues = u32::from(index + 1 < parts.len());
                self.describe(address, part.len() as u32, continues);
            }
            self.filled
                .write_all_at(&self.produced.to_ne_bytes(), PRODUCER)
                .unwrap();
            true
        }

        /// Writes a descriptor, which the producer does not show yet.
        fn describe(&mut self, address: u64, length: u32, options: u32) {
            let [length, options] = [length, options].map(u32::to_ne_bytes);
            let entry = [&address.to_ne_bytes()[..], &length, &options].concat();
            let offset = u64::from(self.produced % CHUNKS) * FILLED_ENTRY as u64;
            self.filled.write_all_at(&entry, ENTRIES + offset).unwrap();
            self.produced = self.produced.wrapping_add(1);
        }
    }

    /// All frames that are found at this time, with their times.
    fn read(reader: &mut XdpReader, now: u64, most: u64) -> io::Result<Vec<(u64, Vec<u8>)>> {
        let mut found = Vec::new();
        while reader.find(now)? {
            let next = reader.next_frame()?.unwrap().bytes.to_vec();
            let before = found.len();
            let taken = reader.take_frames(most, |frame| {
                assert_eq!(frame.original_len as usize, frame.bytes.len());
                found.push((frame.time, frame.bytes.to_vec()));
                true
            })?;
            assert_eq!(taken as usize, found.len() - before);
            assert_eq!(found[before].1, next);
        }
        assert!(reader.is_idle());
        Ok(found)
    }

    fn frame() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let most = (CHUNK_BYTES - u64::from(HEADROOM)) as usize;
        vec(vec(any::<u8>(), 0..=most), 1..4)
    }

    proptest! {
        /// Each frame comes once, those of a queue in order, also where positions begin again at 0.
        #[test]
        fn frames_of_all_queues_are_those_that_were_put_there(
            rounds in vec(vec(vec(frame(), 0..5), 2), 1..6),
            begin in prop_oneof![Just(0), u32::MAX - 20..=u32::MAX],
            most in prop_oneof![Just(1), Just(2), Just(u64::MAX)],
        ) {
            let (mut kernels, memories): (Vec<_>, Vec<_>) =
                (0..2).map(|_| Kernel::new(begin)).unzip();
            let mut reader = XdpReader::new(memories, [0; 6], None);
            for (now, round) in (7..).zip(rounds) {
                let mut expected = Vec::new();
                for (kernel, frames) in kernels.iter_mut().zip(round) {
                    prop_assert_eq!(kernel.empty_chunks(), CHUNKS);
                    let mut put = Vec::new();
                    for parts in frames {
                        if kernel.put(&parts) {
                            put.push((now, parts.concat()));
                        }
                    }
                    expected.push(put);
                }
                // The queues take turns.
                expected.rotate_left((reader.queue + 1) % 2);
                prop_assert_eq!(read(&mut reader, now, most).unwrap(), expected.concat());
            }
        }

        /// Numbers that lie end in an error, or are bytes of one chunk each.
        #[test]
        fn hostile_descriptors_name_no_bytes_outside_of_a_chunk(
            lies in vec((lie(), lie(), 0..3_u32), 1..=CHUNKS as usize),
            shown in prop_oneof![0..20_u32, any::<u32>()],
        ) {
            let (mut kernel, memory) = Kernel::new(0);
            for (address, length, options) in &lies {
                kernel.describe(*address, *length as u32, *options);
            }
            kernel.filled.write_all_at(&shown.to_ne_bytes(), PRODUCER).unwrap();
            let mut reader = XdpReader::new(vec![memory], [0; 6], None);
            if reader.find(0).is_ok_and(|found| found) {
                let most = (CHUNK_BYTES * u64::from(CHUNKS)) as usize;
                let _ = reader.take_frames(u64::from(CHUNKS), |frame| {
                    assert!(frame.bytes.len() <= most);
                    true
                });
            }
        }
    }

    fn lie() -> impl Strategy<Value = u64> {
        prop_oneof![
            0..CHUNK_BYTES * u64::from(CHUNKS) + 9,
            0..600_u64,
            any::<u64>()
        ]
    }

    #[test]
    fn frames_are_to_whom_their_address_says() {
        let own = [2, 0, 0, 0, 0, 1];
        for (to, expected) in [
            (&own[..], libc::PACKET_HOST),
            (&[2, 0, 0, 0, 0, 2], libc::PACKET_OTHERHOST),
            (&[0xff; 6], libc::PACKET_BROADCAST),
            (&[0x33, 0x33, 0, 0, 0, 1], libc::PACKET_MULTICAST),
            (&own[..3], libc::PACKET_OTHERHOST),
        ] {
            assert_eq!(packet_type(to, own), expected);
        }
    }
}
