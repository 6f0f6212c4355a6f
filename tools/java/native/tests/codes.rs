//! What Java has by number: the codes of errors, and the calls of the table. The methods are tested
//! from Java. `UPDATE_CALLS=1` writes the calls.

use std::path::Path;
use std::{env, fs};

use echoless_foreign::{CODES, Call};

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

#[test]
fn java_has_the_same_calls() {
    let names: Vec<String> = (Call::ALL.iter())
        .map(|call| format!("  {}", call.name().to_uppercase()))
        .collect();
    let expected = format!(
        "package echoless;\n\n/** The calls with numbers. Generated: UPDATE_CALLS=1 cargo test -p \
         echoless-java. */\nenum Call {{\n{}\n}}\n",
        names.join(",\n")
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/main/java/echoless/Call.java");
    if env::var_os("UPDATE_CALLS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), expected);
}
