//! C programs with the library: built with all warnings as errors, and run, also under valgrind.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The static library that was built with this test.
fn library() -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_owned();
    let found = ["", ".."].map(|up| folder.join(up).join("libecholess_c.a"));
    let library = found.into_iter().find(|path| path.exists());
    library.unwrap_or_else(|| panic!("no libecholess_c.a in {} or above", folder.display()))
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Builds a program and returns it, or says what is absent.
fn build(compiler: &str, source: &str, options: &[&str], name: &str) -> Option<PathBuf> {
    if !has(compiler) {
        println!("SKIPPED {name}: no {compiler}");
        return None;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-g", "-I"])
        .arg(folder.join("include"))
        .arg(folder.join(source))
        .arg(library())
        .args(options)
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {source}: {errors}");
    Some(program)
}

/// Runs a program with an empty folder, and returns what it writes.
fn run(program: &Path, under: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = match under {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    let output = command.arg(folder.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program:?}: {}\n{errors}",
        output.status
    );
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        0,
        "files stay behind"
    );
    String::from_utf8(output.stdout).unwrap()
}

const VALGRIND: &[&str] = &["valgrind", "-q", "--error-exitcode=9", "--leak-check=full"];

#[test]
fn every_function_with_right_and_wrong_arguments() {
    if let Some(program) = build("gcc", "tests/basics.c", &["-std=c11"], "basics") {
        assert_eq!(run(&program, &[]), "ok\n");
        if has("valgrind") {
            assert_eq!(run(&program, VALGRIND), "ok\n");
        } else {
            println!("SKIPPED basics under valgrind: no valgrind");
        }
    }
}

#[test]
fn every_function_under_the_address_sanitizer() {
    let options = [
        "-std=c11",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ];
    if let Some(program) = build("gcc", "tests/basics.c", &options, "basics_asan") {
        assert_eq!(run(&program, &[]), "ok\n");
    }
}
