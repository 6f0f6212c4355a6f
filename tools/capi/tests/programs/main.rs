//! C and C++ programs with the library: built with all warnings as errors, and run, also under
//! valgrind and the sanitizers. What a machine does not have is skipped with a line that says so.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

mod examples;
mod installing;
mod library;

/// What a worker has that still ends when the program does is possibly lost, which is no error.
const VALGRIND: &[&str] = &[
    "valgrind",
    "-q",
    "--error-exitcode=9",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
];
const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// The folder of this crate.
fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder with the libraries that were built with this test.
fn libraries() -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_owned();
    let found = ["", ".."].map(|up| folder.join(up));
    let found = found
        .into_iter()
        .find(|path| path.join("libecholess_c.a").exists());
    found.unwrap_or_else(|| panic!("no libecholess_c.a in {} or above", folder.display()))
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// The options for a package, or says that it is absent.
fn package(name: &str, package: &str) -> Option<Vec<String>> {
    let found = Command::new("pkg-config")
        .args(["--cflags", "--libs", package])
        .output();
    match found {
        Ok(output) if output.status.success() => Some(words(&output.stdout)),
        _ => {
            println!("SKIPPED {name}: no {package}");
            None
        }
    }
}

fn words(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    text.split_whitespace().map(str::to_owned).collect()
}

/// Builds a program and returns it, or says what is absent.
fn build(source: &str, options: &[&str], name: &str) -> Option<PathBuf> {
    let (compiler, standard) = match source.ends_with(".cpp") {
        true => ("g++", "-std=c++17"),
        false => ("gcc", "-std=c11"),
    };
    if !has(compiler) {
        println!("SKIPPED {name}: no {compiler}");
        return None;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new(compiler);
    command
        .args([standard, "-Wall", "-Wextra", "-Werror", "-g", "-I"])
        .arg(here().join("include"))
        .arg(here().join(source))
        .arg(libraries().join("libecholess_c.a"))
        .args(options)
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program);
    output(&mut command);
    Some(program)
}

/// Runs a program under another one, such as valgrind, if that is not absent. Returns what it
/// writes.
fn run(under: &[&str], program: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = match under {
        [] => Command::new(program),
        [first, rest @ ..] => {
            if !has(first) {
                println!("SKIPPED {} under {first}: no {first}", program.display());
                return None;
            }
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    Some(output(command.args(arguments)))
}

/// What a command writes.
///
/// # Panics
/// If it fails.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let status = output.status;
    assert!(status.success(), "{command:?}: {status}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a program with an empty folder as its first argument, which must be empty afterwards.
fn run_in_folder(under: &[&str], program: &Path, arguments: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&[folder.path().to_str().unwrap()], arguments].concat();
    let text = run(under, program, &arguments);
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "files stay behind");
    text
}
