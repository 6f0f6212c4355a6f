//! Text of others in messages: names of files, values of options and what other programs say hold
//! any characters, and some of those act on a terminal or on the lines of a log.

/// The most characters of a message on one line.
const LONGEST: usize = 4000;

/// The text with escapes in place of control characters, of line and paragraph separators, and of
/// the characters that change the direction of the text behind them.
///
/// # Examples
/// ```
/// use echoless::message::without_controls;
/// assert_eq!(without_controls("März\n\u{1b}[2J"), r"März\n\u{1b}[2J");
/// assert_eq!(without_controls("a\u{202e}gpj.exe"), r"a\u{202e}gpj.exe");
/// ```
#[must_use]
pub fn without_controls(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if acts(character) {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Whether a character does something instead of being shown.
#[must_use]
pub fn acts(character: char) -> bool {
    let is_separator = matches!(character, '\u{2028}' | '\u{2029}');
    let is_direction = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    character.is_control() || is_separator || is_direction
}

/// A message on one line, as [`without_controls`]. Of one with more than 4,000 characters, the
/// middle is left out.
///
/// # Examples
/// ```
/// use echoless::message::one_line;
/// assert_eq!(one_line("no\nfile"), r"no\nfile");
/// assert!(one_line(&"a".repeat(9000)).contains("a .. a"));
/// ```
#[must_use]
pub fn one_line(message: &str) -> String {
    let line = without_controls(message);
    let characters = line.chars().count();
    if characters <= LONGEST {
        return line;
    }
    let half = LONGEST / 2;
    let start: String = line.chars().take(half).collect();
    let end: String = line.chars().skip(characters - half).collect();
    format!("{start} .. {end}")
}
