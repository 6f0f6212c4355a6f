//! The report: from recorded rows to the page and its plots.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use echoless_bench::machine::Machine;
use echoless_bench::record::{self, Provenance};

fn provenance(benchmark: &str) -> Provenance {
    Provenance {
        benchmark: benchmark.into(),
        command: format!("cargo run --release -p echoless-bench -- {benchmark} --sizes 1"),
        machine: Machine {
            cpu: "Some CPU 7".into(),
            cpu_family: String::new(),
            cores: 2,
            memory_mib: 24_576,
            system: "linux 6.1.0".into(),
            look_ahead: "3 blocks".into(),
        },
        date: "2024-02-01".into(),
        commit: "0123456789ab".into(),
        rustc: "rustc 1.95.0".into(),
    }
}

fn report(arguments: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_echoless-bench"));
    command.arg("report").args(arguments).output().unwrap()
}

#[test]
fn a_page_shows_rows_and_plots() {
    let folder = tempfile::tempdir().unwrap();
    let peers = "name,variant,memory_mib,keys_per_second,fpr_full\na,x|y,1,1e8,1e-3\nb,,1,2e8,0\n";
    record::write(folder.path(), provenance("peers"), peers).unwrap();
    let tools: String = (0..24).map(|row| format!("sort,{row}\n")).collect();
    let tools = format!("name,mib\n{tools}");
    record::write(folder.path(), provenance("tools"), &tools).unwrap();
    let output = report(&[folder.path()]);
    assert!(output.status.success(), "{output:?}");

    let page = fs::read_to_string(folder.path().join("REPORT.md")).unwrap();
    for text in [
        "## Some CPU 7, 2 cores\n",
        "24 GiB of memory, linux 6.1.0.",
        "### peers, 2024-02-01\n",
        "    cargo run --release -p echoless-bench -- peers --sizes 1\n",
        "Date: 2024-02-01. Commit: 0123456789ab. Compiler: rustc 1.95.0.",
        "| a | x\\|y | 1 | 1e8 | 1e-3 |",
        "| sort | 23 |",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    let link = "some-cpu-7-2-cores/2024-02-01/peers-1.svg";
    assert!(page.contains(&format!("({link})")), "{page}");
    let svg = fs::read_to_string(folder.path().join(link)).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("million keys per second"));
    // The same runs give the same page.
    assert!(report(&[folder.path()]).status.success());
    assert_eq!(
        fs::read_to_string(folder.path().join("REPORT.md")).unwrap(),
        page
    );
}

#[test]
fn the_page_shows_one_plot_of_a_run_and_plots_holds_all() {
    let (folder, plots) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Sizes of one, three and three points: of equals the larger size stands for the run.
    let rows = "name,variant,memory_mib,keys_per_second,fpr_full\na,,1,1e8,1e-3\n\
                a,,16,1e8,1e-3\nb,,16,2e8,0\nc,,16,2e8,0\na,,64,1e8,1e-3\nb,,64,2e8,0\nc,,64,2e8,0\n";
    record::write(folder.path(), provenance("peers"), rows).unwrap();
    let output = report(&[folder.path(), Path::new("--plots"), plots.path()]);
    assert!(output.status.success(), "{output:?}");

    let files = |root: &Path| -> Vec<String> {
        let day = root.join("some-cpu-7-2-cores/2024-02-01");
        let names = fs::read_dir(day)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(
        files(folder.path()),
        ["peers-64.svg", "peers.csv", "peers.json"]
    );
    assert_eq!(
        files(plots.path()),
        ["peers-1.svg", "peers-16.svg", "peers-64.svg"]
    );
    let page = fs::read_to_string(folder.path().join("REPORT.md")).unwrap();
    assert_eq!(page.matches("![").count(), 1, "{page}");
    assert!(
        page.contains("(some-cpu-7-2-cores/2024-02-01/peers-64.svg)"),
        "{page}"
    );
    assert!(page.contains("One of 3 plots of this run."), "{page}");
}

#[test]
fn long_tables_are_linked() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..25).map(|row| format!("sort,{row}\n")).collect();
    record::write(
        folder.path(),
        provenance("tools"),
        &format!("name,mib\n{rows}"),
    )
    .unwrap();
    assert!(report(&[folder.path()]).status.success());
    let page = fs::read_to_string(folder.path().join("REPORT.md")).unwrap();
    let link = "[25 rows](some-cpu-7-2-cores/2024-02-01/tools.csv)";
    assert!(page.contains(link), "{page}");
    assert!(!page.contains("| sort |"), "{page}");
}

#[test]
fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = report(&[&folder.path().join("none")]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("none: "), "{error}");
}
