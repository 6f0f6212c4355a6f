//! Each language has each call of the table, but for those that it is stated not to have.

use std::fs;
use std::path::Path;

use echoless_c::exports::functions;
use echoless_foreign::Call;

/// A language: where its calls are, how it writes the one of a name, and those that it lacks.
struct Language {
    name: &'static str,
    folders: &'static [&'static str],
    endings: &'static [&'static str],
    call: fn(&str) -> Vec<String>,
    lacks: &'static [&'static str],
}

/// Whether a call is of the section `numbers`, which is run by its name.
fn is_of_numbers(name: &str) -> bool {
    Call::ALL.iter().any(|call| call.name() == name)
}

fn of_c(name: &str) -> Vec<String> {
    vec![format!("echoless_{name}")]
}

fn of_java(name: &str) -> Vec<String> {
    match is_of_numbers(name) {
        true => vec![format!("Call.{}", name.to_uppercase())],
        false => of_rust(name),
    }
}

fn of_rust(name: &str) -> Vec<String> {
    match is_of_numbers(name) {
        true => vec![format!("Call::{name}")],
        // With the ticks beside the keys.
        false if name == "observe" => vec![".observe_at(".to_owned()],
        false => vec![format!(".{name}("), format!("Object::{name}(")],
    }
}

const LANGUAGES: &[Language] = &[
    Language {
        name: "C++",
        folders: &["include"],
        endings: &[".hpp"],
        call: of_c,
        lacks: &["hash", "save_at"],
    },
    Language {
        name: "Go",
        folders: &["../go"],
        endings: &["bridge.h", ".go"],
        call: of_c,
        lacks: &["submit", "drain", "shutdown"],
    },
    Language {
        name: "Java",
        folders: &["../java/native/src", "../java/src/main/java/echoless"],
        endings: &[".rs", ".java"],
        call: of_java,
        lacks: &["lines", "submit", "drain", "shutdown", "packet_keys"],
    },
    Language {
        name: "Python",
        folders: &["../python/src"],
        endings: &[".rs"],
        call: of_rust,
        // The interpreter frees.
        lacks: &[
            "lines",
            "submit",
            "drain",
            "shutdown",
            "packet_keys",
            "free",
        ],
    },
];

/// Whether a text has a call whose name does not go on.
fn has(text: &str, call: &str) -> bool {
    text.match_indices(call).any(|(at, _)| {
        let after = text[at + call.len()..].chars().next();
        call.ends_with('(') || !after.is_some_and(|after| after.is_alphanumeric() || after == '_')
    })
}

#[test]
fn each_language_has_each_call() {
    for language in LANGUAGES {
        let mut text = String::new();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let entries =
            (language.folders.iter()).flat_map(|folder| fs::read_dir(here.join(folder)).unwrap());
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.to_str().unwrap();
            if language.endings.iter().any(|ending| name.ends_with(ending)) {
                text += &fs::read_to_string(&path).unwrap();
            }
        }
        for function in functions() {
            let is_there = (language.call)(function.name)
                .iter()
                .any(|call| has(&text, call));
            let lacks = language.lacks.contains(&function.name);
            assert!(is_there != lacks, "{}: {}", language.name, function.name);
        }
    }
}
