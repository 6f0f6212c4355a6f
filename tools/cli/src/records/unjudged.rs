//! The lines of a chunk that are not judged: comments, and blank lines as `--blank-lines` has it.

use super::comments::Announced;
use super::fault::{BlankLines, Fate, FaultPolicy, Problem};
use super::format::Format;

/// Which lines of a chunk are not judged.
#[derive(Debug)]
pub(super) struct UnjudgedLines<'a> {
    faults: FaultPolicy,
    /// What comment lines begin with; `None` if there are none.
    prefix: Option<&'a [u8]>,
    announced: Option<Announced>,
    /// The names of the fields in the header, which those in comments must equal.
    names: Option<&'a [Vec<u8>]>,
}

impl<'a> UnjudgedLines<'a> {
    /// `None` if all lines are judged.
    pub(super) fn new(
        faults: FaultPolicy,
        prefix: Option<&'a [u8]>,
        announced: Option<Announced>,
        names: Option<&'a [Vec<u8>]>,
    ) -> Option<Self> {
        let are_some = prefix.is_some() || faults.blank_lines != BlankLines::Keep;
        are_some.then_some(Self {
            faults,
            prefix,
            announced,
            names,
        })
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
            let names = || self.announced?.names(content, format);
            return Some(match self.names {
                Some(header) if names().is_some_and(|names| names != header) => {
                    Fate::EndsRun(Problem::OtherNames)
                }
                Some(_) | None => Fate::Comment,
            });
        }
        if format.facts().is_blank(content) {
            self.faults.fate_of_blank_line()
        } else {
            None
        }
    }
}
