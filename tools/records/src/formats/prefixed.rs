//! Binary records that begin with the length of the rest, the payload.
//!
//! ```text
//! | length | payload | length | payload | ..
//! ```

use std::fmt::Debug;

use echoless::SpecError;

use crate::binary::{BinaryFraming, binary_facts};
use crate::byte_ranges::ByteRanges;
use crate::fault::Problem;
use crate::format::{Extent, FormatFacts, LastEnd};
use crate::formats::{FormatBuild, FormatName};

pub(super) const PREFIXED: FormatName = FormatName {
    name: "prefixed",
    value_name: Some("LENGTH"),
    help: "records of a LENGTH (u8, u16be, u16le, u32be, u32le or varint) and so many bytes; --key takes byte ranges of these",
    options: &[],
    build: FormatBuild::OwnFields(|value, fields| {
        let ranges = ByteRanges::parse(fields, None)?;
        Ok(match value {
            "u8" => ranges.format(Prefixed(Integer::<1, true>)),
            "u16be" => ranges.format(Prefixed(Integer::<2, true>)),
            "u16le" => ranges.format(Prefixed(Integer::<2, false>)),
            "u32be" => ranges.format(Prefixed(Integer::<4, true>)),
            "u32le" => ranges.format(Prefixed(Integer::<4, false>)),
            "varint" => ranges.format(Prefixed(Varint)),
            _ => {
                let allowed = "u8, u16be, u16le, u32be, u32le or varint";
                let asked = format!("prefixed:{value}");
                return Err(SpecError::new("--format", asked, allowed).into());
            }
        })
    }),
};

/// What the first bytes of a record determine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    /// The prefix has `width` bytes and announces a payload of `payload` bytes.
    Whole { width: usize, payload: u64 },
    /// The prefix does not end in these bytes.
    Incomplete,
    /// The prefix announces more bytes than 64 bits can count.
    Overflow,
}

/// How the length of a payload is written.
trait Length: Debug + Copy + Send + Sync + 'static {
    /// Reads the prefix of a record that begins with `bytes`.
    fn read(self, bytes: &[u8]) -> Prefix;
}

/// An unsigned integer of `WIDTH` bytes, the most significant one first if `BIG`.
#[derive(Debug, Clone, Copy)]
struct Integer<const WIDTH: usize, const BIG: bool>;

impl<const WIDTH: usize, const BIG: bool> Length for Integer<WIDTH, BIG> {
    #[inline(always)]
    fn read(self, bytes: &[u8]) -> Prefix {
        let Some(prefix) = bytes.first_chunk::<WIDTH>() else {
            return Prefix::Incomplete;
        };
        let append = |payload, byte: &u8| payload << 8 | u64::from(*byte);
        let payload = if BIG {
            prefix.iter().fold(0, append)
        } else {
            prefix.iter().rev().fold(0, append)
        };
        Prefix::Whole {
            width: WIDTH,
            payload,
        }
    }
}

/// An unsigned integer in groups of seven bits (LEB128), the least significant one first; every
/// byte but the last has its highest bit set. Protocol buffers delimit messages so.
#[derive(Debug, Clone, Copy)]
struct Varint;

impl Length for Varint {
    #[inline(always)]
    fn read(self, bytes: &[u8]) -> Prefix {
        let mut payload = 0;
        for (index, byte) in bytes.iter().enumerate() {
            let group = u64::from(byte & 0x7f);
            // Nine groups have 63 bits, so the tenth byte adds at most one and ends the prefix.
            if index == 9 && *byte > 1 {
                return Prefix::Overflow;
            }
            payload |= group << (7 * index);
            if *byte < 0x80 {
                let width = index + 1;
                return Prefix::Whole { width, payload };
            }
        }
        Prefix::Incomplete
    }
}

/// Records whose length is written in this way.
#[derive(Debug)]
struct Prefixed<L>(L);

impl<L: Length> BinaryFraming for Prefixed<L> {
    fn facts(&self) -> FormatFacts {
        FormatFacts {
            extent: Extent::Payload,
            ..binary_facts()
        }
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        match self.0.read(record) {
            Prefix::Whole { width, .. } => &record[width..],
            // No chunk has such a record.
            Prefix::Incomplete | Prefix::Overflow => &[],
        }
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        let mut at = start;
        while at < bytes.len() {
            at = whole_end(self.0, bytes, at).unwrap_or(bytes.len());
            ends.push(at);
        }
    }

    /// Counts them: the shortest record is so short that a bound by length would let a few chunks
    /// use up the memory of all.
    fn most_records(&self, bytes: &[u8]) -> usize {
        let (mut at, mut records) = (0, 0);
        while at < bytes.len() {
            at = whole_end(self.0, bytes, at).unwrap_or(bytes.len());
            records += 1;
        }
        records
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastWhole {
            length: self.0,
            rest: 0,
            problem: None,
        })
    }
}

/// The end of the record at `at`, if it is whole.
#[inline(always)]
fn whole_end<L: Length>(length: L, bytes: &[u8], at: usize) -> Option<usize> {
    match length.read(&bytes[at..]) {
        Prefix::Whole { width, payload } => {
            let start = at + width;
            let rest = (bytes.len() - start) as u64;
            // A payload of at most `rest` bytes fits in memory, so its length fits.
            (payload <= rest).then(|| start + payload as usize)
        }
        Prefix::Incomplete | Prefix::Overflow => None,
    }
}

#[derive(Debug)]
struct LastWhole<L> {
    length: L,
    /// The number of bytes between the last whole record and the end of the last scan.
    rest: usize,
    /// What is wrong with them if the input ends there.
    problem: Option<Problem>,
}

impl<L: Length> LastEnd for LastWhole<L> {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let start = from - self.rest;
        let mut at = start;
        while let Some(end) = whole_end(self.length, bytes, at) {
            at = end;
            if at == bytes.len() {
                break;
            }
        }
        self.rest = bytes.len() - at;
        self.problem = (self.rest > 0).then(|| match self.length.read(&bytes[at..]) {
            Prefix::Whole { width, payload } => Problem::CutShort {
                has: self.rest,
                needs: Some(payload.saturating_add(width as u64)),
            },
            Prefix::Incomplete => Problem::CutShort {
                has: self.rest,
                needs: None,
            },
            Prefix::Overflow => Problem::Malformed("the length of the record exceeds 64 bits"),
        });
        (at > start).then_some(at)
    }

    fn problem_at_end(&self) -> Option<Problem> {
        self.problem
    }

    fn reset(&mut self) {
        self.rest = 0;
        self.problem = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_either_byte_order() {
        let whole = |width, payload| Prefix::Whole { width, payload };
        assert_eq!(Integer::<1, true>.read(b"\xff"), whole(1, 255));
        assert_eq!(Integer::<2, true>.read(b"\x01\x02\x03"), whole(2, 0x102));
        assert_eq!(Integer::<2, false>.read(b"\x01\x02\x03"), whole(2, 0x201));
        assert_eq!(
            Integer::<4, true>.read(b"\xff\0\0\x01"),
            whole(4, 0xff00_0001)
        );
        assert_eq!(
            Integer::<4, false>.read(b"\xff\0\0\x01"),
            whole(4, 0x0100_00ff)
        );
        assert_eq!(Integer::<4, false>.read(b"\xff\0\0"), Prefix::Incomplete);
    }

    #[test]
    fn varints_have_at_most_64_bits() {
        let whole = |width, payload| Prefix::Whole { width, payload };
        assert_eq!(Varint.read(b"\0"), whole(1, 0));
        assert_eq!(Varint.read(b"\x7fx"), whole(1, 127));
        assert_eq!(Varint.read(b"\x80\x01"), whole(2, 128));
        // 300, as in the documentation of Protocol Buffers.
        assert_eq!(Varint.read(b"\xac\x02"), whole(2, 300));
        assert_eq!(Varint.read(b"\x80\0"), whole(2, 0));
        let most = [&[0xff; 9][..], &[1]].concat();
        assert_eq!(Varint.read(&most), whole(10, u64::MAX));
        assert_eq!(Varint.read(&[0xff; 9]), Prefix::Incomplete);
        assert_eq!(Varint.read(&[0xff; 10]), Prefix::Overflow);
        assert_eq!(
            Varint.read(&[&[0x80; 9][..], &[2]].concat()),
            Prefix::Overflow
        );
    }

    #[test]
    fn a_length_beyond_memory_ends_no_record() {
        let most = [&[0xff; 9][..], &[1, b'x']].concat();
        assert_eq!(whole_end(Varint, &most, 0), None);
        let format = ByteRanges::default().format(Prefixed(Varint)).format;
        let mut last_end = format.last_end();
        assert_eq!(last_end.find(&most, 0), None);
        let needs = Some(u64::MAX);
        assert_eq!(
            last_end.problem_at_end(),
            Some(Problem::CutShort { has: 11, needs })
        );
    }
}
