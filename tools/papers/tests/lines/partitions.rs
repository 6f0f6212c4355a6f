//! Every kind of line filter returns the same verdicts in batches of any length, whole and in
//! partitions.

use echoless::{Batch, Filter, KeyHash, KeyHasher, Verdicts};
use proptest::prelude::*;

use crate::harness::parse;
use crate::verdicts::observe_all;

const KINDS: [&str; 14] = [
    "bloom:k=4",
    "rsbf:k=2,as=tabled",
    "rsbf:k=3,as=described",
    "bsbf:k=2",
    "bsbfsd:k=3",
    "rlbsbf:k=2",
    "sbf:k=2,p=4",
    "fpsbf:k=2,c=2,f=6",
    "qht:slots=32,bits=16",
    "qhtd:slots=31,bits=16",
    "rowlru:slots=16,bits=32",
    "qqhtd:slots=64,bits=8",
    "clocked:window=9,bits=16",
    "stamped:window=9,refresh=false",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_kind_whole_and_in_partitions_keeps_its_verdicts(
        stream in prop::collection::vec(0_u64..3000, 0..4000),
        lines in 4_u64..200,
        count in 1_usize..4,
        batch in 1_usize..4000,
    ) {
        let keys: Vec<KeyHash> = stream.iter().map(|key| KeyHasher::seeded(9).hash_u64(*key)).collect();
        for kind in KINDS {
            let spec = parse(&format!("{kind},form=line,memory={}B", lines * 64));
            let mut plain = spec.build_lines().expect("valid");
            let mut other = spec.build_lines().expect("valid");
            let expected = observe_all(&mut *plain, &keys, 100);
            prop_assert_eq!(&observe_all(&mut *other, &keys, batch), &expected, "{}", kind);
            prop_assert_eq!(other.lines(), plain.lines(), "{}", kind);
            let (partitioning, parts) = spec.build_line_partitions(count).expect("enough lines").into_parts();
            for (index, mut part) in parts.into_iter().enumerate() {
                let owned = keys.iter().zip(&expected).filter(|(key, _)| partitioning.partition_of(**key) == index);
                let (keys, expected): (Vec<KeyHash>, Vec<bool>) = owned.unzip();
                prop_assert_eq!(observe_all(&mut *part, &keys, batch), expected, "{} {} of {}", kind, index, count);
            }
        }
    }
}

/// As after a replacement with the filter of another partition: the panic, which the loss of the
/// partition reports, says what happened.
#[test]
fn the_panic_at_a_foreign_key_names_it() {
    for text in ["bloom:k=4,form=line,memory=8KiB", "dense:memory=8KiB"] {
        let spec = parse(text);
        for index in 0..2 {
            let mut part = spec.build_line_partition(index, 2).expect("valid");
            let foreign = vec![KeyHash::from_uniform(u64::MAX * (1 - index as u64)); 300];
            for count in [1, 64, 300] {
                let observed = std::panic::AssertUnwindSafe(|| {
                    part.observe(&foreign[..count], &mut Verdicts::new());
                });
                let panic = std::panic::catch_unwind(observed).unwrap_err();
                let message = panic.downcast_ref::<&str>().copied().unwrap_or_default();
                assert!(
                    message.starts_with("a key of another partition"),
                    "{text}: {message}"
                );
            }
        }
    }
}

#[test]
fn verdict_slices_of_another_length_panic() {
    let keys: Vec<KeyHash> = (0..1000)
        .map(|key| KeyHasher::seeded(9).hash_u64(key))
        .collect();
    for words in [15, 17] {
        let spec = parse("bloom:k=4,form=line,memory=8KiB");
        let mut filter = spec.build_lines().expect("valid");
        let observed = std::panic::AssertUnwindSafe(|| {
            filter.observe_batch(Batch::new(&keys), &mut vec![0; words]);
        });
        assert!(std::panic::catch_unwind(observed).is_err(), "{words} words");
    }
}
