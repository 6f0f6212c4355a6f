//! Values in one form: length and content, all lengths definite and in the fewest bytes.
//!
//! BER has many encodings of one value. Two of the choices do not affect the value and differ
//! between encoders: the bytes of a length, and a definite or an indefinite length. Both are
//! removed here. Others, such as a string in segments, are left.

use crate::element::{Header, Length, MAX_DEPTH, read_header, write_length};
use crate::error::Invalid;
use crate::framing::skip_indefinite;

/// An element, and the offset after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Element {
    pub(crate) header: Header,
    /// The end of the content.
    pub(crate) content_end: usize,
    /// The offset after the element: that of the content, unless end-of-contents follows it.
    pub(crate) end: usize,
}

/// Reads the element at `at`, which is inside of `depth` values and ends in `bytes`.
#[inline(always)]
pub(crate) fn read_element(bytes: &[u8], at: usize, depth: usize) -> Result<Element, Invalid> {
    let header = read_header(bytes, at).map_err(|error| Invalid::header(at, error))?;
    match header.length {
        Length::Definite(length) => {
            if length > (bytes.len() - header.content) as u64 {
                return Err(Invalid::too_long(at));
            }
            let end = header.content + length as usize;
            Ok(Element {
                header,
                content_end: end,
                end,
            })
        }
        Length::Indefinite => {
            if depth >= MAX_DEPTH {
                return Err(Invalid::too_deep(at));
            }
            let end = skip_indefinite(bytes, header.content, at, depth + 1)?;
            Ok(Element {
                header,
                content_end: end - 2,
                end,
            })
        }
    }
}

impl Element {
    /// Whether length and content of an element inside of `depth` values are in canonical form.
    #[inline]
    pub(crate) fn is_canonical(&self, bytes: &[u8], depth: usize) -> Result<bool, Invalid> {
        if !self.header.is_minimal() {
            return Ok(false);
        }
        if !self.header.constructed {
            return Ok(true);
        }
        self.all_elements(bytes, depth, |bytes, _, element| {
            element.is_canonical(bytes, depth + 1)
        })
    }

    /// Whether the test holds for all elements of a constructed value, up to the first one for which
    /// it does not. It gets the content, and the offset and the element in it.
    fn all_elements(
        &self,
        bytes: &[u8],
        depth: usize,
        mut holds: impl FnMut(&[u8], usize, Self) -> Result<bool, Invalid>,
    ) -> Result<bool, Invalid> {
        if depth >= MAX_DEPTH {
            return Err(Invalid::too_deep(self.header.length_at));
        }
        let bytes = &bytes[..self.content_end];
        let mut at = self.header.content;
        while at < bytes.len() {
            let element = read_element(bytes, at, depth + 1)?;
            let end = element.end;
            if !holds(bytes, at, element)? {
                return Ok(false);
            }
            at = end;
        }
        Ok(true)
    }

    /// Appends length and content of an element inside of `depth` values in canonical form.
    pub(crate) fn append_canonical(
        &self,
        bytes: &[u8],
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Invalid> {
        let start = out.len();
        if self.header.constructed {
            self.all_elements(bytes, depth, |bytes, at, element| {
                out.extend_from_slice(&bytes[at..element.header.length_at]);
                element.append_canonical(bytes, depth + 1, out)?;
                Ok(true)
            })?;
        } else {
            out.extend_from_slice(&bytes[self.header.content..self.content_end]);
        }
        // The length is known only now. Nested values are moved once for each level.
        let mut buffer = [0; 9];
        let octets = write_length((out.len() - start) as u64, &mut buffer);
        out.splice(start..start, buffer[..octets].iter().copied());
        Ok(())
    }
}
