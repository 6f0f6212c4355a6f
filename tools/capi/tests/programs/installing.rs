//! The library as it is installed, and the page that says how.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{build, has, here, libraries, output, run, words};

/// The text of the first fence of a kind in the README.
fn fence(kind: &str) -> String {
    let page = fs::read_to_string(here().join("README.md")).unwrap();
    let (_, from) = page.split_once(&format!("```{kind}\n")).unwrap();
    from.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_example_of_the_readme() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("first.c");
    fs::write(&source, fence("c")).unwrap();
    if let Some(program) = build(source.to_str().unwrap(), &[], "readme") {
        assert_eq!(run(&[], &program, &[]).unwrap(), fence("text"));
    }
}

/// Builds the example of the README in `folder` as a user does, with what `pkg-config` says.
fn build_installed(folder: &Path, prefix: &Path, options: &[&str]) -> std::path::PathBuf {
    let source = folder.join("first.c");
    fs::write(&source, fence("c")).unwrap();
    let mut config = Command::new("pkg-config");
    config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    if options.contains(&"-static") {
        config.arg("--static");
    }
    let found = output(config.args(["--cflags", "--libs", "echoless"]));
    let program = folder.join("first");
    let mut command = Command::new("gcc");
    command.args(["-std=c11", "-Wall"]).args(options);
    command.arg(&source).args(words(found.as_bytes()));
    output(command.arg("-o").arg(&program));
    program
}

#[test]
fn programs_with_the_installed_library() {
    if !has("pkg-config") || !has("gcc") || !cfg!(target_os = "linux") {
        println!("SKIPPED install.sh: no pkg-config, no gcc, or not Linux");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    let install = |destination: &str| {
        output(
            Command::new("sh")
                .arg(here().join("install.sh"))
                .arg(&prefix)
                .arg(libraries())
                .env("DESTDIR", destination),
        )
    };
    install("");
    let version = env!("CARGO_PKG_VERSION");
    let library = prefix.join("lib").join(format!("libecholess.so.{version}"));
    assert!(library.exists());
    assert!(
        prefix
            .join("lib/cmake/echoless/echolessConfig.cmake")
            .exists()
    );

    // Against the shared library, whose name has what changes with the interface.
    let program = build_installed(folder.path(), &prefix, &[]);
    let mut command = Command::new(&program);
    let text = output(command.env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert_eq!(text, fence("text"));
    let alone = Command::new(&program)
        .env_remove("LD_LIBRARY_PATH")
        .output();
    let errors = String::from_utf8(alone.unwrap().stderr).unwrap();
    let name = format!("libecholess.so.{}", version.rsplit_once('.').unwrap().0);
    assert!(errors.contains(&name), "it needs {name}: {errors}");

    // And without it.
    let program = build_installed(folder.path(), &prefix, &["-static"]);
    assert_eq!(output(&mut Command::new(&program)), fence("text"));

    // A package is put together elsewhere, and may be moved.
    let elsewhere = folder.path().join("stage");
    install(elsewhere.to_str().unwrap());
    let staged = elsewhere.join(prefix.strip_prefix("/").unwrap());
    let [here, there] = [&prefix, &staged].map(|at| {
        let file = at.join("lib/pkgconfig/echoless.pc");
        fs::read_to_string(file).unwrap()
    });
    assert_eq!(here, there);
    assert!(staged.join("include/echoless.hpp").exists());
}
