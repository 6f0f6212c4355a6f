//! The headers of call record files: 3GPP TS 32.297, clause 6.1. All numbers are big-endian.
//!
//! ```text
//! | file header | CDR header | CDR | CDR header | CDR | ..
//!
//! file header, at least 48 octets    CDR header, 4 octets or 5
//!  0 file length                      0 length of the CDR, without this header
//!  4 length of the file header        2 release (3 bits) and version (5 bits)
//!  8 release and version, two pairs   3 data record format (3 bits) and TS number (5 bits)
//! 10 times, two of 4 octets           4 release above 9, only if the release is 7
//! 18 number of CDRs
//! 22 sequence number of the file
//! 26 and more, up to the header's length
//! ```
//!
//! Both lengths in the file header include it. The fixed fields were compared with the file
//! codec of `sigscale/cgf`, and the lengths and the header of a CDR also with the writer of
//! `acassen/gtp-guard`. Neither covers every release.

use crate::error::Invalid;

/// The octets of the file header up to the lost CDR indicator: every release has them.
pub const MIN_FILE_HEADER: usize = 48;

/// The octets of a file header whose routeing filter and private extension are as long as their
/// lengths of 16 bits allow, with two octets for releases.
pub const MAX_FILE_HEADER: usize = MIN_FILE_HEADER + 2 * (2 + u16::MAX as usize) + 2;

/// The offset of the number of CDRs.
const CDR_COUNT: usize = 18;

/// The release identifier that announces an octet with the release.
const RELEASE_FOLLOWS: u8 = 7;

/// Basic encoding rules, as data record format.
const BER: u8 = 1;

/// What the first octets of a header determine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read<T> {
    /// The header is whole.
    Whole(T),
    /// More octets are needed.
    Incomplete,
}

/// The header of a call record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CdrHeader {
    /// The octets of this header.
    pub len: usize,
    /// The octets of the record after it.
    pub cdr: usize,
}

/// The length of the file header that `bytes` begin with.
///
/// # Errors
/// [`Invalid`] if the header would be shorter than [`MIN_FILE_HEADER`] or longer than
/// [`MAX_FILE_HEADER`].
///
/// # Examples
/// ```
/// use echoless_ber::ts32297::{Read, file_header_len};
///
/// assert_eq!(file_header_len(b"\0\0\x01\0\0\0\0\x34"), Ok(Read::Whole(52)));
/// assert_eq!(file_header_len(b"\0\0\x01\0\0\0\0"), Ok(Read::Incomplete));
/// assert!(file_header_len(b"\xa0\x06\x80\x01\0\0\0\0").is_err());
/// ```
pub fn file_header_len(bytes: &[u8]) -> Result<Read<usize>, Invalid> {
    let Some([.., a, b, c, d]) = bytes.first_chunk::<8>() else {
        return Ok(Read::Incomplete);
    };
    match u32::from_be_bytes([*a, *b, *c, *d]) as usize {
        len @ MIN_FILE_HEADER..=MAX_FILE_HEADER => Ok(Read::Whole(len)),
        _ => Err(Invalid {
            at: 4,
            problem: "the length of the file header is not 48 to 131124, as in files of TS 32.297",
        }),
    }
}

/// Reads the header of a call record.
///
/// # Errors
/// [`Invalid`] if it announces a record without octets, or one in another encoding than BER.
#[inline]
pub fn cdr_header(bytes: &[u8]) -> Result<Read<CdrHeader>, Invalid> {
    let Some([high, low, release, format]) = bytes.first_chunk::<4>() else {
        return Ok(Read::Incomplete);
    };
    let cdr = usize::from(u16::from_be_bytes([*high, *low]));
    if cdr == 0 {
        let problem = "the CDR length is 0";
        return Err(Invalid { at: 0, problem });
    }
    if format >> 5 != BER {
        let problem = "the data record format in the CDR header is not 1, BER";
        return Err(Invalid { at: 3, problem });
    }
    let header = CdrHeader {
        len: 4 + usize::from(release >> 5 == RELEASE_FOLLOWS),
        cdr,
    };
    Ok(if bytes.len() < header.len {
        Read::Incomplete
    } else {
        Read::Whole(header)
    })
}

impl CdrHeader {
    /// The octets of header and record.
    pub fn total(&self) -> usize {
        self.len + self.cdr
    }
}

/// The parts of a file header that depend on the records in the file, each with its offset: the
/// file length and the number of records. `None` if one of them does not fit in 32 bits.
///
/// # Examples
/// ```
/// use echoless_ber::ts32297::counts;
///
/// assert_eq!(counts(300, 2), Some([(0, 300_u32.to_be_bytes()), (18, 2_u32.to_be_bytes())]));
/// assert_eq!(counts(1 << 32, 2), None);
/// ```
pub fn counts(file_length: u64, records: u64) -> Option<[(usize, [u8; 4]); 2]> {
    let file_length = u32::try_from(file_length).ok()?;
    let records = u32::try_from(records).ok()?;
    Some([
        (0, file_length.to_be_bytes()),
        (CDR_COUNT, records.to_be_bytes()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_headers_have_a_least_and_a_greatest_length() {
        for (len, is_valid) in [(47, false), (48, true), (131_124, true), (131_125, false)] {
            let bytes = [[0; 4], u32::to_be_bytes(len)].concat();
            let expected = is_valid.then_some(Read::Whole(len as usize));
            assert_eq!(file_header_len(&bytes).ok(), expected, "{len}");
        }
    }

    #[test]
    fn cdr_headers_have_an_octet_more_from_release_10_on() {
        let header = |len, cdr| Ok(Read::Whole(CdrHeader { len, cdr }));
        assert_eq!(cdr_header(b"\x01\x02\x67\x26"), header(4, 0x102));
        assert_eq!(cdr_header(b"\x01\x02\xe7\x26"), Ok(Read::Incomplete));
        assert_eq!(cdr_header(b"\x01\x02\xe7\x26\x05"), header(5, 0x102));
        assert_eq!(
            cdr_header(b"\0\x01\x67\x86").map_err(|error| error.at),
            Err(3)
        );
        assert_eq!(cdr_header(b"\0\x01\x67"), Ok(Read::Incomplete));
        assert!(cdr_header(b"\0\0\x67\x26").is_err());
    }
}
