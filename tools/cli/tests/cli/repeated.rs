//! `--repeated`: one record of each key that occurs again.

use crate::run::{Folder, assert_runs, dedup, echoless};

const INPUT: &str = "a\nb\na\nc\nb\na\na\n";

#[test]
fn one_record_for_each_key_that_occurs_again() {
    assert_runs(&[
        &format!("--repeated | {INPUT} | a\nb\n"),
        &format!("--repeated --count | {INPUT} | 2\n"),
        "--repeated | a\nb\n | ",
        // The record is the first duplicate, not the first record of the key.
        "--repeated --header -k 1 | k,v\n1,a\n1,b\n1,c\n | k,v\n1,b\n",
        // Records without a key are not duplicates.
        "--repeated -k 2 --missing skip | x\nx\n1,a\nx\n2,a\n | 2,a\n",
        // Once in each window: passed at 0 and 12; written at 1 and, as the second filter forgets
        // too, at 13.
        "--repeated -k 2 --time-field 1 --window 10s --filter stamped:bits=64 | 0,a\n1,a\n9,a\n12,a\n13,a\n14,a\n | 1,a\n13,a\n",
    ]);
    let folder = Folder::with(&[("known", "a\na\nz\n"), ("in", "b\na\nb\na\n")]);
    folder.assert_runs(&["--repeated --known known in | a\nb\n"]);
}

#[test]
fn keys_are_counted_and_other_outputs_are_as_without_it() {
    let folder = Folder::with(&[("in", INPUT)]);
    folder.assert_runs(&["--repeated --duplicates dropped --stats stats in | a\nb\n"]);
    assert_eq!(folder.read("dropped"), "a\nb\na\na\n");
    let stats = folder.json("stats");
    let names = ["repeated", "duplicates", "fresh", "bytes_out"];
    assert_eq!(
        names.map(|name| stats[name].as_u64().unwrap()),
        [2, 4, 3, 4]
    );
    let run = echoless("dedup -m 64k --repeated", INPUT);
    let first = run.stderr.lines().next().unwrap();
    assert!(first.ends_with(", 2 keys with duplicates"), "{first}");
    assert_eq!(dedup("--repeated --fail-on-duplicates", INPUT).code, 1);
}
