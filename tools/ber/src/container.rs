//! Records inside of elements that hold many of them, as in TAP3 or in the call event files of
//! some vendors.
//!
//! A path of tags, from the top level of the input on, leads to the **containers**: elements whose
//! children are the records. A scan divides the input into records and the **frame** around them:
//! identifier and length octets of the elements on the path, their end-of-contents, elements off
//! the path, and filler.
//!
//! ```text
//! path 0x61/0x63
//!
//! 61 len | 64 len .. | 63 len | 69 len .. | 69 len .. | 69 len .. | 6F len .. | 00 00
//!  opens     frame     opens     record      record      record  ^   frame    ^ frame
//!                                                          closes 63      closes 61
//! ```
//!
//! Filler is zeros in an element of definite length, any run of 0x00 and 0xFF between the elements
//! of the top level, as in [`RecordScan`], and nothing in an element of indefinite length.

use crate::element::{Length, MAX_DEPTH, NoHeader, Tag, read_header};
use crate::error::Invalid;
use crate::framing::{Lack, RecordScan, is_filler};
use crate::path::TagPath;

/// A scan of an input for the records on a path, which goes on where it was when more bytes arrive.
///
/// # Examples
/// ```
/// use echoless_ber::{ContainerScan, Piece, PieceKind};
///
/// // [0] { [1] "x", [2] { two records of universal tag 4 }, [1] "y" }
/// let bytes = b"\xa0\x0e\x81\x01x\xa2\x06\x04\x01a\x04\x01b\x81\x01y";
/// let mut scan = ContainerScan::new(&"0xA0/0xA2".parse()?);
/// let (mut at, mut records) = (0, Vec::new());
/// while let Some(Piece { end, kind, .. }) = scan.next(bytes, at)? {
///     if kind == PieceKind::Record {
///         records.push(&bytes[at..end]);
///     }
///     at = end;
/// }
/// assert_eq!(records, [b"\x04\x01a", b"\x04\x01b"]);
/// assert_eq!((at, scan.is_outside()), (bytes.len(), true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ContainerScan {
    path: Vec<Tag>,
    /// The elements around the next piece, from the top level down.
    open: Vec<OpenElement>,
    /// The number of bytes of the input in front of the next piece.
    offset: u64,
    /// The bytes that are left of an element off the path.
    skipped: u64,
    /// The record that is next, if it has an indefinite length.
    record: RecordScan,
    /// The length of the record that is next, if it is known.
    needs: Option<u64>,
    has_container: bool,
}

/// An element that is not at its end.
#[derive(Debug, Clone, Copy)]
struct OpenElement {
    on_path: bool,
    is_definite: bool,
    /// Where it ends at the latest: its own end, or that of the elements around it.
    limit: u64,
}

/// A part of the input that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The offset after it in the bytes that were passed.
    pub end: usize,
    /// What it is.
    pub kind: PieceKind,
    /// How many elements on the path that are [open](PieceKind::Opens) end with it.
    pub closes: usize,
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// A record: one element, without filler.
    Record,
    /// Bytes around the records; elements off the path come in several pieces.
    Frame,
    /// Identifier and length octets of an element on the path. It is open until a piece
    /// [closes](Piece::closes) it.
    Opens {
        /// The offset of the length octets, which are the last ones of the piece.
        length_at: usize,
        /// The length of the content; `None` if it is indefinite. Then the piece that closes the
        /// element ends with its end-of-contents.
        length: Option<u64>,
    },
}

impl ContainerScan {
    /// A scan from the start of an input. The path leads from an element of the top level to the
    /// elements whose children are the records.
    pub fn new(path: &TagPath) -> Self {
        Self {
            path: path.tags.clone(),
            open: Vec::new(),
            offset: 0,
            skipped: 0,
            record: RecordScan::default(),
            needs: None,
            has_container: false,
        }
    }

    /// The piece that begins at `at`, where the last one ended; `None` if it may go on behind
    /// `bytes`, or there are none. Calls that follow a `None` get the same bytes and more.
    ///
    /// # Errors
    /// [`Invalid`] if the bytes at `at` are no BER, or an element is longer than the one around it.
    /// The offset in it counts from `at`. Further calls return the same error.
    #[inline]
    pub fn next(&mut self, bytes: &[u8], at: usize) -> Result<Option<Piece>, Invalid> {
        let bytes = &bytes[at..];
        let Some(mut piece) = self.scan(bytes)? else {
            return Ok(None);
        };
        self.offset = self.offset.saturating_add(piece.end as u64);
        self.record = RecordScan::default();
        self.needs = None;
        piece.closes += self.close();
        piece.end += at;
        if let PieceKind::Opens { length_at, .. } = &mut piece.kind {
            *length_at += at;
        }
        Ok(Some(piece))
    }

    /// Whether no element of the top level is open: the input may end here.
    pub fn is_outside(&self) -> bool {
        self.open.is_empty() && self.skipped == 0
    }

    /// Whether any piece was found so far.
    pub fn has_begun(&self) -> bool {
        self.offset > 0
    }

    /// Whether a container was found so far.
    pub fn has_container(&self) -> bool {
        self.has_container
    }

    /// The number of bytes that the record at the front has in all, if it is not whole and that is
    /// known.
    pub fn needs(&self) -> Option<u64> {
        self.needs
    }

    /// The piece at the start of `bytes`, without the elements of definite length that end with it.
    #[inline]
    fn scan(&mut self, bytes: &[u8]) -> Result<Option<Piece>, Invalid> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let piece = |end, kind| Piece {
            end,
            kind,
            closes: 0,
        };
        let frame = |len| Ok(Some(piece(len, PieceKind::Frame)));
        if self.skipped > 0 {
            let len = bytes.len().min(to_usize(self.skipped));
            self.skipped -= len as u64;
            return frame(len);
        }
        let around = self.open.last().copied();
        let limit = around.map_or(u64::MAX, |around| around.limit);
        let left = to_usize(limit - self.offset);
        let inside = &bytes[..bytes.len().min(left)];
        let filler = match around {
            None => inside.iter().take_while(|byte| is_filler(**byte)).count(),
            Some(around) if around.is_definite => {
                inside.iter().take_while(|byte| **byte == 0).count()
            }
            Some(_) => 0,
        };
        if filler > 0 {
            return frame(filler);
        }
        if left == 0 {
            // The element around has an indefinite length, and one around that ends here.
            return Err(Invalid::unfinished(0));
        }
        let header = match read_header(inside, 0) {
            Ok(header) => header,
            Err(NoHeader::Cut) if inside.len() < left => return Ok(None),
            Err(error) => return Err(Invalid::header(0, error)),
        };
        let (content, is_end) = (header.content as u64, header.is_end_of_contents());
        if let Length::Definite(length) = header.length
            && (content.checked_add(length)).is_none_or(|len| len > limit - self.offset)
        {
            return Err(Invalid::too_long(0));
        }
        if let Some(around) = around.filter(|around| is_end && !around.is_definite) {
            self.open.pop();
            return Ok(Some(Piece {
                closes: usize::from(around.on_path),
                ..piece(header.content, PieceKind::Frame)
            }));
        }
        let on_path = around.is_none_or(|around| around.on_path);
        if on_path && self.open.len() == self.path.len() {
            let len = match header.length {
                Length::Definite(length) => {
                    let len = content + length;
                    self.needs = Some(len);
                    usize::try_from(len).ok().filter(|len| *len <= bytes.len())
                }
                Length::Indefinite => {
                    let end = self.record.element_end(inside, 0)?;
                    if end.is_none() && inside.len() == left {
                        return Err(Invalid::unfinished(0));
                    }
                    if let Lack::Bytes(needs) = self.record.lack(inside.len()) {
                        self.needs = Some(needs);
                    }
                    end
                }
            };
            return Ok(len.map(|len| piece(len, PieceKind::Record)));
        }
        let is_next = on_path && header.constructed && self.path[self.open.len()] == header.tag;
        let length = match header.length {
            Length::Definite(length) if is_next => {
                self.enter(true, true, self.offset + content + length)?;
                Some(length)
            }
            Length::Definite(length) => {
                self.skipped = length;
                None
            }
            Length::Indefinite => {
                self.enter(is_next, false, limit)?;
                None
            }
        };
        let length_at = header.length_at;
        let kind = match is_next {
            true => PieceKind::Opens { length_at, length },
            false => PieceKind::Frame,
        };
        Ok(Some(piece(header.content, kind)))
    }

    fn enter(&mut self, on_path: bool, is_definite: bool, limit: u64) -> Result<(), Invalid> {
        if self.open.len() == MAX_DEPTH {
            return Err(Invalid::too_deep(0));
        }
        self.open.push(OpenElement {
            on_path,
            is_definite,
            limit,
        });
        self.has_container |= on_path && self.open.len() == self.path.len();
        Ok(())
    }

    /// Leaves the elements of definite length that end here, and returns their number.
    #[inline]
    fn close(&mut self) -> usize {
        let mut closed = 0;
        while self.skipped == 0
            && let Some(last) = self.open.last()
            && last.is_definite
            && last.limit == self.offset
        {
            self.open.pop();
            closed += 1;
        }
        closed
    }
}

/// A number of bytes, as many of them as memory can hold.
fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The path to the element that seems to hold the records inside of one that holds a whole input:
/// the way of the largest elements, to the first whose content is several constructed elements with
/// one tag, or none of which is more than half of it. `None` if it leads to no such content.
///
/// # Examples
/// ```
/// // [0] { [1] "x", [2] { three records } }
/// let bytes = b"\xa0\x11\x81\x01x\xa2\x0c\xa4\x02\x80\0\xa4\x02\x80\0\xa4\x02\x80\0";
/// assert_eq!(echoless_ber::container_of(bytes).as_deref(), Some("0xA0/0xA2"));
/// assert_eq!(echoless_ber::container_of(b"\xa0\x06\x81\x01x\x82\x01y"), None);
/// ```
pub fn container_of(element: &[u8]) -> Option<String> {
    let mut path = String::new();
    let mut rest = element;
    for _ in 0..MAX_DEPTH {
        let (outer, content) = split_element(rest)?;
        let separator = if path.is_empty() { "0x" } else { "/0x" };
        path += separator;
        path.extend(outer.iter().map(|octet| format!("{octet:02X}")));
        let mut children = Vec::new();
        let mut at = 0;
        while at < content.len() {
            let end = at + element_len(&content[at..])?;
            let header = read_header(content, at).ok()?;
            children.push((header, &content[at..end]));
            at = end;
        }
        let (first, _) = children.first()?;
        let are_constructed = children.iter().all(|(header, _)| header.constructed);
        let are_alike = children.iter().all(|(header, _)| header.tag == first.tag);
        let (largest, bytes) = children.iter().max_by_key(|(_, bytes)| bytes.len())?;
        let is_most = bytes.len() > content.len() / 2;
        if children.len() > 1 && are_constructed && (are_alike || !is_most) {
            return Some(path);
        }
        if !is_most || !largest.constructed {
            return None;
        }
        rest = bytes;
    }
    None
}

/// The identifier octets of the element that `bytes` are, and its content.
fn split_element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = read_header(bytes, 0).ok()?;
    let end_octets = match header.length {
        Length::Definite(_) => 0,
        Length::Indefinite => 2,
    };
    let end = element_len(bytes)? - end_octets;
    Some((&bytes[..header.length_at], &bytes[header.content..end]))
}

/// The length of the element at the start of `bytes`, if it is whole.
fn element_len(bytes: &[u8]) -> Option<usize> {
    RecordScan::default().element_end(bytes, 0).ok().flatten()
}
