//! The secret key of the key hash. It comes from a file, because everyone on the machine can read a command line.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use echoless::SpecError;

use crate::failure::Failure;

/// How many bytes `KeyHasher::keyed` takes.
const KEY_BYTES: usize = 16;

/// No key is longer, blanks around it included; what has no end is so refused instead of read.
const LONGEST: u64 = 4096;

const ALLOWED: &str =
    "32 hexadecimal digits (16 bytes), as `openssl rand -hex 16` writes them, and nothing else";

/// Reads the key from a file.
///
/// # Errors
/// [`Failure`] if the file cannot be read or holds something else. No message shows any of it.
pub(crate) fn read_hash_key(path: &Path) -> Result<[u8; KEY_BYTES], Failure> {
    let name = path.display().to_string();
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
        .map_err(Failure::file(name.as_str()))?;
    parse(&text).map_err(|found| {
        let asked = format!("{found} in {name}");
        SpecError::new("hash-key", asked, ALLOWED).into()
    })
}

/// The key that is written here in hexadecimal digits, or what is there instead.
fn parse(text: &[u8]) -> Result<[u8; KEY_BYTES], String> {
    if text.len() as u64 > LONGEST {
        return Err(format!("a key of more than {LONGEST} bytes"));
    }
    let before = text.len() - text.trim_ascii_start().len();
    let digits = text.trim_ascii();
    if let Some(place) = digits.iter().position(|byte| !byte.is_ascii_hexdigit()) {
        let number = before + place + 1;
        return Err(format!("byte {number}, which is no hexadecimal digit,"));
    }
    if digits.len() != 2 * KEY_BYTES {
        return Err(format!("a key of {} digits", digits.len()));
    }
    let mut key = [0; KEY_BYTES];
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair.iter().fold(0, |byte, digit| byte << 4 | value(*digit));
    }
    Ok(key)
}

/// The value of a hexadecimal digit.
const fn value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        // The letters of both cases share their low bits, and `a` has 1 there.
        _ => (digit & 0xf) + 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_both_cases_with_blanks_around_them_are_a_key() {
        let expected = [
            0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd,
            0xee, 0xff,
        ];
        for text in [
            "00112233445566778899aabbccddeeff",
            "00112233445566778899AABBCCDDEEFF\r\n",
            " \t00112233445566778899aAbBcCdDeEfF\n\n",
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_key_is_told_without_being_shown() {
        for (text, found) in [
            ("", "a key of 0 digits"),
            ("\n", "a key of 0 digits"),
            ("0123456789abcdef0123456789abcde", "a key of 31 digits"),
            ("0123456789abcdef0123456789abcdef0", "a key of 33 digits"),
            (" 0g", "byte 3, which is no hexadecimal digit,"),
            ("0123 4567", "byte 5, which is no hexadecimal digit,"),
            ("\u{e4}", "byte 1, which is no hexadecimal digit,"),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(found.into()), "{text:?}");
        }
        let endless = [b'0'; LONGEST as usize + 1];
        assert_eq!(
            parse(&endless),
            Err("a key of more than 4096 bytes".to_owned())
        );
    }
}
