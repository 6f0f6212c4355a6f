//! A line under construction on the stack. Generated records are mostly digits, and `std::fmt`
//! would cost more than generating them.

/// Longer than any generated line.
const CAPACITY: usize = 192;

/// A short line.
pub(super) struct Line {
    bytes: [u8; CAPACITY],
    len: usize,
}

impl Line {
    /// An empty line.
    pub(super) const fn new() -> Self {
        Self {
            bytes: [0; CAPACITY],
            len: 0,
        }
    }

    /// The bytes appended so far.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends text.
    #[inline]
    pub(super) fn text(&mut self, text: &[u8]) {
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
    }

    /// Appends a decimal number, padded with zeros to `width` digits.
    #[inline]
    pub(super) fn decimal(&mut self, number: u64, width: usize) {
        let width = width.max(number.checked_ilog10().unwrap_or(0) as usize + 1);
        self.digits(number, width, 10);
    }

    /// Appends the low `width` hexadecimal digits of a number.
    #[inline]
    pub(super) fn hexadecimal(&mut self, number: u64, width: usize) {
        self.digits(number, width, 16);
    }

    #[inline(always)]
    fn digits(&mut self, mut number: u64, width: usize, base: u64) {
        for place in self.bytes[self.len..self.len + width].iter_mut().rev() {
            *place = b"0123456789ABCDEF"[(number % base) as usize];
            number /= base;
        }
        self.len += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_standard_library_does() {
        for number in [0, 1, 9, 10, 1234, u64::MAX] {
            for width in [1, 4, 12] {
                let mut line = Line::new();
                line.decimal(number, width);
                line.text(b",");
                line.hexadecimal(number, 16);
                let expected = format!("{number:0width$},{number:016X}");
                assert_eq!(line.as_bytes(), expected.as_bytes());
            }
        }
    }
}
