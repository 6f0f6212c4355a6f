//! The functions of the interface themselves.

use std::env;

use super::{SANITIZERS, VALGRIND, build, run_in_folder};

/// Checks a program that prints "ok" at its end.
fn check(under: &[&str], source: &str, options: &[&str], name: &str) {
    if let Some(program) = build(source, options, name)
        && let Some(text) = run_in_folder(under, &program, &[])
    {
        assert_eq!(text, "ok\n");
    }
}

#[test]
fn every_function_with_right_and_wrong_arguments() {
    check(&[], "tests/basics.c", &[], "basics");
    check(VALGRIND, "tests/basics.c", &[], "basics");
}

#[test]
fn every_function_under_the_address_sanitizer() {
    check(&[], "tests/basics.c", SANITIZERS, "basics_asan");
}

#[test]
fn no_handle_keeps_the_memory_of_a_long_call() {
    check(&[], "tests/kept_memory.c", &[], "kept_memory");
}

#[test]
fn the_classes_of_the_cpp_header() {
    check(&[], "tests/raii.cpp", &[], "raii");
    check(VALGRIND, "tests/raii.cpp", &[], "raii");
    check(&[], "tests/raii.cpp", SANITIZERS, "raii_asan");
}

/// Random calls. `RANDOM_CALLS=1000000` does that many instead of a few thousand, and `SEED=7`
/// others than those of seed 1.
#[test]
fn random_calls_agree_with_a_model() {
    let steps = env::var("RANDOM_CALLS").unwrap_or_else(|_| "5000".to_owned());
    let seed = env::var("SEED").unwrap_or_else(|_| "1".to_owned());
    let source = "tests/random_calls.c";
    if let Some(program) = build(source, SANITIZERS, "random_calls_asan") {
        let text = run_in_folder(&[], &program, &[&seed, &steps]);
        assert_eq!(text.as_deref(), Some("ok\n"));
    }
    if let Some(program) = build(source, &[], "random_calls")
        && let Some(text) = run_in_folder(VALGRIND, &program, &[&seed, "500"])
    {
        assert_eq!(text, "ok\n");
    }
}
