//! Text of others in messages.

use echoless::message::{one_line, without_controls};

#[test]
fn every_character_that_acts_is_escaped_and_no_other() {
    for character in '\0'..=char::MAX {
        let text = character.to_string();
        let shown = without_controls(&text);
        // The categories Cc, Zl and Zp, and the property Bidi_Control.
        let acts = matches!(u32::from(character),
            0..=0x1f | 0x7f..=0x9f | 0x61c | 0x200e | 0x200f | 0x2028..=0x202e | 0x2066..=0x2069);
        assert_eq!(shown != text, acts, "{shown}");
        assert_eq!(without_controls(&shown), shown);
    }
}

#[test]
fn a_long_message_is_cut_in_its_middle() {
    let long = format!("first {} last", "\u{202e}\n".repeat(10_000));
    let line = one_line(&long);
    assert!(line.starts_with("first ") && line.ends_with(" last"));
    assert!(line.chars().count() <= 4004);
    assert_eq!(without_controls(&line), line);
}
