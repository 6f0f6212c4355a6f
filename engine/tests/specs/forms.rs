//! What filters of all names and forms have in common once they are built: lines, partitions, tracked shares, load, memory.

use echoless::filters::adapters::tracked::TrackedFraction;
use echoless::spec::{FilterKind, Form};
use echoless::{BuildError, Filter, KeyHash, Verdict};

use crate::refusals::refusal;
use crate::{EXAMPLES, LINE_NAMES, parse};

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
            // A partition of it would fit.
            let Some(BuildError::Memory(error)) = huge.build_partitions(1 << 20).err() else {
                panic!("{name}: partitions of more memory than there is");
            };
            assert_eq!(error.bytes, 200 << 30, "{name}");
        } else {
            let error = refusal(&spec.to_string());
            assert_eq!((error.field, error.asked.as_str()), ("form", "line"));
            assert!(error.allowed.ends_with(&LINE_NAMES.join(", ")), "{error}");
        }
    }
}

#[test]
fn queues_in_lines_are_fingerprint_lines_and_nothing_else_is() {
    let hasher = echoless::KeyHasher::seeded(5);
    let mut found = 0;
    for name in LINE_NAMES {
        let spec = parse(&format!("{name}:form=line,memory=4KiB"));
        let queue = ["qqht", "qqhtd", "rowlru"].contains(&name);
        assert_eq!(spec.fingerprints().is_some(), queue, "{name}");
        let Some(fingerprints) = spec.fingerprints() else {
            continue;
        };
        let (mut named, mut direct) =
            (spec.build().expect(name), fingerprints.build().expect(name));
        for arrival in 0..50_000_u64 {
            let key = hasher.hash_u64(arrival * arrival % 7919);
            assert_eq!(named.observe_one(key), direct.observe_one(key), "{name}");
        }
        found += direct.report().evictions;
    }
    assert!(found > 0);
    for text in [
        "qqht:slots=32,bits=16,memory=4KiB",
        "qqht:form=line",
        "qqht:form=line,slots=5,memory=4KiB",
        "qqht:form=line,memory=63B",
        "qqht:form=line,memory=4KiB,tracked=0.5",
    ] {
        assert_eq!(parse(text).fingerprints(), None, "{text}");
    }
}

#[test]
fn partitions_that_cannot_be_cut_are_refused() {
    let refusal = |text: &str, count| match parse(text).build_partitions(count).err() {
        Some(BuildError::Spec(error)) => error.to_string(),
        other => panic!("{text} gives {other:?}"),
    };
    let scattered = refusal("bloom:memory=1KiB", 2);
    assert!(scattered.starts_with("invalid form=scattered: expected line"));
    assert!(refusal("bloom:form=line,memory=128B", 3).contains("1 to 2"));
    assert!(refusal("bloom:form=line,memory=128B", 0).contains("1 to 2"));
    assert!(refusal("a2:form=line,memory=128B", 1).starts_with("invalid form=line: "));
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
        let owner = parts.partitioning().partition_of(key);
        let verdict = whole.observe_one(key);
        duplicates += u32::from(verdict == Verdict::Duplicate);
        assert_eq!(parts.filters_mut()[owner].observe_one(key), verdict);
    }
    assert!(duplicates > 3000);
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
        let shared = spec.with_tracked(TrackedFraction::new(0.5).expect("in range"));
        let error = shared.line_spec().expect_err("a share");
        assert_eq!((error.field, error.asked.as_str()), ("tracked", "0.5"));
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
