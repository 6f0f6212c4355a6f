//! The codecs: how their data begins, and how `--compress` names them.

use std::ops::RangeInclusive;

use echoless::SpecError;

/// The most bytes that decide how an input is compressed.
pub(crate) const LONGEST_SIGNATURE: usize = 10;

/// A compression format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Zstd,
    Gzip,
    Lz4,
    Xz,
    Bzip2,
}

/// What the first bytes of an input show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detected {
    Plain,
    Compressed(Codec),
    /// An archive or a compression that is not decoded here: what writes its plain bytes.
    Foreign(&'static str),
    /// More bytes are needed.
    Undecided,
}

/// How data begins that other programs decompress, and with which command.
const FOREIGN: [(&[u8], &str); 5] = [
    (&[0x1f, 0x9d], "zcat FILE.Z"),
    // The header of a file, the end of an empty archive, one of several parts.
    (b"PK\x03\x04", "unzip -p FILE.zip"),
    (b"PK\x05\x06", "unzip -p FILE.zip"),
    (b"PK\x07\x08", "unzip -p FILE.zip"),
    (&[b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c], "7z x -so FILE.7z"),
];

impl Codec {
    /// All codecs.
    pub(crate) const ALL: [Self; 5] = [Self::Zstd, Self::Gzip, Self::Lz4, Self::Xz, Self::Bzip2];

    /// The name on the command line and in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Lz4 => "lz4",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
        }
    }

    /// How data of this codec may begin.
    const fn signatures(self) -> &'static [&'static [u8]] {
        match self {
            Self::Zstd => &[&[0x28, 0xb5, 0x2f, 0xfd]],
            // Deflate (8) is the only method of gzip.
            Self::Gzip => &[&[0x1f, 0x8b, 8]],
            Self::Lz4 => &[&[0x04, 0x22, 0x4d, 0x18]],
            Self::Xz => &[&[0xfd, b'7', b'z', b'X', b'Z', 0]],
            // `BZh9` alone may be text. The digits of pi begin a block, those of its square root
            // the end of an empty file. The digit between is the level.
            Self::Bzip2 => &[
                b"BZh?\x31\x41\x59\x26\x53\x59",
                b"BZh?\x17\x72\x45\x38\x50\x90",
            ],
        }
    }

    /// Detects from the first bytes of an input how it is compressed. At the end of the input,
    /// undecided means plain.
    pub(crate) fn detect(first: &[u8]) -> Detected {
        let mut detected = match first {
            // A frame that decoders skip. zstd files of some programs begin with one; in lz4 files
            // it is rare.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => return Detected::Compressed(Self::Zstd),
            [0x50..=0x5f] | [0x50..=0x5f, 0x2a] | [0x50..=0x5f, 0x2a, 0x4d] => Detected::Undecided,
            _ => Detected::Plain,
        };
        let codecs = Self::ALL.into_iter().flat_map(|codec| {
            let signatures = codec.signatures().iter();
            signatures.map(move |signature| (*signature, Detected::Compressed(codec)))
        });
        let foreign = FOREIGN.map(|(signature, command)| (signature, Detected::Foreign(command)));
        for (signature, found) in codecs.chain(foreign) {
            let fits = |(byte, expected): (&u8, &u8)| match expected {
                b'?' => (b'1'..=b'9').contains(byte),
                expected => byte == expected,
            };
            if !first.iter().zip(signature).all(fits) {
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
        }
    }
}

/// How an output is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compression {
    pub(crate) codec: Codec,
    /// In the range of the codec; 0 if it has no levels.
    pub(crate) level: u32,
}

impl Compression {
    /// Parses `CODEC` or `CODEC:LEVEL`.
    ///
    /// # Errors
    /// [`SpecError`] if there is no such codec, or it has no such level.
    pub(crate) fn parse(option: &'static str, text: &str) -> Result<Self, SpecError> {
        let rejected = |allowed: String| SpecError::new(option, text, allowed);
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let Some(codec) = Codec::ALL.into_iter().find(|codec| codec.name() == name) else {
            let names = Codec::ALL.map(Codec::name).join(", ");
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
        use Detected::{Compressed, Foreign, Plain, Undecided};
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
        ] {
            assert_eq!(Codec::detect(first), expected, "{first:?}");
        }
        let lengths = Codec::ALL.map(|codec| codec.signatures().iter().map(|bytes| bytes.len()));
        let longest = lengths.into_iter().flatten().max();
        assert_eq!(longest, Some(LONGEST_SIGNATURE));
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
