//! Horizontal slices: equal to the undivided line filter, and to one plain filter a slice.

use echoless::spec::Form;
use echoless::{Filter, KeyHash, Verdicts};
use proptest::prelude::*;

use crate::harness::{Event, PlainBloom, build, events, fail, is_duplicate, key, parse, restore};

/// The slice of a key: by a hash that depends on how many horizontal cuts are further in.
fn slice_of(key: KeyHash, inner_cuts: u64, slices: u64) -> usize {
    KeyHash::from_uniform(key.remix(0x736c_6963_6573_0000 + inner_cuts)).line(slices) as usize
}

const LINE_FILTERS: [&str; 8] = [
    "bloom:k=4",
    "bsbf:k=2",
    "rlbsbf:k=3",
    "sbf:k=2,p=4",
    "fpsbf:k=2,c=2,f=14,xi=0.5",
    "qhtd:slots=31,bits=16",
    "rowlru:slots=16,bits=32",
    "clocked:window=700",
];

proptest! {
    #[test]
    fn sliced_line_filters_are_the_undivided_one(
        name in prop::sample::select(LINE_FILTERS.to_vec()),
        lines in 1_u64..70,
        slices in 1_u64..70,
        parts in 1_usize..70,
        tracked in prop::sample::select(vec![1.0, 0.7]),
        seed in any::<u64>(),
        keys in prop::collection::vec(0_u64..2000, 0..3000),
    ) {
        let slices = slices.min(lines);
        let parts = parts.min(lines as usize);
        let text = format!("{name},form=line,memory={},seed={seed},tracked={tracked}", lines * 64);
        let spec = parse(&format!("horizontal:slices={slices}/{text}"));
        let (mut sliced, mut whole) = (spec.build().unwrap(), build(&text));
        prop_assert_eq!(sliced.slices().unwrap().slice_count() as u64, slices);
        let keys: Vec<KeyHash> = keys.into_iter().map(key).collect();
        let (mut verdicts, mut expected) = (Verdicts::new(), Verdicts::new());
        for (tick, keys) in keys.chunks(500).enumerate() {
            sliced.advance_to(200 * tick as u64);
            whole.advance_to(200 * tick as u64);
            whole.observe(keys, &mut expected);
            sliced.observe(keys, &mut verdicts);
            prop_assert_eq!(&verdicts, &expected);
        }
        let (mut report, expected) = (sliced.report(), whole.report());
        prop_assert_eq!(report.tally.unavailable.take(), Some(0));
        prop_assert_eq!(report, expected);
        // Its partitions are those of the undivided filter, for any number of slices.
        let mut partitions = spec.build_partitions(parts).unwrap();
        let mut whole = build(&text);
        for key in keys {
            let owner = partitions.partitioning().partition_of(key);
            let expected = whole.observe_one(key);
            prop_assert_eq!(partitions.filters_mut()[owner].observe_one(key), expected);
        }
    }

    #[test]
    fn scattered_slices_agree_with_plain_ones_through_failures(
        slices in 1_usize..20,
        hashes in 1_usize..6,
        share in 8_usize..60,
        fresh in any::<bool>(),
        events in events(),
    ) {
        let (name, lost) = if fresh { ("fresh", false) } else { ("duplicate", true) };
        let text = format!(
            "horizontal:slices={slices},failed={name}/bloom:k={hashes},memory={}",
            share * slices + slices / 2,
        );
        let mut filter = build(&text);
        let empty = PlainBloom::new(hashes, share);
        let mut model: Vec<Option<PlainBloom>> = vec![Some(empty.clone()); slices];
        let (mut observed, mut new, mut unavailable) = (0, 0, 0);
        for event in events {
            match event {
                Event::Key(number) => {
                    let key = key(number);
                    let expected = match &mut model[slice_of(key, 0, slices as u64)] {
                        None => {
                            unavailable += 1;
                            lost
                        }
                        Some(slice) => {
                            let held = slice.holds(key);
                            slice.insert(key);
                            held
                        }
                    };
                    observed += 1;
                    new += u64::from(!expected);
                    prop_assert_eq!(is_duplicate(&mut *filter, key), expected);
                }
                Event::Fail(slice) => {
                    model[slice % slices] = None;
                    fail(&mut *filter, &[slice % slices]).unwrap();
                }
                Event::Restore(slice) => {
                    let slice = slice % slices;
                    model[slice].get_or_insert_with(|| empty.clone());
                    restore(&mut *filter, &[slice]).unwrap();
                }
            }
        }
        for (slice, state) in model.iter().enumerate() {
            let failed = filter.slices().unwrap().is_failed(&[slice]).unwrap();
            prop_assert_eq!(failed, state.is_none());
        }
        for key in (0..300).map(key) {
            let slice = &model[slice_of(key, 0, slices as u64)];
            let expected = slice.as_ref().map_or(lost, |slice| slice.holds(key));
            prop_assert_eq!(filter.contains(key), expected);
        }
        let ones: usize = model.iter().flatten().map(PlainBloom::ones).sum();
        let tally = filter.tally();
        prop_assert_eq!(tally.cells.map(|cells| cells.occupied), Some(ones as u64));
        let counted = (tally.observed, tally.fresh, tally.unavailable);
        prop_assert_eq!(counted, (Some(observed), Some(new), Some(unavailable)));
        filter.clear();
        prop_assert!((0..300).all(|number| !filter.contains(key(number))));
    }

    #[test]
    fn failed_line_slices_lose_their_range_of_lines_and_nothing_else(
        slices in 1_usize..16,
        failed in any::<prop::sample::Index>(),
        fresh in any::<bool>(),
    ) {
        let failed = failed.index(slices);
        let (name, lost) = if fresh { ("fresh", false) } else { ("duplicate", true) };
        let text = "rowlru:form=line,memory=64KiB";
        let mut sliced = build(&format!("horizontal:slices={slices},failed={name}/{text}"));
        let owners = parse(text).build_partitions(slices).unwrap();
        let owner = |key| owners.partitioning().partition_of(key);
        for number in 0..500 {
            prop_assert!(!is_duplicate(&mut *sliced, key(number)));
        }
        prop_assert_eq!(sliced.report().tally.evictions, Some(0));
        fail(&mut *sliced, &[failed]).unwrap();
        for number in 0..500 {
            let expected = owner(key(number)) != failed || lost;
            prop_assert_eq!(is_duplicate(&mut *sliced, key(number)), expected);
        }
        let report = sliced.report();
        // Keys were lost, so no promise is left.
        prop_assert_eq!((report.tally.evictions, report.miss_age), (None, None));
        let share = if lost { 1.0 / slices as f64 } else { 0.0 };
        prop_assert!((report.expected_fpr.unwrap() - share).abs() < 1e-5);
        restore(&mut *sliced, &[failed]).unwrap();
        for number in 0..500 {
            let expected = owner(key(number)) != failed;
            prop_assert_eq!(is_duplicate(&mut *sliced, key(number)), expected);
        }
    }
}

#[test]
fn a_restored_slice_has_the_clock_of_the_others() {
    let mut filter = build("horizontal:slices=2/clocked:window=100,memory=1KiB");
    filter.advance_to(5000);
    fail(&mut *filter, &[0]).unwrap();
    fail(&mut *filter, &[1]).unwrap();
    filter.advance_to(10_000);
    restore(&mut *filter, &[0]).unwrap();
    restore(&mut *filter, &[1]).unwrap();
    for number in 0..20 {
        assert!(!is_duplicate(&mut *filter, key(number)));
    }
    // With a clock at 0, this would be an age of 10,050 ticks for the slices.
    filter.advance_to(10_050);
    for number in 0..20 {
        assert!(is_duplicate(&mut *filter, key(number)));
    }
}

#[test]
fn nested_slices_are_chosen_independently() {
    let mut filter = build("horizontal:slices=8/horizontal:slices=8/bloom:k=4,memory=64KiB");
    for number in 0..4000 {
        filter.observe_one(key(number));
    }
    // A key of outer slice 0 may belong to any inner slice: failing one of eight loses 1/64.
    fail(&mut *filter, &[0, 3]).unwrap();
    let slices = filter.slices().unwrap();
    assert_eq!(slices.is_failed(&[0, 3]), Ok(true));
    assert_eq!(slices.is_failed(&[0]), Ok(false));
    for number in 4000..68_000 {
        filter.observe_one(key(number));
    }
    let lost = filter.tally().unavailable.unwrap() as f64;
    assert!((900.0..1100.0).contains(&lost), "{lost} of 64000");
    assert_eq!(slice_of(key(5), 1, 8), {
        let loads = build("horizontal:slices=8/horizontal:slices=8/bloom:k=4,memory=64KiB");
        let mut loads = loads;
        loads.observe_one(key(5));
        let loads = loads.slices().unwrap().loads().to_vec();
        loads.iter().position(|load| *load == 1).unwrap()
    });
}

#[test]
fn slices_that_draw_at_random_draw_from_seeds_of_their_own() {
    let seeded = |seed: u64| {
        let mut filter = build(&format!(
            "horizontal:slices=3/rlbsbf:k=2,memory=300B,seed={seed}"
        ));
        let keys: Vec<KeyHash> = (0..4000).map(|number| key(number % 700)).collect();
        let mut verdicts = Verdicts::new();
        filter.observe(&keys, &mut verdicts);
        let batch = verdicts.clone();
        filter.clear();
        // Key by key, once cleared: the same verdicts.
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(filter.observe_one(*key), batch.get(index));
        }
        batch
    };
    assert_eq!(seeded(1), seeded(1));
    assert_ne!(seeded(1), seeded(2));
}

#[test]
fn what_a_specification_tells_of_slices_is_that_of_the_filter() {
    let spec = |text: &str| echoless_papers::parse(text).unwrap();
    for text in [
        "bloom:k=3,form=line,memory=1KiB",
        "rowlru:form=line,memory=1KiB",
    ] {
        let (whole, sliced) = (spec(text), spec(&format!("horizontal:slices=4/{text}")));
        assert_eq!(sliced.facts().rate_model, whole.facts().rate_model);
        assert_eq!(sliced.facts().fpr_limit, whole.facts().fpr_limit);
        assert_eq!(sliced.facts().cache_lines, 1.0);
        assert_eq!(sliced.facts().most_memory, whole.facts().most_memory);
        assert!(sliced.has_partitions());
        // Without the adapter only the form differs.
        assert!(!sliced.form(Form::Scattered).has_partitions());
        assert!(sliced.build_lines().is_err());
    }
    let sliced = spec("horizontal:slices=4/qht:slots=2,bits=8,memory=4KiB");
    let slice = spec("qht:slots=2,bits=8,memory=1KiB");
    assert_eq!(sliced.facts().fpr_limit, slice.facts().fpr_limit);
    assert_eq!(sliced.facts().rate_model, None);
    let lru = spec("lru").facts().most_memory;
    assert_eq!(spec("horizontal:slices=4/lru").facts().most_memory, 4 * lru);
    let window = spec("clocked:window=70").facts().window;
    assert_eq!(
        spec("horizontal:slices=4/clocked:window=70").facts().window,
        window
    );
}

#[test]
fn a_slice_of_pieces_has_failed_with_all_of_them_and_is_restored_with_all() {
    for text in [
        "horizontal:slices=2/vertical:slices=3/bloom:k=4,memory=2KiB",
        "horizontal:slices=2/horizontal:slices=3/bloom:k=4,memory=2KiB",
        "vertical:slices=2/horizontal:slices=3/bloom:k=4,memory=2KiB",
    ] {
        let mut filter = build(text);
        let is_failed = |filter: &mut dyn Filter, path: &[usize]| {
            filter.slices().unwrap().is_failed(path).unwrap()
        };
        for piece in 0..3 {
            assert!(!is_failed(&mut *filter, &[1]), "{text}");
            fail(&mut *filter, &[1, piece]).unwrap();
        }
        assert!(is_failed(&mut *filter, &[1]), "{text}");
        assert!(!is_failed(&mut *filter, &[0]), "{text}");
        restore(&mut *filter, &[1]).unwrap();
        assert!(
            (0..3).all(|piece| !is_failed(&mut *filter, &[1, piece])),
            "{text}"
        );
        fail(&mut *filter, &[1]).unwrap();
        assert!(
            (0..3).all(|piece| is_failed(&mut *filter, &[1, piece])),
            "{text}"
        );
        restore(&mut *filter, &[1]).unwrap();
        assert!(
            (0..3).all(|piece| !is_failed(&mut *filter, &[1, piece])),
            "{text}"
        );
    }
}
