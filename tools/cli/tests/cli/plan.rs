//! `echoless plan`: its recommendations hold when they are run, and invalid arguments are rejected.

use serde_json::Value;

use crate::run::{Folder, Run, Words, assert_errors, echoless, run};

fn plan(args: impl Words) -> Run {
    echoless(
        [vec!["plan".into(), "-q".into()], args.words()].concat(),
        "",
    )
}

fn json(args: &str) -> Value {
    serde_json::from_str(&plan(format!("{args} --to-json -")).text()).unwrap()
}

/// A small setting, so that simulations are complete and quick: half a bit for each distinct
/// record.
const SHORT: &str = "-m 128 -n 3k --distinct 0.6";

#[test]
fn rates_that_are_not_shown_recommend_nothing() {
    let long = "-m 64KiB -n 1G --distinct 0.6 --window 100k --budget 1ns";
    let text = plan(long).text();
    let none = "no filter is recommended: the rates of the first one are not shown";
    assert!(text.starts_with(none), "{text}");
    let folder = Folder::new();
    let only = folder.echoless(format!("plan -q {long} --spec-only --to-csv csv"));
    only.fails("a --budget that shows the rates of the first filter");
    // It was opened before the plan was made.
    assert!(!folder.has("csv"));
}

#[test]
fn the_text_and_files_have_the_filter_the_reason_and_every_kind() {
    let folder = Folder::new();
    let written = |more: &str| {
        let args = format!("plan -q {SHORT} --to-csv csv --to-json json {more}");
        let text = folder.echoless(args).text();
        (text, ["csv", "json"].map(|name| folder.read(name)))
    };
    let (text, files) = written("");
    assert!(
        text.contains("FPR + FNR") && text.contains("for 3k records in 128B"),
        "{text}"
    );
    for name in [
        "bloom", "rsbf", "bsbf", "bsbfsd", "rlbsbf", "sbf", "fpsbf", "bdbf", "sqf", "qht", "qqhtd",
        "rowlru", "cuckoo", "a2", "dbuf", "lru", "fpbuffer",
    ] {
        let rows = text.lines().filter(|line| {
            line.starts_with(&format!("{name}:"))
                && (line.contains("formula") || line.contains("simulation of"))
        });
        assert!(rows.count() >= 1, "{name}: {text}");
    }
    let (spec, files_beside_spec) = written("--spec-only");
    assert_eq!(files_beside_spec, files);
    assert!(files.iter().all(|file| file.contains(spec.trim_end())));
    assert!(text.starts_with(&format!("use {spec}")), "{text}");
}

/// Every line comes twice, 500 lines apart.
fn sample(line: impl Fn(u32, u32) -> String) -> String {
    let lines = 0..20_000_u32;
    lines
        .map(|number| line(number, number / 1000 * 500 + number % 500))
        .collect()
}

/// A shell accepts the command that the plan recommends.
#[test]
fn the_command_of_the_plan_runs() {
    let content = sample(|number, key| format!("{number}'{key}\n"));
    let folder = Folder::with(&[("lines", content)]);
    let bounds = "plan -q -m 4KiB --max-fpr 0.05 --max-fnr 0.02 --sample lines -k 2 -d";
    let args = [bounds.words(), vec!["'".to_owned()]].concat();
    let text = folder.echoless(args).text();
    let mut lines = text.lines();
    let spec = lines.next().unwrap().strip_prefix("use ").unwrap();
    let command = lines.next().unwrap().trim();
    let typed = format!(r"echoless dedup --filter '{spec}' --key '2' --delimiter ''\'''");
    assert_eq!(command, typed);
    let script = command.replacen("echoless", "\"$0\"", 1) + " --count -q lines";
    let passed: f64 = run(folder.shell(&script)).text().trim().parse().unwrap();
    // Every key comes twice; up to 5 % of the first ones are dropped, and up to 2 % of the others
    // pass.
    assert!((9_500.0..=10_200.0).contains(&passed), "{passed}");
}

#[test]
fn json_and_csv_hold_the_ranking() {
    let costs = json(&format!("{SHORT} --cost-fpr 1 --cost-fnr 50 --measure"));
    // Misses are expensive, so the best filter evicts nothing.
    assert_eq!(costs["candidates"][0]["fnr"], 0.0);
    let is_timed = |choice: &Value| choice["ns_per_key"].as_f64().unwrap() > 0.0;
    assert!(costs["candidates"].as_array().unwrap().iter().all(is_timed));
    let folder = Folder::new();
    let files = "--to-json json --to-csv csv";
    folder
        .echoless(format!("plan -q {SHORT} --max-fnr 0 --all {files}"))
        .text();
    let all = folder.json("json");
    let choices = all["candidates"].as_array().unwrap();
    assert!(choices.len() > 100);
    assert_eq!(choices[0]["meets_bounds"], true);
    assert_eq!(choices[0]["spec"]["filter"], "bloom");
    assert!(choices.iter().any(|choice| choice["basis"] == "simulation"));
    let mut reader = csv::Reader::from_path(folder.path("csv")).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), choices.len());
    for (row, choice) in rows.iter().zip(choices) {
        assert_eq!(&row[1], choice["name"].as_str().unwrap());
        let difference = row[2].parse::<f64>().unwrap() - choice["fpr"].as_f64().unwrap();
        assert!(difference.abs() < 1e-12, "{row:?}");
    }
}

#[test]
fn a_sample_or_a_window_changes_the_recommendation() {
    let folder = Folder::with(&[("lines", sample(|_, key| format!("{key}\n")))]);
    let args = "plan -q -m 4KiB --sample lines --max-fpr 0.05 --max-fnr 0.02 --to-json json";
    folder.echoless(args).text();
    let first = &folder.json("json")["candidates"][0];
    assert_eq!(first["basis"], "simulation");
    assert_eq!(first["meets_bounds"], true, "{first}");
    let windowed = json("-m 1KiB -n 25k --distinct 0.6 --budget 200ms --window 500");
    let choices = windowed["candidates"].as_array().unwrap();
    // A filter that never forgets reports old records as duplicates.
    assert_ne!(choices[0]["spec"]["filter"], "bloom");
    assert_eq!(windowed["window"], 500);
    assert!(
        choices
            .iter()
            .all(|choice| choice["spec"]["tracked"].is_null())
    );
    let stamped = choices.iter().find(|choice| {
        let spec = &choice["spec"];
        spec["window"] == 500 && spec["filter"] == "stamped"
    });
    // The command runs: the filter gets its window in the ticks of `dedup`.
    let command = stamped.expect("a candidate")["command"].as_str().unwrap();
    let args = command
        .strip_prefix("echoless dedup --window 500 --filter '")
        .unwrap();
    let spec = args.trim_end_matches('\'');
    let run = echoless(format!("dedup -q --window 500 --filter {spec}"), "a\na\n");
    assert_eq!(run.text(), "a\n", "{command}");
}

#[test]
fn without_a_memory_the_least_sufficient_one_is_found() {
    let args = "-n 3k --distinct 0.6 --max-fpr 0.1 --max-fnr 0.1";
    let found = json(args);
    assert_eq!(found["candidates"][0]["meets_bounds"], true);
    let bits_per_key = found["memory_bytes"].as_f64().unwrap() * 8.0 / 1_800.0;
    // The limit is 2.5 bits a key, and a Bloom filter that never forgets is within twice that.
    assert!((2.5..5.0).contains(&bits_per_key), "{bits_per_key}");
    let text = |threads: &str| plan(format!("{args} -t {threads}")).text();
    assert_eq!(text("1"), text("3"));
}

/// What the machine cannot hold, or what takes hours, is simulated in less. The number of
/// records that are simulated is what a plan costs.
#[test]
fn easy_questions_about_large_memories_are_cheap() {
    for args in [
        "-m 64MiB -n 10k --distinct 0.5",
        "-m 2G -n 100k --distinct 0.5",
        "-m 1T -n 1k --distinct 0.9999999",
        "-m 1MiB -n 1T --distinct 0.01",
        "-m 1G -n 1M --distinct 0.5 --window 100",
    ] {
        let args = format!("{args} --budget 100ms --all --to-json -");
        let text = plan(&args).text();
        let all: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["budget_seconds"], 0.1);
        let candidates = all["candidates"].as_array().unwrap();
        assert!(candidates.len() > 50, "{args}: {}", candidates.len());
        let simulated = candidates
            .iter()
            .filter_map(|it| it["simulated_records"].as_u64());
        // 100 ms are 2.5 million records of 40 ns at most, and 4096 of each candidate at least.
        let most = 2_500_000 + 2 * 4096 * candidates.len() as u64;
        assert!(simulated.sum::<u64>() <= most, "{args}");
        for candidate in candidates {
            let shown = candidate["shown"] == true;
            let known = candidate["fpr_high"].as_f64() < Some(1.0) || candidate["fpr"] == 1.0;
            assert!(!shown || known, "{candidate}");
        }
        if args.contains("--window") || args.contains("2G") {
            assert_eq!(plan(format!("{args} -t 3")).text(), text);
        }
    }
}

/// A plan may be for another machine: the recommendation is the same, and a line reports that it
/// cannot be run here.
#[cfg(target_os = "linux")]
#[test]
fn more_memory_than_there_is_is_announced() {
    let args = "-m 1P -n 100k --distinct 0.5 --budget 1ms --to-json -";
    let run = echoless(format!("plan {args}"), "");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
    let expected = "echoless: cannot allocate 1125899906842624 bytes: ";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    assert!(run.stderr.contains(" bytes are available here (-m SIZE "));
    assert_eq!(plan(args).bytes(), run.stdout);
    // No memory is enough to distinguish equal hashes.
    let plan: Value = serde_json::from_slice(&run.stdout).unwrap();
    let first = &plan["candidates"][0];
    assert_eq!(first["basis"], "formula");
    assert!(first["fpr"].as_f64().unwrap() > 2f64.powi(-64), "{first}");
}

#[test]
fn nothing_is_recommended_that_is_not_shown() {
    // A filter of 64 bytes for windows of 1000 records.
    let args =
        "-m 64 -n 5k --distinct 0.6 --window 1k --budget 100ms --max-fpr 0.001 --max-fnr 0.001";
    let text = plan(args).text();
    let none = "no filter is shown to meet the bounds; the nearest is ";
    assert!(text.starts_with(none), "{text}");
    assert!(!text.contains("echoless dedup"), "{text}");
    let run = plan(format!("{args} --spec-only"));
    run.fails("expected bounds that some filter is shown to meet; the nearest is ");
    // Filters that drift are for streams with an end.
    for (window, drifting) in [("", true), ("--window 1k", false)] {
        let args = "-m 4k -n 5k --distinct 0.6 --budget 100ms --all";
        let text = plan(format!("{args} {window}")).text();
        for name in ["bloom", "as=tabled", "bsbfsd", "refill=xor"] {
            assert_eq!(text.contains(name), drifting, "{name}: {text}");
        }
    }
}

#[test]
fn invalid_arguments_are_rejected() {
    let cases = [
        "-n 1M --distinct 0.5 | missing memory: expected a size, or both max-fpr and max-fnr",
        "-m 1M | missing --records: expected --records",
        "-m 1M -n 1M | missing --distinct: expected",
        "-m 1M --distinct 0.5 | missing --records: expected",
        "-m 0 -n 1M --distinct 0.5 | invalid --memory=0: expected",
        "-m 1M -n 0 --distinct 0.5 | invalid --records=0: expected",
        "-m 1M -n 1M --distinct 1 | invalid distinct=1: expected",
        "-m 1M -n 1M --distinct half | invalid --distinct=half: expected",
        "-m 1M -n 1M --distinct 0.5 --sample x | --sample",
        "-m 1M -n 1M --distinct 0.5 -k 1 | missing --sample: expected --sample FILE beside --key",
        "-m 1M --sample /no/such/file | /no/such/file: No such file",
        "-m 1M -n 1M --distinct 0.5 --window x | invalid --window=x: expected",
        "-m 1M -n 1M --distinct 0.5 --max-fpr 2 | invalid max-fpr=2: expected",
        "-m 1M -n 1M --distinct 0.5 --max-fnr -1 | invalid max-fnr=-1: expected",
        "-m 1M -n 1M --distinct 0.5 --cost-fpr 1 | --cost-fnr",
        "-m 1M -n 1M --distinct 0.5 --cost-fpr -1 --cost-fnr 1 | invalid cost-fpr=-1: expected",
        "-m 1M -n 1M --distinct 0.5 --max-fpr 0 --max-fnr 0 | invalid max-fpr=0: expected a rate above 0",
        "-n 1M --distinct 0.5 --max-fpr 0 --max-fnr 0 | invalid max-fpr=0: expected a rate above 0",
        "-m 18446744073709551615 -n 1M --distinct 0.5 | expected at most",
        "-m 1M -n 1M --distinct 0.5 --budget 0s | invalid --budget=0s: expected a time above 0",
        "-m 1M -n 1M --distinct 0.5 --budget 5 | invalid --budget=5: expected a time above 0 such as",
        "-m 1M -n 1M --distinct 0.5 --max-records 5 | missing --sample: expected --sample FILE beside",
        "-m 1M -n 1M --distinct 0.5 -t 0 | invalid --threads=0: expected",
        "-m 1M -n 1M --distinct 0.5 -t -1 | invalid --threads=-1: expected a whole number from 1",
        "-m 1M -n 1M --distinct 0.5 --seed -1 | invalid --seed=-1: expected a whole number from 0",
        "-m 1M --sample /dev/null | /dev/null: no record, or none with a key: expected 1 or more",
        "-m 1M -n 1M --distinct 0.5 --spec-only --all | --all",
        "-m 1M -n 1M --distinct 0.5 --to-csv /no/such/file | /no/such/file: No such file",
    ];
    assert_errors(|args| plan(args), &cases);
}
