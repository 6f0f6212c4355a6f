//! Reads the frames of one block of a ring, as the kernel lays them out (`TPACKET_V3`).
//!
//! ```text
//! block | version 4 | .. 4 | status 4 | frames 4 | first 4 | length 4 | .. 24 | frame | frame | ..
//! frame | next 4 | seconds 4 | nanoseconds 4 | captured 4 | original 4 | status 4 | data 2 | .. 2
//!       | hash 4 | VLAN TCI 4 | VLAN TPID 2 | .. 10 | link-layer address 20 | .. | data
//! ```
//!
//! Offsets of frames count from the block, those of data from the frame, and numbers are in the
//! byte order of the machine. Every offset is checked before the byte that it names is read, so
//! memory that contradicts itself ends in an error.

use std::io;

use libc::{TP_STATUS_CSUMNOTREADY, TP_STATUS_VLAN_TPID_VALID, TP_STATUS_VLAN_VALID};

/// The bytes in front of the first frame, and those of a frame in front of its data, at least.
pub(crate) const BLOCK_HEADER: usize = 48;
const FRAME_HEADER: usize = 48 + 20;

/// Of a block: status, number of frames, offset of the first one, bytes that are filled.
pub(crate) const BLOCK_STATUS: usize = 8;
const FRAMES: usize = 12;
const FIRST_FRAME: usize = 16;
const BLOCK_LENGTH: usize = 20;

/// Of a frame.
const NEXT: usize = 0;
const SECONDS: usize = 4;
const NANOSECONDS: usize = 8;
const CAPTURED: usize = 12;
const ORIGINAL: usize = 16;
const FRAME_STATUS: usize = 20;
const DATA: usize = 24;
const VLAN_TCI: usize = 32;
const VLAN_TPID: usize = 36;
const PACKET_TYPE: usize = 48 + 10;

/// The bytes of an Ethernet header in front of a VLAN tag: both addresses.
pub(crate) const BEFORE_TAG: usize = 12;

/// The TPID of a tag of which the kernel does not tell it.
const DEFAULT_TPID: u16 = 0x8100;

/// Where the reader of a block is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The offset of the next frame.
    at: usize,
    /// The frames that are left, that one included; 1 or more.
    left: u32,
}

/// A captured frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// Nanoseconds since 1970.
    pub(crate) time: u64,
    pub(crate) bytes: &'a [u8],
    /// Its length on the wire, without the tag.
    pub(crate) original_len: u32,
    /// The VLAN tag that the kernel has taken out behind [`BEFORE_TAG`] bytes: TPID and TCI.
    pub(crate) tag: Option<[u8; 4]>,
    /// A `PACKET_` constant: to whom the frame is.
    pub(crate) packet_type: u8,
    /// Whether its checksum is left to the hardware that sends it.
    pub(crate) has_partial_checksum: bool,
}

/// The part of a block that the kernel has filled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filled<'a>(&'a [u8]);

impl<'a> Filled<'a> {
    /// The filled part of a block.
    pub(crate) fn of(block: &'a [u8]) -> io::Result<Self> {
        let filled = u32_at(block, BLOCK_LENGTH)? as usize;
        block.get(..filled).map(Self).ok_or_else(contradiction)
    }
}

impl Position {
    /// The first frame of a block, if it has any.
    pub(crate) fn first(block: &[u8]) -> io::Result<Option<Self>> {
        if block.len() < BLOCK_HEADER {
            return Err(contradiction());
        }
        let left = u32_at(block, FRAMES)?;
        let at = u32_at(block, FIRST_FRAME)? as usize;
        Ok((left > 0).then_some(Self { at, left }))
    }

    /// The frame at this position, and the position of the next one. Fails if an offset or a length
    /// leads out of the block, or back.
    #[inline(always)]
    pub(crate) fn frame<'a>(&self, block: Filled<'a>) -> io::Result<(Frame<'a>, Option<Self>)> {
        let start = Some(self.at).filter(|at| *at >= BLOCK_HEADER);
        let bytes = start.and_then(|at| block.0.get(at..));
        let bytes = bytes.ok_or_else(contradiction)?;
        // Of known length: its numbers need no check of their own.
        let frame: &[u8; FRAME_HEADER] = bytes.first_chunk().ok_or_else(contradiction)?;
        let captured = u32_at(frame, CAPTURED)? as usize;
        let data = usize::from(u16_at(frame, DATA)?);
        let bytes = (bytes.get(data..)).and_then(|data| data.get(..captured));
        let bytes = bytes
            .filter(|_| data >= FRAME_HEADER)
            .ok_or_else(contradiction)?;
        let status = u32_at(frame, FRAME_STATUS)?;
        let has_tag = status & TP_STATUS_VLAN_VALID != 0 && captured >= BEFORE_TAG;
        let tag = match has_tag {
            true => {
                let tpid = match status & TP_STATUS_VLAN_TPID_VALID {
                    0 => DEFAULT_TPID,
                    _ => u16_at(frame, VLAN_TPID)?,
                };
                // The kernel has 16 bits of it.
                let tci = u32_at(frame, VLAN_TCI)? as u16;
                let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
                Some([a, b, c, d])
            }
            false => None,
        };
        let seconds = u64::from(u32_at(frame, SECONDS)?);
        let next = match self.left {
            0 | 1 => None,
            left => {
                // A frame that is its own successor would repeat forever.
                let next = u32_at(frame, NEXT)? as usize;
                let at = self.at.checked_add(next).filter(|_| next >= FRAME_HEADER);
                let at = at.ok_or_else(contradiction)?;
                Some(Self { at, left: left - 1 })
            }
        };
        let frame = Frame {
            time: seconds * 1_000_000_000 + u64::from(u32_at(frame, NANOSECONDS)?),
            bytes,
            original_len: u32_at(frame, ORIGINAL)?,
            tag,
            packet_type: frame[PACKET_TYPE],
            has_partial_checksum: status & TP_STATUS_CSUMNOTREADY != 0,
        };
        Ok((frame, next))
    }
}

#[inline(always)]
fn u32_at(bytes: &[u8], at: usize) -> io::Result<u32> {
    let number = bytes.get(at..).and_then(<[u8]>::first_chunk);
    number
        .map(|number| u32::from_ne_bytes(*number))
        .ok_or_else(contradiction)
}

#[inline(always)]
fn u16_at(bytes: &[u8], at: usize) -> io::Result<u16> {
    let number = bytes.get(at..).and_then(<[u8]>::first_chunk);
    number
        .map(|number| u16::from_ne_bytes(*number))
        .ok_or_else(contradiction)
}

#[cold]
fn contradiction() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a block of the ring contradicts itself",
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use std::mem::offset_of;

    use libc::{tpacket_block_desc, tpacket_hdr_v1, tpacket_hdr_variant1, tpacket3_hdr};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn offsets_are_those_of_the_kernel() {
        let in_block = |offset| offset_of!(tpacket_block_desc, hdr) + offset;
        let in_frame = |offset| offset_of!(tpacket3_hdr, hv1) + offset;
        for (ours, theirs) in [
            (BLOCK_HEADER, size_of::<tpacket_block_desc>()),
            (
                BLOCK_STATUS,
                in_block(offset_of!(tpacket_hdr_v1, block_status)),
            ),
            (FRAMES, in_block(offset_of!(tpacket_hdr_v1, num_pkts))),
            (
                FIRST_FRAME,
                in_block(offset_of!(tpacket_hdr_v1, offset_to_first_pkt)),
            ),
            (BLOCK_LENGTH, in_block(offset_of!(tpacket_hdr_v1, blk_len))),
            (FRAME_HEADER, libc::TPACKET3_HDRLEN),
            (NEXT, offset_of!(tpacket3_hdr, tp_next_offset)),
            (SECONDS, offset_of!(tpacket3_hdr, tp_sec)),
            (NANOSECONDS, offset_of!(tpacket3_hdr, tp_nsec)),
            (CAPTURED, offset_of!(tpacket3_hdr, tp_snaplen)),
            (ORIGINAL, offset_of!(tpacket3_hdr, tp_len)),
            (FRAME_STATUS, offset_of!(tpacket3_hdr, tp_status)),
            (DATA, offset_of!(tpacket3_hdr, tp_mac)),
            (
                VLAN_TCI,
                in_frame(offset_of!(tpacket_hdr_variant1, tp_vlan_tci)),
            ),
            (
                VLAN_TPID,
                in_frame(offset_of!(tpacket_hdr_variant1, tp_vlan_tpid)),
            ),
            (
                PACKET_TYPE,
                size_of::<tpacket3_hdr>() + offset_of!(libc::sockaddr_ll, sll_pkttype),
            ),
        ] {
            assert_eq!(ours, theirs);
        }
    }

    /// What a test puts in a block.
    #[derive(Debug, Clone)]
    pub(crate) struct Made {
        time: (u32, u32),
        bytes: Vec<u8>,
        original_len: u32,
        tag: Option<(Option<u16>, u16)>,
        packet_type: u8,
        has_partial_checksum: bool,
        /// Bytes in front of the data, and behind it.
        gaps: (usize, usize),
    }

    pub(crate) fn made() -> impl Strategy<Value = Made> {
        let tag = prop::option::of((prop::option::of(any::<u16>()), any::<u16>()));
        let gaps = (0..20_usize, 0..20_usize);
        let bytes = vec(any::<u8>(), 0..80);
        let kind = (0..8_u8, any::<bool>());
        (any::<(u32, u32)>(), bytes, any::<u32>(), tag, kind, gaps).prop_map(
            |(time, bytes, original_len, tag, (packet_type, has_partial_checksum), gaps)| Made {
                time,
                bytes,
                original_len,
                tag,
                packet_type,
                has_partial_checksum,
                gaps,
            },
        )
    }

    impl Made {
        /// The bytes of the frame with its tag.
        pub(crate) fn whole(&self) -> Vec<u8> {
            let mut whole = self.bytes.clone();
            let tag = self.tag.filter(|_| whole.len() >= BEFORE_TAG);
            if let Some((tpid, tci)) = tag {
                let tpid = tpid.unwrap_or(DEFAULT_TPID).to_be_bytes();
                whole.splice(BEFORE_TAG..BEFORE_TAG, [tpid, tci.to_be_bytes()].concat());
            }
            whole
        }
    }

    /// A number in the place of a true one.
    pub(crate) fn lie() -> impl Strategy<Value = u32> {
        prop_oneof![0..300_u32, any::<u32>(), Just(u32::MAX)]
    }

    /// Puts numbers that lie into a block with frames at these offsets, in any place that has one.
    pub(crate) fn lie_in(block: &mut [u8], starts: &[usize], lies: &[(prop::sample::Index, u32)]) {
        let mut places = vec![FRAMES, FIRST_FRAME, BLOCK_LENGTH];
        let of_frame = [NEXT, CAPTURED, ORIGINAL, FRAME_STATUS, DATA];
        places.extend(
            starts
                .iter()
                .flat_map(|at| of_frame.map(|offset| at + offset)),
        );
        for (place, lie) in lies {
            put(block, *place.get(&places), *lie);
        }
        bound_frames(block);
    }

    /// A count of frames that lies must not take forever.
    pub(crate) fn bound_frames(block: &mut [u8]) {
        if let Some(count) = block.get(FRAMES..FRAMES + 4)
            && u32::from_ne_bytes(*count.first_chunk().unwrap()) > 1000
        {
            put(block, FRAMES, 1000);
        }
    }

    fn put(block: &mut [u8], at: usize, number: u32) {
        block[at..at + 4].copy_from_slice(&number.to_ne_bytes());
    }

    /// A block with these frames, and the offset of each.
    pub(crate) fn block_of(frames: &[Made], behind: usize) -> (Vec<u8>, Vec<usize>) {
        let (mut block, mut starts) = (vec![0; BLOCK_HEADER], Vec::new());
        put(&mut block, FRAMES, frames.len() as u32);
        put(&mut block, FIRST_FRAME, BLOCK_HEADER as u32);
        for made in frames {
            let at = block.len();
            starts.push(at);
            let data = FRAME_HEADER + made.gaps.0;
            block.resize(at + data, 0);
            let frame = &mut block[at..];
            put(frame, NEXT, (data + made.bytes.len() + made.gaps.1) as u32);
            put(frame, SECONDS, made.time.0);
            put(frame, NANOSECONDS, made.time.1);
            put(frame, CAPTURED, made.bytes.len() as u32);
            put(frame, ORIGINAL, made.original_len);
            frame[DATA..][..2].copy_from_slice(&(data as u16).to_ne_bytes());
            frame[PACKET_TYPE] = made.packet_type;
            let mut status = match made.has_partial_checksum {
                true => TP_STATUS_CSUMNOTREADY,
                false => 0,
            };
            if let Some((tpid, tci)) = made.tag {
                status |= TP_STATUS_VLAN_VALID | tpid.map_or(0, |_| TP_STATUS_VLAN_TPID_VALID);
                put(frame, VLAN_TCI, u32::from(tci));
                frame[VLAN_TPID..][..2].copy_from_slice(&tpid.unwrap_or(7).to_ne_bytes());
            }
            put(&mut block[at..], FRAME_STATUS, status);
            block.extend(&made.bytes);
            block.resize(block.len() + made.gaps.1, 0);
        }
        let filled = block.len();
        put(&mut block, BLOCK_LENGTH, filled as u32);
        block.resize(filled + behind, 0xee);
        (block, starts)
    }

    /// All frames of a block in front of an error, and whether one came.
    fn frames(block: &[u8]) -> (Vec<Frame<'_>>, bool) {
        let mut found = Vec::new();
        let Ok(mut next) = Position::first(block) else {
            return (found, true);
        };
        while let Some(position) = next {
            match Filled::of(block).and_then(|block| position.frame(block)) {
                Ok((frame, behind)) => {
                    found.push(frame);
                    next = behind;
                }
                Err(_) => return (found, true),
            }
        }
        (found, false)
    }

    /// The plain model: the data of the frames, found with numbers that cannot overflow.
    fn model(block: &[u8]) -> (Vec<Vec<u8>>, bool) {
        let number = |at: i128, len: usize| {
            let mut bytes = [0; 4];
            for (place, byte) in bytes[..len].iter_mut().enumerate() {
                *byte = block[at as usize + place];
            }
            i128::from(u32::from_le_bytes(bytes))
        };
        let mut found = Vec::new();
        if block.len() < 48 {
            return (found, true);
        }
        let (count, mut at, filled) = (number(12, 4), number(16, 4), number(20, 4));
        for frame in 0..count {
            if filled > block.len() as i128 || at < 48 || at + 68 > filled {
                return (found, true);
            }
            let (next, captured) = (number(at, 4), number(at + 12, 4));
            let data = number(at + 24, 2);
            if data < 68 || at + data + captured > filled {
                return (found, true);
            }
            if frame + 1 < count && next < 68 {
                return (found, true);
            }
            let data = (at + data) as usize;
            found.push(block[data..data + captured as usize].to_vec());
            at += next;
        }
        (found, false)
    }

    proptest! {
        #[test]
        fn frames_are_those_that_were_put_there(
            made in vec(made(), 0..6),
            behind in 0..100_usize,
        ) {
            let (block, _) = block_of(&made, behind);
            let (found, has_failed) = frames(&block);
            prop_assert!(!has_failed);
            prop_assert_eq!(found.len(), made.len());
            for (found, made) in found.iter().zip(&made) {
                let time = u64::from(made.time.0) * 1_000_000_000 + u64::from(made.time.1);
                prop_assert_eq!((found.time, found.bytes), (time, &made.bytes[..]));
                prop_assert_eq!(found.original_len, made.original_len);
                prop_assert_eq!(found.packet_type, made.packet_type);
                prop_assert_eq!(found.has_partial_checksum, made.has_partial_checksum);
                let tag = made.tag.filter(|_| made.bytes.len() >= BEFORE_TAG);
                let tag = tag.map(|(tpid, tci)| {
                    let tpid = tpid.unwrap_or(0x8100).to_be_bytes();
                    let tci = tci.to_be_bytes();
                    [tpid[0], tpid[1], tci[0], tci[1]]
                });
                prop_assert_eq!(found.tag, tag);
            }
        }

        /// Numbers that lie, in any place that has one, and any bytes.
        #[test]
        fn hostile_blocks_are_read_as_the_model_reads_them(
            made in vec(made(), 0..5),
            behind in 0..100_usize,
            lies in vec((any::<prop::sample::Index>(), lie()), 0..4),
            cut in any::<prop::sample::Index>(),
            is_cut: bool,
        ) {
            let (mut block, starts) = block_of(&made, behind);
            lie_in(&mut block, &starts, &lies);
            if is_cut {
                block.truncate(cut.index(block.len() + 1));
            }
            let (found, has_failed) = frames(&block);
            let found: Vec<Vec<u8>> = found.iter().map(|frame| frame.bytes.to_vec()).collect();
            if cfg!(target_endian = "little") {
                prop_assert_eq!((found, has_failed), model(&block));
            }
        }

        #[test]
        fn any_bytes_end(block in vec(any::<u8>(), 0..400)) {
            frames(&block);
        }
    }
}
