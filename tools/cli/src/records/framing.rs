//! Where records end: at newlines, at NULs, or at newlines outside of quoted fields (RFC 4180).
//!
//! Two questions, asked separately so that cutting a stream in chunks stays cheap and everything else can be done for each chunk on
//! its own: [`LastEnd`] tells where the last whole record of a growing buffer ends, [`Framing::record_ends`] finds all records of a chunk.

use echoless::SpecError;
use memchr::{memchr, memrchr};

use super::quoting::{QUOTE, Quoting};
use super::terminators::append_ends;

const LF: u8 = b'\n';
const CR: u8 = b'\r';

/// How a stream is divided into records. A record includes its terminator; its content does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Lines; a CR is content like any other byte.
    Lf,
    /// Lines; a CR before the LF belongs to the terminator.
    CrLf,
    /// Records that end at NUL.
    Nul,
    /// Lines with or without CR, except that a quoted field may hold newlines.
    Csv { delimiter: u8 },
}

impl Framing {
    /// The last byte of a terminator.
    pub(crate) const fn terminator(self) -> u8 {
        match self {
            Self::Nul => 0,
            Self::Lf | Self::CrLf | Self::Csv { .. } => LF,
        }
    }

    /// What ends the last of these records, if it has a terminator.
    pub(crate) fn terminator_of(self, records: &[u8]) -> Option<&'static [u8]> {
        match self {
            Self::CrLf | Self::Csv { .. } if records.ends_with(b"\r\n") => Some(b"\r\n"),
            Self::Nul => records.ends_with(b"\0").then_some(b"\0"),
            Self::Lf | Self::CrLf | Self::Csv { .. } => records.ends_with(b"\n").then_some(b"\n"),
        }
    }

    /// What ends a record that came without terminator, where no record before had one.
    pub(crate) const fn full_terminator(self) -> &'static [u8] {
        match self {
            Self::Nul => b"\0",
            Self::Lf | Self::Csv { .. } => b"\n",
            Self::CrLf => b"\r\n",
        }
    }

    /// What terminators count, in messages.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Nul => "record",
            Self::Lf | Self::CrLf | Self::Csv { .. } => "line",
        }
    }

    /// Whether a terminator always ends a record.
    pub(crate) const fn is_plain(self) -> bool {
        !matches!(self, Self::Csv { .. })
    }

    /// Refuses a field delimiter that means something else in these records.
    pub(crate) fn check_delimiter(self, delimiter: u8) -> Result<(), SpecError> {
        let taken = match self {
            Self::Lf | Self::Nul => delimiter == self.terminator(),
            Self::CrLf => matches!(delimiter, LF | CR),
            Self::Csv { .. } => matches!(delimiter, LF | CR | QUOTE),
        };
        if taken {
            return Err(SpecError::new(
                "delimiter",
                format!("`{}`", delimiter.escape_ascii()),
                "a byte that neither ends nor quotes these records",
            ));
        }
        Ok(())
    }

    /// A record without its terminator, if it has one.
    #[inline(always)]
    pub(crate) fn content(self, record: &[u8]) -> &[u8] {
        match (self, record) {
            (Self::CrLf | Self::Csv { .. }, [content @ .., CR, LF]) => content,
            (Self::Nul, [content @ .., 0]) => content,
            (Self::Lf | Self::CrLf | Self::Csv { .. }, [content @ .., LF]) => content,
            _ => record,
        }
    }

    /// The end of the first record of `bytes`; all of them if it has no terminator.
    pub(crate) fn first_end(self, bytes: &[u8]) -> usize {
        let first = match self {
            Self::Csv { delimiter } => Quoting::default().next_end(bytes, 0, delimiter),
            _ => memchr(self.terminator(), bytes).map(|at| at + 1),
        };
        first.unwrap_or(bytes.len())
    }

    /// A framing that is the same for these bytes and simpler, if there is one: without a quote, quoted records are lines.
    pub(crate) fn simplified_for(self, bytes: &[u8]) -> Self {
        match self {
            Self::Csv { .. } if memchr(QUOTE, bytes).is_none() => Self::CrLf,
            framing => framing,
        }
    }

    /// Appends the end of every record in `bytes[start..]`, which begins with a record and ends with one, terminated or not.
    pub(crate) fn record_ends(self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        match self {
            Self::Csv { delimiter } => {
                let found = |end| ends.push(start + end);
                Quoting::default().scan(&bytes[start..], 0, delimiter, found);
            }
            _ => append_ends(bytes, start, self.terminator(), ends),
        }
        if bytes.len() > ends.last().copied().unwrap_or(start) {
            ends.push(bytes.len());
        }
    }
}

/// Tells where the last whole record of a buffer ends, looking at each byte once while the buffer grows.
#[derive(Debug)]
pub(crate) struct LastEnd {
    framing: Framing,
    quoting: Quoting,
}

impl LastEnd {
    /// For a buffer that begins with a record.
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            quoting: Quoting::default(),
        }
    }

    /// The end of the last whole record that ends in `bytes[from..]`; everything before `from` was asked about before.
    pub(crate) fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let lines_end =
            || memrchr(self.framing.terminator(), &bytes[from..]).map(|at| from + at + 1);
        let Framing::Csv { delimiter } = self.framing else {
            return lines_end();
        };
        let mut last = None;
        self.quoting
            .scan(bytes, from, delimiter, |end| last = Some(end));
        last
    }

    /// Whether the buffer ends inside of a quoted field.
    pub(crate) fn is_in_quotes(&self) -> bool {
        self.quoting == Quoting::Inside
    }

    /// Forgets the buffer: a new input begins.
    pub(crate) fn reset(&mut self) {
        self.quoting = Quoting::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const CSV: Framing = Framing::Csv { delimiter: b',' };
    const ALL: [Framing; 4] = [Framing::Lf, Framing::CrLf, Framing::Nul, CSV];

    fn ends(framing: Framing, bytes: &[u8]) -> Vec<usize> {
        let mut ends = Vec::new();
        framing.record_ends(bytes, 0, &mut ends);
        ends
    }

    /// One byte at a time, as the definitions read.
    fn model(framing: Framing, bytes: &[u8]) -> Vec<usize> {
        let mut ends = Vec::new();
        let (mut inside, mut field_start) = (false, true);
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            let quotes = framing == CSV && byte == QUOTE;
            if inside && quotes && bytes.get(at + 1) == Some(&QUOTE) {
                at += 1;
            } else if inside && quotes {
                inside = false;
            } else if !inside && quotes && field_start {
                inside = true;
            } else if !inside && byte == framing.terminator() {
                ends.push(at + 1);
            }
            field_start = !inside && (byte == b',' || byte == LF);
            at += 1;
        }
        if ends.last().copied().unwrap_or(0) < bytes.len() {
            ends.push(bytes.len());
        }
        ends
    }

    /// Bytes that make sense in few framings, and quoted fields with a stray quote now and then, long enough for whole blocks.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let noise = prop::sample::select(b"ab,\"\"\"\n\n\r\0\xff".to_vec());
        let pieces = prop_oneof![
            40 => prop::sample::select(vec![
                ",", ",\"a,b\nc\",", "\n", "\r\n", "\"\"", "\n\"a\"\"b\"\n", "long enough", ",\"\"\"\n\"\"\",",
            ]),
            1 => Just("\""),
            1 => Just("\"stray\""),
        ];
        prop_oneof![
            vec(noise, 0..200),
            vec(pieces, 0..120).prop_map(|pieces| pieces.concat().into_bytes()),
        ]
    }

    proptest! {
        #[test]
        fn record_ends_equal_the_model(bytes in bytes()) {
            for framing in ALL {
                prop_assert_eq!(ends(framing, &bytes), model(framing, &bytes), "{:?}", framing);
            }
        }

        #[test]
        fn the_last_end_does_not_depend_on_how_the_bytes_arrive(
            bytes in bytes(),
            sizes in vec(prop_oneof![1usize..20, 1usize..300], 1..50),
        ) {
            for framing in ALL {
                let mut finder = LastEnd::new(framing);
                let (mut seen, mut last) = (0, 0);
                for size in sizes.iter().cycle().take(bytes.len()) {
                    let until = bytes.len().min(seen + size);
                    last = finder.find(&bytes[..until], seen).unwrap_or(last);
                    seen = until;
                }
                let whole = LastEnd::new(framing).find(&bytes, 0).unwrap_or(0);
                prop_assert_eq!(last, whole, "{:?}", framing);
                // Behind the last end there is one record at most, and it has no terminator.
                let ends = ends(framing, &bytes);
                prop_assert!(ends.iter().filter(|end| **end > whole).count() <= 1);
                prop_assert!(whole == 0 || ends.contains(&whole));
            }
        }

        #[test]
        fn the_first_end_is_the_first_of_all(bytes in bytes()) {
            for framing in ALL {
                let first = ends(framing, &bytes).first().copied().unwrap_or(0);
                prop_assert_eq!(framing.first_end(&bytes), first, "{:?}", framing);
            }
        }
    }

    #[test]
    fn content_is_without_terminator() {
        assert_eq!(Framing::Lf.content(b"a\r\n"), b"a\r");
        assert_eq!(Framing::CrLf.content(b"a\r\n"), b"a");
        assert_eq!(Framing::CrLf.content(b"a\n"), b"a");
        assert_eq!(Framing::CrLf.content(b"a\r"), b"a\r");
        assert_eq!(CSV.content(b"a\r\n"), b"a");
        assert_eq!(Framing::Nul.content(b"a\n\0"), b"a\n");
        for framing in ALL {
            assert_eq!(framing.content(b"a"), b"a");
            assert_eq!(framing.content(framing.full_terminator()), b"");
        }
    }

    #[test]
    fn an_open_quote_is_noticed() {
        let mut finder = LastEnd::new(CSV);
        assert_eq!(finder.find(b"a,b\n\"c\nd", 0), Some(4));
        assert!(finder.is_in_quotes());
        assert_eq!(finder.find(b"a,b\n\"c\nd\"\n", 8), Some(10));
        assert!(!finder.is_in_quotes());
    }

    #[test]
    fn delimiters_that_mean_something_else_are_refused() {
        assert!(Framing::Lf.check_delimiter(LF).is_err());
        assert!(Framing::Lf.check_delimiter(CR).is_ok());
        assert!(Framing::CrLf.check_delimiter(CR).is_err());
        assert!(Framing::Nul.check_delimiter(0).is_err());
        assert!(Framing::Nul.check_delimiter(LF).is_ok());
        assert!(CSV.check_delimiter(QUOTE).is_err());
        assert!(CSV.check_delimiter(b';').is_ok());
    }
}
