//! Comment lines: copied in place, never judged, and no records.
//!
//! The option `--comment` gives the bytes that they begin with. Without it, some files announce
//! lines that begin with `#` by the first one:
//!
//! | kind | a first line begins with | the names of the fields are in |
//! |---|---|---|
//! | VCF | `##fileformat=VCF` | `#CHROM` and those behind it |
//! | GFF | `##gff-version` | no line |
//! | log of Zeek | `#separator ` | `#fields` |
//! | W3C extended log | `#Software: `, `#Version: `, `#Fields: ` or `#Date: ` | `#Fields:` |

use memchr::memmem::{find, find_iter};

use super::chunk::Chunk;
use super::fault::{BlankLines, Fate, FaultPolicy};
use super::format::{Format, all_fields};
use super::restart::Announced;
use super::terminators::LF;

/// The bytes that comment lines begin with where the first line of an input announces them.
const ANNOUNCED_PREFIX: &[u8] = b"#";

/// What the comment with the names begins with in W3C extended logs.
const FIELDS: &[u8] = b"#Fields:";

/// The beginnings of first lines.
const FIRST_LINES: &[(&[u8], Announced)] = &[
    (b"##fileformat=VCF", Announced::Vcf),
    (b"##gff-version", Announced::Gff),
    (b"#separator ", Announced::Zeek),
    (b"#Software: ", Announced::W3c),
    (b"#Version: ", Announced::W3c),
    (b"#Fields: ", Announced::W3c),
    (b"#Date: ", Announced::W3c),
];

/// Which lines of the inputs are comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommentLines {
    /// The value of `--comment`.
    pub(crate) typed: Option<Vec<u8>>,
}

impl CommentLines {
    /// What the first line of an input announces.
    pub(super) fn announced(input: &[u8]) -> Option<Announced> {
        let found = FIRST_LINES.iter().find(|(line, _)| input.starts_with(line));
        found.map(|(_, announced)| *announced)
    }

    /// The bytes that comment lines begin with in an input with this first line; `None` if it has
    /// no comments.
    pub(super) fn prefix(&self, announced: Option<Announced>) -> Option<&[u8]> {
        (self.typed.as_deref()).or(announced.map(|_| ANNOUNCED_PREFIX))
    }
}

impl Announced {
    /// The names of the fields, if this comment line holds them.
    pub(super) fn names<F: Format + ?Sized>(
        self,
        content: &[u8],
        format: &F,
    ) -> Option<Vec<Vec<u8>>> {
        match self {
            Self::Zeek => {
                content.strip_prefix(b"#fields")?;
                Some(all_fields(format, content).split_off(1))
            }
            Self::Vcf => {
                content.strip_prefix(b"#CHROM")?;
                Some(all_fields(format, &content[1..]))
            }
            // They are between blanks, even where the fields are between tabs, except in files with
            // the delimiter of the fields.
            Self::W3c => {
                let names = content.strip_prefix(FIELDS)?.trim_ascii();
                let by_format = all_fields(format, names);
                let by_format = by_format.iter().map(|name| name.trim_ascii());
                let is_one = |name: &[u8]| !name.iter().any(u8::is_ascii_whitespace);
                if by_format.len() > 1 && by_format.clone().all(is_one) {
                    return Some(by_format.map(<[u8]>::to_vec).collect());
                }
                let names = names.split(u8::is_ascii_whitespace);
                let names = names.filter(|name| !name.is_empty());
                Some(names.map(<[u8]>::to_vec).collect())
            }
            Self::Gff => None,
        }
    }

    /// What the comment lines with names begin with; `None` if there are none.
    const fn named_lines(self) -> Option<&'static [u8]> {
        match self {
            Self::Zeek => Some(b"#fields"),
            Self::Vcf => Some(b"#CHROM"),
            Self::W3c => Some(FIELDS),
            Self::Gff => None,
        }
    }

    /// The start of each comment line of a chunk's records that holds names, and the names. The
    /// records of a chunk are searched only if some bytes look like such a line.
    pub(super) fn all_names(
        self,
        chunk: &Chunk,
        format: &dyn Format,
    ) -> Vec<(usize, Vec<Vec<u8>>)> {
        let (bytes, start) = (chunk.bytes.all(), chunk.bytes.start.max(chunk.bytes.mark));
        let Some(begin) = self.named_lines() else {
            return Vec::new();
        };
        let found = find_iter(&bytes[start..], begin).map(|at| start + at);
        let found: Vec<usize> = found
            .filter(|at| *at == start || bytes[at - 1] == LF)
            .collect();
        if found.is_empty() {
            return Vec::new();
        }
        let mut ends = Vec::new();
        format.record_ends(bytes, start, &mut ends);
        let names = |at: usize| {
            let index = if at == start {
                0
            } else {
                ends.binary_search(&at).ok()? + 1
            };
            Some((
                at,
                self.names(format.content(&bytes[at..ends[index]]), format)?,
            ))
        };
        found.into_iter().filter_map(names).collect()
    }

    /// What is appended to this comment line if each record gets a last field with this name.
    pub(super) fn tag(self, content: &[u8], delimiter: &[u8], name: &str) -> Option<Vec<u8>> {
        let (delimiter, word) = match self {
            Self::Zeek if content.starts_with(b"#fields") => (delimiter, name),
            Self::Zeek if content.starts_with(b"#types") => (delimiter, "string"),
            Self::Vcf if content.starts_with(b"#CHROM") => (delimiter, name),
            Self::W3c if content.starts_with(FIELDS) => {
                let names = content[FIELDS.len()..].trim_ascii();
                let is_between = find(names, delimiter).is_some();
                (if is_between { delimiter } else { b" " }, name)
            }
            Self::Zeek | Self::Vcf | Self::W3c | Self::Gff => return None,
        };
        Some([delimiter, word.as_bytes()].concat())
    }
}

/// Which lines of a chunk are not judged: comments, and blank lines as `--blank-lines` has it.
#[derive(Debug)]
pub(super) struct UnjudgedLines<'a> {
    faults: FaultPolicy,
    /// What comment lines begin with; `None` if there are none.
    prefix: Option<&'a [u8]>,
}

impl<'a> UnjudgedLines<'a> {
    /// `None` if all lines are judged.
    pub(super) fn new(faults: FaultPolicy, prefix: Option<&'a [u8]>) -> Option<Self> {
        let are_some = prefix.is_some() || faults.blank_lines != BlankLines::Keep;
        are_some.then_some(Self { faults, prefix })
    }

    /// What happens to a line with this content, which ends without a byte order mark; `None` if
    /// it is judged.
    #[inline]
    pub(super) fn fate<F: Format + ?Sized>(&self, format: &F, content: &[u8]) -> Option<Fate> {
        // The first byte decides about nearly all lines.
        let first = content.first();
        let may_be_blank = first.is_none_or(|byte| *byte <= b' ');
        let may_be_comment = self.prefix.is_some_and(|prefix| prefix.first() == first);
        if may_be_blank || may_be_comment {
            self.fate_of(format, content)
        } else {
            None
        }
    }

    #[cold]
    fn fate_of<F: Format + ?Sized>(&self, format: &F, content: &[u8]) -> Option<Fate> {
        if self
            .prefix
            .is_some_and(|prefix| content.starts_with(prefix))
        {
            return Some(Fate::Comment);
        }
        if format.facts().is_blank(content) {
            self.faults.fate_of_blank_line()
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delimiter::Delimiter;
    use crate::formats::lines;

    #[test]
    fn first_lines_announce_comments_and_later_ones_have_names() {
        let tabs = lines(&Delimiter::Byte(b'\t')).unwrap();
        for (input, line, names) in [
            (
                "##fileformat=VCFv4.2\n",
                "#CHROM\tPOS",
                Some(&["CHROM", "POS"][..]),
            ),
            ("##fileformat=VCFv4.2\n", "##INFO=<ID=DP>", None),
            ("##gff-version 3\n", "#CHROM\tPOS", None),
            (
                "#separator \\x09\n",
                "#fields\tts\tuid",
                Some(&["ts", "uid"]),
            ),
            ("#separator \\x09\n", "#fields", Some(&[])),
            ("#separator \\x09\n", "#types\ttime", None),
            (
                "#Version: 1.0\n",
                "#Fields: date  time\tx",
                Some(&["date", "time", "x"]),
            ),
            ("#Software: IIS\r\n", "#Fields: date\r", Some(&["date"])),
            ("#Date: 2025-01-01\n", "#Date: 2025-01-01", None),
        ] {
            let announced = CommentLines::announced(input.as_bytes()).unwrap();
            let found = announced.names(line.as_bytes(), &*tabs);
            let names =
                names.map(|names| names.iter().map(|name| name.as_bytes().to_vec()).collect());
            assert_eq!(found, names, "{input}{line}");
        }
        for input in [
            "",
            "#",
            "# comment\n",
            "#fields\tts\n",
            "##fileformat=X\n",
            " #Version: 1\n",
        ] {
            assert_eq!(CommentLines::announced(input.as_bytes()), None, "{input}");
        }
    }
}
