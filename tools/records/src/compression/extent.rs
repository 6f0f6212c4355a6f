//! Where a frame ends, and how many plain bytes it has at most, by its headers alone.
//!
//! ```text
//! zstd    magic 4 | descriptor 1 | window, dictionary, content size | blocks | checksum
//!         block: last 1 bit, type 2, size 21 | data
//! gzip    magic 3 | flags 1 | time, system 6 | length 2 of fields, "BC" 2 0 and the size | ...
//! skipped magic 4 | length 4 | any bytes
//! ```
//!
//! Only gzip members with the field of BGZF have their size, which bgzip writes. Frames of lz4 are
//! not looked for: the one thread that decodes them is not waited for. Nothing else is
//! checked: that is up to the decoder.

use super::codec::{Codec, Detected, Detection};

/// The most bytes of a frame whose extent is found, compressed and plain: as many as the frames
/// have that pzstd writes.
pub(super) const MOST_FRAME: usize = 8 << 20;

/// The most plain bytes of a compressed zstd block.
const ZSTD_BLOCK: usize = 128 << 10;

/// A frame, or a gzip member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// `None` if decoders skip it.
    pub(super) codec: Option<Codec>,
    pub(super) length: usize,
    /// The most plain bytes that it has, unless it is damaged.
    pub(super) most_plain: usize,
}

/// Why the extent of a frame is not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfound {
    /// It takes this many bytes, or more.
    Short(usize),
    /// The frame does not tell, or is too long.
    Unknown,
}

/// The extent of the frame that begins here.
pub(super) fn extent(bytes: &[u8]) -> Result<Extent, Unfound> {
    let mut frame = Fields { bytes, at: 0 };
    let magic: [u8; 4] = frame.next()?;
    let (codec, most_plain) = match Codec::detect(&magic, Detection::Binary) {
        Detected::Skippable => {
            let length = frame.number::<4>()?;
            frame.skip(length)?;
            (None, 0)
        }
        Detected::Compressed(Codec::Zstd) => (Some(Codec::Zstd), zstd(&mut frame)?),
        Detected::Compressed(Codec::Gzip) => (Some(Codec::Gzip), bgzf(&mut frame, magic[3])?),
        _ => return Err(Unfound::Unknown),
    };
    if most_plain > MOST_FRAME {
        return Err(Unfound::Unknown);
    }
    Ok(Extent {
        codec,
        length: frame.at,
        most_plain,
    })
}

/// The fields of a frame, one after the other.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    fn skip(&mut self, length: usize) -> Result<(), Unfound> {
        let end = self.at.saturating_add(length);
        if end > MOST_FRAME {
            return Err(Unfound::Unknown);
        }
        if end > self.bytes.len() {
            return Err(Unfound::Short(end));
        }
        self.at = end;
        Ok(())
    }

    fn next<const N: usize>(&mut self) -> Result<[u8; N], Unfound> {
        let from = self.at;
        self.skip(N)?;
        Ok(std::array::from_fn(|index| self.bytes[from + index]))
    }

    /// A number of up to eight bytes, the lowest one first.
    fn number<const N: usize>(&mut self) -> Result<usize, Unfound> {
        let digits = self.next::<N>()?;
        let number = digits
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }
}

/// The most plain bytes of a zstd frame, whose magic number was read.
fn zstd(frame: &mut Fields<'_>) -> Result<usize, Unfound> {
    let [descriptor] = frame.next()?;
    let is_single_segment = descriptor & 0x20 != 0;
    frame.skip(usize::from(!is_single_segment))?;
    frame.skip([0, 1, 2, 4][usize::from(descriptor & 3)])?;
    let content_size = match descriptor >> 6 {
        0 if is_single_segment => Some(frame.number::<1>()?),
        0 => None,
        1 => Some(frame.number::<2>()? + 256),
        2 => Some(frame.number::<4>()?),
        _ => Some(frame.number::<8>()?),
    };
    let mut most_plain = content_size.unwrap_or(0);
    loop {
        let block = frame.number::<3>()?;
        let size = block >> 3;
        let (stored, plain) = match block >> 1 & 3 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, ZSTD_BLOCK),
            _ => return Err(Unfound::Unknown),
        };
        if content_size.is_none() {
            most_plain += plain;
        }
        if most_plain > MOST_FRAME {
            return Err(Unfound::Unknown);
        }
        frame.skip(stored)?;
        if block & 1 != 0 {
            break;
        }
    }
    frame.skip(if descriptor & 4 != 0 { 4 } else { 0 })?;
    Ok(most_plain)
}

/// The plain bytes of a gzip member with the field of BGZF, whose magic number and flags were read.
fn bgzf(frame: &mut Fields<'_>, flags: u8) -> Result<usize, Unfound> {
    if flags & 4 == 0 {
        return Err(Unfound::Unknown);
    }
    frame.skip(6)?;
    let fields_end = frame.number::<2>()? + frame.at;
    while frame.at < fields_end {
        let name: [u8; 2] = frame.next()?;
        let length = frame.number::<2>()?;
        if (&name, length) != (b"BC", 2) {
            frame.skip(length)?;
            continue;
        }
        // Of the member, less one; its plain length comes last.
        let end = frame.number::<2>()? + 1;
        let Some(rest) = end.checked_sub(frame.at + 4) else {
            return Err(Unfound::Unknown);
        };
        frame.skip(rest)?;
        return frame.number::<4>();
    }
    Err(Unfound::Unknown)
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use flate2::{Compression, GzBuilder};
    use proptest::prelude::*;

    use super::super::decoder::tests::{frames, legacy, parts, skippable};
    use super::*;

    /// A gzip member with its size, and another field before that.
    pub(in super::super) fn bgzf_member(plain: &[u8]) -> Vec<u8> {
        let builder = GzBuilder::new().extra(*b"XY\x03\0abcBC\x02\0\0\0");
        let mut encoder = builder.write(Vec::new(), Compression::new(6));
        encoder.write_all(plain).unwrap();
        let mut member = encoder.finish().unwrap();
        let size = u16::try_from(member.len() - 1).unwrap();
        member[23..25].copy_from_slice(&size.to_le_bytes());
        member
    }

    proptest! {
        #[test]
        fn extents_are_those_of_frames_with_anything_behind(parts in parts(), behind: Vec<u8>) {
            let part = &parts[0];
            for (frame, codec) in [
                (frames(Codec::Zstd, &parts[..1]), Some(Codec::Zstd)),
                (zstd::bulk::compress(part, 1).unwrap(), Some(Codec::Zstd)),
                (bgzf_member(part), Some(Codec::Gzip)),
                (skippable(3, part.len()), None),
            ] {
                let found = extent(&[&frame[..], &behind].concat()).unwrap();
                prop_assert_eq!((found.length, found.codec), (frame.len(), codec));
                let least = codec.map_or(0, |_| part.len());
                prop_assert!(found.most_plain >= least, "{:?}", codec);
                for cut in 0..frame.len() {
                    let found = extent(&frame[..cut]);
                    let Err(Unfound::Short(length)) = found else {
                        panic!("{found:?} of {cut} bytes");
                    };
                    prop_assert!(cut < length && length <= frame.len());
                }
            }
        }
    }

    #[test]
    fn frames_that_do_not_tell_or_are_too_long_have_no_extent() {
        let long = vec![7; MOST_FRAME + 1];
        let parts = std::slice::from_ref(&long);
        for file in [
            frames(Codec::Zstd, parts),
            zstd::bulk::compress(&long, 1).unwrap(),
            skippable(0, long.len()),
            frames(Codec::Lz4, &[b"text".to_vec()]),
            frames(Codec::Gzip, &[b"text".to_vec()]),
            frames(Codec::Xz, &[b"text".to_vec()]),
            frames(Codec::Bzip2, &[b"text".to_vec()]),
            legacy(b"text"),
            b"plain text".to_vec(),
            vec![0; 100],
        ] {
            assert_eq!(extent(&file), Err(Unfound::Unknown), "{:?}", &file[..4]);
        }
        let long = vec![7; MOST_FRAME / 2];
        let frame = frames(Codec::Zstd, std::slice::from_ref(&long));
        assert_eq!(extent(&frame).map(|found| found.length), Ok(frame.len()));
    }
}
