//! `--known`: files whose records count as seen.

use std::collections::HashSet;
use std::fs::OpenOptions;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::run::{Folder, run_on};

#[test]
fn known_records_are_dropped_and_none_is_written() {
    let folder = Folder::with(&[
        ("known", "a\nb\nb\nc"),
        ("more", "d\n"),
        ("empty", ""),
        ("in", "c\nx\nd\nx\na\ny"),
    ]);
    folder.assert_runs(&[
        "--known known in | x\nd\ny",
        "--known known --known more --known empty in | x\ny",
        "--known known --known more --known empty in --invert | c\nd\nx\na\n",
        "--known known --known more --known empty in --count | 2\n",
    ]);
    // Standard input can be the known one.
    let run = run_on(folder.command("dedup -q --known - known"), b"b\nq\n");
    assert_eq!(run.text(), "a\nc");
}

#[test]
fn duplicates_among_known_records_do_not_count() {
    let folder = Folder::with(&[
        ("known", "a\na\n"),
        ("in", "b\nc\nd\n"),
        ("again", "b\na\n"),
    ]);
    let args = "--fail-on-duplicates --known known --stats stats";
    folder.assert_runs(&[&format!("{args} in | b\nc\nd\n")]);
    let stats = folder.json("stats");
    for (field, expected) in [
        ("records", 3),
        ("fresh", 3),
        ("duplicates", 0),
        ("known", 2),
        ("known_unjudged", 0),
        ("bytes_in", 6),
        ("bytes_out", 6),
    ] {
        assert_eq!(stats[field], expected, "{field}");
    }
    let run = folder.dedup(format!("{args} again"));
    assert_eq!((run.code, run.stdout.as_slice()), (1, &b"b\n"[..]));
    let run = folder.echoless("dedup -m 64k --known known in");
    let first = run.stderr.lines().next().unwrap();
    assert!(first.contains(" 3 records (6 B) "), "{first}");
    assert!(first.ends_with("; 2 records known"), "{first}");
}

#[test]
fn each_known_file_has_its_header() {
    let folder = Folder::with(&[
        ("known", "id,v\r\n1,a\r\n"),
        ("other", "v,id\na,1\n"),
        ("in", "id,v\n1,b\n2,b\n"),
    ]);
    folder.assert_runs(&[
        // The header is written as the input has it.
        "--header -k id --crlf --known known in | id,v\n2,b\n",
        "--header -k id --crlf --known known /dev/null | ",
        "--header -k id --known other in | !! header differs",
    ]);
}

#[test]
fn positions_are_those_of_the_inputs() {
    let folder = Folder::with(&[("known", "a\nb\n"), ("in", "x\nb\nx\n")]);
    folder.assert_runs(&["--explain=why --known known in | x\n"]);
    let expected = "{\"input\":\"in\",\"record\":2,\"offset\":2,\"bytes\":2}\n\
                    {\"input\":\"in\",\"record\":3,\"offset\":4,\"bytes\":2}\n";
    assert_eq!(folder.read("why"), expected);
}

#[test]
fn faulty_known_records_end_the_run_or_are_counted() {
    let folder = Folder::with(&[
        ("known", "1,a\n2\n3,c\n"),
        ("in", "4,c\n5\n6,d\n"),
        ("out", "old"),
    ]);
    folder.assert_runs(&[
        "-k 2 --known known -o out in | !! known, line 2: field 2 of the key is missing",
        "-k 2 --known known --rejects bad --stats stats in | 6,d\n",
    ]);
    // Nothing was written, so the output is as it was.
    assert_eq!(folder.read("out"), "old");
    assert_eq!(folder.read("bad"), "5\n");
    let stats = folder.json("stats");
    let names = ["known", "known_unjudged", "records", "rejected"];
    assert_eq!(
        names.map(|name| stats[name].as_u64().unwrap()),
        [3, 1, 3, 1]
    );
}

#[test]
fn times_of_known_records_count() {
    let folder = Folder::with(&[
        ("known", "0,a\n100,b\n"),
        ("in", "105,b\n105,a\n"),
        ("many", "a\nb\nc\nd\n"),
        ("one", "a\n"),
    ]);
    folder.assert_runs(&[
        "-k 2 --time-field 1 --window 10s --filter stamped:bits=64 --known known in | 105,a\n",
        // In a window of records, known records count as records.
        "--window 3 --filter stamped:bits=64 --known many one | a\n",
        "--window 4 --filter stamped:bits=64 --known many one | ",
    ]);
}

#[test]
fn what_known_files_cannot_be() {
    let folder = Folder::with(&[("known", "a\n")]);
    folder.assert_runs(&[
        "--known known -o known | !! is also a file of --known; to add",
        "--known known --duplicates known | !! is also a file of --known",
        "--known missing | !! No such file",
        "--known - --known - known | !! invalid --known=-: expected a file",
    ]);
    // Adding to a known file is answered with tee.
    let appending = OpenOptions::new().append(true).open(folder.path("known"));
    let mut command = folder.command("dedup -q --known known");
    command.stdout(appending.unwrap());
    assert_eq!(
        run_on(command, b"a\nb\n").error(),
        "standard output: is also a file of --known; to add the records to it, end the command \
         with | tee -a known"
    );
    assert_eq!(folder.read("known"), "a\n");
}

#[test]
fn known_files_are_read_again_by_every_run() {
    let folder = Folder::with(&[("known", "a\n"), ("in", "a\nb\n"), ("again", "a\nb\nc\n")]);
    folder.assert_runs(&[
        "--known known --skip-seen-files list in | b\n",
        "--known known --skip-seen-files list in | ",
        "--known known --skip-seen-files list again | b\nc\n",
        // They may be compressed.
        "--compress gzip -o known.gz known | ",
        "--known known.gz in | b\n",
    ]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_output_is_that_of_a_set(
        known in vec(0_u32..2000, 0..3000),
        input in vec(0_u32..2000, 0..3000),
        threads in 1_usize..4,
        default_memory: bool,
    ) {
        let text = |records: &[u32]| -> String {
            records.iter().map(|record| format!("{record}\n")).collect()
        };
        let mut seen: HashSet<u32> = known.iter().copied().collect();
        let expected: Vec<u32> = input.iter().copied().filter(|key| seen.insert(*key)).collect();
        let folder = Folder::with(&[("known", text(&known)), ("input", text(&input))]);
        let memory = if default_memory { "" } else { "-m 1MiB" };
        let args = format!("dedup -q --threads {threads} --known known {memory} input");
        let run = folder.echoless(args);
        prop_assert_eq!(run.text(), text(&expected));
    }
}
