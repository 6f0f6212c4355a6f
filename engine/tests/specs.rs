//! Specifications: they survive text and files, and what cannot be built is refused with field, value and range.

use echoless::filters::published::rows::{Fingerprint, OnHit, RowForm, RowSpec, Victim};
use echoless::filters::tracked::TrackedShare;
use echoless::spec::{FilterKind, Form};
use echoless::{BuildError, FilterSpec, KeyHash, SpecError, Verdict};
use proptest::prelude::*;

/// Every filter, with options that differ from the defaults.
const EXAMPLES: [&str; 32] = [
    "bloom:k=7",
    "rsbf:k=3,as=described,pstar=0.05",
    "rsbf:k=2,as=tabled",
    "bsbf:k=1",
    "bsbfsd:k=5",
    "rlbsbf:k=64",
    "sbf:k=2,d=1,p=4,update=every,decrement=consecutive,reach=0.5",
    "sbf:k=3,d=3,fps=0.05,update=distinct,decrement=independent,reach=1",
    "fpsbf:k=3,c=2,f=6,xi=0.25,refill=xor",
    "fpsbf:k=2,c=1,f=8,xi=1,refill=overwrite",
    "fpsbf:k=2,c=3,f=4,xi=0,refill=repaired",
    "bdbf:window=500",
    "bdbf:window=500,k=3,c=5",
    "sqf:slots=1,r=2,kept=1,rows=packed",
    "qht:slots=4,bits=4,rows=sorted",
    "qhtd:slots=2,bits=8,rows=packed",
    "qqht:slots=8,bits=16,rows=packed",
    "qqhtd:slots=8,bits=16,rows=packed",
    "rowlru:slots=16,bits=32,rows=packed",
    "cuckoo:slots=4,bits=12,kicks=8,rows=packed",
    "a2:k=5,rotate=fill",
    "a2:k=5,rotate=count",
    "dbuf:k=3,rotate=count",
    "lru:charge=full",
    "lru:charge=hash",
    "fpbuffer:charge=hash32,q=0.001",
    "fpbuffer:charge=full,q=0.001",
    "bloom:k=4,form=line",
    "rsbf:k=2,as=described,pstar=0.03,form=line",
    "sbf:k=3,d=4,fps=0.05,update=every,decrement=consecutive,reach=1,form=line",
    "fpsbf:k=3,c=2,f=14,xi=0.25,refill=repaired,form=line",
    "rowlru:slots=8,bits=64,rows=packed,form=line",
];

/// The filters that have a line form.
const LINE_NAMES: [&str; 12] = [
    "bloom", "rsbf", "bsbf", "bsbfsd", "rlbsbf", "sbf", "fpsbf", "qht", "qhtd", "qqht", "qqhtd",
    "rowlru",
];

fn parse(text: &str) -> FilterSpec {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_filter_is_written_as_it_is_read_and_works() {
    let mut names: Vec<&str> = FilterKind::NAMES.to_vec();
    for text in EXAMPLES {
        let spec = parse(text);
        assert_eq!(spec.to_string(), text);
        assert!(text.starts_with(spec.kind().name()));
        names.retain(|name| *name != spec.kind().name());
        let mut filter = spec.with_memory(4096).with_seed(3).build().expect(text);
        assert!(filter.memory_bytes() > 0);
        assert_eq!(
            filter.observe_one(KeyHash(1 << 40)),
            Verdict::Fresh,
            "{text}"
        );
        assert_eq!(
            filter.observe_one(KeyHash(1 << 40)),
            Verdict::Duplicate,
            "{text}"
        );
        assert!(filter.contains(KeyHash(1 << 40)), "{text}");
        filter.clear();
        assert!(!filter.contains(KeyHash(1 << 40)), "{text}");
    }
    assert_eq!(names, Vec::<&str>::new(), "names without an example");
}

#[test]
fn every_name_alone_is_enough_but_for_the_memory() {
    for name in FilterKind::NAMES {
        let spec = parse(name);
        assert_eq!(parse(&spec.to_string()), spec);
        let error = spec.build().err().expect("no memory").to_string();
        let expected = "memory: nothing is not possible; allowed: a size, as in memory=64MiB";
        assert_eq!(error, expected);
        assert!(spec.with_memory(1 << 16).build().is_ok(), "{name}");
    }
}

proptest! {
    #[test]
    fn specifications_survive_text_and_files(
        example in prop::sample::select(EXAMPLES.to_vec()),
        memory in prop::option::of(any::<u64>()),
        seed in any::<u64>(),
        share in 1e-9_f64..=1.0,
    ) {
        let share = TrackedShare::new(share).expect("in range");
        let mut spec = parse(example).with_seed(seed).with_tracked(share);
        if let Some(memory) = memory {
            spec = spec.with_memory(memory);
        }
        prop_assert_eq!(parse(&spec.to_string()), spec);
        let table = serde_json::to_string(&spec).expect("plain data");
        prop_assert_eq!(serde_json::from_str::<FilterSpec>(&table).expect("a table"), spec);
        let text = serde_json::to_string(&spec.to_string()).expect("a string");
        prop_assert_eq!(serde_json::from_str::<FilterSpec>(&text).expect("a string"), spec);
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
            "{wrong}"
        );
    }
}

/// What parsing or building refuses: the field, the value asked and a part of what is allowed.
fn refusal(text: &str) -> SpecError {
    match text.parse::<FilterSpec>() {
        Err(error) => error,
        Ok(spec) => match spec.build().err() {
            Some(BuildError::Spec(error)) => error,
            other => panic!("{text} gives {other:?}"),
        },
    }
}

#[test]
fn what_cannot_be_built_is_refused_with_field_value_and_range() {
    let cases = [
        ("nosuch:k=2", "filter", "nosuch", "bloom, rsbf"),
        ("", "filter", "", "bloom"),
        (
            "bloom:kk=2",
            "option",
            "kk",
            "memory, form, k, seed, tracked",
        ),
        ("bloom:k", "option", "k", "key=value"),
        ("bloom:,", "option", "nothing beside a comma", "key=value"),
        (
            "bloom:k=2,",
            "option",
            "nothing beside a comma",
            "key=value",
        ),
        (
            "bloom:k=2,,seed=3",
            "option",
            "nothing beside a comma",
            "key=value",
        ),
        (
            "bloom:k=2, ,",
            "option",
            "nothing beside a comma",
            "key=value",
        ),
        ("bloom:k=2,k=3", "option", "k=3", "each key once"),
        ("bloom:form=round", "form", "round", "scattered, line"),
        ("bloom:form=line", "memory", "nothing", "64MiB"),
        (
            "bloom:form=line,memory=63B",
            "memory",
            "63 B",
            "64 B (one line)",
        ),
        (
            "bloom:form=line,memory=512GiB",
            "memory",
            "549755813888 B",
            "256 GiB",
        ),
        ("bloom:k=0,form=line,memory=1KiB", "k", "0", "1 to 64"),
        ("bsbf:k=65,form=line,memory=1KiB", "k", "65", "1 to 64"),
        (
            "rsbf:pstar=0.003,form=line,memory=1KiB",
            "pstar",
            "0.003",
            "0, or 3.78e-3 to 1 in the line form",
        ),
        (
            "rsbf:pstar=1.01,form=line,memory=1KiB",
            "pstar",
            "1.01",
            "to 1",
        ),
        (
            "rsbf:pstar=NaN,form=line,memory=1KiB",
            "pstar",
            "NaN",
            "to 1",
        ),
        ("sbf:d=3,form=line,memory=1KiB", "d", "3", "1, 2, 4 or 8"),
        ("sbf:k=64,d=8,form=line,memory=1KiB", "k", "64", "1 to 63"),
        (
            "sbf:d=2,p=257,form=line,memory=1KiB",
            "p",
            "257",
            "1 to 256",
        ),
        ("sbf:p=0,form=line,memory=1KiB", "p", "0", "1 to 512"),
        (
            "sbf:reach=0.5,form=line,memory=1KiB",
            "reach",
            "0.5",
            "1 in the line form",
        ),
        (
            "sbf:fps=1e-12,form=line,memory=1KiB",
            "fps",
            "0.000000000001",
            "or more in a line of 512 cells",
        ),
        ("sbf:fps=1,form=line,memory=1KiB", "fps", "1", "less than 1"),
        (
            "fpsbf:c=2,f=4,form=line,memory=1KiB",
            "c + f",
            "2 + 4 bits",
            "8 or 16 bits",
        ),
        (
            "fpsbf:c=0,f=8,form=line,memory=1KiB",
            "c + f",
            "0 + 8 bits",
            "at least 1 of each",
        ),
        ("fpsbf:k=33,form=line,memory=1KiB", "k", "33", "1 to 32"),
        ("fpsbf:xi=-1,form=line,memory=1KiB", "xi", "-1", "0 to 1"),
        (
            "qht:slots=4,bits=4,form=line,memory=1KiB",
            "slots",
            "4 of 4 bits",
            "64 of 8 bits, 32 of 16, 16 of 32 or 8 of 64",
        ),
        (
            "qht:rows=sorted,form=line,memory=1KiB",
            "rows",
            "sorted",
            "packed",
        ),
        (
            "cuckoo:form=line,memory=1KiB",
            "form",
            "line",
            "scattered for cuckoo; line for bloom, rsbf, bsbf",
        ),
        ("bloom:k=0,memory=1KiB", "k", "0", "1 to 64"),
        ("bloom:k=65,memory=1KiB", "k", "65", "1 to 64"),
        ("bloom:k=-1", "k", "-1", "a whole number, 1 to 64"),
        (
            "bloom:k=4294967296",
            "k",
            "4294967296",
            "a whole number, 1 to 64",
        ),
        ("rsbf:k=1.5", "k", "1.5", "a whole number, 1 to 64"),
        (
            "bloom:seed=18446744073709551616",
            "seed",
            "18446744073709551616",
            "a whole number, 0 to 18446744073709551615",
        ),
        ("sbf:k=x", "k", "x", "a whole number, 1 to 64"),
        ("sbf:d=-3", "d", "-3", "a whole number, 1 to 16"),
        (
            "sbf:p=-4",
            "p",
            "-4",
            "a whole number, 1 to the number of cells",
        ),
        ("fpsbf:k=-1", "k", "-1", "a whole number, 1 to 64"),
        ("fpsbf:c=-1", "c", "-1", "a whole number, 1 to 16"),
        ("fpsbf:f=-1", "f", "-1", "a whole number, 1 to 16"),
        (
            "bdbf:window=-1",
            "window",
            "-1",
            "a whole number, 1 to 18446744073709551615",
        ),
        ("bdbf:k=-1", "k", "-1", "a whole number, 1 to 64"),
        ("bdbf:c=-1", "c", "-1", "a whole number, 2 to 32"),
        (
            "sqf:slots=99999999999",
            "slots",
            "99999999999",
            "a whole number, 1 to 64",
        ),
        ("sqf:r=-1", "r", "-1", "a whole number, 1 to 27"),
        ("sqf:kept=-1", "kept", "-1", "a whole number, 1 to 27"),
        (
            "qht:slots=99999999999",
            "slots",
            "99999999999",
            "a whole number, 1 to 64",
        ),
        (
            "qht:bits=4294967296",
            "bits",
            "4294967296",
            "a whole number, 1 to 32",
        ),
        (
            "qht:form=line,bits=4294967296",
            "bits",
            "4294967296",
            "a whole number, 1 to 64",
        ),
        (
            "cuckoo:slots=99999999999",
            "slots",
            "99999999999",
            "a whole number, 1 to 64",
        ),
        ("cuckoo:bits=-1", "bits", "-1", "a whole number, 1 to 32"),
        (
            "cuckoo:kicks=99999999999",
            "kicks",
            "99999999999",
            "a whole number, 1 to 1000",
        ),
        (
            "a2:k=99999999999",
            "k",
            "99999999999",
            "a whole number, 1 to 64",
        ),
        ("bloom:k=9,memory=1B", "memory", "1 B", "at least 2 B"),
        ("bloom:memory=0B", "memory", "0 B", "at least 1 B"),
        (
            "bloom:memory=2305843009213693952B",
            "memory",
            "2305843009213693952 B",
            "at most",
        ),
        ("bloom:memory=12parsecs", "memory", "12parsecs", "MiB"),
        ("bloom:tracked=0", "tracked", "0", "more than 0, at most 1"),
        (
            "bloom:tracked=1.01",
            "tracked",
            "1.01",
            "more than 0, at most 1",
        ),
        ("rsbf:pstar=1.5,memory=1KiB", "pstar", "1.5", "0 to 1"),
        ("rsbf:pstar=NaN,memory=1KiB", "pstar", "NaN", "0 to 1"),
        ("rsbf:as=printed", "as", "printed", "described, tabled"),
        ("rsbf:as=tabled,pstar=0.1", "option", "pstar", "as"),
        ("sbf:k=0,memory=1KiB", "k", "0", "1 to 64"),
        ("sbf:d=0,memory=1KiB", "d", "0", "1 to 16"),
        ("sbf:d=17,memory=1KiB", "d", "17", "1 to 16"),
        ("sbf:p=0,memory=1KiB", "p", "0", "1 to 8192"),
        ("sbf:p=9000,memory=1KiB", "p", "9000", "1 to 8192"),
        ("sbf:p=4,fps=0.1", "fps", "0.1", "not both"),
        ("sbf:fps=0,memory=1KiB", "fps", "0", "more than 0"),
        ("sbf:fps=1,memory=1KiB", "fps", "1", "less than 1"),
        (
            "sbf:fps=1e-12,memory=16B",
            "fps",
            "0.000000000001",
            "or more in 128 cells",
        ),
        (
            "sbf:reach=0,memory=1KiB",
            "reach",
            "0",
            "1/8192 to 1 in 8192 cells",
        ),
        (
            "sbf:reach=0.0001,memory=1KiB",
            "reach",
            "0.0001",
            "1/8192 to 1",
        ),
        ("sbf:reach=1.01,memory=1KiB", "reach", "1.01", "1/8192 to 1"),
        ("sbf:reach=NaN,memory=1KiB", "reach", "NaN", "1/8192 to 1"),
        ("sbf:k=20,memory=2B", "memory", "2 B", "at least 3 B"),
        (
            "sbf:update=sometimes",
            "update",
            "sometimes",
            "every, distinct",
        ),
        ("fpsbf:c=0,memory=1KiB", "c", "0", "1 to 16"),
        ("fpsbf:f=0,memory=1KiB", "f", "0", "1 to 16"),
        ("fpsbf:xi=1.1,memory=1KiB", "xi", "1.1", "0 to 1"),
        ("fpsbf:memory=1B", "memory", "1 B", "at least 3 B"),
        ("bdbf:window=0,memory=1KiB", "window", "0", "1 or more"),
        ("bdbf:c=1,memory=1KiB", "c", "1", "2 to 32"),
        ("bdbf:k=0,memory=1KiB", "k", "0", "1 to 64"),
        (
            "bdbf:memory=512MiB",
            "window",
            "1048576",
            "2907270 or more in 536870912 B, where k and c would be 54 (at most 32)",
        ),
        (
            "bdbf:c=8,window=100,memory=1MiB",
            "window",
            "100",
            "1420 or more in 1048576 B, where k would be 242 (at most 64)",
        ),
        ("bdbf:k=33,window=100,memory=1KiB", "c", "33", "2 to 32"),
        ("bdbf:k=4,c=8,memory=3B", "memory", "3 B", "at least 4 B"),
        ("qht:slots=0,memory=1KiB", "slots", "0", "1 to 64"),
        ("qht:slots=65,memory=1KiB", "slots", "65", "1 to 64"),
        ("qht:bits=0,memory=1KiB", "bits", "0", "1 to 32"),
        ("qht:bits=33,memory=1KiB", "bits", "33", "1 to 32"),
        (
            "qht:slots=8,bits=32,memory=31B",
            "memory",
            "31 B",
            "at least 32 B (one row)",
        ),
        (
            "qht:slots=64,bits=8,rows=sorted,memory=1KiB",
            "rows",
            "64 slots",
            "2^32",
        ),
        (
            "qht:slots=4,bits=4,rows=sorted,memory=513B",
            "memory",
            "513 B",
            "at least 514 B (one row and the ranks' table of 512 B)",
        ),
        ("qqht:rows=sorted,memory=1KiB", "rows", "sorted", "packed"),
        ("rowlru:rows=sorted,memory=1KiB", "rows", "sorted", "packed"),
        ("sqf:r=28,memory=1KiB", "r", "28", "1 to 27"),
        ("sqf:r=2,kept=3,memory=1KiB", "kept", "3", "1 to 2"),
        ("cuckoo:kicks=0,memory=1KiB", "kicks", "0", "1 to 1000"),
        ("cuckoo:slots=0,memory=1KiB", "slots", "0", "1 to 64"),
        ("cuckoo:memory=3B", "memory", "3 B", "at least 4 B"),
        ("a2:k=3,fpr=0.1", "fpr", "0.1", "not both"),
        (
            "a2:fpr=0",
            "fpr",
            "0",
            "more than 5.42e-20 (k = 64), less than 1",
        ),
        ("a2:fpr=1", "fpr", "1", "less than 1"),
        ("a2:fpr=NaN", "fpr", "NaN", "less than 1"),
        (
            "a2:fpr=1e-30",
            "fpr",
            "0.000000000000000000000000000001",
            "more than 5.42e-20",
        ),
        (
            "dbuf:fpr=5.4e-20",
            "fpr",
            "0.000000000000000000054",
            "more than 5.42e-20",
        ),
        ("a2:k=0,memory=1KiB", "k", "0", "1 to 64"),
        ("a2:k=8,memory=4B", "memory", "4 B", "two keys"),
        ("lru:memory=23B", "memory", "23 B", "24 B to"),
        ("lru:q=0.5", "option", "q", "charge"),
        ("fpbuffer:q=1,memory=1KiB", "q", "1", "less than 1"),
    ];
    for (text, field, asked, allowed) in cases {
        let error = refusal(text);
        assert_eq!(error.field, field, "{text}: {error}");
        assert!(error.asked.starts_with(asked), "{text}: {error}");
        assert!(error.allowed.contains(allowed), "{text}: {error}");
    }
}

#[test]
fn what_is_at_the_end_of_its_range_can_be_built() {
    for text in [
        "bdbf:window=5679,memory=1MiB",
        "bdbf:c=8,window=1420,memory=1MiB",
        "bdbf:k=64,c=32,window=1,memory=1MiB",
        "sbf:reach=0.0001220703125,memory=1KiB",
        "a2:fpr=5.43e-20,memory=1KiB",
    ] {
        assert!(parse(text).build().is_ok(), "{text}");
    }
    assert_eq!(parse("a2:fpr=5.43e-20"), parse("a2:k=64"));
}

#[test]
fn semi_sorted_rows_keep_within_their_memory_with_their_table() {
    for name in ["qht", "qhtd", "sqf", "cuckoo"] {
        for memory in [5000, 20_000, 100_000] {
            let spec = parse(&format!("{name}:slots=2,rows=sorted")).with_memory(memory);
            let bytes = spec.build().expect(name).memory_bytes();
            // A word or two more, to read the last cell with its neighbour.
            assert!(bytes <= memory + 16, "{name}: {bytes} B of {memory} B");
        }
    }
}

#[test]
fn memory_that_no_machine_has_is_an_error_for_every_filter() {
    for name in FilterKind::NAMES {
        let enough = if name == "bdbf" { "bdbf:k=2" } else { name };
        let spec = parse(enough).with_memory(1 << 60);
        match spec.build().err() {
            Some(BuildError::Memory(error)) => assert!(error.bytes >= 1 << 57, "{name}: {error}"),
            // Its indices are 32 bits wide.
            Some(BuildError::Spec(error)) => {
                assert!(["lru", "fpbuffer"].contains(&name), "{name}: {error}");
            }
            other => panic!("{name} gives {other:?}"),
        }
    }
}

#[test]
fn a_tracked_share_misses_the_rest_and_nothing_else() {
    let spec = parse("bloom:k=4,memory=1MiB,tracked=0.8");
    let mut filter = spec.build().expect("valid");
    let hasher = echoless::KeyHasher::seeded(1);
    let mut missed = 0;
    for key in 0..50_000 {
        assert_eq!(filter.observe_one(hasher.hash_u64(key)), Verdict::Fresh);
        missed += u32::from(filter.observe_one(hasher.hash_u64(key)) == Verdict::Fresh);
    }
    let fnr = f64::from(missed) / 50_000.0;
    assert!((fnr - 0.2).abs() < 0.006, "{fnr}");
}

#[test]
fn the_load_of_every_filter_rises_from_nothing_and_is_cleared() {
    for text in EXAMPLES {
        let mut filter = parse(text).with_memory(4096).build().unwrap();
        assert_eq!(filter.load(), Some(0.0), "{text}");
        let mut last = 0.0;
        for key in 0..3000_u64 {
            filter.observe_one(KeyHash(key.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            if key == 10 {
                last = filter.load().unwrap();
                assert!(last > 0.0, "{text}");
            }
        }
        let load = filter.load().unwrap();
        assert!(load > last && load <= 1.0, "{text}: {load} after {last}");
        filter.clear();
        assert_eq!(filter.load(), Some(0.0), "{text}");
    }
}

#[test]
fn every_line_form_is_named_with_defaults_and_others_are_refused() {
    for name in FilterKind::NAMES {
        let spec = parse(&format!("{name}:form=line,memory=64KiB"));
        assert_eq!(parse(&spec.to_string()), spec);
        if LINE_NAMES.contains(&name) {
            assert_eq!(spec.build().expect(name).memory_bytes(), 64 << 10);
            assert_eq!(spec.build_partitions(3).expect(name).filters().len(), 3);
            let huge = spec.with_memory(200 << 30);
            assert!(matches!(huge.build(), Err(BuildError::Memory(_))), "{name}");
        } else {
            let error = refusal(&spec.to_string());
            assert_eq!((error.field, error.asked.as_str()), ("form", "line"));
            assert!(error.allowed.ends_with(&LINE_NAMES.join(", ")), "{error}");
        }
    }
}

#[test]
fn partitions_that_cannot_be_cut_are_refused() {
    let refusal = |text: &str, count| match parse(text).build_partitions(count).err() {
        Some(BuildError::Spec(error)) => error.to_string(),
        other => panic!("{text} gives {other:?}"),
    };
    let scattered = refusal("bloom:memory=1KiB", 2);
    assert!(scattered.starts_with("form: scattered is not possible; allowed: line"));
    assert!(refusal("bloom:form=line,memory=128B", 3).contains("1 to 2"));
    assert!(refusal("bloom:form=line,memory=128B", 0).contains("1 to 2"));
    assert!(refusal("a2:form=line,memory=128B", 1).starts_with("form: line"));
}

#[test]
fn tracked_partitions_judge_as_the_tracked_whole_does() {
    let spec = parse("bsbf:k=2,form=line,memory=4KiB,seed=3,tracked=0.6");
    let mut whole = spec.build().expect("valid");
    let mut parts = spec.build_partitions(5).expect("valid");
    let hasher = echoless::KeyHasher::seeded(1);
    let mut duplicates = 0;
    for arrival in 0..20_000_u64 {
        let key = hasher.hash_u64(arrival * arrival % 7919);
        let owner = parts.partitioning().of(key);
        let verdict = whole.observe_one(key);
        duplicates += u32::from(verdict == Verdict::Duplicate);
        assert_eq!(parts.filters_mut()[owner].observe_one(key), verdict);
    }
    assert!(duplicates > 3000);
}

#[test]
fn every_row_filter_that_can_be_built_has_the_name_that_it_is_read_by() {
    let fingerprints = [
        Fingerprint::Nonzero { bits: 5 },
        Fingerprint::Counted {
            remainder: 4,
            kept: 2,
        },
    ];
    let mut built = 0;
    for fingerprint in fingerprints {
        for victim in [Victim::Random, Victim::Oldest] {
            for on_hit in [OnHit::Keep, OnHit::InsertAgain, OnHit::MoveToFront] {
                let rows = RowSpec {
                    slots: 2,
                    fingerprint,
                    victim,
                    on_hit,
                    form: RowForm::Packed,
                };
                let spec = FilterSpec::new(FilterKind::Rows(rows)).with_memory(1024);
                match spec.build() {
                    Ok(_) => {
                        built += 1;
                        assert_eq!(parse(&spec.to_string()), spec);
                    }
                    Err(BuildError::Spec(error)) => {
                        assert!(["fingerprint", "on hit"].contains(&error.field), "{error}");
                    }
                    Err(error) => panic!("{rows:?}: {error}"),
                }
            }
        }
    }
    // SQF, QHT, QHTD, QQHT, QQHTD and row-LRU.
    assert_eq!(built, 6);
}

#[test]
fn the_line_form_by_itself_is_of_any_form_and_of_all_keys() {
    for form in [Form::Scattered, Form::Line] {
        let spec = parse("rowlru:slots=8,bits=64,memory=1KiB").with_form(form);
        let lines = spec
            .line_spec()
            .expect("a line form")
            .build()
            .expect("small");
        assert_eq!(lines.lines().len(), 16);
        let shared = spec.with_tracked(TrackedShare::new(0.5).expect("in range"));
        let error = shared.line_spec().expect_err("a share");
        assert_eq!((error.field, error.asked.as_str()), ("tracked", "0.5"));
    }
}
