//! The secret key of the keyed hash in a file, because every user of the machine can see command
//! lines.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::SpecError;

/// The length of the key of [`KeyHasher::keyed`](super::KeyHasher::keyed), in bytes.
const KEY_BYTES: usize = 16;

/// The longest file that can be a key, blanks included: an endless file is rejected instead of
/// read.
const LONGEST: u64 = 4096;

const ALLOWED: &str =
    "32 hexadecimal digits (16 bytes) and nothing else, as `openssl rand -hex 16` writes";

/// The reason why a file has no secret key.
#[derive(Debug)]
pub enum SecretKeyError {
    /// The file cannot be read.
    Io(io::Error),
    /// It has something else. The message shows nothing of its content.
    Invalid(SpecError),
}

impl fmt::Display for SecretKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Invalid(error) => error.fmt(f),
        }
    }
}

impl Error for SecretKeyError {}

/// Reads the key of [`KeyHasher::keyed`](super::KeyHasher::keyed) from a file of 32 hexadecimal
/// digits. `option` names the file for the user, such as `--hash-key`.
///
/// # Errors
/// [`SecretKeyError`] if the file cannot be read or is not a key.
///
/// # Examples
/// ```
/// use echoless::KeyHasher;
/// use echoless::hash::read_secret_key;
/// let path = std::env::temp_dir().join(format!("{}.secret", std::process::id()));
/// std::fs::write(&path, "00112233445566778899aabbccddeeff\n")?;
/// let hasher = KeyHasher::keyed(read_secret_key("--hash-key", &path)?);
/// assert_eq!(hasher.algorithm(), "siphash-2-4");
/// std::fs::write(&path, "secret")?;
/// let error = read_secret_key("--hash-key", &path).unwrap_err().to_string();
/// assert!(error.contains("(byte 1 is not a hexadecimal digit): expected 32 hexadecimal digits"));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_secret_key(
    option: &'static str,
    path: impl AsRef<Path>,
) -> Result<[u8; KEY_BYTES], SecretKeyError> {
    let path = path.as_ref();
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
        .map_err(SecretKeyError::Io)?;
    parse(&text).map_err(|found| {
        let asked = format!("{} ({found})", path.display());
        SecretKeyError::Invalid(SpecError::new(option, asked, ALLOWED))
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
