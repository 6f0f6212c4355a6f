//! Call records in BER: `--format ber`, and the files of 3GPP TS 32.297 that hold them.
//!
//! Fields are the values on tag paths, or on the names that a profile gives to them. Without any,
//! records are compared by their bytes, and only their framing is read. With `container=PATH`,
//! records are inside of elements that hold many of them.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use echoless::SpecError;
use echoless_ber::ts32297::{Read, cdr_header, file_header_len};
use echoless_ber::{
    ContainerScan, FieldError, Invalid, Lack, Location, PathError, Piece, PieceKind, Profile,
    RecordScan, Selector, TS32298, TagPath, container_of, element, record_ends,
};

use super::pieces::{LastPiece, PieceScan};
use super::{ChosenFields, FormatBuild, FormatName, SelectedFormat};
use crate::binary::{Binary, BinaryFields, BinaryFraming, binary_facts};
use crate::failure::Failure;
use crate::fault::Problem;
use crate::field_set::{FieldBytes, FieldSet, MissingField, Selected};
use crate::format::{Edge, FormatFacts, LastEnd, Pieces};
use crate::keys::SharedFormat;
use crate::spec_file::read_profile;

const HELP: &str = "BER call records; --key takes tag paths (0x80,0xA3/0x81), a question mark behind one allows it to be missing";

pub(super) const BER: FormatName = FormatName {
    name: "ber",
    value_name: None,
    help: HELP,
    options: &[],
    build: FormatBuild::OwnFields(build),
};

pub(super) const BER_WITH: FormatName = FormatName {
    name: "ber",
    value_name: Some("OPTIONS"),
    help: "the same with, separated by commas, named fields and keys: 3gpp for TS 32.298, profile=FILE.toml for others; and container=0x61/0x63 for records inside of these elements, or ts32297 for files with the headers of TS 32.297",
    options: &[],
    build: FormatBuild::OwnFields(|value, fields| match value {
        "" => Err(SpecError::new("--format ber", value, OPTIONS).into()),
        _ => build(value, fields),
    }),
};

const OPTIONS: &str =
    "3gpp or profile=FILE.toml, and container=TAG/TAG or ts32297, separated by a comma";

fn build(value: &str, fields: &ChosenFields<'_>) -> Result<SelectedFormat, Failure> {
    let mut profile: Option<Profile> = None;
    let mut files = Vec::new();
    let mut framing = None;
    for option in value.split(',').filter(|_| !value.is_empty()) {
        match option.split_once('=').unwrap_or((option, "")) {
            ("ts32297", "") if framing.is_none() => framing = Some(Framing::Files),
            ("container", path) if framing.is_none() => {
                framing = Some(Framing::Containers(container_path(path)?));
            }
            (TS32298, "") if profile.is_none() => profile = Some(Profile::ts32298().clone()),
            ("profile", path) if profile.is_none() => {
                let path = PathBuf::from(path);
                profile = Some(read_profile(&path)?);
                files.push(path);
            }
            _ => return Err(SpecError::new("--format ber", value, OPTIONS).into()),
        }
    }
    let selector = Selector::new(profile.as_ref(), fields.key, fields.time).map_err(field_error)?;
    let keys = selector.keys();
    let times = usize::from(fields.time.is_some());
    let format: SharedFormat = match framing {
        Some(Framing::Files) => Arc::new(Binary::new(Ts32297, selector)),
        Some(Framing::Containers(path)) => Arc::new(Binary::new(Containers::new(&path), selector)),
        None => Arc::new(Binary::new(Elements, selector)),
    };
    let selected = SelectedFormat::numbered(format, keys, times);
    Ok(SelectedFormat { files, ..selected })
}

/// Where records are, if not at the top level of the input.
enum Framing {
    /// Behind the headers of TS 32.297.
    Files,
    /// Inside of the elements on this path.
    Containers(TagPath),
}

fn container_path(path: &str) -> Result<TagPath, SpecError> {
    path.parse().map_err(|_| {
        let asked = format!("container={path}");
        let allowed = format!("container=PATH with {}", PathError::EXPECTED);
        SpecError::new("--format ber", asked, allowed)
    })
}

fn field_error(error: FieldError) -> Failure {
    let option = if error.is_time {
        "--time-field"
    } else {
        "--key"
    };
    SpecError::new(option, format!("`{}`", error.text), error.allowed).into()
}

impl Location for FieldBytes {
    const ABSENT: Self = Self::Absent;

    #[inline(always)]
    fn in_record(Range { start, end }: Range<usize>) -> Self {
        Self::Record { start, end }
    }

    #[inline(always)]
    fn in_scratch(Range { start, end }: Range<usize>) -> Self {
        Self::Scratch { start, end }
    }

    #[inline(always)]
    fn is_absent(&self) -> bool {
        *self == Self::Absent
    }
}

fn malformed(invalid: Invalid) -> Problem {
    Problem::MalformedAt {
        at: invalid.at,
        problem: invalid.problem,
    }
}

/// The values on the tag paths.
impl BinaryFields for Selector {
    #[inline(always)]
    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem> {
        let Selected {
            fields: chosen,
            scratch,
        } = out;
        let all = self.fields();
        chosen.resize(all, FieldBytes::Absent);
        let among = if fields.contains_all(all) {
            u64::MAX
        } else {
            let among = (0..all).filter(|field| fields.contains(*field));
            among.fold(0, |bits, field| bits | 1 << field)
        };
        let lacking = if content.is_empty() {
            // Filler alone, which has no fields.
            self.first_required(among)
        } else {
            let found = self.select_among(content, among, scratch, chosen);
            found.map_err(malformed)?
        };
        fields.retain(all, chosen);
        lacking.map_or(Ok(()), |field| {
            Err(Problem::Lacks(MissingField { field, fields: all }))
        })
    }

    fn names(&self) -> Vec<String> {
        let name = |field| format!("`{}`", self.name(field));
        (0..self.fields()).map(name).collect()
    }
}

/// Elements one after the other, with filler between them.
#[derive(Debug)]
struct Elements;

impl BinaryFraming for Elements {
    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[element(record)]
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        record_ends(bytes, start, ends);
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        // The shortest element is a tag and a length of 0.
        bytes.len().div_ceil(2)
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::<LastElement>::default()
    }

    fn records_inside(&self, record: &[u8]) -> Option<String> {
        let path = container_of(&record[element(record)])?;
        Some(format!("--format ber:container={path}"))
    }
}

/// Filler belongs to the record before it, so a record ends where the next one begins, or the
/// input.
#[derive(Debug, Default)]
struct LastElement {
    scan: RecordScan,
    /// The number of bytes from the start of the record that is scanned to the end of the buffer.
    rest: usize,
    invalid: Option<Invalid>,
}

impl LastEnd for LastElement {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let start = from - self.rest;
        let mut at = start;
        loop {
            match self.scan.end(bytes, at) {
                Ok(Some(end)) => {
                    at = end;
                    self.scan = RecordScan::default();
                }
                Ok(None) => break,
                Err(invalid) => {
                    self.invalid = Some(invalid);
                    break;
                }
            }
        }
        self.rest = bytes.len() - at;
        (at > start).then_some(at)
    }

    fn problem_at_end(&self) -> Option<Problem> {
        if let Some(invalid) = self.invalid {
            return Some(malformed(invalid));
        }
        let needs = match self.scan.lack(self.rest) {
            Lack::Nothing => return None,
            Lack::Bytes(needs) => Some(needs),
            Lack::Header => None,
            Lack::EndOfContents => {
                return Some(Problem::MalformedAt {
                    at: self.rest,
                    problem: "the input ends before the end-of-contents of the record",
                });
            }
        };
        let has = self.rest;
        Some(Problem::CutShort { has, needs })
    }

    fn is_malformed(&self) -> bool {
        self.invalid.is_some()
    }

    fn is_malformed_inside(&self) -> bool {
        true
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Records with their length in a header of their own, behind the header of the file.
#[derive(Debug)]
struct Ts32297;

/// The length of the record at the start of `bytes`, CDR header included.
fn cdr_len(bytes: &[u8]) -> Result<Read<usize>, Invalid> {
    Ok(match cdr_header(bytes)? {
        Read::Whole(header) => Read::Whole(header.total()),
        Read::Incomplete => Read::Incomplete,
    })
}

/// The end of the file header that `bytes` begin with.
fn file_header_end(bytes: &[u8]) -> usize {
    match file_header_len(bytes) {
        Ok(Read::Whole(len)) => len.min(bytes.len()),
        // No chunk has such a header.
        Ok(Read::Incomplete) | Err(_) => bytes.len(),
    }
}

impl BinaryFraming for Ts32297 {
    fn facts(&self) -> FormatFacts {
        FormatFacts {
            file_header_end: Some(file_header_end),
            ..binary_facts()
        }
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        match cdr_header(record) {
            Ok(Read::Whole(header)) => &record[header.len..],
            // No chunk has such a record.
            Ok(Read::Incomplete) | Err(_) => record,
        }
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        let mut at = start;
        while at < bytes.len() {
            at = match cdr_len(&bytes[at..]) {
                Ok(Read::Whole(len)) => bytes.len().min(at + len),
                Ok(Read::Incomplete) | Err(_) => bytes.len(),
            };
            ends.push(at);
        }
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        // A CDR header without a record behind it.
        bytes.len().div_ceil(4)
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastCdr::default())
    }
}

#[derive(Debug, Default)]
struct LastCdr {
    /// Whether the file header is behind.
    in_records: bool,
    /// The number of bytes between the last end and the end of the buffer.
    rest: usize,
    /// The length that they would have as a whole header or record, if it is known.
    needs: Option<usize>,
    invalid: Option<Invalid>,
}

impl LastEnd for LastCdr {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let start = from - self.rest;
        let mut at = start;
        self.needs = None;
        while at < bytes.len() && self.invalid.is_none() {
            let rest = &bytes[at..];
            let len = if self.in_records {
                cdr_len(rest)
            } else {
                file_header_len(rest)
            };
            match len {
                Ok(Read::Whole(len)) if len <= rest.len() => {
                    at += len;
                    self.in_records = true;
                }
                Ok(Read::Whole(len)) => {
                    self.needs = Some(len);
                    break;
                }
                Ok(Read::Incomplete) => break,
                Err(invalid) => self.invalid = Some(invalid),
            }
        }
        self.rest = bytes.len() - at;
        (at > start).then_some(at)
    }

    fn problem_at_end(&self) -> Option<Problem> {
        if let Some(invalid) = self.invalid {
            return Some(malformed(invalid));
        }
        (self.rest > 0).then_some(Problem::CutShort {
            has: self.rest,
            needs: self.needs.map(|needs| needs as u64),
        })
    }

    fn is_malformed(&self) -> bool {
        self.invalid.is_some()
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn restart(&mut self, _: bool) {
        self.reset();
        self.in_records = true;
    }
}

/// The elements on a path, and the records in the innermost ones.
#[derive(Debug)]
struct Containers {
    /// At the start of an input.
    scan: ContainerScan,
}

impl Containers {
    /// The records are the children of the elements on this path.
    fn new(path: &TagPath) -> Self {
        Self {
            scan: ContainerScan::new(path),
        }
    }
}

impl BinaryFraming for Containers {
    fn facts(&self) -> FormatFacts {
        FormatFacts {
            depends_on_start: true,
            ..binary_facts()
        }
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record
    }

    /// The ends of all pieces of an input from its start on. Chunks have theirs from
    /// [`LastPiece`].
    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        let mut scan = self.scan.clone();
        let mut at = start;
        while let Ok(Some(piece)) = scan.next(bytes, at) {
            at = piece.end;
            ends.push(at);
        }
        if at < bytes.len() {
            ends.push(bytes.len());
        }
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastPiece::new(self.scan.clone()))
    }
}

fn push(found: &mut Pieces, piece: Piece) {
    match piece.kind {
        PieceKind::Opens { length_at, length } => {
            found.push_alone(piece.end, false);
            found.push_edge(Edge::Opens { length_at, length });
        }
        kind => found.push(piece.end, kind == PieceKind::Record),
    }
    for _ in 0..piece.closes {
        found.push_edge(Edge::Closes);
    }
}

impl PieceScan for ContainerScan {
    fn find_pieces(
        &mut self,
        bytes: &[u8],
        start: usize,
        _from: usize,
        found: &mut Pieces,
    ) -> (usize, Option<Problem>) {
        let mut at = start;
        loop {
            match self.next(bytes, at) {
                Ok(Some(piece)) => {
                    at = piece.end;
                    push(found, piece);
                }
                Ok(None) => return (at, None),
                Err(invalid) => return (at, Some(malformed(invalid))),
            }
        }
    }

    fn problem_at_end(&self, rest: usize) -> Option<Problem> {
        if rest > 0 {
            let (has, needs) = (rest, self.needs());
            return Some(Problem::CutShort { has, needs });
        }
        (!self.is_outside()).then_some(Problem::MalformedAt {
            at: 0,
            problem: "the input ends inside of an element that holds records",
        })
    }

    fn is_outside(&self) -> bool {
        self.is_outside()
    }

    fn lacks_records(&self) -> bool {
        // A scan that was not begun is at the start of an empty input.
        self.has_begun() && !self.has_container()
    }
}
