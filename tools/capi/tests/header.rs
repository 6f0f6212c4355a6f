//! The committed headers are those of the source and of the table of calls: that of C but for its
//! own definitions, and the part of `echoless.hpp` that wraps the calls with numbers.
//! `UPDATE_HEADER=1` writes them, and the licences in the folder of the Go module.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use echoless_c::exports::{Function, functions};
use echoless_foreign::Call;

/// What stands before everything else.
const HEAD: &str = "\
/* echoless: duplicate detection on endless streams, in fixed memory.
 *
 * Every function returns 0 or an echoless_status, and echoless_last_error() has the text. All
 * handles are freed with echoless_free(); one that was freed, or is of another kind than the
 * function takes, is an error. Pointers to keys, masks and texts are trusted: each function and
 * type says how much it reads and writes there, and the one must be apart from the other. Any
 * thread may call any function, unless the kind of the handle says otherwise. After an error
 * nothing has changed, unless the function says otherwise. Before 1.0 the interface may change with
 * every version; the name of the shared library has its first two numbers. */
";

/// Before the functions that the header defines itself, such as the constructors of keys. They are
/// written there by hand: as functions they are checked by the compiler, and cost nothing.
const DEFINITIONS: &str = "#ifdef __cplusplus\n}\n#endif\n\n";

/// A declaration, wrapped as the rest of the header.
fn wrapped(start: &str, parts: &[String], end: &str) -> String {
    let mut text = start.to_owned();
    let mut column = start.len();
    for (index, part) in parts.iter().enumerate() {
        let part = format!("{part}{}", if index + 1 < parts.len() { "," } else { end });
        if index > 0 && column + 1 + part.len() > 100 {
            column = start.find('(').expect("arguments") + 1;
            write!(text, "\n{:column$}", "").unwrap();
        } else if index > 0 {
            text.push(' ');
            column += 1;
        }
        column += part.len();
        text += &part;
    }
    text + "\n"
}

/// The paragraphs of a text in lines of the width of the header.
fn filled(doc: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in doc.split(|line| line.trim().is_empty()) {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let mut line = String::new();
        for word in paragraph.iter().flat_map(|line| line.split_whitespace()) {
            if !line.is_empty() && line.len() + 1 + word.len() > 97 {
                lines.push(std::mem::take(&mut line));
            }
            let space = if line.is_empty() { "" } else { " " };
            line += space;
            line += word;
        }
        lines.push(line);
    }
    lines
}

/// The functions of the table, with their documentation.
fn prototypes() -> String {
    let mut text = String::from("#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    let own = include_str!("../src/exports.rs");
    let mut declare = |doc: &[&str], start: &str, parts: &[String]| {
        for line in filled(doc) {
            writeln!(text, "{}", format!("// {line}").trim_end()).unwrap();
        }
        text += &wrapped(start, parts, ");");
        text.push('\n');
    };
    for name in ["last_error", "version"] {
        let (before, _) = own.split_once(&format!("fn echoless_{name}(")).unwrap();
        let start = before.rfind("}\n\n").unwrap();
        let doc: Vec<&str> = (before[start..].lines())
            .filter_map(|line| line.strip_prefix("///"))
            .collect();
        declare(
            &doc,
            &format!("const char *echoless_{name}("),
            &["void".to_owned()],
        );
    }
    for function in functions() {
        let parts: Vec<String> = (function.arguments.iter())
            .map(|argument| format!("{}{}", argument.c, argument.name))
            .collect();
        declare(
            function.doc,
            &format!("int echoless_{}(", function.name),
            &parts,
        );
    }
    text + DEFINITIONS
}

fn header() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let [major, minor, patch] = version.split('.').collect::<Vec<_>>()[..] else {
        panic!("three numbers in {version}");
    };
    let mut builder = cbindgen::Builder::new()
        .with_config(config)
        .with_header(HEAD);
    builder = builder.with_after_include(format!(
        "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n\
         #define ECHOLESS_VERSION \"{version}\"\n\
         #define ECHOLESS_VERSION_MAJOR {major}\n#define ECHOLESS_VERSION_MINOR {minor}\n\
         #define ECHOLESS_VERSION_PATCH {patch}\n\n/* Success. */\n#define ECHOLESS_OK 0\n\n\
         /* A count that the filter does not keep. An unknown rate or age is NaN. */\n\
         #define ECHOLESS_UNKNOWN UINT64_MAX\n"
    ));
    for file in [
        "src/types",
        "../foreign/src/failure",
        "../foreign/src/object",
        "../foreign/src/report",
    ] {
        builder = builder.with_src(folder.join(format!("{file}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    // All functions stand inside of the guard.
    let (before, _) = text.rsplit_once("#endif").expect("an include guard");
    let before = before.trim_end();
    let committed = include_str!("../include/echoless.h");
    let (_, definitions) = committed.split_once(DEFINITIONS).expect("definitions");
    format!("{before}\n\n{}{definitions}", prototypes())
}

/// The methods of C++ for the calls with numbers.
fn methods() -> String {
    let is_of_numbers =
        |function: &&Function| Call::ALL.iter().any(|call| call.name() == function.name);
    let mut text = String::new();
    for Function {
        name, arguments, ..
    } in functions().filter(is_of_numbers)
    {
        let (given, passed, result) = match arguments {
            [_] => (String::new(), String::new(), false),
            [_, argument] if argument.role.starts_with("Optional") => {
                (String::new(), ", &result".to_owned(), true)
            }
            [_, argument] => (
                format!("std::uint64_t {}", argument.name),
                format!(", {}", argument.name),
                false,
            ),
            _ => panic!("one number in {name}"),
        };
        if result {
            write!(
                text,
                "    std::uint64_t {name}() const {{\n        std::uint64_t result = 0;\n        \
                 check(echoless_{name}(handle_{passed}));\n        return result;\n    }}\n"
            )
        } else {
            writeln!(
                text,
                "    void {name}({given}) {{ check(echoless_{name}(handle_{passed})); }}"
            )
        }
        .unwrap();
    }
    text
}

/// Compares a file with what it must have, or writes it.
fn check(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == expected,
        "{}: run UPDATE_HEADER=1 cargo test -p echoless-capi --test header",
        path.display()
    );
}

/// Compares the part of a file between two lines.
fn check_part(path: &str, begin: &str, end: &str, expected: &str) {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (before, rest) = text.split_once(begin).expect("the beginning of the part");
    let (_, after) = rest.split_once(end).expect("the end of the part");
    check(path, &format!("{before}{begin}{expected}{end}{after}"));
}

#[test]
fn the_headers_are_those_of_the_source() {
    check("include/echoless.h", &header());
    check_part(
        "include/echoless.hpp",
        "    /* Generated: the calls with numbers. */\n",
        "    /* End. */\n",
        &methods(),
    );
}

#[test]
fn the_interface_is_small() {
    let functions = functions().count() + 2;
    assert!(functions <= 25, "{functions} functions");
}

#[test]
fn the_go_module_has_the_licences() {
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(name)).unwrap();
        check(&format!("../go/{name}"), &text);
    }
}
