//! `echoless eval`: its outputs, and the arguments it rejects.

use serde_json::Value;

use crate::run::{Folder, Run, Words, assert_errors, echoless, run};

const STREAM: &str = "--stream uniform:records=20k,distinct=0.6 -q";

pub(crate) fn eval(args: impl Words) -> Run {
    echoless([vec!["eval".into()], args.words()].concat(), "")
}

pub(crate) fn json(args: impl Words) -> Value {
    let run = eval([args.words(), "--to-json -".words()].concat());
    serde_json::from_str(&run.text()).unwrap()
}

#[test]
fn the_text_has_a_row_for_each_filter_and_each_age() {
    let specs = "bloom:k=2,memory=2KiB rlbsbf:k=2,memory=2KiB";
    let text = eval(format!("{STREAM} {specs}")).text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("uniform:records=20k,universe="),
        "{text}"
    );
    assert!(lines[1].starts_with("20,000 records: "), "{text}");
    let row = |start: &str| -> Vec<&str> {
        let line = lines.iter().find(|line| line.starts_with(start)).unwrap();
        line.split_whitespace().collect()
    };
    let bloom = row("(1) bloom:k=2,memory=2KiB");
    let rlbsbf = row("(2) rlbsbf:k=2,memory=2KiB");
    let number = |cell: &str| cell.parse::<f64>().unwrap();
    // FPR, FNR, fill, bits per key and time per key.
    assert_eq!(bloom.len(), 7);
    assert_eq!(bloom[3], "0");
    assert!(
        number(bloom[2]) > number(rlbsbf[2]) && number(rlbsbf[3]) > 1.0,
        "{text}"
    );
    assert!((50.0..100.0).contains(&number(rlbsbf[4])), "{text}");
    assert!(
        (number(bloom[5]) - 16_384.0 / 12_000.0).abs() < 0.05,
        "{text}"
    );
    for part in ["FNR % by age\n", "8,192 to 16,383"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn json_and_csv_hold_the_same_numbers() {
    let folder = Folder::new();
    let args = "qqht:slots=4,bits=8,memory=2KiB --points 4 --to-csv rows --to-json all";
    let text = folder.echoless(format!("eval {STREAM} {args}")).text();
    assert!(text.contains("(1) qqht:"));
    let all = folder.json("all");
    let filter = &all["filters"][0];
    assert_eq!(filter["spec"]["filter"], "qqht");
    assert_eq!(filter["points"].as_array().unwrap().len(), 4);
    let mut reader = csv::Reader::from_path(folder.path("rows")).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let part = |name: &str| -> Vec<_> { rows.iter().filter(|row| &row[1] == name).collect() };
    let name = filter["name"].as_str().unwrap();
    assert!(rows.iter().all(|row| &row[0] == name));
    assert_eq!((part("total").len(), part("stream").len()), (1, 4));
    let total = part("total")[0];
    for (column, field) in [
        (4, "distinct"),
        (5, "false_positives"),
        (7, "false_negatives"),
    ] {
        assert_eq!(total[column], filter["score"][field].to_string());
        let rows = part("stream").into_iter();
        let sum: u64 = rows.map(|row| row[column].parse::<u64>().unwrap()).sum();
        assert_eq!(sum.to_string(), total[column]);
    }
    assert_eq!(total[8], filter["fpr"].to_string());
    let ages = filter["ages"].as_array().unwrap();
    assert_eq!(part("age").len(), ages.len());
    for (row, age) in part("age").iter().zip(ages) {
        assert_eq!(row[2], age["from"].to_string());
        assert_eq!(row[7], age["missed"].to_string());
    }
}

#[test]
fn equal_seeds_give_equal_rates_and_the_window_counts() {
    let rates = |args: &str| {
        let all = json(format!("{STREAM} rlbsbf:k=2,memory=1KiB {args}"));
        all["filters"][0]["score"].clone()
    };
    assert_eq!(rates(""), rates("--points 7"));
    assert_ne!(rates(""), rates("--seed 2"));
    let windowed = rates("--window 1k");
    assert!(windowed["duplicates"].as_u64() < rates("")["duplicates"].as_u64());
}

#[test]
fn zipf_streams_and_filters_from_a_file() {
    let text =
        "filters = [\"bloom:k=3\", { filter = \"sbf\", k = 2, fps = 0.1, memory = \"4KiB\" }]\n";
    let folder = Folder::with(&[("specs", text)]);
    let args = "eval --specs specs -m 2k lru --stream zipf:records=10k,universe=1k --to-json -";
    let all: Value = serde_json::from_str(&folder.echoless(args).text()).unwrap();
    let names = [0, 1, 2].map(|at| all["filters"][at]["spec"]["filter"].as_str().unwrap());
    assert_eq!(names, ["lru", "bloom", "sbf"]);
    assert_eq!(all["filters"][1]["spec"]["memory"], "2KiB");
    assert_eq!(all["filters"][2]["spec"]["memory"], "4KiB");
}

#[test]
fn invalid_arguments_and_files_are_rejected() {
    let cases = [
        " | missing filters: expected SPEC arguments",
        "blom:k=1 | invalid filter=blom: expected one of bloom, ",
        "bloom:k=1 | missing memory: expected",
        "bloom:k=0,memory=1KiB | invalid k=0: expected 1 to 64",
        "bloom:k=65,memory=1KiB | invalid k=65: expected",
        "bloom -m 0 | invalid --memory=0: expected",
        "bloom -m 1k --stream uniform | missing records: expected",
        "bloom -m 1k --stream lines | invalid stream=lines: expected",
        "bloom -m 1k --window 0 | invalid --window=0: expected",
        "bloom -m 1k --points 0 | invalid --points=0: expected",
        "bloom -m 1k -k 2 | missing --input: expected --input FILE beside --key",
        "bloom -m 1k -d ; | missing --input: expected --input FILE beside --delimiter",
        "bloom -m 1k --csv | missing --input: expected --input FILE beside --csv",
        "bloom -m 1k --max-record 5 | missing --input: expected --input FILE beside --max-record",
        "bloom -m 1k --input x -d ; | invalid --delimiter=;: expected no delimiter without --key",
        "bloom -m 1k --max-records 5 | missing --input: expected --input FILE beside --max-records",
        "bloom -m 1k --input x --max-records 0 | invalid --max-records=0: expected",
        "bloom -m 1k --input x --missing skip | missing --key: expected",
        "bloom -m 1k --input x --format nothing | invalid --format=nothing: expected lines",
        "bloom -m 1k --input x --stream uniform | --stream",
        "bloom -m 1k --input /no/such/file | /no/such/file: No such file",
        "bloom -m 1k --specs /no/such/file | /no/such/file: No such file",
        "bloom -m 1k --to-csv /no/such/file | /no/such/file: No such file",
        "bloom -m 1k --to-csv - --to-json - | is also another output",
        "bloom -m 1k --stream uniform:records=5G,universe=10 | the exact oracle: invalid records=5000000000",
    ];
    assert_errors(|args| eval(args), &cases);
    let folder = Folder::with(&[("blocked", "")]);
    let cases = [
        ("filters = 5\n", ", line 1: "),
        ("\nfilter = []\n", "unknown field `filter`"),
        (
            "filters = [\n  \"bloom:k=1\",\n  \"blom\",\n]\n",
            "invalid filter=blom: expected",
        ),
        ("filters = [{ k = 2 }]\n", "missing field `filter`"),
        ("filters = [", "line 1: "),
    ];
    let run = || folder.echoless("eval --specs specs.toml -m 1k");
    folder.assert_file_errors("specs.toml", run, &cases);
    let run = folder.echoless("eval bloom -m 1k --plots blocked --to-csv csv");
    assert!(run.error().starts_with("blocked"), "{}", run.stderr);
    assert!(!folder.has("csv"), "a run that fails leaves no empty file");
}

#[test]
fn files_are_complete_though_the_reader_of_standard_output_left() {
    let folder = Folder::new();
    let measured = format!("{STREAM} bloom:k=2,memory=2KiB");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut unread = folder.command(format!("eval {measured} --to-csv csv --to-json json"));
    unread.stdout(writer);
    assert_eq!(run(unread).text(), "");
    // The last column has times, which differ from run to run; the last row has none.
    let expected = eval(format!("{measured} --to-csv -")).text();
    let written = folder.read("csv");
    assert_eq!(written.lines().count(), expected.lines().count());
    assert_eq!(written.lines().last(), expected.lines().last());
    assert_eq!(folder.json("json")["records"], 20_000);
}

#[test]
fn adapted_filters_are_measured_like_any_other() {
    let specs = [
        "vertical:slices=9/bloom:k=2,memory=2KiB",
        "bloom:k=2,memory=2KiB",
        "horizontal:slices=4/growing:fpr=0.01/bloom:k=4,memory=64KiB",
    ];
    let table = json(format!("{STREAM} {}", specs.join(" ")));
    let text = table.to_string();
    assert!(
        text.contains("growing:fpr=0.01,threshold=density/bloom:k=4"),
        "{text}"
    );
    let filters = table["filters"].as_array().unwrap();
    // No slice fails, so a vertical filter has the rates of the uncut one.
    assert_eq!(filters[0]["fpr"], filters[1]["fpr"]);
    assert!(filters[2]["fpr"].as_f64().unwrap() < 0.1);
    assert_eq!(filters[2]["fnr"].as_f64(), Some(0.0));
}

#[test]
fn the_memory_option_is_that_of_filters_whose_options_follow_from_it() {
    let bytes = |spec: &str, memory: &str| {
        let all = json(format!("{STREAM} {spec} -m {memory}"));
        let filter = all["filters"][0].clone();
        filter["memory_bytes"].as_u64().unwrap()
    };
    for spec in [
        "fingerprint:fpr=1e-3",
        "fingerprint:fpr=1e-3,replacement=fifo",
        "horizontal:slices=4/fingerprint:fpr=1e-3",
    ] {
        assert_eq!(bytes(spec, "64k"), 64 << 10, "{spec}");
    }
}
