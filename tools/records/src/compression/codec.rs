//! The codecs: how their data begins, and how `--compress` names them.

use std::ops::RangeInclusive;

use echoless::SpecError;

/// The most bytes that decide how an input is compressed.
pub(crate) const LONGEST_SIGNATURE: usize = LZMA_HEADER;

/// The bytes of a header of lzma.
pub(super) const LZMA_FIELDS: usize = 13;

/// The same, and the first byte behind it.
const LZMA_HEADER: usize = LZMA_FIELDS + 1;

/// A compression format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// zstd.
    Zstd,
    /// gzip.
    Gzip,
    /// lz4, in frames.
    Lz4,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
    /// `.lzma`, the format before xz; only inputs have it.
    Lzma,
    /// Only inputs have it.
    Lzip,
}

/// What an input may be taken for by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detection {
    /// It is read as it is.
    Off,
    /// A codec with a signature. The header of lzma has none, and binary data may begin like one.
    Binary,
    /// Any codec.
    Text,
}

/// What the first bytes of an input show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detected {
    Plain,
    Compressed(Codec),
    /// A frame that decoders of zstd and lz4 skip: the first other frame decides.
    Skippable,
    /// An archive or a compression that is not decoded here: what writes its plain bytes.
    Foreign(&'static str),
    /// More bytes are needed.
    Undecided,
}

/// How data begins that other programs decompress, and with which command.
const FOREIGN: [(&[u8], &str); 8] = [
    (&[0x1f, 0x9d], "zcat FILE.Z"),
    // The header of a file, the end of an empty archive, one of several parts.
    (b"PK\x03\x04", "unzip -p FILE.zip"),
    (b"PK\x05\x06", "unzip -p FILE.zip"),
    (b"PK\x07\x08", "unzip -p FILE.zip"),
    (&[b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c], "7z x -so FILE.7z"),
    (b"Rar!\x1a\x07", "unrar p -inul FILE.rar"),
    // The stream identifier of the framing format; raw snappy has no signature.
    (b"\xff\x06\0\0sNaPpY", "snzip -dc FILE.sz"),
    (b"\x89LZO\0\r\n\x1a\n", "lzop -dc FILE.lzo"),
];

impl Codec {
    /// The codecs that outputs can have.
    pub const WRITTEN: [Self; 5] = [Self::Zstd, Self::Gzip, Self::Lz4, Self::Xz, Self::Bzip2];

    /// The codecs that have a signature.
    const SIGNED: [Self; 6] = [
        Self::Zstd,
        Self::Gzip,
        Self::Lz4,
        Self::Xz,
        Self::Bzip2,
        Self::Lzip,
    ];

    /// The name on the command line and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Lz4 => "lz4",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
            Self::Lzma => "lzma",
            Self::Lzip => "lzip",
        }
    }

    /// The program that decompresses it, to standard output with `-dc`.
    pub(crate) const fn program(self) -> &'static str {
        match self {
            Self::Lzma => Self::Xz.name(),
            codec => codec.name(),
        }
    }

    /// The codec of files with a name of this extension.
    pub(crate) fn of_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "zst" | "zstd" => Self::Zstd,
            "gz" | "tgz" => Self::Gzip,
            "lz4" => Self::Lz4,
            "xz" | "txz" => Self::Xz,
            "bz2" | "tbz2" => Self::Bzip2,
            "lzma" => Self::Lzma,
            "lz" => Self::Lzip,
            _ => return None,
        })
    }

    /// Whether all of an input may be the start of a file of this codec.
    pub(crate) fn may_begin(self, all: &[u8]) -> bool {
        match self {
            Self::Lzma => may_be_lzma(all),
            _ => self
                .signatures()
                .iter()
                .any(|signature| fits(all, signature)),
        }
    }

    /// How data of this codec may begin.
    const fn signatures(self) -> &'static [&'static [u8]] {
        match self {
            Self::Zstd => &[&[0x28, 0xb5, 0x2f, 0xfd]],
            // Deflate (8) is the only method of gzip.
            Self::Gzip => &[&[0x1f, 0x8b, 8]],
            // The second is the legacy format, which `lz4 -l` and the Linux kernel have.
            Self::Lz4 => &[&[0x04, 0x22, 0x4d, 0x18], &[0x02, 0x21, 0x4c, 0x18]],
            Self::Xz => &[&[0xfd, b'7', b'z', b'X', b'Z', 0]],
            // `BZh9` alone may be text. The digits of pi begin a block, those of its square root
            // the end of an empty file. The digit between is the level.
            Self::Bzip2 => &[
                b"BZh?\x31\x41\x59\x26\x53\x59",
                b"BZh?\x17\x72\x45\x38\x50\x90",
            ],
            Self::Lzma => &[],
            // Version 1. The only other one, 0, is older than the first stable program.
            Self::Lzip => &[b"LZIP\x01"],
        }
    }

    /// Detects from the first bytes of an input how it is compressed. At the end of the input,
    /// undecided means plain.
    pub(crate) fn detect(first: &[u8], detection: Detection) -> Detected {
        if detection == Detection::Off {
            return Detected::Plain;
        }
        let mut detected = match first {
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => return Detected::Skippable,
            [0x50..=0x5f] | [0x50..=0x5f, 0x2a] | [0x50..=0x5f, 0x2a, 0x4d] => Detected::Undecided,
            _ => Detected::Plain,
        };
        if detection == Detection::Text && may_be_lzma(first) {
            if first.len() >= LZMA_HEADER {
                return Detected::Compressed(Self::Lzma);
            }
            detected = Detected::Undecided;
        }
        let codecs = Self::SIGNED.into_iter().flat_map(|codec| {
            let signatures = codec.signatures().iter();
            signatures.map(move |signature| (*signature, Detected::Compressed(codec)))
        });
        let foreign = FOREIGN.map(|(signature, command)| (signature, Detected::Foreign(command)));
        for (signature, found) in codecs.chain(foreign) {
            if !fits(first, signature) {
                continue;
            }
            if first.len() >= signature.len() {
                return found;
            }
            detected = Detected::Undecided;
        }
        detected
    }

    /// The levels of this codec and the one without a level on the command line; `None` if it has
    /// no levels.
    const fn levels(self) -> Option<(RangeInclusive<u32>, u32)> {
        match self {
            Self::Zstd => Some((1..=22, 3)),
            Self::Gzip => Some((0..=9, 6)),
            Self::Lz4 => None,
            Self::Xz => Some((0..=9, 6)),
            Self::Bzip2 => Some((1..=9, 9)),
            Self::Lzma | Self::Lzip => None,
        }
    }
}

/// Whether data begins like a signature, as far as it goes.
fn fits(first: &[u8], signature: &[u8]) -> bool {
    first
        .iter()
        .zip(signature)
        .all(|(byte, expected)| match expected {
            b'?' => (b'1'..=b'9').contains(byte),
            expected => byte == expected,
        })
}

/// Whether data may be that of lzma, as far as it goes. The format has no signature, but few bytes
/// of its header are free, and text has no zero bytes among its first two:
///
/// ```text
/// 5d | dictionary: 2^n or 3*2^n bytes, from 4 KiB | length, below 256 GiB, or all ff: unknown | 00
/// ```
///
/// `5d` are the properties that all programs set by default. The last byte begins the data.
fn may_be_lzma(first: &[u8]) -> bool {
    first.first().is_none_or(|properties| *properties == 0x5d) && has_lzma_sizes(first)
}

/// Whether another stream of lzma may begin behind one: one with any properties, if the whole
/// header tells.
pub(super) fn may_be_next_lzma(behind: &[u8]) -> bool {
    let are_properties = |byte: &u8| *byte < 9 * 5 * 5;
    let is_whole = behind.len() >= LZMA_FIELDS && behind.first().is_some_and(are_properties);
    may_be_lzma(behind) || is_whole && has_lzma_sizes(behind)
}

/// The same of what is behind the properties, for any properties.
fn has_lzma_sizes(first: &[u8]) -> bool {
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let dictionary = first.get(1..5).map(number);
    let length = first.get(5..13).map(number);
    let is_size = |bytes: u64| {
        let odd = bytes >> bytes.trailing_zeros().min(63);
        bytes >= 4 << 10 && (odd == 1 || odd == 3)
    };
    first.get(1).is_none_or(|low| *low == 0)
        && dictionary.is_none_or(is_size)
        && length.is_none_or(|length| length == u64::MAX || length < 256 << 30)
        && first.get(13).is_none_or(|begin| *begin == 0)
}

/// How an output is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// The format.
    pub codec: Codec,
    /// In the range of the codec; 0 if it has no levels.
    pub(crate) level: u32,
}

impl Compression {
    /// Whether short frames, compressed each on its own, are hardly longer than one long one.
    /// Encoders that look far back are not for frames.
    pub(super) const fn is_for_frames(self) -> bool {
        match self.codec {
            Codec::Gzip | Codec::Lz4 | Codec::Bzip2 => true,
            Codec::Zstd => self.level < 10,
            Codec::Xz | Codec::Lzma | Codec::Lzip => false,
        }
    }

    /// The most encoders of an output at a time, by their memory: some 400 MB, or what one takes.
    pub(super) const fn most_encoders(self) -> usize {
        match (self.codec, self.level) {
            (Codec::Xz, 7..) | (Codec::Zstd, 20..) => 1,
            (Codec::Xz, 3..) | (Codec::Zstd, 10..) => 4,
            _ => 16,
        }
    }

    /// Parses `CODEC` or `CODEC:LEVEL`.
    ///
    /// # Errors
    /// [`SpecError`] if there is no such codec, or it has no such level.
    pub fn parse(option: &'static str, text: &str) -> Result<Self, SpecError> {
        let rejected = |allowed: String| SpecError::new(option, text, allowed);
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let Some(codec) = Codec::WRITTEN
            .into_iter()
            .find(|codec| codec.name() == name)
        else {
            let names = Codec::WRITTEN.map(Codec::name).join(", ");
            return Err(rejected(format!("{names}, or one of them with :LEVEL")));
        };
        let Some((levels, default)) = codec.levels() else {
            return match level {
                None => Ok(Self { codec, level: 0 }),
                Some(_) => Err(rejected(format!("{name} without a level"))),
            };
        };
        let Some(level) = level else {
            return Ok(Self {
                codec,
                level: default,
            });
        };
        let level = level.parse().ok().filter(|level| levels.contains(level));
        match level {
            Some(level) => Ok(Self { codec, level }),
            None => Err(rejected(format!(
                "{name}:{} to {name}:{}",
                levels.start(),
                levels.end()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_decide_as_early_as_possible() {
        use Detected::{Compressed, Foreign, Plain, Skippable, Undecided};
        for (first, expected) in [
            (&b""[..], Undecided),
            (b"a", Plain),
            (b"B", Undecided),
            (b"B\n", Plain),
            (b"BZh91AY&SY", Compressed(Codec::Bzip2)),
            (b"BZh1\x17\x72\x45\x38\x50\x90", Compressed(Codec::Bzip2)),
            (b"BZh91AY&S", Undecided),
            (b"BZh01AY&SY", Plain),
            (b"\x1f\x8b", Undecided),
            (b"\x1f\x8b\x08\x00", Compressed(Codec::Gzip)),
            (b"\x1f\x8b\x07", Plain),
            (b"\x28\xb5\x2f\xfd", Compressed(Codec::Zstd)),
            (b"\x04\x22\x4d\x18", Compressed(Codec::Lz4)),
            (b"\xfd7zXZ", Undecided),
            (b"\xfd7zXZ\0", Compressed(Codec::Xz)),
            (b"\x1f\x9d\x90", Foreign("zcat FILE.Z")),
            (b"PK\x03\x04", Foreign("unzip -p FILE.zip")),
            (b"PK\n", Plain),
            (b"7z\xbc\xaf\x27\x1c", Foreign("7z x -so FILE.7z")),
            (b"\x02\x21\x4c\x18", Compressed(Codec::Lz4)),
            (b"LZIP\x01", Compressed(Codec::Lzip)),
            (b"LZIP\n", Plain),
            (b"P", Undecided),
            (b"P*M\n", Plain),
            (b"\x5f\x2a\x4d\x18", Skippable),
            (b"Rar!\x1a\x07", Foreign("unrar p -inul FILE.rar")),
            (b"\xff\x06\0\0sNaPpY", Foreign("snzip -dc FILE.sz")),
            (b"\xff\x06\0\0sNa\n", Plain),
            (b"\x89LZO\0\r\n\x1a\n", Foreign("lzop -dc FILE.lzo")),
        ] {
            for detection in [Detection::Text, Detection::Binary] {
                assert_eq!(Codec::detect(first, detection), expected, "{first:?}");
            }
            assert_eq!(Codec::detect(first, Detection::Off), Plain, "{first:?}");
        }
        let lengths = Codec::SIGNED.map(|codec| codec.signatures().iter().map(|bytes| bytes.len()));
        let foreign = FOREIGN.map(|(signature, _)| signature.len());
        let longest = lengths.into_iter().flatten().chain(foreign).max();
        assert!(longest <= Some(LONGEST_SIGNATURE));
    }

    #[test]
    fn the_header_of_lzma_is_no_text_and_not_searched_in_binary_data() {
        use Detected::{Compressed, Plain, Undecided};
        let unknown = b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0";
        let known = b"\x5d\0\0\0\x03\x07\0\0\0\0\0\0\0\0 and data";
        for first in [&unknown[..], known] {
            for len in 2..LZMA_HEADER {
                assert_eq!(Codec::detect(&first[..len], Detection::Text), Undecided);
            }
            let lzma = Compressed(Codec::Lzma);
            assert_eq!(Codec::detect(first, Detection::Text), lzma);
            assert_eq!(Codec::detect(first, Detection::Binary), Plain);
            // Each of these bytes is wrong there.
            let wrong = [(0, 0x5c), (1, 1), (2, 0x55), (4, 0xff), (12, 1), (13, 1)];
            for (at, byte) in wrong {
                let mut other = first.to_vec();
                other[at] = byte;
                assert_eq!(Codec::detect(&other, Detection::Text), Plain, "{at}");
            }
        }
        for text in [&b"]\n"[..], b"]]", b"]\0\0\n\0", b"]\0\0@\0abcdefgh\0"] {
            assert_eq!(Codec::detect(text, Detection::Text), Plain, "{text:?}");
        }
        // One more byte shows that it is text.
        assert_eq!(Codec::detect(b"]", Detection::Text), Undecided);
    }

    #[test]
    fn levels_are_those_of_the_codec() {
        let parse =
            |text| Compression::parse("--compress", text).map_err(|error| error.to_string());
        for (text, codec, level) in [
            ("zstd", Codec::Zstd, 3),
            ("zstd:22", Codec::Zstd, 22),
            ("gzip:0", Codec::Gzip, 0),
            ("lz4", Codec::Lz4, 0),
            ("xz", Codec::Xz, 6),
            ("bzip2:1", Codec::Bzip2, 1),
        ] {
            assert_eq!(parse(text), Ok(Compression { codec, level }));
        }
        for (text, allowed) in [
            (
                "zip",
                "zstd, gzip, lz4, xz, bzip2, or one of them with :LEVEL",
            ),
            ("zstd:0", "zstd:1 to zstd:22"),
            ("zstd:23", "zstd:1 to zstd:22"),
            ("gzip:10", "gzip:0 to gzip:9"),
            ("gzip:", "gzip:0 to gzip:9"),
            ("lz4:1", "lz4 without a level"),
            ("bzip2:0", "bzip2:1 to bzip2:9"),
            ("xz:-1", "xz:0 to xz:9"),
        ] {
            assert_eq!(
                parse(text),
                Err(format!("invalid --compress={text}: expected {allowed}"))
            );
        }
    }
}
