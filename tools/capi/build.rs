//! The name inside of the shared library: the part of the version that changes with the interface,
//! which is the first number, and before 1.0 the first two.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let [major, minor] = ["CARGO_PKG_VERSION_MAJOR", "CARGO_PKG_VERSION_MINOR"]
        .map(|name| env::var(name).expect("cargo sets it"));
    let interface = if major == "0" {
        format!("0.{minor}")
    } else {
        major
    };
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libecholess.so.{interface}");
    }
}
