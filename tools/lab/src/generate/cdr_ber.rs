//! Call records in BER, with the tags of 3GPP TS 32.298.

use crate::calendar;
use echoless_ber::synth::Writer;

use super::cdr::{Call, CallKind, FIRST_DAY};

/// Appends a call record: moCallRecord [0], mtCallRecord [1] or moSMSRecord [6].
pub(super) fn append_ber(call: &Call, out: &mut Vec<u8>) {
    let (record, kind): (u8, u8) = match call.kind {
        CallKind::Originating => (0xa0, 0),
        CallKind::Terminating => (0xa1, 1),
        CallKind::Message => (0xa6, 6),
    };
    Writer::new(out).constructed(&[record], |fields| {
        fields.primitive(&[0x80], &[kind]);
        fields.primitive(&[0x81], &imsi(call.caller));
        fields.primitive(
            &[0x82],
            &digits::<8>(350_000_000_000_000 + call.telephone, 15),
        );
        fields.primitive(&[0x83], &number(4917, call.caller));
        match call.kind {
            CallKind::Originating => append_originating(call, fields),
            CallKind::Terminating => append_terminating(call, fields),
            CallKind::Message => append_message(call, fields),
        }
    });
}

fn append_originating(call: &Call, fields: &mut Writer<'_>) {
    fields.primitive(&[0x84], &number(4917, call.caller));
    fields.primitive(&[0x85], &number(4916, call.callee));
    fields.primitive(&[0x87], &number(4916, call.callee));
    fields.primitive(&[0x89], &switch(call));
    append_trunk(0xab, call, fields);
    append_location(0xac, call.cell, fields);
    // Long calls go through more cells.
    fields.constructed(&[0xad], |changes| {
        for step in 1..=call.duration / 300 {
            changes.constructed(&[0x30], |change| {
                append_location(0xa0, (call.cell + step) % 40_000, change);
                change.primitive(&[0x81], &timestamp(call.start + 300 * step));
            });
        }
    });
    append_times([0x96, 0x97, 0x98, 0x99], call, fields);
    fields.primitive(&[0x9e], &[if call.is_normal { 0 } else { 4 }]);
    fields.primitive(&[0x9f, 0x20], &reference(call));
    fields.constructed(&[0xbf, 0x26], |network| {
        network.primitive(&[0x80], &reference(call));
        network.primitive(&[0x81], &switch(call));
    });
    fields.primitive(&[0x9f, 0x27], &switch(call));
}

fn append_terminating(call: &Call, fields: &mut Writer<'_>) {
    fields.primitive(&[0x84], &number(4916, call.callee));
    fields.primitive(&[0x85], &number(4917, call.caller));
    fields.primitive(&[0x86], &switch(call));
    append_trunk(0xa7, call, fields);
    append_location(0xa9, call.cell, fields);
    append_times([0x93, 0x94, 0x95, 0x96], call, fields);
    fields.primitive(&[0x9b], &[if call.is_normal { 0 } else { 4 }]);
    fields.primitive(&[0x9d], &reference(call));
    fields.constructed(&[0xbf, 0x21], |network| {
        network.primitive(&[0x80], &reference(call));
        network.primitive(&[0x81], &switch(call));
    });
    fields.primitive(&[0x9f, 0x22], &switch(call));
}

fn append_message(call: &Call, fields: &mut Writer<'_>) {
    fields.primitive(&[0x84], &[0x33]);
    fields.primitive(&[0x85], &number(4917, 1));
    fields.primitive(&[0x86], &switch(call));
    append_location(0xa7, call.cell, fields);
    fields.primitive(&[0x88], &[call.position as u8]);
    fields.primitive(&[0x89], &timestamp(call.start));
    fields.primitive(&[0x8c], &number(4916, call.callee));
}

/// Seizure, answer and release, and the seconds between the latter two.
fn append_times(tags: [u8; 4], call: &Call, fields: &mut Writer<'_>) {
    let answer = call.start + 5;
    let times = [call.start, answer, answer + call.duration];
    for (tag, time) in tags.into_iter().zip(times) {
        fields.primitive(&[tag], &timestamp(time));
    }
    // Two octets hold the longest call, and its sign.
    let duration = (call.duration as u16).to_be_bytes();
    let minimal = if call.duration < 0x80 {
        &duration[1..]
    } else {
        &duration
    };
    fields.primitive(&[tags[3]], minimal);
}

/// A trunk group, by its name.
fn append_trunk(tag: u8, call: &Call, fields: &mut Writer<'_>) {
    let name = [
        b'T',
        digit(call.trunk / 100),
        digit(call.trunk / 10),
        digit(call.trunk),
    ];
    fields.constructed(&[tag], |choice| choice.primitive(&[0x81], &name));
}

const fn digit(number: u64) -> u8 {
    b'0' + (number % 10) as u8
}

/// Location area code and cell.
fn append_location(tag: u8, cell: u64, fields: &mut Writer<'_>) {
    fields.constructed(&[tag], |location| {
        location.primitive(&[0x80], &((cell >> 6) as u16).to_be_bytes());
        location.primitive(&[0x81], &(cell as u16).to_be_bytes());
    });
}

/// The identity of a subscriber: country and network, and ten digits.
fn imsi(subscriber: u64) -> [u8; 8] {
    digits(262_010_000_000_000 + subscriber, 15)
}

/// An international number: the prefix of a network, and 8 digits.
fn number(network: u64, subscriber: u64) -> [u8; 7] {
    let mut number = [0x91; 7];
    number[1..].copy_from_slice(&digits::<6>(network * 100_000_000 + subscriber, 12));
    number
}

/// The switch that recorded the call.
fn switch(call: &Call) -> [u8; 7] {
    number(4917, 99_000_000 + call.cell / 1000)
}

/// The reference of a call: a number that no other call has.
fn reference(call: &Call) -> [u8; 8] {
    call.position.to_be_bytes()
}

/// Decimal digits, two in a byte, the first one in its low half; an odd number is filled up.
fn digits<const BYTES: usize>(number: u64, count: usize) -> [u8; BYTES] {
    let mut bytes = [0xff; BYTES];
    let mut rest = number;
    for place in (0..count).rev() {
        let (byte, shift) = (place / 2, 4 * (place % 2));
        bytes[byte] = bytes[byte] & !(0x0f << shift) | ((rest % 10) as u8) << shift;
        rest /= 10;
    }
    bytes
}

/// The time `seconds` after 1 January 2025, UTC: YYMMDDhhmmss in BCD, and the offset +0000.
fn timestamp(seconds: u64) -> [u8; 9] {
    let bcd = |number: u64| (number / 10 % 10 * 16 + number % 10) as u8;
    let (year, month, day) = calendar::date(FIRST_DAY + seconds / 86_400);
    let second = seconds % 86_400;
    [
        bcd(year),
        bcd(month),
        bcd(day),
        bcd(second / 3600),
        bcd(second / 60 % 60),
        bcd(second % 60),
        b'+',
        0,
        0,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_times_are_those_of_the_standard() {
        assert_eq!(digits::<2>(123, 3), [0x21, 0xf3]);
        assert_eq!(number(4917, 12_345_678), *b"\x91\x94\x71\x21\x43\x65\x87");
        assert_eq!(timestamp(0), *b"\x25\x01\x01\x00\x00\x00+\x00\x00");
        assert_eq!(timestamp(86_399), *b"\x25\x01\x01\x23\x59\x59+\x00\x00");
    }
}
