//! The examples that help ends with run as they stand.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::echoless;

/// The example lines in the help of a subcommand.
fn examples(subcommand: &str) -> Vec<String> {
    let help = echoless([subcommand, "--help"], b"").text();
    let (_, examples) = help.split_once("Examples:\n").unwrap();
    let examples = examples.lines().take_while(|line| !line.is_empty());
    examples.map(|line| line.trim().to_owned()).collect()
}

/// Runs a line of a shell in `folder` with the command on its path.
fn shell(folder: &Path, line: &str) {
    let binary = Path::new(env!("CARGO_BIN_EXE_echoless")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("ECHOLESS_OPTS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
}

#[test]
fn examples_of_all_subcommands_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(
        path.join("access.log"),
        "GET /a\nGET /b\nGET /a\n".repeat(50),
    )
    .unwrap();
    fs::write(path.join("yesterday.log"), "a\nb\n").unwrap();
    fs::write(path.join("today.log"), "b\nc\nc\n").unwrap();
    let event = "{\"id\":1,\"user\":{\"name\":\"a\"}}\n";
    fs::write(path.join("events.jsonl"), event.repeat(3)).unwrap();
    let mut run = 0;
    // The examples of `gen` make what those of others read.
    for subcommand in ["gen", "dedup", "packets", "eval", "plan"] {
        for line in examples(subcommand) {
            assert!(
                line.starts_with(&format!("echoless {subcommand} ")),
                "{line}"
            );
            // A live capture has no end of its own, and reads the machine's network.
            if !line.contains("--interface") {
                shell(path, &line);
                run += 1;
            }
        }
    }
    assert!(run >= 10, "{run}");
    let dropped = fs::read_to_string(path.join("dropped.csv")).unwrap();
    let dropped = dropped.lines().count() - 1;
    assert!(
        (150..250).contains(&dropped),
        "about a fifth of 1000: {dropped}"
    );
    assert_eq!(
        fs::read_to_string(path.join("fresh.log")).unwrap(),
        "GET /a\nGET /b\n"
    );
    assert_eq!(fs::read_to_string(path.join("fresh.jsonl")).unwrap(), event);
    assert_eq!(fs::read_to_string(path.join("new.log")).unwrap(), "c\n");
}
