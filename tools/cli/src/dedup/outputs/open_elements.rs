//! The elements around records that are open in an output. The length in front of one is that of
//! the content that is written, which is known at its end.
//!
//! ```text
//! input    61 82 01 0C | 63 81 F0 | record | record | record | 6F ..
//! output   61 82 00 B4 | 63 81 98 | record |        | record | 6F ..
//!             ^^^^^^^^      ^^^^^ rewritten, in as many octets as in the input
//! ```
//!
//! An array of JSON that is open has no length. Its first record that is written loses the comma in
//! front of it.
//!
//! A regular file is rewritten at the position of a length. In any other output, the bytes from the
//! begin of an element on are held back until its end; an element that is too long for that gets an
//! indefinite length.

use std::mem;
use std::ops::Range;

use echoless_ber::{END_OF_CONTENTS, INDEFINITE_LENGTH, length_in};
use echoless_records::chunk::Chunk;
use echoless_records::format::Edge;

/// The longest element that is held back, in bytes of the input.
const MOST_HELD: u64 = 64 << 20;

/// The elements that are open in an output, and the bytes of it that are not written yet.
#[derive(Debug, Default)]
pub(super) struct OpenElements {
    open: Vec<OpenElement>,
    held: Vec<u8>,
    /// The position in the output of the first held byte.
    held_at: u64,
    rewrites: Vec<Rewrite>,
}

#[derive(Debug, Clone, Copy)]
enum OpenElement {
    Definite {
        /// The positions of its length and of its content in the output.
        length_at: u64,
        content: u64,
        /// The length of its content in the input.
        of_input: u64,
    },
    /// It has the end-of-contents of the input.
    Indefinite,
    /// It has a definite length in the input.
    MadeIndefinite,
    /// An array of JSON. Its records have the comma in front of them, so the first one that is
    /// written loses it.
    List {
        has_records: bool,
        /// The number of objects that are open around it.
        objects: usize,
    },
}

impl OpenElement {
    const fn is_definite(&self) -> bool {
        matches!(self, Self::Definite { .. })
    }
}

/// Octets for a position in the output that is written.
#[derive(Debug)]
pub(super) struct Rewrite {
    pub(super) at: u64,
    pub(super) octets: Vec<u8>,
}

impl OpenElements {
    /// Whether bytes are held back, so that what follows must be, too.
    pub(super) fn holds_back(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether the next record is the first one of an array.
    pub(super) fn begins_list(&self) -> bool {
        let last = self.open.last();
        last.is_some_and(|element| {
            matches!(
                element,
                OpenElement::List {
                    has_records: false,
                    ..
                }
            )
        })
    }

    /// Whether no element is open and nothing is held back.
    pub(super) fn is_outside(&self) -> bool {
        self.open.is_empty() && self.held.is_empty()
    }

    /// Appends the pieces of a chunk in these runs, which ascend. `rewritable` is the position in
    /// an output that can be rewritten.
    pub(super) fn append(
        &mut self,
        chunk: &Chunk,
        mut runs: impl Iterator<Item = Range<usize>>,
        rewritable: Option<u64>,
    ) {
        self.go_on_at(rewritable);
        let mut run = runs.next();
        let mut copy = |elements: &mut Self, pieces: Range<usize>| {
            while let Some(next) = &run {
                let selected = next.start.max(pieces.start)..next.end.min(pieces.end);
                if !selected.is_empty() {
                    elements.push(chunk.bytes_of(selected));
                }
                if next.end > pieces.end {
                    break;
                }
                run = runs.next();
            }
        };
        let mut done = 0;
        let pieces = chunk.records();
        for edge in chunk
            .layout
            .edges
            .iter()
            .take_while(|edge| edge.piece < pieces)
        {
            match edge.edge {
                Edge::Opens { length_at, length } => {
                    copy(self, done..edge.piece);
                    let header = chunk.bytes_of(edge.piece..edge.piece + 1);
                    let tag_octets = length_at - chunk.record_start(edge.piece);
                    self.open(header, tag_octets, length, rewritable.is_some());
                }
                Edge::OpensList { objects } => {
                    copy(self, done..edge.piece + 1);
                    self.open.push(OpenElement::List {
                        has_records: false,
                        objects,
                    });
                }
                Edge::Closes => {
                    copy(self, done..edge.piece + 1);
                    self.close();
                }
            }
            done = edge.piece + 1;
        }
        copy(self, done..pieces);
    }

    /// Appends pieces, without the comma in front of them if they begin an array.
    fn push(&mut self, mut pieces: &[u8]) {
        if let Some(OpenElement::List { has_records, .. }) = self.open.last_mut()
            && !*has_records
        {
            *has_records = true;
            let blank = pieces.iter().take_while(|byte| byte.is_ascii_whitespace());
            let (blank, rest) = pieces.split_at(blank.count());
            if let Some(record) = rest.strip_prefix(b",") {
                self.held.extend_from_slice(blank);
                pieces = record;
            }
        }
        self.held.extend_from_slice(pieces);
    }

    /// Ends all elements that are open: the run ended inside of them.
    pub(super) fn end(&mut self, rewritable: Option<u64>) {
        self.go_on_at(rewritable);
        let position = self.position();
        // If writing failed, some are not in the output.
        self.open.retain(|element| match element {
            OpenElement::Definite { content, .. } => *content <= position,
            OpenElement::Indefinite | OpenElement::MadeIndefinite | OpenElement::List { .. } => {
                true
            }
        });
        while let Some(last) = self.open.last() {
            match *last {
                OpenElement::Indefinite => self.held.extend_from_slice(&END_OF_CONTENTS),
                OpenElement::List { objects, .. } => {
                    self.held.push(b']');
                    self.held.extend(std::iter::repeat_n(b'}', objects));
                    self.held.push(b'\n');
                }
                OpenElement::Definite { .. } | OpenElement::MadeIndefinite => {}
            }
            self.close();
        }
    }

    /// Takes the held bytes that can be written now, and what is to be rewritten after them.
    pub(super) fn release(&mut self, rewritable: Option<u64>) -> (Vec<u8>, Vec<Rewrite>) {
        if rewritable.is_none() && self.open.iter().any(OpenElement::is_definite) {
            return (Vec::new(), Vec::new());
        }
        (mem::take(&mut self.held), mem::take(&mut self.rewrites))
    }

    /// Forgets the elements of an output that cannot be written any more.
    pub(super) fn give_up(&mut self) {
        *self = Self::default();
    }

    fn go_on_at(&mut self, rewritable: Option<u64>) {
        if self.held.is_empty() {
            self.held_at = rewritable.unwrap_or(0);
        }
    }

    fn position(&self) -> u64 {
        self.held_at + self.held.len() as u64
    }

    fn open(&mut self, header: &[u8], tag_octets: usize, length: Option<u64>, rewritable: bool) {
        let is_held = rewritable || self.open.iter().any(OpenElement::is_definite);
        let position = self.position();
        let element = match length {
            None => OpenElement::Indefinite,
            Some(of_input) if is_held || of_input <= MOST_HELD => OpenElement::Definite {
                length_at: position + tag_octets as u64,
                content: position + header.len() as u64,
                of_input,
            },
            Some(_) => OpenElement::MadeIndefinite,
        };
        if matches!(element, OpenElement::MadeIndefinite) {
            self.held.extend_from_slice(&header[..tag_octets]);
            self.held.push(INDEFINITE_LENGTH);
        } else {
            self.held.extend_from_slice(header);
        }
        self.open.push(element);
    }

    fn close(&mut self) {
        let (length_at, content, of_input) = match self.open.pop() {
            None | Some(OpenElement::Indefinite | OpenElement::List { .. }) => return,
            Some(OpenElement::MadeIndefinite) => {
                self.held.extend_from_slice(&END_OF_CONTENTS);
                return;
            }
            Some(OpenElement::Definite {
                length_at,
                content,
                of_input,
            }) => (length_at, content, of_input),
        };
        let length = self.position() - content;
        if length == of_input {
            return;
        }
        // The content only shrinks, so its length fits.
        let octets = length_in(length, (content - length_at) as usize);
        if length_at < self.held_at {
            self.rewrites.push(Rewrite {
                at: length_at,
                octets,
            });
        } else {
            let at = (length_at - self.held_at) as usize;
            self.held[at..at + octets.len()].copy_from_slice(&octets);
        }
    }
}
