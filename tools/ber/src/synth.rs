//! Writes records, for tests and generated streams.

use crate::element::write_length;
use crate::ts32297::MIN_FILE_HEADER;

/// A record, or a part of one, under construction.
///
/// # Examples
/// ```
/// use echoless_ber::synth::Writer;
///
/// let mut out = Vec::new();
/// let mut record = Writer::new(&mut out);
/// record.constructed(&[0xa0], |record| {
///     record.primitive(&[0x80], &[7]);
///     record.constructed(&[0xa3], |inner| inner.primitive(&[0x81], b"x"));
/// });
/// assert_eq!(out, b"\xa0\x08\x80\x01\x07\xa3\x03\x81\x01x");
/// ```
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends a primitive element with these identifier octets.
    pub fn primitive(&mut self, tag: &[u8], content: &[u8]) {
        let mut length = [0; 9];
        let octets = write_length(content.len() as u64, &mut length);
        self.out.extend_from_slice(tag);
        self.out.extend_from_slice(&length[..octets]);
        self.out.extend_from_slice(content);
    }

    /// Appends a constructed element of definite length; `inside` writes its content.
    pub fn constructed(&mut self, tag: &[u8], inside: impl FnOnce(&mut Writer<'_>)) {
        self.out.extend_from_slice(tag);
        let start = self.out.len();
        inside(&mut Writer::new(self.out));
        let mut length = [0; 9];
        let octets = write_length((self.out.len() - start) as u64, &mut length);
        self.out
            .splice(start..start, length[..octets].iter().copied());
    }

    /// Appends a constructed element of indefinite length.
    pub fn indefinite(&mut self, tag: &[u8], inside: impl FnOnce(&mut Writer<'_>)) {
        self.out.extend_from_slice(tag);
        self.out.push(0x80);
        inside(&mut Writer::new(self.out));
        self.out.extend_from_slice(&[0, 0]);
    }
}

/// Appends a call record behind a CDR header of TS 32.297: release 6, BER, TS 32.250.
///
/// # Panics
/// If the record is longer than 65535 octets.
pub fn append_cdr(record: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(record.len()).unwrap_or_else(|_| panic!("a CDR of 64 KiB"));
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&[0x60, 0x26]);
    out.extend_from_slice(record);
}

/// The file header of TS 32.297 for a file with these records: `bytes` octets with their headers.
pub fn file_header(bytes: u32, records: u32, sequence: u32) -> Vec<u8> {
    // Neither a routeing filter nor a private extension.
    let len = MIN_FILE_HEADER + 4;
    let mut header = Vec::with_capacity(len);
    header.extend_from_slice(&(len as u32 + bytes).to_be_bytes());
    header.extend_from_slice(&(len as u32).to_be_bytes());
    header.extend_from_slice(&[0x60, 0x60]);
    header.extend_from_slice(&[0x10, 0x40, 0, 0x80, 0x10, 0x42, 0, 0x80]);
    header.extend_from_slice(&records.to_be_bytes());
    header.extend_from_slice(&sequence.to_be_bytes());
    header.resize(len, 0);
    header
}
