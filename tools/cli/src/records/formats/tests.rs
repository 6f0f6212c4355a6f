//! Every format by name, for the tests that all of them pass, and what the list of options
//! promises.

use super::{OPTIONS, lines};
use crate::records::format::SharedFormat;

/// The name of the only format with quotes.
pub(crate) const CSV: &str = "csv";

/// Every format, with `,` between fields.
pub(crate) fn all() -> Vec<(&'static str, SharedFormat)> {
    let plain = ("lf", lines(b',').unwrap());
    let options = OPTIONS.iter();
    let built = options.map(|option| (option.long, (option.build)("", b',').unwrap()));
    std::iter::once(plain).chain(built).collect()
}

#[test]
fn delimiters_that_end_or_quote_records_are_rejected() {
    for (name, rejected, accepted) in [
        ("null", &b"\0"[..], &b"\n\r,"[..]),
        ("crlf", b"\n\r", b"\0\";"),
        ("csv", b"\n\r\"", b"\0;"),
    ] {
        let option = OPTIONS.iter().find(|option| option.long == name).unwrap();
        let is_rejected = |delimiter: &u8| (option.build)("", *delimiter).is_err();
        assert!(rejected.iter().all(is_rejected), "{name}");
        assert!(!accepted.iter().any(is_rejected), "{name}");
    }
    assert!(lines(b'\n').is_err());
    assert!(lines(b'\r').is_ok());
}

#[test]
fn implied_options_exist() {
    for option in &OPTIONS {
        for implied in option.implies {
            assert!(OPTIONS.iter().any(|other| other.long == *implied));
        }
    }
}
