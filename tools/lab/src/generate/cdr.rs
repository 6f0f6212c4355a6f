//! Call records, all different: CSV lines of about 100 bytes, unique by their first field, or BER.

use crate::calendar;
use clap::ValueEnum;
use echoless::KeyHasher;
use rand_xoshiro::rand_core::Rng;

use super::cdr_ber::append_ber;
use super::line::Line;
use super::{Record, below, random, stream};

const HEADER: &[u8] = b"record_id,caller,callee,start_time,duration_s,cell,type,imei,cause,trunk\n";

/// The number of subscribers who call and are called.
const SUBSCRIBERS: u64 = 20_000_000;
const CELLS: u64 = 40_000;
const TRUNKS: u64 = 400;
const LONGEST_CALL: u64 = 1800;
const CALLS_PER_SECOND: u64 = 500;
/// 1 January 2025, in days since 1 January 1970.
pub(super) const FIRST_DAY: u64 = 20_089;

/// How call records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum CdrFormat {
    /// CSV lines of about 100 bytes
    #[default]
    Csv,
    /// BER call records of 3GPP TS 32.298, of 100 to 300 bytes
    Ber,
}

/// Generates call records.
pub(super) struct Cdr {
    hasher: KeyHasher,
    format: CdrFormat,
}

/// What a call was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    Originating,
    Terminating,
    Message,
}

/// The content of a call record. Numbers of subscribers have 8 digits after that of their network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// The number of the record.
    pub(super) position: u64,
    pub(super) caller: u64,
    pub(super) callee: u64,
    /// Seconds since 1 January 2025, UTC.
    pub(super) start: u64,
    pub(super) duration: u64,
    pub(super) kind: CallKind,
    pub(super) cell: u64,
    /// 13 digits.
    pub(super) telephone: u64,
    /// Whether the call ended normally.
    pub(super) is_normal: bool,
    pub(super) trunk: u64,
}

impl Cdr {
    /// The call records of a seed.
    pub(super) fn new(seed: u64, format: CdrFormat) -> Self {
        Self {
            hasher: KeyHasher::seeded(seed),
            format,
        }
    }

    fn call(&self, position: u64) -> Call {
        let mut random = random(&self.hasher, position, stream::CONTENT);
        let mut draw = |bound| below(random.next_u64(), bound);
        let caller = draw(SUBSCRIBERS);
        let callee = draw(SUBSCRIBERS);
        // Short calls are more frequent than long ones.
        let call = 1 + draw(LONGEST_CALL).min(draw(LONGEST_CALL));
        let (kind, duration) = match draw(10) {
            0..=4 => (CallKind::Originating, call),
            5..=7 => (CallKind::Terminating, call),
            _ => (CallKind::Message, 0),
        };
        Call {
            position,
            caller,
            callee,
            start: position / CALLS_PER_SECOND,
            duration,
            kind,
            cell: draw(CELLS),
            // A subscriber always uses the same telephone.
            telephone: below(self.hasher.hash_u64(!caller).get(), 10_u64.pow(13)),
            is_normal: draw(20) != 0,
            trunk: draw(TRUNKS),
        }
    }
}

impl Record for Cdr {
    fn append(&self, position: u64, out: &mut Vec<u8>) {
        let call = self.call(position);
        match self.format {
            CdrFormat::Csv => append_line(&call, out),
            CdrFormat::Ber => append_ber(&call, out),
        }
    }

    fn header(&self) -> &[u8] {
        HEADER
    }
}

fn append_line(call: &Call, out: &mut Vec<u8>) {
    let mut line = Line::new();
    line.decimal(call.position, 10);
    line.text(b",4917");
    line.decimal(call.caller, 8);
    line.text(b",4916");
    line.decimal(call.callee, 8);
    line.text(b",");
    append_time(&mut line, call.start);
    line.text(b",");
    line.decimal(call.duration, 1);
    line.text(b",");
    line.hexadecimal(call.cell >> 6, 4);
    line.text(b"-");
    line.hexadecimal(call.cell, 4);
    line.text(b",");
    line.text(match call.kind {
        CallKind::Originating => b"MOC",
        CallKind::Terminating => b"MTC",
        CallKind::Message => b"SMS",
    });
    line.text(b",35");
    line.decimal(call.telephone, 13);
    line.text(if call.is_normal { b",16,T" } else { b",34,T" });
    line.decimal(call.trunk, 3);
    line.text(b"\n");
    out.extend_from_slice(line.as_bytes());
}

/// Appends the time `seconds` after 1 January 2025, UTC, in ISO 8601.
fn append_time(line: &mut Line, seconds: u64) {
    let (year, month, day) = calendar::date(FIRST_DAY + seconds / 86_400);
    let second = seconds % 86_400;
    line.decimal(year, 4);
    for (before, number) in [
        (b"-", month),
        (b"-", day),
        (b"T", second / 3600),
        (b":", second / 60 % 60),
        (b":", second % 60),
    ] {
        line.text(before);
        line.decimal(number, 2);
    }
    line.text(b"Z");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_fields_of_the_header_and_about_a_hundred_bytes() {
        let cdr = Cdr::new(3, CdrFormat::Csv);
        let fields = |line: &[u8]| line.split(|byte| *byte == b',').count();
        let mut bytes = 0;
        for position in [0, 1, 999, 4_999_999, 20_000_000_000] {
            let mut line = Vec::new();
            cdr.append(position, &mut line);
            assert_eq!(fields(&line), fields(HEADER));
            assert!(line.is_ascii() && line.ends_with(b"\n"));
            bytes += line.len();
        }
        assert!((95..105).contains(&(bytes / 5)), "{bytes}");
    }
}
