//! How a text input begins: with a byte order mark, or in a form that is not read as records.
//!
//! The UTF-8 mark, which some programs write at the start of a file, is part of no record. That of
//! the first input is copied to the main output. UTF-16 and UTF-32 are rejected, since a newline
//! byte may be half of a character there, and so are archives and the binary files that programs
//! export records or logs to: cut at newline bytes, they would come out damaged.

const UTF_8: &[u8] = b"\xef\xbb\xbf";

/// The marks of other encodings, by the names of `iconv`. UTF-32 begins like UTF-16.
const ENCODINGS: [(&[u8], &Foreign); 4] = [
    (b"\xff\xfe\0\0", &UTF_32),
    (b"\0\0\xfe\xff", &UTF_32),
    (b"\xff\xfe", &UTF_16),
    (b"\xfe\xff", &UTF_16),
];

/// A kind of file that is not read as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    /// What it is, in messages.
    pub(crate) name: &'static str,
    /// The command that writes its records as text, with FILE as the name of the file.
    pub(crate) command: &'static str,
    /// Whether the command takes the bytes on standard input as well, as `-` in the place of FILE.
    pub(crate) is_filter: bool,
}

const fn foreign(name: &'static str, command: &'static str) -> Foreign {
    Foreign {
        name,
        command,
        is_filter: false,
    }
}

const UTF_16: Foreign = Foreign {
    is_filter: true,
    ..foreign("UTF-16 text", "iconv -f UTF-16 -t UTF-8 FILE")
};

const UTF_32: Foreign = Foreign {
    is_filter: true,
    ..foreign("UTF-32 text", "iconv -f UTF-32 -t UTF-8 FILE")
};

const TAR: Foreign = Foreign {
    is_filter: true,
    ..foreign("a tar archive", "tar -xOf FILE")
};

const DUCKDB: Foreign = foreign("a DuckDB database", "duckdb -csv FILE 'from TABLE'");
/// Lists starts: the extension of printable ones, the signature, and what it tells.
macro_rules! starts {
    ($($extension:expr, $signature:literal => $name:literal, $command:literal;)*) => {
        &[$(Start {
            extension: $extension,
            signature: $signature,
            foreign: foreign($name, $command),
        }),*]
    };
}

/// How binary files begin that hold records or logs. `?` stands for any byte.
const FILES: &[Start] = starts! {
    None, b"Obj\x01" => "an Avro file", "avrocat FILE";
    None, b"ARROW1\0\0" => "an Arrow file",
        "python3 -c \"import pyarrow as a; print(a.ipc.open_file('FILE').read_pandas().to_csv())\"";
    // The marker of a message, its length, and the offset of the root of its metadata.
    None, b"\xff\xff\xff\xff??\0\0?\0\0\0" => "an Arrow stream",
        "python3 -c \"import pyarrow as a; \
         print(a.ipc.open_stream('FILE').read_pandas().to_csv())\"";
    None, b"SQLite format 3\0" => "an SQLite database", "sqlite3 -csv FILE 'select * from TABLE'";
    None, b"ElfFile\0" => "a Windows event log", "evtx_dump -o jsonl FILE";
    None, b"\x30\0\0\0LfLe" => "a Windows event log of old", "evtexport FILE";
    None, b"\x89HDF\r\n\x1a\n" => "an HDF5 file", "h5dump FILE";
    None, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" => "an OLE file, as of Excel (.xls)", "in2csv FILE";
    None, b"\0\x01\0\0Standard Jet DB\0" => "an Access database", "mdb-export FILE TABLE";
    None, b"\0\x01\0\0Standard ACE DB\0" => "an Access database", "mdb-export FILE TABLE";
    None, b"\x0c\xa5\x01\0" => "a file of nfdump", "nfdump -r FILE -o csv";
    None, b"\x0c\xa5\x02\0" => "a file of nfdump", "nfdump -r FILE -o csv";
    None, b"\xde\xad\xbe\xef" => "a file of SiLK", "rwcut FILE";
    None, b"\xfebin" => "a binary log of MySQL", "mysqlbinlog FILE";
    None, b"SEQ\x06" => "a Hadoop sequence file", "hadoop fs -text FILE";
    None, b"%PDF-1." => "a PDF file", "pdftotext -layout FILE -";
    None, b"%PDF-2." => "a PDF file", "pdftotext -layout FILE -";
    Some("parquet"), b"PAR1" => "a Parquet file", "duckdb -csv -c \"from read_parquet('FILE')\"";
    Some("parquet"), b"PARE" => "a Parquet file", "duckdb -csv -c \"from read_parquet('FILE')\"";
    Some("orc"), b"ORC" => "an ORC file", "orc-contents FILE";
    Some("feather"), b"FEA1" => "a Feather file",
        "python3 -c \"import pyarrow.feather as f; print(f.read_feather('FILE').to_csv())\"";
    Some("journal"), b"LPKSHHRH" => "a journal of systemd", "journalctl --file FILE -o json";
    Some("dump"), b"PGDMP" => "a dump of PostgreSQL", "pg_restore -f - FILE";
    Some("plist"), b"bplist00" => "a binary property list", "plutil -convert json -o - FILE";
};

/// The bytes behind a printable signature that tell a binary file from text, with the signature.
const DECIDING_BYTES: usize = 16;

/// How a kind of file begins.
#[derive(Debug)]
struct Start {
    /// Of a signature that text may begin with, too: the extension of names of such files. A file
    /// of that name is one, and any other if a byte soon after the signature is of no text.
    extension: Option<&'static str>,
    signature: &'static [u8],
    foreign: Foreign,
}

impl Start {
    /// Whether an input begins so; `None` if later bytes tell.
    fn begins(&self, bytes: &[u8], extension: Option<&str>) -> Option<bool> {
        let fits = |(byte, expected): (&u8, &u8)| *expected == b'?' || byte == expected;
        if !bytes.iter().zip(self.signature).all(fits) {
            return Some(false);
        }
        let behind = bytes.get(self.signature.len()..)?;
        let Some(of_names) = self.extension else {
            return Some(true);
        };
        if extension.is_some_and(|extension| extension.eq_ignore_ascii_case(of_names)) {
            return Some(true);
        }
        let left = DECIDING_BYTES - self.signature.len();
        if behind.iter().take(left).any(|byte| is_of_no_text(*byte)) {
            return Some(true);
        }
        (behind.len() >= left).then_some(false)
    }
}

/// Whether a byte is a control character that texts do not have.
const fn is_of_no_text(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | 0x0b | 0x0c | b'\r' | 0x1b)
}

/// The bytes that tell encodings without a mark.
const SAMPLE_BYTES: usize = 256;

/// The length of a block of a tar archive.
const TAR_BLOCK: usize = 512;

/// What the first bytes of a text input show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextStart {
    /// More bytes are needed.
    Undecided,
    /// The length of the UTF-8 mark; 0 if there is none.
    Mark(usize),
    /// A file that is not read as text.
    Foreign(&'static Foreign),
}

impl TextStart {
    /// The start of an input that begins with `bytes`, and ends with them if they are `all`. Its
    /// name, if it has one, has this `extension`.
    pub(crate) fn of(bytes: &[u8], all: bool, extension: Option<&str>) -> Self {
        if bytes.starts_with(UTF_8) {
            return Self::Mark(UTF_8.len());
        }
        let marks = ENCODINGS.iter().map(|(mark, _)| *mark).chain([UTF_8]);
        let is_open = |mark: &[u8]| mark.len() > bytes.len() && mark.starts_with(bytes);
        let mut is_undecided = marks.into_iter().any(is_open);
        for start in FILES {
            match start.begins(bytes, extension) {
                Some(true) => return Self::Foreign(&start.foreign),
                Some(false) => {}
                None => is_undecided = true,
            }
        }
        if is_undecided && !all {
            return Self::Undecided;
        }
        let found = ENCODINGS.iter().find(|(mark, _)| bytes.starts_with(mark));
        found.map_or(Self::Mark(0), |(_, foreign)| Self::Foreign(foreign))
    }

    /// The start of an input of which so many bytes are read that no later ones matter: what is not
    /// worth waiting for.
    pub(crate) fn of_many(bytes: &[u8]) -> Option<&'static Foreign> {
        if is_tar(bytes) {
            return Some(&TAR);
        }
        // Its checksum comes first, and its version, which is small, behind.
        let is_duckdb = bytes.get(8..12) == Some(b"DUCK") && bytes.get(13..20) == Some(&[0; 7]);
        is_duckdb.then_some(&DUCKDB)
    }
}

/// An input's first record without the mark.
pub(crate) fn strip_mark(record: &[u8]) -> &[u8] {
    record.strip_prefix(UTF_8).unwrap_or(record)
}

/// The encoding of text without a mark in which every other byte of ASCII characters is zero, if
/// the first bytes look like that.
pub(crate) fn looks_wide(bytes: &[u8]) -> Option<&'static str> {
    let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
    let zeros = |parity: usize| {
        let bytes = sample.iter().skip(parity).step_by(2);
        bytes.filter(|byte| **byte == 0).count()
    };
    // Enough that few zero bytes in other data do not suffice.
    let many = |zeros: usize| sample.len() >= 16 && zeros >= sample.len() * 3 / 8;
    match (zeros(0), zeros(1)) {
        (0, odd) if many(odd) => Some("UTF-16LE"),
        (even, 0) if many(even) => Some("UTF-16BE"),
        _ => None,
    }
}

/// Whether an input begins with the header of a tar archive, with its checksum.
fn is_tar(bytes: &[u8]) -> bool {
    let Some(header) = bytes.get(..TAR_BLOCK) else {
        return false;
    };
    let checksum = 148..156;
    let stored = header[checksum.clone()].iter();
    let octal = stored
        .skip_while(|byte| **byte == b' ')
        .take_while(|byte| (b'0'..=b'7').contains(byte))
        .fold(0, |sum, digit| 8 * sum + u32::from(digit - b'0'));
    let is_stored = |at: &usize| checksum.contains(at);
    let bytes = header.iter().enumerate();
    // The checksum counts as blanks.
    let sum = bytes.map(|(at, byte)| u32::from(if is_stored(&at) { b' ' } else { *byte }));
    header[257..].starts_with(b"ustar") && sum.sum::<u32>() == octal
}

#[cfg(test)]
mod tests {
    use super::TextStart::{Foreign, Mark, Undecided};
    use super::*;

    #[test]
    fn a_start_is_decided_as_early_as_possible() {
        let (utf_16, utf_32) = (Foreign(&UTF_16), Foreign(&UTF_32));
        let file = |name| {
            let start = FILES.iter().find(|start| start.foreign.name == name);
            Foreign(&start.unwrap().foreign)
        };
        for (bytes, more, all) in [
            (&b""[..], Undecided, Mark(0)),
            (b"a", Mark(0), Mark(0)),
            (b"\xef\xbb", Undecided, Mark(0)),
            (b"\xef\xbb\xbf", Mark(3), Mark(3)),
            (b"\xef\xbb\n", Mark(0), Mark(0)),
            (b"\xff", Undecided, Mark(0)),
            (b"\xff\n", Mark(0), Mark(0)),
            (b"\xff\xfe", Undecided, utf_16),
            (b"\xff\xfea", utf_16, utf_16),
            (b"\xff\xfe\0", Undecided, utf_16),
            (b"\xff\xfe\0\n", utf_16, utf_16),
            (b"\xff\xfe\0\0", utf_32, utf_32),
            (b"\xfe\xff", utf_16, utf_16),
            (b"\0\0\xfe", Undecided, Mark(0)),
            (b"\0\0\xfe\xff", utf_32, utf_32),
            (b"\0\n", Mark(0), Mark(0)),
            (b"PAR", Undecided, Mark(0)),
            (b"PAR1", Undecided, Mark(0)),
            (b"PAR1\x15", file("a Parquet file"), file("a Parquet file")),
            (b"ORC\nELF\n", Undecided, Mark(0)),
            (b"ORC\nELF\nHOBBIT\nA", Mark(0), Mark(0)),
            (
                b"ORC\nELF\nHOBBIT\0A",
                file("an ORC file"),
                file("an ORC file"),
            ),
            (b"ARROW1\0", Undecided, Mark(0)),
            (b"ARROW1\0\0", file("an Arrow file"), file("an Arrow file")),
            (
                b"\xff\xff\xff\xff\x10\x01\0\0\x10\0\0\0",
                file("an Arrow stream"),
                file("an Arrow stream"),
            ),
        ] {
            assert_eq!(TextStart::of(bytes, false, None), more, "{bytes:?}");
            assert_eq!(TextStart::of(bytes, true, Some("txt")), all, "{bytes:?}");
        }
        // The name tells where the bytes may be text.
        for (bytes, extension) in [(&b"ORC\nx"[..], "orc"), (b"PAR1", "PARQUET")] {
            let start = TextStart::of(bytes, false, Some(extension));
            assert!(matches!(start, Foreign(_)), "{extension}");
        }
    }

    #[test]
    fn no_start_hides_behind_another() {
        for start in FILES {
            assert!(start.extension.is_none() || start.signature.len() < DECIDING_BYTES);
            let bytes = [start.signature, b"\0"].concat();
            assert_eq!(TextStart::of(&bytes, true, None), Foreign(&start.foreign));
            assert!(start.foreign.command.contains("FILE"));
        }
    }

    #[test]
    fn zeros_at_every_other_byte_tell_utf_16() {
        let wide = |text: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(order).collect()
        };
        let text = "caller,start\n49170,08:15\n";
        assert_eq!(looks_wide(&wide(text, u16::to_le_bytes)), Some("UTF-16LE"));
        assert_eq!(looks_wide(&wide(text, u16::to_be_bytes)), Some("UTF-16BE"));
        // Too short, plain text, zeros at both, few of them.
        for bytes in [
            &b"a\0b\0"[..],
            text.as_bytes(),
            &[0; 64],
            b"ab\0 and much more text",
        ] {
            assert_eq!(looks_wide(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_tar_header_has_its_checksum() {
        let mut header = [0; TAR_BLOCK];
        header[..8].copy_from_slice(b"file.txt");
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        assert!(is_tar(&header));
        assert!(!is_tar(&header[..TAR_BLOCK - 1]));
        for at in [0, 100, 148, 153, 257, 300, 511] {
            let mut other = header;
            other[at] ^= 1;
            assert!(!is_tar(&other), "{at}");
        }
        let mut text = [b'a'; TAR_BLOCK];
        text[257..262].copy_from_slice(b"ustar");
        assert!(!is_tar(&text));
    }
}
