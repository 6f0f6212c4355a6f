//! One BER element (ITU-T X.690, clause 8.1): its identifier octets, its length octets, and where
//! its content begins.
//!
//! ```text
//! | identifier | length | content | end-of-contents |
//! ^ at         ^ length_at        ^ only if the length is indefinite
//!                       ^ content
//! ```

/// The deepest nesting that is read, the record itself included.
pub const MAX_DEPTH: usize = 32;

/// The most identifier octets after the first. Five hold 32 bits.
const MAX_NUMBER_OCTETS: usize = 6;

/// Set in the first identifier octet of an element that consists of elements.
const CONSTRUCTED: u8 = 0x20;

/// All bits of a tag number in the first identifier octet: the number follows.
const LONG_NUMBER: u8 = 0x1f;

/// The length octet of an element whose content ends with [`END_OF_CONTENTS`].
pub const INDEFINITE_LENGTH: u8 = 0x80;

/// The end of a content of indefinite length.
pub const END_OF_CONTENTS: [u8; 2] = [0, 0];

/// The class and the number of a tag. Whether the element is constructed is no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// 0 universal, 1 application, 2 context-specific, 3 private.
    class: u8,
    number: u32,
}

impl Tag {
    /// The tag of these identifier octets, all of them.
    pub(crate) fn from_octets(octets: &[u8]) -> Option<Self> {
        let (tag, end) = read_tag(octets, 0).ok()?;
        (end == octets.len()).then_some(tag)
    }

    /// The number modulo 64, as a bit.
    #[inline(always)]
    pub(crate) const fn bit(self) -> u64 {
        1 << (self.number % 64)
    }
}

/// The length of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Definite(u64),
    /// The content ends with an end-of-contents element.
    Indefinite,
}

/// Identifier and length octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) tag: Tag,
    pub(crate) constructed: bool,
    /// The offset of the length octets.
    pub(crate) length_at: usize,
    /// The offset of the content.
    pub(crate) content: usize,
    pub(crate) length: Length,
}

impl Header {
    /// Whether this is the end of an indefinite content.
    #[inline(always)]
    pub(crate) fn is_end_of_contents(&self) -> bool {
        self.tag.class == 0 && self.tag.number == 0 && self.length == Length::Definite(0)
    }

    /// Whether the length is definite and has no octet too many.
    #[inline(always)]
    pub(crate) fn is_minimal(&self) -> bool {
        match self.length {
            Length::Definite(length) => self.content - self.length_at == length_octets(length),
            Length::Indefinite => false,
        }
    }
}

/// Why there is no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoHeader {
    /// The bytes end before it does.
    Cut,
    Invalid(&'static str),
}

/// Reads the header of the element at `at`.
#[inline(always)]
pub(crate) fn read_header(bytes: &[u8], at: usize) -> Result<Header, NoHeader> {
    // Nearly all elements of call records have one identifier octet and one length octet.
    if let Some([first, length, ..]) = bytes.get(at..)
        && first & LONG_NUMBER != LONG_NUMBER
        && *length < INDEFINITE_LENGTH
    {
        return Ok(Header {
            tag: Tag {
                class: first >> 6,
                number: u32::from(first & LONG_NUMBER),
            },
            constructed: first & CONSTRUCTED != 0,
            length_at: at + 1,
            content: at + 2,
            length: Length::Definite(u64::from(*length)),
        });
    }
    read_long_header(bytes, at)
}

/// The tag, and the length in all, of an element with one length octet and one identifier octet, or
/// two.
#[inline(always)]
pub(crate) fn short_element(bytes: &[u8]) -> Option<(Tag, usize)> {
    let [first, second] = bytes.first_chunk::<2>()?;
    let tag = |number: u8| Tag {
        class: first >> 6,
        number: number.into(),
    };
    let number = first & LONG_NUMBER;
    if number != LONG_NUMBER {
        let end = 2 + usize::from(*second);
        return (*second < INDEFINITE_LENGTH).then_some((tag(number), end));
    }
    let length = bytes.get(2)?;
    let is_short = (LONG_NUMBER..0x80).contains(second) && *length < INDEFINITE_LENGTH;
    is_short.then_some((tag(*second), 3 + usize::from(*length)))
}

fn read_long_header(bytes: &[u8], at: usize) -> Result<Header, NoHeader> {
    // Most call records have a length of two octets, and their later elements tags of two.
    let Some(&[first, second, third, ..]) = bytes.get(at..) else {
        return read_any_header(bytes, at);
    };
    let (number, length_at) = match (first & LONG_NUMBER, second, third) {
        (LONG_NUMBER, LONG_NUMBER..0x80, 0..INDEFINITE_LENGTH) => (second, at + 2),
        // A length of zero may be that of a wrong end-of-contents.
        (number @ 0..LONG_NUMBER, 0x81, 1..) => (number, at + 1),
        _ => return read_any_header(bytes, at),
    };
    Ok(Header {
        tag: Tag {
            class: first >> 6,
            number: u32::from(number),
        },
        constructed: first & CONSTRUCTED != 0,
        length_at,
        content: at + 3,
        length: Length::Definite(u64::from(third)),
    })
}

fn read_any_header(bytes: &[u8], at: usize) -> Result<Header, NoHeader> {
    let constructed = bytes.get(at).is_some_and(|first| first & CONSTRUCTED != 0);
    let (tag, length_at) = read_tag(bytes, at)?;
    let (length, content) = read_length(bytes, length_at)?;
    if length == Length::Indefinite && !constructed {
        return Err(NoHeader::Invalid("a primitive value of indefinite length"));
    }
    // X.690, 8.1.5: two zero octets and nothing else.
    if (tag.class, tag.number) == (0, 0) && length == Length::Definite(0) {
        return Err(NoHeader::Invalid(
            "an end-of-contents that is not two zero octets",
        ));
    }
    Ok(Header {
        tag,
        constructed,
        length_at,
        content,
        length,
    })
}

/// Reads the tag at `at`, and returns the offset after it.
fn read_tag(bytes: &[u8], at: usize) -> Result<(Tag, usize), NoHeader> {
    let first = *bytes.get(at).ok_or(NoHeader::Cut)?;
    let class = first >> 6;
    if first & LONG_NUMBER != LONG_NUMBER {
        let number = u32::from(first & LONG_NUMBER);
        return Ok((Tag { class, number }, at + 1));
    }
    let mut number: u64 = 0;
    for index in 0..MAX_NUMBER_OCTETS {
        let octet = *bytes.get(at + 1 + index).ok_or(NoHeader::Cut)?;
        number = number << 7 | u64::from(octet & 0x7f);
        if octet < 0x80 {
            let Ok(number) = u32::try_from(number) else {
                break;
            };
            return Ok((Tag { class, number }, at + 2 + index));
        }
    }
    Err(NoHeader::Invalid("a tag number exceeds 32 bits"))
}

/// Reads the length at `at`, and returns the offset after it.
fn read_length(bytes: &[u8], at: usize) -> Result<(Length, usize), NoHeader> {
    let first = *bytes.get(at).ok_or(NoHeader::Cut)?;
    match first {
        0..INDEFINITE_LENGTH => Ok((Length::Definite(u64::from(first)), at + 1)),
        INDEFINITE_LENGTH => Ok((Length::Indefinite, at + 1)),
        0xff => Err(NoHeader::Invalid(
            "a length begins with the reserved byte 0xFF",
        )),
        _ => {
            let octets = usize::from(first & 0x7f);
            let mut length: u64 = 0;
            for index in 0..octets {
                let octet = *bytes.get(at + 1 + index).ok_or(NoHeader::Cut)?;
                if length >> 56 != 0 {
                    return Err(NoHeader::Invalid("a length exceeds 64 bits"));
                }
                length = length << 8 | u64::from(octet);
            }
            Ok((Length::Definite(length), at + 1 + octets))
        }
    }
}

/// The least number of octets that a length takes.
#[inline(always)]
pub(crate) const fn length_octets(length: u64) -> usize {
    if length < 0x80 {
        1
    } else {
        1 + (64 - length.leading_zeros() as usize).div_ceil(8)
    }
}

/// A length in this number of octets, zeros in front.
///
/// # Panics
/// If it does not fit, or there are no octets or more than 127.
///
/// # Examples
/// ```
/// assert_eq!(echoless_ber::length_in(5, 1), [5]);
/// assert_eq!(echoless_ber::length_in(5, 3), [0x82, 0, 5]);
/// ```
pub fn length_in(length: u64, octets: usize) -> Vec<u8> {
    assert!(
        (length_octets(length)..=127).contains(&octets),
        "a length of {length} in {octets} octets"
    );
    if octets == 1 {
        return vec![length as u8];
    }
    let mut written = vec![0; octets];
    written[0] = 0x80 | (octets - 1) as u8;
    let mut rest = length;
    for octet in written[1..].iter_mut().rev() {
        *octet = rest as u8;
        rest >>= 8;
    }
    written
}

/// Writes a length in the fewest octets to the front of `buffer`, and returns their number.
pub(crate) fn write_length(length: u64, buffer: &mut [u8; 9]) -> usize {
    let octets = length_octets(length);
    if octets == 1 {
        buffer[0] = length as u8;
    } else {
        buffer[0] = 0x80 | (octets - 1) as u8;
        let significant = &length.to_be_bytes()[9 - octets..];
        buffer[1..octets].copy_from_slice(significant);
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_any_number_of_octets() {
        for (octets, class, number) in [
            (&b"\x80"[..], 2, 0),
            (b"\xa3", 2, 3),
            (b"\x30", 0, 16),
            (b"\xbf\x1f", 2, 31),
            (b"\x9f\x21", 2, 33),
            (b"\x5f\x81\x00", 1, 128),
            (b"\xdf\x8f\xff\xff\xff\x7f", 3, u32::MAX),
        ] {
            let tag = Tag { class, number };
            assert_eq!(Tag::from_octets(octets), Some(tag), "{octets:x?}");
            assert_eq!(read_tag(&octets[..octets.len() - 1], 0), Err(NoHeader::Cut));
        }
        assert_eq!(Tag::from_octets(b"\x80\x00"), None);
        let long = read_tag(b"\x9f\x90\x80\x80\x80\x00", 0);
        assert_eq!(long, Err(NoHeader::Invalid("a tag number exceeds 32 bits")));
    }

    #[test]
    fn lengths_have_any_number_of_octets() {
        let read = |bytes: &[u8]| read_length(bytes, 0);
        let definite = |length, end| Ok((Length::Definite(length), end));
        assert_eq!(read(b"\x7f"), definite(127, 1));
        assert_eq!(read(b"\x81\x05"), definite(5, 2));
        assert_eq!(read(b"\x82\x01\x00"), definite(256, 3));
        assert_eq!(
            read(b"\x89\0\xff\xff\xff\xff\xff\xff\xff\xff"),
            definite(u64::MAX, 10)
        );
        assert_eq!(read(b"\x80"), Ok((Length::Indefinite, 1)));
        assert_eq!(read(b"\x82\x01"), Err(NoHeader::Cut));
        assert_eq!(read(b""), Err(NoHeader::Cut));
        for bytes in [&b"\xff"[..], b"\x89\x01\0\0\0\0\0\0\0\0"] {
            assert!(
                matches!(read(bytes), Err(NoHeader::Invalid(_))),
                "{bytes:x?}"
            );
        }
    }

    #[test]
    fn short_headers_are_read_as_all_are() {
        let check = |bytes: &[u8]| {
            // Two zero octets are the one end-of-contents, which the caller handles.
            if matches!(bytes, [0 | CONSTRUCTED, 0, ..]) {
                return;
            }
            let header = read_any_header(bytes, 0);
            assert_eq!(read_header(bytes, 0), header, "{bytes:x?}");
            if let Some((tag, end)) = short_element(bytes) {
                let header = header.unwrap();
                let end = Length::Definite((end - header.content) as u64);
                assert_eq!((tag, end), (header.tag, header.length));
            }
        };
        for length in 1..=3 {
            for octets in 0..1_u32 << (8 * length) {
                let octets = octets.to_le_bytes();
                check(&octets[..length]);
                if length == 3 {
                    check(&octets);
                }
            }
        }
    }

    #[test]
    fn written_lengths_are_read_and_minimal() {
        for length in [
            0,
            127,
            128,
            255,
            256,
            65_535,
            65_536,
            u64::MAX >> 8,
            u64::MAX,
        ] {
            let mut buffer = [0; 9];
            let octets = write_length(length, &mut buffer);
            assert_eq!(octets, length_octets(length));
            assert_eq!(
                read_length(&buffer[..octets], 0),
                Ok((Length::Definite(length), octets))
            );
        }
    }
}
