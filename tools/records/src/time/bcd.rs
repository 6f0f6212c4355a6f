//! The time stamp of call records (3GPP TS 32.298, `TimeStamp`): nine bytes, local time and its
//! offset.
//!
//! ```text
//! YY MM DD hh mm ss S hh mm     two decimal digits in a byte, S is + or - in ASCII
//! ```

use jiff::civil::DateTime;
use jiff::tz::Offset;

/// The first year that `YY` stands for.
const CENTURY: i16 = 2000;

/// Nanoseconds since 1970; `None` if these bytes are no time.
pub(super) fn parse(bytes: &[u8]) -> Option<i64> {
    let [year, month, day, hour, minute, second, sign, hours, minutes] = bytes else {
        return None;
    };
    let time = DateTime::new(
        CENTURY + i16::from(two_digits(*year)?),
        two_digits(*month)?,
        two_digits(*day)?,
        two_digits(*hour)?,
        two_digits(*minute)?,
        two_digits(*second)?,
        0,
    );
    let seconds = (i32::from(two_digits(*hours)?) * 60 + i32::from(two_digits(*minutes)?)) * 60;
    let offset = match sign {
        b'+' => seconds,
        b'-' => -seconds,
        _ => return None,
    };
    let offset = Offset::from_seconds(offset).ok()?;
    let time = offset.to_timestamp(time.ok()?).ok()?;
    i64::try_from(time.as_nanosecond()).ok()
}

/// The number below 100 in a byte.
fn two_digits(byte: u8) -> Option<i8> {
    let (high, low) = (byte >> 4, byte & 0x0f);
    (high < 10 && low < 10).then_some((high * 10 + low) as i8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_offset() {
        let seconds = |bytes: &[u8]| parse(bytes).map(|time| time / 1_000_000_000);
        // `date -u -d '2025-01-01 00:00:00' +%s` is 1735689600.
        let start = 1_735_689_600;
        assert_eq!(seconds(b"\x25\x01\x01\x00\x00\x00+\x00\x00"), Some(start));
        assert_eq!(
            seconds(b"\x25\x01\x01\x01\x30\x09+\x01\x30"),
            Some(start + 9)
        );
        assert_eq!(seconds(b"\x24\x12\x31\x20\x00\x00-\x04\x00"), Some(start));
    }

    #[test]
    fn other_bytes_are_no_times() {
        for bytes in [
            &b""[..],
            b"\x25\x01\x01\x00\x00\x00+\x00",
            b"\x25\x01\x01\x00\x00\x00+\x00\x00\x00",
            b"\x25\x13\x01\x00\x00\x00+\x00\x00",
            b"\x25\x02\x29\x00\x00\x00+\x00\x00",
            b"\x25\x0a\x01\x00\x00\x00+\x00\x00",
            b"\x25\x01\x01\x24\x00\x00+\x00\x00",
            b"\x25\x01\x01\x00\x00\x00Z\x00\x00",
            b"\x25\x01\x01\x00\x00\x00+\x99\x00",
        ] {
            assert_eq!(parse(bytes), None, "{bytes:x?}");
        }
    }
}
