//! The secret key of the key hash. It is read from a file, because every user of the machine can
//! see command lines.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use echoless::SpecError;

use crate::failure::Failure;

/// The length of the key of `KeyHasher::keyed`, in bytes.
const KEY_BYTES: usize = 16;

/// The longest file that can be a key, blanks included: an endless file is rejected instead of
/// read.
const LONGEST: u64 = 4096;

const ALLOWED: &str =
    "32 hexadecimal digits (16 bytes) and nothing else, as `openssl rand -hex 16` writes";

/// Reads the key from a file.
///
/// # Errors
/// [`Failure`] if the file cannot be read or is not a key. The message shows nothing of its
/// content.
pub(crate) fn read_hash_key(path: &Path) -> Result<[u8; KEY_BYTES], Failure> {
    let name = path.display().to_string();
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
        .map_err(Failure::file(name.as_str()))?;
    parse(&text).map_err(|found| {
        let asked = format!("{name} ({found})");
        SpecError::new("--hash-key", asked, ALLOWED).into()
    })
}

/// Parses the digits, or describes what is there instead.
fn parse(text: &[u8]) -> Result<[u8; KEY_BYTES], String> {
    if text.len() as u64 > LONGEST {
        return Err(format!("more than {LONGEST} bytes"));
    }
    let before = text.len() - text.trim_ascii_start().len();
    let digits = text.trim_ascii();
    if let Some(place) = digits.iter().position(|byte| !byte.is_ascii_hexdigit()) {
        let number = before + place + 1;
        return Err(format!("byte {number} is not a hexadecimal digit"));
    }
    if digits.len() != 2 * KEY_BYTES {
        return Err(format!("{} digits", digits.len()));
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
    fn a_key_is_digits_of_either_case_with_blanks_around() {
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
    fn other_files_are_described_without_their_content() {
        for (text, found) in [
            ("", "0 digits"),
            ("\n", "0 digits"),
            ("0123456789abcdef0123456789abcde", "31 digits"),
            ("0123456789abcdef0123456789abcdef0", "33 digits"),
            (" 0g", "byte 3 is not a hexadecimal digit"),
            ("0123 4567", "byte 5 is not a hexadecimal digit"),
            ("\u{e4}", "byte 1 is not a hexadecimal digit"),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(found.into()), "{text:?}");
        }
        let endless = [b'0'; LONGEST as usize + 1];
        assert_eq!(parse(&endless), Err("more than 4096 bytes".to_owned()));
    }
}
