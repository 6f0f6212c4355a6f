//! Call records: CSV lines of about 100 bytes, unique by their first field.

use echoless::KeyHasher;
use echoless_lab::calendar;
use rand_xoshiro::rand_core::Rng;

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
const FIRST_DAY: u64 = 20_089;

/// Generates call records.
pub(super) struct Cdr {
    hasher: KeyHasher,
}

impl Cdr {
    /// The call records of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            hasher: KeyHasher::seeded(seed),
        }
    }
}

impl Record for Cdr {
    fn append(&self, position: u64, out: &mut Vec<u8>) {
        let mut random = random(&self.hasher, position, stream::CONTENT);
        let mut draw = |bound| below(random.next_u64(), bound);
        let caller = draw(SUBSCRIBERS);
        let callee = draw(SUBSCRIBERS);
        // Short calls are more frequent than long ones.
        let call = 1 + draw(LONGEST_CALL).min(draw(LONGEST_CALL));
        let (kind, duration): (&[u8], u64) = match draw(10) {
            0..=4 => (b"MOC", call),
            5..=7 => (b"MTC", call),
            _ => (b"SMS", 0),
        };
        let cell = draw(CELLS);
        // A subscriber always uses the same telephone.
        let telephone = below(self.hasher.hash_u64(!caller).0, 10_u64.pow(13));

        let mut line = Line::new();
        line.decimal(position, 10);
        line.text(b",4917");
        line.decimal(caller, 8);
        line.text(b",4916");
        line.decimal(callee, 8);
        line.text(b",");
        append_time(&mut line, position / CALLS_PER_SECOND);
        line.text(b",");
        line.decimal(duration, 1);
        line.text(b",");
        line.hexadecimal(cell >> 6, 4);
        line.text(b"-");
        line.hexadecimal(cell, 4);
        line.text(b",");
        line.text(kind);
        line.text(b",35");
        line.decimal(telephone, 13);
        line.text(if draw(20) == 0 { b",34,T" } else { b",16,T" });
        line.decimal(draw(TRUNKS), 3);
        line.text(b"\n");
        out.extend_from_slice(line.as_bytes());
    }

    fn header(&self) -> &[u8] {
        HEADER
    }
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
        let cdr = Cdr::new(3);
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
