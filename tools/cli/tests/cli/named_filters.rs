//! `--filter`: the verdicts equal those of the library's filter over the same lines.

use echoless::spec::{Form, catalogue};
use echoless::{FilterSpec, KeyHasher, Verdict};

use crate::run::{Folder, assert_errors, assert_runs, dedup, echoless};

/// Keys that recur, most of them soon, some late.
fn stream() -> String {
    let mut state = 1_u64;
    let line = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let reach = if state >> 62 == 0 { 60_000 } else { 3000 };
        format!("{}\n", (state >> 33) % reach)
    };
    (0..20_000).map(line).collect()
}

/// The lines that the filter reports fresh, observed one by one.
fn fresh_lines(spec: &str, input: &str) -> String {
    let mut filter = echoless_papers::parse(spec).unwrap().build().unwrap();
    let hasher = KeyHasher::seeded(0);
    let is_fresh = |line: &&str| {
        let key = hasher.hash(line.trim_end().as_bytes());
        filter.observe_one(key) == Verdict::Fresh
    };
    input.split_inclusive('\n').filter(is_fresh).collect()
}

/// The command's output.
fn filtered(args: &str, input: &str) -> String {
    echoless(format!("dedup -q {args}"), input).text()
}

#[test]
fn the_guide_names_every_filter_and_every_line_form() {
    let guide = include_str!("../../GUIDE.md");
    let part = |start: &str, end: &str| {
        let (_, rest) = guide.split_once(start).expect(start);
        rest.split_once(end).expect(end).0
    };
    let filters = part("| names | filter |", "\n\n");
    let lines = part("`form=line` is available for", "\n\n");
    for entry in catalogue() {
        let named = match entry.form {
            Some(Form::Line) => lines,
            Some(_) => filters,
            None => guide,
        };
        let name = entry.name;
        // An adapter stands before a filter.
        let found = ["`", ":", "/"].map(|end| format!("`{name}{end}"));
        assert!(found.iter().any(|it| named.contains(it)), "{name}: {named}");
    }
}

#[test]
fn every_filter_agrees_with_the_library_on_any_number_of_threads() {
    let input = stream();
    echoless_papers::register();
    let mut specs: Vec<String> = FilterSpec::names()
        .map(|name| match name {
            // A page for each thread.
            "dense" => "dense:memory=32KiB".to_owned(),
            name => format!("{name}:memory=2KiB"),
        })
        // A filter with a window needs a clock; `windows.rs` tests them.
        .filter(|spec| spec.parse::<FilterSpec>().unwrap().facts().window.is_none())
        .collect();
    let forms = "bloom:k=4, rsbf:k=3, bsbf:k=1, bsbfsd:k=2, rlbsbf:k=2, sbf:k=2,d=2, fpsbf: \
                 qht:slots=64,bits=8, qhtd: qqht:slots=16,bits=32, qqhtd: rowlru:";
    for filter in forms.split(' ') {
        specs.push(format!("{filter}form=line,memory=2KiB"));
    }
    let more = [
        "rlbsbf:k=2,memory=2KiB,seed=9",
        "rlbsbf:k=2,memory=2KiB,tracked=0.5",
        "qqht:form=line,memory=2KiB,tracked=0.5",
        "horizontal:slices=5/rowlru:slots=8,bits=64,form=line,memory=2KiB",
        "horizontal:slices=5/rlbsbf:k=2,memory=2KiB",
        "horizontal:slices=2/growing:fpr=0.1/bloom:k=3,memory=2KiB,tracked=0.9",
        "vertical:slices=7/horizontal:slices=3/bloom:k=3,memory=2KiB",
    ];
    specs.extend(more.map(str::to_owned));
    let mut outcomes = std::collections::HashSet::new();
    for spec in &specs {
        // The window of bdbf must fit in its memory.
        let spec = &spec.replace("bdbf:", "bdbf:window=1000,");
        let expected = fresh_lines(spec, &input);
        for threads in ["", "--threads 3"] {
            let output = filtered(&format!("--filter {spec} {threads}"), &input);
            assert!(output == expected, "{spec} {threads}");
        }
        outcomes.insert(expected);
    }
    // With so little memory the filters differ in their verdicts.
    assert!(outcomes.len() > 25, "{} of {}", outcomes.len(), specs.len());
}

#[test]
fn a_file_names_a_filter_as_the_text_does() {
    let folder = Folder::with(&[("in", stream())]);
    let spec = "sbf:k=2,d=2,fps=0.05,form=line,memory=2KiB,seed=3";
    let expected = fresh_lines(spec, &stream());
    for toml in [
        "filter = \"sbf\"\nk = 2\nd = 2\nfps = 0.05\nform = \"line\"\nmemory = \"2KiB\"\nseed = 3\n",
        "# kept beside the data\nmemory=2048\nfilter='sbf'\nseed=3\nform='line'\nfps=5e-2\nd=2",
    ] {
        folder.write("filter.toml", toml);
        for threads in ["1", "2"] {
            let args = format!("dedup -q --filter filter.toml --threads {threads} in");
            assert!(folder.echoless(args).text() == expected, "{toml}");
        }
    }
}

#[test]
fn the_memory_comes_from_either_side() {
    let input = stream();
    let expected = fresh_lines("rlbsbf:k=2,memory=2KiB", &input);
    for args in [
        "--filter rlbsbf:k=2,memory=2KiB",
        "--filter rlbsbf:k=2 -m 2k",
        "--filter rlbsbf:k=2,memory=2KiB --memory 2048",
    ] {
        assert!(filtered(args, &input) == expected, "{args}");
    }
    // These runs have -m 1MiB.
    assert_runs(&[
        "--filter rlbsbf:k=2,memory=1MiB | a\na\n | a\n",
        "--filter rlbsbf:k=2,memory=2MiB |  | !! invalid --memory=1MiB: expected 2MiB, as in --filter",
    ]);
}

#[test]
fn fingerprint_lines_by_name_are_those_of_the_options() {
    let folder = Folder::with(&[("in", stream())]);
    let run = |args: &str| {
        let run = folder.echoless(format!("dedup --stats stats {args} in"));
        assert_eq!(run.code, 0, "{}", run.stderr);
        let mut stats = folder.json("stats");
        stats.as_object_mut().unwrap().remove("seconds");
        let (_, summary) = run.stderr.split_once('\n').unwrap();
        (run.stdout, stats, summary.to_owned())
    };
    for (replacement, name) in [("fifo", "qqht"), ("lru", "rowlru"), ("qqhtd", "qqhtd")] {
        let by_options = run(&format!("-m 4k --fpr 1e-3 --replacement {replacement}"));
        assert_eq!(
            by_options.1["filter"],
            format!("{name}:slots=32,bits=16,rows=packed,form=line,memory=4KiB")
        );
        assert!(by_options.1["evictions"].as_u64().unwrap() > 0);
        let spec = by_options.1["filter"].as_str().unwrap();
        assert_eq!(run(&format!("--filter {spec}")), by_options);
    }
}

#[test]
fn the_report_of_other_filters_has_estimates_only() {
    let input: String = (0..200_000).map(|i| format!("{}\n", i % 50_000)).collect();
    let folder = Folder::with(&[("in", &input)]);
    let spec = "rlbsbf:k=2,form=line,memory=8KiB";
    let run = folder.echoless(format!("dedup --count --stats stats --filter {spec} in"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let stats = folder.json("stats");
    let mut filter = echoless_papers::parse(spec).unwrap().build().unwrap();
    let hasher = KeyHasher::seeded(0);
    let (mut missed, mut false_duplicates) = (0.0, 0.0);
    for (index, line) in input.lines().enumerate() {
        let verdict = filter.observe_one(hasher.hash(line.as_bytes()));
        match (verdict, index < 50_000) {
            (Verdict::Duplicate, true) => false_duplicates += 1.0,
            (Verdict::Fresh, false) => missed += 1.0,
            _ => {}
        }
    }
    for (field, truth) in [
        ("estimated_missed_duplicates", missed),
        ("estimated_false_duplicates", false_duplicates),
    ] {
        let estimate = stats[field].as_f64().unwrap();
        assert!(truth > 10_000.0, "{field}: {truth}");
        assert!((estimate / truth - 1.0).abs() < 0.1, "{field}: {estimate}");
        let bound = |end: &str| stats[format!("{field}_{end}")].as_f64().unwrap();
        assert!(bound("low") <= truth && truth <= bound("high"), "{field}");
    }
    assert_eq!(stats["filter"], spec);
    assert_eq!(stats["memory_bytes"], 8192);
    let fill = stats["fill"].as_f64().unwrap();
    assert!((fill - filter.report().fill().unwrap()).abs() < 1e-9);
    for field in [
        "evictions",
        "expected_false_duplicates_high",
        "miss_age",
        "miss_age_unit",
        "miss_age_since",
        "slot_bits",
    ] {
        assert!(stats[field].is_null(), "{field}");
    }
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{}", run.stderr);
    assert!(lines[1].starts_with(&format!("echoless: filter {spec} (")));
    assert!(
        lines[2].starts_with("echoless: estimated from samples: about "),
        "{}",
        lines[2]
    );
    assert!(lines[2].ends_with(" fresh records mistaken for duplicates"));
    assert!(!run.stderr.contains("no duplicate"), "{}", run.stderr);
}

#[test]
fn invalid_filters_are_rejected() {
    let run = |args: &[&str]| dedup([&["--filter"], args].concat(), "a\n");
    let cases = [
        "blom:k=2 | invalid filter=blom: expected one of bloom, ",
        "-k | invalid filter=-k: expected one of bloom, ",
        "bloom:k | invalid option=k: expected",
        "bloom:hashes=2 | invalid option=hashes: expected one of memory, form, k, ",
        "bloom:k=65 | invalid k=65: expected 1 to 64",
        "lru:form=line | invalid form=line: expected scattered for lru",
        "qqht:slots=5,form=line | invalid slots=5 of 16 bits: expected one of 64 of 8, ",
        "bloom:memory=64parsecs | invalid memory=64parsecs: expected",
        "/no/such/filter.toml | /no/such/filter.toml: No such file",
        "bloom --fpr 0.1 | --fpr",
        "bloom --replacement lru | --replacement",
        "bloom --kernel scalar | --kernel",
        "'' | missing filter: expected one of bloom",
        "bloom:memory=1000TiB -m 1000TiB | cannot allocate ",
    ];
    assert_errors(run, &cases);
    let folder = Folder::new();
    let cases = [
        ("k = 2\n", "line 1: missing field `filter`"),
        (
            "filter = \"blom\"\n",
            "line 1: invalid filter=blom: expected one of bloom, ",
        ),
        (
            "filter = \"bloom\"\nk = [2]\n",
            "a number, a string or a boolean",
        ),
        ("filter = \"bloom\"\nk = \n", "line 2: "),
        ("filters = [\"bloom:k=2\"]\n", "line 1: "),
    ];
    let run = || folder.dedup("--filter filter.toml");
    folder.assert_file_errors("filter.toml", run, &cases);
    // The file of a filter is not overwritten.
    folder.write("filter.toml", "filter = \"bloom\"\n");
    folder
        .dedup("--filter filter.toml -o filter.toml")
        .fails("filter.toml: is also a file that an option reads");
    assert_eq!(folder.read("filter.toml"), "filter = \"bloom\"\n");
}
