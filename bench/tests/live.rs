//! The live benchmark with the real command on few packets.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

#[test]
fn all_packets_are_counted() {
    let bench = Path::new(env!("CARGO_BIN_EXE_echoless-bench"));
    if !bench.with_file_name("echoless").is_file() {
        eprintln!("skipped: the command is not built (cargo build -p echoless-cli)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rows.csv");
    let output = Command::new(bench)
        .args([
            "live",
            "--packets",
            "2000",
            "--rate",
            "20000",
            "--rounds",
            "1",
            "--csv",
        ])
        .arg(&csv)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    if messages.contains("skipped: no network") {
        // Nothing is measured then.
        assert!(!csv.exists());
        eprintln!("{messages}");
        return;
    }
    let rows = std::fs::read_to_string(&csv).unwrap();
    for frames in ["60 bytes", "IMIX"] {
        for command in [
            "packets --interface",
            "packets --interface -o FILE",
            "packets FILE",
        ] {
            let row = format!("\n{frames},{command},2000,");
            assert!(rows.contains(&row), "{row}: {rows}");
        }
    }
}
