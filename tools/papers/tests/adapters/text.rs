//! The text and the file form of nested specifications, and the errors about them.

use echoless::spec::{TrackedFraction, catalogue};
use echoless::{BuildError, FilterSpec};
use proptest::prelude::*;

use crate::harness::{build, fail, is_duplicate, key, parse};

/// Every adapter with each of its options, alone and nested.
const EXAMPLES: &[&str] = &[
    "horizontal:slices=5,failed=fresh/bloom:k=7",
    "horizontal:slices=3,failed=duplicate/rowlru:slots=8,bits=64,rows=packed,form=line",
    "horizontal:slices=2,failed=fresh/lru:charge=full",
    "horizontal:slices=2,failed=fresh/clocked:window=600,refresh=true,bits=16,dense=false",
    "vertical:slices=40,failed=duplicate,probe=parallel/bloom:k=8",
    "vertical:slices=40,failed=hybrid,least=3,probe=pipelined/bloom:k=8",
    "vertical:slices=9,failed=repaired,least=2,probe=parallel/bloom:k=2",
    "vertical:slices=9,failed=fresh,probe=parallel/horizontal:slices=4,failed=duplicate/bloom:k=3",
    "growing:fpr=0.05,threshold=cardinality/bloom:k=3",
    "growing:fpr=0.2,threshold=density,step=64B/bloom:k=3",
    "horizontal:slices=2,failed=fresh/growing:fpr=0.2,threshold=density,step=64B/bloom:k=3",
    "growing:fpr=0.2,threshold=density,step=64B/tbf:window=600,k=3,equal=1,refresh=false",
    "vertical:slices=9,failed=fresh,probe=parallel/tbf:window=600,k=3,equal=1,refresh=false,bits=6",
    "tree:levels=3,fanout=2,mode=sparse,topdown=1/bloom:k=2",
    "tree:levels=2,fanout=3,mode=dense,topdown=0/rowlru:slots=8,bits=64,rows=packed,form=line",
    "horizontal:slices=2,failed=fresh/tree:levels=2,fanout=2,mode=sparse,topdown=0/bloom:k=3",
    "horizontal:slices=2,failed=fresh/horizontal:slices=2,failed=duplicate\
     /horizontal:slices=2,failed=fresh/vertical:slices=3,failed=fresh,probe=parallel/bloom:k=3",
];

proptest! {
    #[test]
    fn text_and_files_preserve_adapters(
        example in prop::sample::select(EXAMPLES),
        memory in prop::option::of(any::<u64>()),
        seed in any::<u64>(),
        fraction in 1e-9_f64..=1.0,
    ) {
        let spec = parse(example);
        prop_assert_eq!(spec.to_string(), example);
        let fraction = TrackedFraction::new(fraction).unwrap();
        let mut spec = spec.seed(seed).tracked(fraction);
        if let Some(memory) = memory {
            spec = spec.memory(memory);
        }
        prop_assert_eq!(parse(&spec.to_string()), spec);
        {
            let table = serde_json::to_string(&spec).unwrap();
            prop_assert_eq!(serde_json::from_str::<FilterSpec>(&table).unwrap(), spec);
            let text = serde_json::to_string(&spec.to_string()).unwrap();
            prop_assert_eq!(serde_json::from_str::<FilterSpec>(&text).unwrap(), spec);
        }
    }
}

#[test]
fn every_example_finds_a_duplicate_and_forgets_it() {
    let adapters = catalogue().into_iter().filter(|entry| entry.form.is_none());
    let mut names: Vec<&str> = adapters.map(|entry| entry.name).collect();
    for &example in EXAMPLES {
        let spec = parse(example);
        names.retain(|name| !example.contains(&format!("{name}:")));
        for spec in [spec, spec.tracked(TrackedFraction::new(0.999).unwrap())] {
            let mut filter = spec.memory(4096).seed(3).build().expect(example);
            let key = key(17);
            assert!(!is_duplicate(&mut *filter, key), "{example}");
            assert!(is_duplicate(&mut *filter, key), "{example}");
            let tally = filter.tally();
            assert_eq!(
                (tally.observed, tally.fresh),
                (Some(2), Some(1)),
                "{example}"
            );
            // Tracked filters give access to their slices as well.
            assert_eq!(
                filter.slices().is_some(),
                !example.starts_with("growing") && !example.starts_with("tree"),
                "{example}"
            );
            filter.clear();
            assert!(!filter.contains(key), "{example}");
            assert_eq!(filter.report().fill(), Some(0.0), "{example}");
        }
    }
    assert_eq!(names, Vec::<&str>::new(), "no example has these adapters");
}
#[test]
fn files_hold_adapters_in_one_string() {
    let spec = parse("horizontal:slices=8/growing/bloom:k=2,memory=64KiB");
    let expected = serde_json::json!({
        "adapters": "horizontal:slices=8,failed=duplicate/growing:fpr=0.01,threshold=density",
        "filter": "bloom", "k": 2, "memory": "64KiB",
    });
    assert_eq!(serde_json::to_value(spec).unwrap(), expected);
    for wrong in [
        r#"{"filter": "bloom", "adapters": "bloom"}"#,
        r#"{"filter": "bloom", "adapters": "horizontal/"}"#,
        r#"{"filter": "bloom", "adapters": "horizontal", "adapters": "horizontal"}"#,
        r#"{"adapters": "horizontal"}"#,
        r#"{"filter": "horizontal/bloom"}"#,
    ] {
        assert!(
            serde_json::from_str::<FilterSpec>(wrong).is_err(),
            "{wrong}"
        );
    }
    let none = r#"{"filter": "bloom", "adapters": ""}"#;
    assert_eq!(
        serde_json::from_str::<FilterSpec>(none).unwrap(),
        parse("bloom")
    );
}

#[test]
fn partitions_and_lines_of_adapted_filters_are_built_or_rejected() {
    let message = |text: &str| match parse(text).build_partitions(2).err() {
        Some(BuildError::Spec(error)) => error.to_string(),
        other => panic!("{text}: expected a specification error, not {other:?}"),
    };
    let scattered = message("horizontal:slices=2/bloom:memory=1KiB");
    assert!(scattered.starts_with("invalid form=scattered: expected line"));
    let nested = message("horizontal/horizontal/bloom:form=line,memory=8KiB");
    assert!(nested.ends_with("expected none, or horizontal alone, in a filter to be partitioned"));
    // The slices are checked, although the partitions do not depend on them.
    let many = message("horizontal:slices=17/bloom:form=line,memory=1KiB");
    assert_eq!(many, "invalid slices=17: expected 1 to 16 (one line each)");
    let lines = parse("horizontal:slices=2/bloom:form=line,memory=1KiB").build_lines();
    let expected = "invalid adapters=horizontal:slices=2,failed=duplicate: expected none, \
                    because access to the lines needs the filter itself";
    assert_eq!(lines.unwrap_err().to_string(), expected);
}

#[test]
fn every_filter_can_be_sliced_horizontally() {
    for name in FilterSpec::names() {
        let name = if name == "bdbf" { "bdbf:k=2,c=8" } else { name };
        let mut filter = build(
            &parse(&format!("horizontal:slices=3/{name}"))
                .memory(64 << 10)
                .to_string(),
        );
        assert!(!is_duplicate(&mut *filter, key(1)), "{name}");
        assert!(is_duplicate(&mut *filter, key(1)), "{name}");
    }
}

#[test]
fn a_tree_tells_of_all_its_nodes() {
    let node = parse("bloom:k=4,form=line,memory=1KiB");
    let tree = parse("tree:levels=2,fanout=2/bloom:k=4,form=line,memory=3KiB");
    // Its verdicts are those of one node, a key touches a node in each level.
    assert_eq!(tree.facts().rate_model, node.facts().rate_model);
    assert_eq!(tree.facts().cache_lines, 2.0 * node.facts().cache_lines);
    assert_eq!(tree.facts().most_memory, 3 * node.facts().most_memory);
    let topdown = parse("tree:levels=2,fanout=2,topdown=1/bloom:k=4,form=line,memory=3KiB");
    assert_eq!(topdown.facts().rate_model, None);
    let row = |text: &str| parse(text).facts().fpr_limit.expect("bounded");
    let limit = row("rowlru:slots=16,bits=32,form=line,memory=1KiB");
    let of_tree = row("tree:levels=2,fanout=2/rowlru:slots=16,bits=32,form=line,memory=3KiB");
    assert_eq!(of_tree, 2.0 * limit);
    let timed = parse("tree:levels=2/clocked:window=500,memory=3KiB")
        .facts()
        .window;
    assert_eq!(timed, parse("clocked:window=500").facts().window);
    let stable = parse("tree:levels=2/sbf:k=2,p=4,memory=3KiB");
    assert_eq!(stable.facts().rate_model, None);
}

#[test]
fn slices_that_do_not_exist_are_rejected() {
    let message =
        |text: &str, path: &[usize]| fail(&mut *build(text), path).unwrap_err().to_string();
    let (plain, cut) = (
        "horizontal:slices=3/lru:memory=1KiB",
        "vertical:slices=3/bloom:memory=1KiB",
    );
    let diced = "horizontal:slices=3/vertical:slices=2/bloom:memory=1KiB";
    let reverse = "vertical:slices=2/horizontal:slices=3/bloom:memory=1KiB";
    for (text, path, expected) in [
        (
            plain,
            &[3][..],
            "invalid slice=3: expected 0 to 2 in each place",
        ),
        (plain, &[], "missing slice: expected the index of a slice"),
        (plain, &[1, 0], "invalid slice=1/0: expected one index"),
        (cut, &[3], "invalid slice=3: expected 0 to 2"),
        (
            cut,
            &[1, 0],
            "invalid slice=1/0: expected the index of a slice",
        ),
        (cut, &[], "missing slice: expected the index of a slice"),
        (diced, &[0, 2], "invalid slice=2: expected 0 to 1"),
        (reverse, &[1, 3], "invalid slice=1/3: expected 0 to 2"),
        (
            reverse,
            &[1, 1, 1],
            "invalid slice=1/1/1: expected the index of a slice, or",
        ),
    ] {
        let error = message(text, path);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    assert!(build("lru:memory=1KiB").slices().is_none());
}
