//! The codes of errors, which Java has by their numbers. The methods are tested from Java.

use echoless_foreign::CODES;

#[test]
fn java_has_the_same_codes() {
    let source = include_str!("../../src/main/java/echoless/Code.java");
    let is_name = |line: &&str| line.starts_with("  ") && line.ends_with([',', ';']);
    let in_java: Vec<String> = (source.lines().filter(is_name))
        .map(|line| line.trim().trim_end_matches([',', ';']).replace('_', ""))
        .take(CODES.len() + 1)
        .filter(|name| name.chars().all(|letter| letter.is_ascii_uppercase()))
        .collect();
    let expected = CODES.map(|code| format!("{code:?}").to_uppercase());
    assert_eq!(in_java, expected);
}
