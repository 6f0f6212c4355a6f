//! Properties of the built filters of all names and forms: lines, partitions, tracked fractions,
//! fill, memory and cache lines.

use echoless::spec::{Form, TrackedFraction, catalogue};
use echoless::{BuildError, Filter, FilterSpec, FingerprintSpec, KeyHash, Replacement, Verdict};

use crate::rejections::rejection;
use crate::{EXAMPLES, LINE_NAMES, parse};

#[test]
fn line_forms_build_from_their_name_and_other_filters_are_rejected() {
    let catalogue = catalogue().into_iter();
    let in_lines = catalogue.filter(|entry| entry.form == Some(Form::Line));
    let in_lines: Vec<&str> = in_lines.map(|entry| entry.name).collect();
    assert_eq!(LINE_NAMES[..], in_lines, "the list in `main.rs` is another");
    for name in FilterSpec::names() {
        let spec = parse(&format!("{name}:form=line,memory=64KiB"));
        assert_eq!(parse(&spec.to_string()), spec);
        if LINE_NAMES.contains(&name) {
            assert_eq!(spec.build().expect(name).memory_bytes(), 64 << 10);
            assert_eq!(spec.build_partitions(3).expect(name).filters().len(), 3);
            let huge = spec.memory(200 << 30);
            assert!(matches!(huge.build(), Err(BuildError::Memory(_))), "{name}");
            // A single partition would fit.
            let Some(BuildError::Memory(error)) = huge.build_partitions(1 << 20).err() else {
                panic!("{name}: partitions exceed the memory in total, but were built");
            };
            assert_eq!(error.bytes, 200 << 30, "{name}");
        } else {
            let error = rejection(&spec.to_string());
            assert_eq!((error.field, error.asked.as_str()), ("form", "line"));
            assert!(error.allowed.ends_with(&LINE_NAMES.join(", ")), "{error}");
        }
    }
}

#[test]
fn a_fingerprint_specification_and_its_name_build_the_same_filter() {
    let hasher = echoless::KeyHasher::seeded(5);
    for replacement in Replacement::ALL {
        let spec = FingerprintSpec::new(4 << 10).max_fpr(1e-3);
        let spec = spec.replacement(*replacement);
        let named = FilterSpec::try_from(&spec).expect("valid");
        assert_eq!(named.name(), replacement.filter_name());
        assert_eq!(parse(&named.to_string()), named);
        let (mut direct, mut named) = (spec.build().unwrap(), named.build().unwrap());
        for arrival in 0..50_000_u64 {
            let key = hasher.hash_u64(arrival * arrival % 7919);
            assert_eq!(
                named.observe_one(key),
                direct.observe_one(key),
                "{replacement}"
            );
        }
        assert_eq!(named.report(), direct.report());
        assert!(named.report().tally.evictions > Some(0));
    }
}

#[test]
fn only_a_form_that_exists_has_partitions() {
    for name in FilterSpec::names() {
        for adapters in ["", "horizontal:slices=2/"] {
            let spec = parse(&format!("{adapters}{name}:form=line,memory=64KiB"));
            assert_eq!(spec.has_partitions(), LINE_NAMES.contains(&name), "{spec}");
            assert_eq!(
                spec.build_partitions(2).is_ok(),
                spec.has_partitions(),
                "{spec}"
            );
            assert_eq!(spec.most_partitions() > 1, spec.has_partitions(), "{spec}");
        }
    }
}

#[test]
fn another_form_keeps_the_options() {
    for text in EXAMPLES {
        let spec = parse(text).memory(4096);
        for form in Form::ALL {
            let other = spec.form(*form);
            assert_eq!(other.form(spec.form), spec, "{text}");
            // The text parses to the same filter, or names what neither of them can have.
            match other.to_string().parse::<FilterSpec>() {
                Ok(parsed) => assert_eq!(parsed, other, "{text}"),
                Err(error) => assert!(
                    other.build().is_err(),
                    "{other} can be built, and its text is rejected: {error}"
                ),
            }
        }
    }
    // The default of scattered rows, which lines do not have.
    let rows = parse("qqht").memory(4096).form(Form::Line);
    assert_eq!(
        rows.to_string(),
        "qqht:slots=1,bits=3,rows=packed,form=line,memory=4KiB"
    );
    assert_eq!(rejection(&rows.to_string()).field, "bits");
    assert!(rows.build().is_err());
}

#[test]
fn the_age_of_misses_is_that_of_the_report() {
    let mut ages = 0;
    for text in EXAMPLES {
        for adapters in [
            "",
            "horizontal:slices=8/",
            "horizontal:slices=3/horizontal:slices=2/",
        ] {
            let spec = parse(&format!("{adapters}{text}")).memory(64 << 10);
            let Ok(filter) = spec.build() else {
                assert_eq!(spec.miss_age(), None, "{spec}");
                continue;
            };
            match (spec.miss_age(), filter.report().miss_age) {
                (Some(told), Some(found)) => {
                    assert!((told.age / found.age - 1.0).abs() < 1e-9, "{spec}");
                    assert_eq!(told.since, found.since, "{spec}");
                    ages += 1;
                }
                (told, found) => assert_eq!(told, found, "{spec}"),
            }
        }
    }
    assert!(ages >= 12, "{ages}");
    let slices = parse("horizontal:slices=17/rowlru:form=line,memory=1KiB");
    assert_eq!(slices.miss_age(), None, "more slices than lines");
}

#[test]
fn impossible_partitions_are_rejected() {
    let rejection = |text: &str, count| match parse(text).build_partitions(count).err() {
        Some(BuildError::Spec(error)) => error.to_string(),
        other => panic!("{text}: expected a specification error, not {other:?}"),
    };
    let scattered = rejection("bloom:memory=1KiB", 2);
    assert!(scattered.starts_with("invalid form=scattered: expected line"));
    assert!(rejection("bloom:form=line,memory=128B", 3).contains("1 to 2"));
    assert!(rejection("bloom:form=line,memory=128B", 0).contains("1 to 2"));
    assert!(rejection("a2:form=line,memory=128B", 1).starts_with("invalid form=line: "));
}

#[test]
fn tracked_partitions_give_the_verdicts_of_the_tracked_whole() {
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
fn build_lines_ignores_the_form_and_rejects_tracked_fractions() {
    for form in Form::ALL {
        let spec = parse("rowlru:slots=8,bits=64,memory=1KiB").form(*form);
        assert_eq!(spec.build_lines().expect("small").lines().len(), 16);
        let tracked = spec.tracked(TrackedFraction::new(0.5).expect("in range"));
        match tracked.build_lines().unwrap_err() {
            BuildError::Spec(error) => {
                assert_eq!((error.field, error.asked.as_str()), ("tracked", "0.5"));
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_tracked_fraction_misses_all_other_keys_and_no_tracked_one() {
    let spec = parse("bloom:k=4,memory=1MiB,tracked=0.8");
    let mut filter = spec.build().expect("valid");
    let hasher = echoless::KeyHasher::seeded(1);
    let mut missed = 0;
    for key in 0..50_000 {
        assert_eq!(filter.observe_one(hasher.hash_u64(key)), Verdict::Fresh);
        missed += u32::from(filter.observe_one(hasher.hash_u64(key)) == Verdict::Fresh);
    }
    let fnr = f64::from(missed) / 50_000.0;
    assert!((fnr - 0.2).abs() < 0.006, "FNR {fnr}");
}

#[test]
fn the_fill_of_every_filter_rises_from_zero_until_it_is_cleared() {
    for text in EXAMPLES {
        let mut filter = parse(text).memory(4096).build().unwrap();
        assert_eq!(filter.report().fill(), Some(0.0), "{text}");
        let mut last = 0.0;
        for key in 0..3000_u64 {
            filter.observe_one(KeyHash::from_uniform(
                key.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ));
            if key == 10 {
                last = filter.report().fill().unwrap();
                assert!(last > 0.0, "{text}");
            }
        }
        let fill = filter.report().fill().unwrap();
        assert!(fill > last && fill <= 1.0, "{text}: {fill} after {last}");
        filter.clear();
        assert_eq!(filter.report().fill(), Some(0.0), "{text}");
    }
}

#[test]
fn semi_sorted_rows_and_their_table_fit_in_the_memory() {
    for name in ["qht", "qhtd", "sqf", "cuckoo"] {
        for memory in [5000, 20_000, 100_000] {
            let spec = parse(&format!("{name}:slots=2,rows=sorted")).memory(memory);
            let bytes = spec.build().expect(name).memory_bytes();
            // Up to two words more: the row store rounds up and adds a word.
            assert!(bytes <= memory + 16, "{name}: {bytes} B of {memory} B");
        }
    }
}

#[test]
fn cache_lines_are_as_documented() {
    for (text, lines) in [
        ("bloom:k=4", 4.0),
        ("bsbf:k=3", 6.0),
        ("bsbfsd:k=3", 4.0),
        ("rsbf:k=2", 4.0),
        // Five cells of one bit.
        ("sbf:k=2", 3.0 + 4.0 / 512.0),
        // 933 cells of 4 bits.
        ("sbf:k=2,d=4,fps=0.001", 3.0 + 932.0 * 4.0 / 512.0),
        // All cells: every line, and one more in memory that does not begin at one.
        ("sbf:k=2,p=8388608", 3.0 + 8_388_607.0 / 512.0),
        ("sbf:k=2,p=4,decrement=independent", 6.0),
        ("sbf:k=2,d=4,fps=0.001,form=line", 1.0),
        ("fpsbf:k=2,xi=0.5", 3.0),
        ("bdbf:window=1000,k=3", 3.0),
        ("bdbf:window=100000", 8.0),
        // Slots of 3 bits, of which a few cross the end of a line.
        ("qht", 1.0 + 2.0 / 512.0),
        ("qht:slots=4,bits=4", 1.0),
        ("qht:slots=64,bits=32", 1.0 + 4.0),
        ("qqht:slots=20,bits=16", 1.0 + (320.0 - 64.0) / 512.0),
        // Rows of whole pairs of words cross every end of a line, if they begin at odd words.
        ("qqht:slots=24,bits=16", 1.0 + 384.0 / 512.0),
        ("rowlru:slots=32,bits=16", 2.0),
        ("rowlru:slots=32,bits=16,form=line", 1.0),
        // Ranks of 12 bits.
        ("qhtd:slots=4,bits=4,rows=sorted", 1.0 + 8.0 / 512.0),
        ("sqf", 1.0 + 2.0 / 512.0),
        ("sqf:slots=64,r=10,kept=4", 2.0),
        ("cuckoo:kicks=3", 5.0),
        ("cuckoo:slots=64,bits=32,kicks=3", 5.0 * 5.0),
        ("a2:k=4", 8.0),
        ("lru", 8.0),
        ("tbf:k=5", 5.0),
        ("gbf:k=5", 5.0),
        ("apbf:window=600,k=5,l=6", 11.0),
        ("apbf:window=2,k=5,l=6", 7.0),
        ("rlbsbf:k=8,form=line", 1.0),
        ("clocked", 1.0),
        ("clocked:dense=true", 2.0),
        ("dense", 2.0),
    ] {
        let spec = parse(text).memory(1 << 20);
        assert_eq!(spec.facts().cache_lines, lines, "{text}");
    }
}

#[test]
fn information_about_parameters_that_cannot_be_built_is_none() {
    for text in [
        "sbf:p=9000,memory=1KiB",
        "sbf:d=3,decrement=independent,form=line,memory=1KiB",
    ] {
        let spec = parse(text);
        assert!(spec.build().is_err(), "{text}");
        assert_eq!(spec.facts().rate_model, None, "{text}");
        assert!(spec.facts().cache_lines >= 1.0, "{text}");
    }
    assert_eq!(parse("qht:memory=1KiB").facts().rate_model, None);
    // More slots in a row than fingerprints: every full row reports every key.
    assert_eq!(
        parse("qht:slots=16,bits=4,memory=1KiB").facts().fpr_limit,
        None
    );
    assert!(
        parse("qht:slots=1,bits=8,memory=1KiB")
            .facts()
            .fpr_limit
            .is_some()
    );
}
