//! The two attacks of paper 002, section 7, on whole filters.
//!
//! Whoever knows the hash function and sees the stream can rebuild the filter and pick keys it takes for duplicates; a secret hash key ends
//! that. No hash ends the other attack: flooding makes every filter of bounded memory forget.

use echoless::{Filter, FilterSpec, KeyHasher, Verdict};

const FORGETFUL: [&str; 8] = [
    "rsbf:k=2,pstar=0.5",
    "bsbf:k=2",
    "rlbsbf:k=2",
    "sbf:k=2,d=2",
    "qqht:slots=4,bits=12",
    "cuckoo:slots=4,bits=12",
    "a2:k=4",
    "lru",
];

fn build(text: &str, memory_bytes: u64) -> Box<dyn Filter> {
    let spec: FilterSpec = text.parse().expect("valid");
    spec.with_memory(memory_bytes).build().expect("valid")
}

/// Lets a filter see the public stream, and counts how many of 1000 keys, chosen with a replica that hashes by `attacker`, it takes for duplicates.
fn chosen_keys_taken(text: &str, victim: &KeyHasher, attacker: &KeyHasher) -> usize {
    let (mut filter, mut replica) = (build(text, 1 << 14), build(text, 1 << 14));
    for key in 0..5000 {
        filter.observe_one(victim.hash_u64(key));
        replica.observe_one(attacker.hash_u64(key));
    }
    let chosen = (1 << 32..).filter(|key| replica.contains(attacker.hash_u64(*key)));
    let chosen: Vec<u64> = chosen.take(1000).collect();
    let taken = chosen
        .iter()
        .filter(|key| filter.contains(victim.hash_u64(**key)));
    taken.count()
}

#[test]
fn chosen_keys_are_false_positives_under_a_public_seed_and_not_under_a_secret_key() {
    for text in [
        "bloom:k=4",
        "rlbsbf:k=3",
        "sbf:k=3,d=2,fps=0.05",
        "qqht:slots=4,bits=12",
    ] {
        let public = KeyHasher::seeded(0);
        assert_eq!(chosen_keys_taken(text, &public, &public), 1000, "{text}");
        let secret = KeyHasher::keyed(*b"a secret of ours");
        let guessed = KeyHasher::keyed(*b"a guess at yours");
        for attacker in [&public, &guessed] {
            let taken = chosen_keys_taken(text, &secret, attacker);
            assert!(taken < 60, "{text}: {taken} of 1000");
        }
    }
}

#[test]
fn flooding_makes_every_bounded_filter_forget() {
    const TARGETS: u64 = 6;
    for text in FORGETFUL {
        let mut forgotten = 0;
        for hasher in [KeyHasher::seeded(0), KeyHasher::keyed(*b"a secret of ours")] {
            let mut filter = build(text, 1 << 12);
            for target in 0..TARGETS {
                let key = hasher.hash_u64(target);
                filter.observe_one(key);
                assert!(filter.contains(key), "{text}");
                for flood in 0..50_000 {
                    filter.observe_one(hasher.hash_u64((target + 1) << 32 | flood));
                }
                forgotten += u32::from(filter.observe_one(key) == Verdict::Fresh);
            }
        }
        // A forgotten key is still answered at the false positive rate, up to 57 % for RLBSBF.
        assert!(forgotten >= 2, "{text}: {forgotten} of 12");
    }
}
