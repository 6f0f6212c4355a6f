//! The text form and the file form of specifications: what is written parses to the same
//! specification.

use echoless::spec::{Form, TrackedFraction, catalogue};
use echoless::{FilterSpec, KeyHash, Verdict, Window};
use proptest::prelude::*;

use crate::{EXAMPLES, parse};

#[test]
fn every_example_is_displayed_as_it_was_parsed_and_detects_a_duplicate() {
    let mut names: Vec<&str> = FilterSpec::names().collect();
    for text in EXAMPLES {
        let spec = parse(text);
        assert_eq!(spec.to_string(), text);
        assert!(text.starts_with(spec.name()));
        names.retain(|name| *name != spec.name());
        let mut filter = spec.memory(4096).seed(3).build().expect(text);
        assert!(filter.memory_bytes() > 0);
        assert_eq!(
            filter.observe_one(KeyHash::from_uniform(1 << 40)),
            Verdict::Fresh,
            "{text}"
        );
        assert_eq!(
            filter.observe_one(KeyHash::from_uniform(1 << 40)),
            Verdict::Duplicate,
            "{text}"
        );
        assert!(filter.contains(KeyHash::from_uniform(1 << 40)), "{text}");
        filter.clear();
        assert!(!filter.contains(KeyHash::from_uniform(1 << 40)), "{text}");
    }
    assert_eq!(
        names,
        Vec::<&str>::new(),
        "EXAMPLES in `main.rs` lacks these"
    );
}

#[test]
fn every_name_has_defaults_for_all_options_except_memory() {
    for name in FilterSpec::names() {
        let spec = parse(name);
        assert_eq!(parse(&spec.to_string()), spec);
        let error = spec.build().expect_err("no memory").to_string();
        let expected = "missing memory: expected a size such as memory=64MiB";
        assert_eq!(error, expected);
        assert!(spec.memory(1 << 16).build().is_ok(), "{name}");
    }
}

proptest! {
    #[test]
    fn text_and_files_preserve_specifications(
        example in prop::sample::select(EXAMPLES.to_vec()),
        memory in prop::option::of(any::<u64>()),
        seed in any::<u64>(),
        fraction in 1e-9_f64..=1.0,
    ) {
        let fraction = TrackedFraction::new(fraction).expect("in range");
        let mut spec = parse(example).seed(seed).tracked(fraction);
        if let Some(memory) = memory {
            spec = spec.memory(memory);
        }
        prop_assert_eq!(parse(&spec.to_string()), spec);
        {
            let table = serde_json::to_string(&spec).expect("plain data");
            prop_assert_eq!(serde_json::from_str::<FilterSpec>(&table).expect("a table"), spec);
            let text = serde_json::to_string(&spec.to_string()).expect("a string");
            prop_assert_eq!(serde_json::from_str::<FilterSpec>(&text).expect("a string"), spec);
        }
    }
}
#[test]
fn files_hold_numbers_as_numbers() {
    let spec = parse("rlbsbf:k=2,memory=64MiB,seed=7,tracked=0.5");
    let expected = serde_json::json!({
        "filter": "rlbsbf", "k": 2, "memory": "64MiB", "seed": 7, "tracked": 0.5,
    });
    assert_eq!(serde_json::to_value(spec).expect("plain data"), expected);
    for wrong in [
        r#"{"k": 2}"#,
        r#"{"filter": "rlbsbf", "kk": 2}"#,
        r#"{"filter": "rlbsbf", "k": [2]}"#,
        r#"{"filter": "rlbsbf", "k": -2}"#,
        r#"{"filter": "rlbsbf", "k": 2, "k": 2}"#,
        r#"{"filter": "rlbsbf", "filter": "rlbsbf"}"#,
        r#"{"filter": "bloom", "k": 2, "filter": "rlbsbf"}"#,
        "17",
    ] {
        assert!(
            serde_json::from_str::<FilterSpec>(wrong).is_err(),
            "{wrong} is accepted"
        );
    }
}

#[test]
fn filters_of_one_form_need_no_form() {
    let spec = parse("clocked:window=5,memory=1KiB");
    assert_eq!(spec.form, Form::Line);
    assert_eq!(spec, parse("clocked:window=5,form=line,memory=1KiB"));
    let expected = "clocked:window=5,refresh=true,bits=32,dense=false,memory=1KiB";
    assert_eq!(spec.to_string(), expected);
    let scattered = parse("clocked:form=scattered");
    assert!(scattered.to_string().ends_with("form=scattered"));
    assert_eq!(parse(&scattered.to_string()), scattered);
    // In files, `refresh` and `dense` are booleans or their texts.
    for (options, expected) in [
        (
            r#""stamped", "refresh": false"#,
            "stamped:window=9,refresh=false",
        ),
        (
            r#""stamped", "refresh": "false""#,
            "stamped:window=9,refresh=false",
        ),
        (r#""clocked", "dense": true"#, "clocked:window=9,dense=true"),
        (
            r#""clocked", "dense": "true""#,
            "clocked:window=9,dense=true",
        ),
    ] {
        let table = format!(r#"{{"window": 9, "filter": {options}}}"#);
        let spec: FilterSpec = serde_json::from_str(&table).expect("a table");
        assert_eq!(spec, parse(expected), "{table}");
    }
}

#[test]
fn windows_are_those_of_the_documentation() {
    for (text, window) in [
        ("clocked:window=1", Some((1, 1))),
        ("clocked:window=1000", Some((1000, 200))),
        ("clocked:window=1001", Some((1001, 205))),
        ("stamped:window=1048576", Some((1 << 20, 1))),
        ("stamped:window=4096,bits=32", Some((4096, 1))),
        ("stamped:window=8192,bits=32", Some((8192, 2))),
        ("tbf:window=1000", Some((1000, 1))),
        ("tbf:window=1000,bits=8", Some((1000, 8))),
        ("tbf:window=4294967296", Some((1 << 32, 2))),
        ("gbf:window=1000,q=8", Some((1000, 125))),
        ("gbf:window=5,q=4", Some((5, 3))),
        ("apbf:window=1000,l=5", Some((1000, 200))),
        ("apbf:k=60,l=5", None),
        ("bdbf:window=1000", None),
        ("rowlru", None),
    ] {
        let window = window.map(|(ticks, granule)| Window::new(ticks, granule));
        assert_eq!(parse(text).facts().window, window, "{text}");
    }
}

#[test]
fn the_width_of_a_slot_decides_how_many_fill_a_line() {
    for (name, others) in [
        ("qqht", 0),
        ("rowlru", 0),
        ("qqhtd", 0),
        ("qht", 0),
        ("qhtd", 1),
    ] {
        for (slots, bits) in [(64, 8), (32, 16), (16, 32), (8, 64)] {
            let whole = format!(
                "{name}:slots={},bits={bits},form=line,memory=1KiB",
                slots - others
            );
            let whole: FilterSpec = echoless_papers::parse(&whole).unwrap();
            whole.build().unwrap();
            for option in [format!("bits={bits}"), format!("slots={}", slots - others)] {
                let text = format!("{name}:{option},form=line,memory=1KiB");
                assert_eq!(text.parse(), Ok(whole), "{text}");
            }
        }
        let neither = format!("{name}:form=line,memory=1KiB");
        assert_eq!(
            neither.parse(),
            format!("{name}:bits=16,form=line,memory=1KiB").parse::<FilterSpec>()
        );
    }
    let error = "qqht:slots=5,bits=32,form=line,memory=1KiB"
        .parse::<FilterSpec>()
        .unwrap()
        .build()
        .err();
    assert!(
        error
            .unwrap()
            .to_string()
            .starts_with("invalid slots=5 of 32 bits")
    );
}

#[test]
fn the_largest_number_of_every_option_is_kept_whole() {
    echoless_papers::register();
    let mut numbers = 0;
    for entry in catalogue() {
        for option in &entry.options {
            let range = option.allowed.strip_prefix("a whole number from ");
            let most = range.and_then(|range| range.split(&[' ', ','][..]).nth(2));
            // The most of some options is described, as it depends on others.
            let Some(most) = most.filter(|most| most.parse::<u64>().is_ok()) else {
                continue;
            };
            let (name, key) = (entry.name, option.name);
            let text = match entry.form {
                Some(form) => format!("{name}:{key}={most},form={form},memory=1KiB"),
                None => format!("{name}:{key}={most}/bloom:memory=1KiB"),
            };
            // Some are accepted only beside other values.
            let Ok(spec) = echoless_papers::parse(&text) else {
                continue;
            };
            assert!(
                spec.to_string().contains(&format!("{key}={most}")),
                "{text}"
            );
            // What does not fit in it is an error of building, and no panic.
            let _ = spec.facts();
            drop(spec.build());
            numbers += 1;
        }
    }
    assert!(numbers > 20, "{numbers}");
}
