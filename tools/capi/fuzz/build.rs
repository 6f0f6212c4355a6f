//! Compiles the calls, which are those of a test.

fn main() {
    println!("cargo:rerun-if-changed=../tests/random_calls.c");
    println!("cargo:rerun-if-changed=../include/echoless.h");
    cc::Build::new()
        .file("../tests/random_calls.c")
        .include("../include")
        .std("c11")
        // The fuzzer has a `main` of its own.
        .define("main", "calls_from_a_seed")
        .compile("random_calls");
}
