//! The outputs: records and dropped records, and which outputs exclude each other; the help.

use std::fs;
use std::io::Write;

use crate::run::{Folder, assert_runs, dedup, echoless, run, run_on};

pub(crate) const INPUT: &str = "a\nb\na\nc\nb\na\n";

#[test]
fn invert_count_and_exit_code() {
    assert_runs(&[
        &format!("--invert | {INPUT} | a\nb\na\n"),
        &format!("--count | {INPUT} | 3\n"),
        "--count --invert | a\na\na\nb\n | 2\n",
        "--fail-on-duplicates | a\nb\n | a\nb\n",
        "--header --invert | h\na\na\n | h\na\n",
        "--header --count | h\na\na\n | 1\n",
        // Two outputs on one pipe.
        &format!("--duplicates /dev/stdout | {INPUT} | !!= /dev/stdout: is also another output"),
        &format!("-o /dev/null --duplicates /dev/null | {INPUT} | "),
    ]);
    let run = dedup("--fail-on-duplicates", INPUT);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    assert_eq!(run.stdout, b"a\nb\nc\n");
}

#[test]
fn output_and_duplicates_in_files() {
    let folder = Folder::with(&[
        ("in", INPUT),
        ("header", "h\na\na\n"),
        ("fresh", "the old content, which is longer"),
    ]);
    for (args, expected, dropped) in [
        ("-o fresh --duplicates dropped in", "", "a\nb\na\n"),
        ("-o - --duplicates dropped --count in", "3\n", "a\nb\na\n"),
        // Every output has the header.
        ("--header --duplicates dropped header", "h\na\n", "h\na\n"),
    ] {
        assert_eq!(folder.dedup(args).text(), expected, "{args}");
        assert_eq!(folder.read("dropped"), dropped, "{args}");
        assert_eq!(folder.read("fresh"), "a\nb\nc\n");
    }
    assert_eq!(
        folder.dedup("-o fresh --duplicates - in").text(),
        "a\nb\na\n"
    );
}

#[test]
fn many_short_runs() {
    // Every other record is a duplicate, which makes more runs than fit in one system call.
    let input: String = (0..20_000).map(|i| format!("{i}\nx\n")).collect();
    let marked = input.replacen("x\n", "_", 1);
    let expected = marked.replace("x\n", "").replace('_', "x\n");
    assert!(dedup("", &input).text() == expected);
    assert!(dedup("--invert", &input).text() == "x\n".repeat(19_999));
}

#[test]
fn help_version_completions_and_manual() {
    let version = format!("echoless {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(echoless("--version", b"").text(), version);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = echoless(format!("completions {shell}"), b"").text();
        assert!(script.contains("fail-on-duplicates"), "{shell}");
    }
    for (args, word) in [
        ("--help", "Exit codes"),
        ("dedup --help", "--fail-on-duplicates"),
        ("man", ".TH echoless 1"),
        ("man dedup", "fail\\-on\\-duplicates"),
        ("man gen", "distribution"),
    ] {
        let text = echoless(args, b"").text();
        assert!(text.contains(word), "{args}");
        assert!(!text.contains('\x1b'), "colours: {args}");
    }
    let run = echoless("man dedupe", b"");
    run.fails("dedup, packets, gen");
}

#[test]
fn the_manual_has_every_page_that_it_names() {
    let folder = Folder::new();
    folder.echoless("man --all share/man").text();
    let mut named = vec!["echoless.1".to_owned()];
    let mut pages = 0;
    while let Some(page) = named.pop() {
        let text = folder.read(&format!("share/man/{page}"));
        pages += 1;
        for line in text.lines() {
            if let Some(name) = line.strip_suffix("(1)").filter(|name| !name.contains(' ')) {
                named.push(format!("{}.1", name.replace('\\', "")));
            }
        }
    }
    assert_eq!(
        pages,
        fs::read_dir(folder.path("share/man")).unwrap().count()
    );
}

#[test]
fn an_output_that_is_standard_error_is_rejected() {
    let folder = Folder::new();
    for (args, name) in [
        ("-o log", "log"),
        ("-o /dev/null --duplicates /dev/stderr", "/dev/stderr"),
        ("-o /dev/null --stats log", "log"),
    ] {
        let stderr = fs::File::create(folder.path("log")).unwrap();
        let mut command = folder.command(format!("dedup {args}"));
        let mut child = command.stderr(stderr).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"a\na\n").ok();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{args}");
        assert_eq!(
            folder.read("log"),
            format!("echoless: {name}: is also standard error\n")
        );
    }
}

/// The shell opens the file once for each redirection, and `2>&1` shares the one that is open.
#[test]
fn standard_error_may_be_standard_output_but_not_the_same_file_opened_again() {
    let folder = Folder::new();
    for (redirected, arguments, is_rejected) in [
        (">log 2>log", "-q", true),
        (">log 2>log", "", true),
        (">log 2>log", "-o /dev/stdout", true),
        (">log 2>log", "-o other --duplicates -", true),
        (">>log 2>log", "-q", true),
        (">log 2>>log", "-q", true),
        (">log 2>&1", "-q", false),
        ("2>log >&2", "-q", false),
        (">>log 2>>log", "-q", false),
        (">>log 2<>log", "-q", true),
        (">>log 2>&1", "-q", false),
        (">log 2>other", "-q", false),
        (">log 2>log", "-q -o other", false),
        (">/dev/null 2>/dev/null", "-q", false),
    ] {
        let script = format!("rm -f log && \"$0\" dedup -m 64k {arguments} {redirected}");
        let run = run_on(folder.shell(&script), b"a\na\nb\n");
        let expected = if is_rejected { 2 } else { 0 };
        assert_eq!(run.code, expected, "{redirected} {arguments}");
        let log = fs::read_to_string(folder.path("log")).unwrap_or_default();
        if is_rejected {
            assert!(log.starts_with("echoless: "), "{redirected}: {log}");
            let end = ": is also standard error\n";
            assert!(log.ends_with(end), "{redirected}: {log}");
        } else if redirected.contains("log") && !arguments.contains("-o") {
            assert_eq!(log, "a\nb\n", "{redirected} {arguments}");
        }
    }
}

/// They compare the flags of the same open file at the same time.
#[test]
fn concurrent_runs_may_share_one_file() {
    let folder = Folder::new();
    let runs = "for run in 1 2 3 4 5 6 7 8; do echo a | \"$0\" dedup -q -m 64k & done; wait";
    let script = format!("for round in 1 2 3 4 5 6 7 8; do {runs}; done >log 2>&1");
    assert_eq!(run(folder.shell(&script)).code, 0);
    let log = folder.read("log");
    assert!(!log.contains("echoless"), "{log}");
}

#[test]
fn a_run_without_one_of_its_outputs_creates_none() {
    let folder = Folder::with(&[("old", "old")]);
    for name in ["new", "old"] {
        let run = folder.dedup_on(format!("-o {name} --duplicates missing/x"), "a\n");
        run.fails_with("missing/x: No such file or directory (os error 2)");
    }
    assert!(!folder.has("new"));
    assert_eq!(folder.read("old"), "old");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_side_output_is_an_error_even_if_the_reader_left() {
    use std::io::Read;

    let lines: String = (0..400_000)
        .map(|index| format!("{}\n", index / 2))
        .collect();
    let folder = Folder::with(&[("in", lines)]);
    for codec in ["zstd", "gzip", "lz4", "xz:0", "bzip2"] {
        let args = format!("dedup -q --compress {codec} --duplicates /dev/full in");
        let mut child = folder.command(args).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // The pipe is closed whether or not anything came.
        let _ = stdout.read(&mut [0; 10]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{codec}: {message}");
        let begin = "echoless: /dev/full: ";
        assert!(message.starts_with(begin), "{codec}: {message}");
    }
}
