//! The tools benchmark with the real command on small files.

use std::path::Path;
use std::process::Command;

#[test]
fn the_command_agrees_with_exact_tools() {
    let bench = Path::new(env!("CARGO_BIN_EXE_echoless-bench"));
    let echoless = bench.with_file_name(format!("echoless{}", std::env::consts::EXE_SUFFIX));
    if !echoless.is_file() {
        eprintln!("skipped: the command is not built (cargo build -p echoless-cli)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rows.csv");
    let record = folder.path().join("record");
    let output = Command::new(bench)
        .args(["tools", "--mib", "1", "--rounds", "1", "--memory", "4MiB"])
        .args([Path::new("--csv"), &csv, Path::new("--record"), &record])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut rows = csv::Reader::from_path(&csv).unwrap();
    let headers = rows.headers().unwrap().clone();
    let column = |name: &str| headers.iter().position(|header| header == name).unwrap();
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    for input in ["cdr", "short lines"] {
        let of = |name: &str| {
            let mut rows = rows.iter();
            rows.find(|row| &row[column("input")] == input && &row[column("name")] == name)
                .unwrap_or_else(|| panic!("{input}, {name}"))
        };
        let lines: u64 = of("echoless")[column("lines_out")].parse().unwrap();
        assert!(lines > 1000, "{lines}");
        assert_eq!(of("sort")[column("lines_out")], *lines.to_string());
        // Missing tools have a row too.
        for name in ["mawk", "gawk", "huniq", "runiq"] {
            assert!(!of(name)[column("output")].is_empty());
        }
    }
    let recorded = echoless_bench::record::read(&record).unwrap();
    assert_eq!(recorded.len(), 1);
    assert_eq!(recorded[0].provenance.benchmark, "tools");
    let kept = std::fs::read(&recorded[0].rows).unwrap();
    assert_eq!(kept, std::fs::read(&csv).unwrap());
}
