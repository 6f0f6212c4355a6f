//! Key hashes: batches equal single keys, the boundaries of fields count, and line and fingerprint
//! bits are uniform.

mod kernels;

use echoless::{Kernel, KeyHash, KeyHasher};
use proptest::prelude::*;

fn hashers() -> [KeyHasher; 2] {
    [KeyHasher::seeded(42), KeyHasher::keyed([7; 16])]
}

proptest! {
    #[test]
    fn batches_equal_single_keys_on_every_kernel(keys in prop::collection::vec(any::<u128>(), 0..70), seed: u64) {
        let short: Vec<u64> = keys.iter().map(|key| *key as u64).collect();
        let mut hashes = vec![KeyHash::from_uniform(0); keys.len()];
        for hasher in [KeyHasher::seeded(seed), KeyHasher::keyed(u128::from(seed).to_le_bytes())] {
            for kernel in kernels::kernels() {
                let hasher = hasher.clone().with_kernel(kernel).unwrap();
                hasher.hash_u128s(&keys, &mut hashes);
                for (key, hash) in keys.iter().zip(&hashes) {
                    prop_assert_eq!(hasher.hash_u128(*key), *hash);
                }
                hasher.hash_u64s(&short, &mut hashes);
                for (key, hash) in short.iter().zip(&hashes) {
                    prop_assert_eq!(hasher.hash_u64(*key), *hash);
                }
            }
        }
    }

    #[test]
    fn boundaries_of_fields_change_the_hash(fields in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..6)), 1..5)) {
        let hash = |hasher: &KeyHasher, fields: &[Option<Vec<u8>>]| hasher.hash_fields(fields.iter().map(Option::as_deref));
        for hasher in hashers() {
            let original = hash(&hasher, &fields);
            for index in 0..fields.len() {
                // A missing field differs from an empty one.
                let mut other = fields.clone();
                other[index] = match &fields[index] {
                    Some(bytes) if bytes.is_empty() => None,
                    Some(_) | None => Some(Vec::new()),
                };
                prop_assert_ne!(hash(&hasher, &other), original);
                // A field that is cut in two differs from the whole field.
                if let Some(bytes) = &fields[index] {
                    let (left, right) = bytes.split_at(bytes.len() / 2);
                    let mut other = fields.clone();
                    other.splice(index..=index, [Some(left.to_vec()), Some(right.to_vec())]);
                    prop_assert_ne!(hash(&hasher, &other), original);
                }
            }
        }
    }
}

/// Pearson's chi-squared statistic of counts with equal expectations, in standard deviations from
/// its mean.
fn deviation(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let statistic: f64 = counts
        .iter()
        .map(|count| (*count as f64 - mean).powi(2) / mean)
        .sum();
    let freedom = (counts.len() - 1) as f64;
    (statistic - freedom) / (2.0 * freedom).sqrt()
}

/// Hashes of typical keys: counters, strided counters, pairs and short texts.
fn key_families() -> Vec<(&'static str, Vec<KeyHash>)> {
    const KEYS: u64 = 1 << 20;
    let mut families = Vec::new();
    for hasher in hashers() {
        families.push((
            "counter",
            (0..KEYS).map(|key| hasher.hash_u64(key)).collect(),
        ));
        families.push((
            "stride",
            (0..KEYS).map(|key| hasher.hash_u64(key << 40)).collect(),
        ));
        let wide = |key: u64| u128::from(key & 1023) << 64 | u128::from(key >> 10);
        families.push((
            "grid",
            (0..KEYS).map(|key| hasher.hash_u128(wide(key))).collect(),
        ));
        families.push((
            "text",
            (0..KEYS)
                .map(|key| hasher.hash(format!("+49{key:011}").as_bytes()))
                .collect(),
        ));
    }
    families
}

#[test]
fn lines_and_fingerprints_inside_a_range_of_lines_are_uniform() {
    // 48 is not a power of two, so line boundaries do not fall on bit boundaries. The statistic is
    // roughly normal: more than 5 deviations have a probability below one in a million.
    const LINES: u64 = 48;
    for (name, hashes) in key_families() {
        let mut lines = vec![0; LINES as usize];
        let mut fingerprints = vec![0; 256];
        let mut high_fingerprints = vec![0; 256];
        let mut remixed = vec![0; 256];
        for hash in &hashes {
            let line = hash.line(LINES);
            lines[line as usize] += 1;
            // Only the keys of a few lines: within a line, bits must be as uniform as over all
            // keys.
            if (10..14).contains(&line) {
                fingerprints[(hash.get() & 0xff) as usize] += 1;
                high_fingerprints[(hash.get() >> 24 & 0xff) as usize] += 1;
                remixed[(hash.remix(3) >> 56) as usize] += 1;
            }
        }
        for counts in [lines, fingerprints, high_fingerprints, remixed] {
            let deviation = deviation(&counts);
            assert!(deviation.abs() < 5.0, "{name}: {deviation}");
        }
    }
}

#[test]
fn every_key_bit_changes_half_of_the_hash() {
    for hasher in hashers() {
        for bit in 0..128 {
            let flipped: u32 = (0..512u128)
                .map(|key| {
                    let key = key.wrapping_mul(0x1234_5678_9abc_def1_1111_2222_3333_4445);
                    (hasher.hash_u128(key).get() ^ hasher.hash_u128(key ^ 1 << bit).get())
                        .count_ones()
                })
                .sum();
            let mean = f64::from(flipped) / 512.0;
            assert!((30.0..34.0).contains(&mean), "bit {bit}: {mean}");
        }
    }
}

#[test]
fn different_u64_keys_have_different_seeded_hashes() {
    let hasher = KeyHasher::seeded(1);
    let hashes: std::collections::HashSet<KeyHash> = (0..1u64 << 20)
        .map(|key| hasher.hash_u64(key * key))
        .collect();
    assert_eq!(hashes.len(), 1 << 20);
}

#[test]
fn bytes_numbers_and_fields_are_separate_domains() {
    for hasher in hashers() {
        for key in [0, 1, 17, u64::MAX] {
            let wide = u128::from(key) << 64 | u128::from(key);
            assert_ne!(hasher.hash_u64(key), hasher.hash(key.to_le_bytes()));
            assert_ne!(hasher.hash_u128(wide), hasher.hash(wide.to_le_bytes()));
            assert_ne!(hasher.hash_u64(key), hasher.hash_u128(u128::from(key)));
            // The bytes of a number differ from it also after any single byte or any small word.
            for first in 0..=u8::MAX {
                let mut after_byte = vec![first];
                after_byte.extend(key.to_le_bytes());
                let mut after_word = u64::from(first).to_le_bytes().to_vec();
                after_word.extend(key.to_le_bytes());
                for bytes in [after_byte, after_word] {
                    assert_ne!(hasher.hash_u64(key), hasher.hash(&bytes));
                }
            }
        }
    }
    let keyed = KeyHasher::keyed([7; 16]);
    let mut with_length = 3_u64.to_le_bytes().to_vec();
    with_length.extend(b"abc");
    let fields: [Option<&[u8]>; 1] = [Some(b"abc")];
    assert_ne!(keyed.hash_fields(fields), keyed.hash(&with_length));
}

#[test]
fn debug_output_does_not_contain_the_secret_key() {
    let (low, high) = (0x0123_4567_89ab_cdef_u64, 0x1f2e_3d4c_5b6a_7988_u64);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&low.to_le_bytes());
    key[8..].copy_from_slice(&high.to_le_bytes());
    let hasher = KeyHasher::keyed(key);
    for printed in [format!("{hasher:?}"), format!("{hasher:#?}")] {
        assert!(printed.contains("Keyed(secret)"), "{printed}");
        assert!(
            !printed.contains("sip") && !printed.contains("k0"),
            "{printed}"
        );
        for half in [low, high] {
            for text in [half.to_string(), format!("{half:x}"), format!("{half:X}")] {
                assert!(!printed.contains(&text), "{printed}");
            }
        }
    }
    // A seed is not secret.
    assert!(format!("{:?}", KeyHasher::seeded(4242)).contains("4242"));
}

#[test]
fn hashes_match_published_algorithms_and_recorded_values() {
    // Saved filters depend on these values: a change needs a new format version.
    let hasher = KeyHasher::seeded(0);
    assert_eq!(hasher.hash(b"").get(), wyhash_of(b""));
    assert_eq!(hasher.hash(b"echoless").get(), wyhash_of(b"echoless"));
    let fixed = [hasher.hash_u64(1).get(), hasher.hash_u128(1).get()];
    assert_eq!(fixed, FIXED_HASHES);

    let key = *b"a key of 16 byte";
    let keyed = KeyHasher::keyed(key);
    assert_eq!(
        keyed.hash(b"echoless").get(),
        siphash_of(&key, 0, b"echoless")
    );
    let fields: [Option<&[u8]>; 1] = [None];
    let missing = siphash_of(&key, 1, &u64::MAX.to_le_bytes());
    assert_eq!(keyed.hash_fields(fields).get(), missing);
    let [short, wide] = [keyed.hash_u64(9).get(), keyed.hash_u128(9).get()];
    assert_eq!(short, siphash_of(&key, 2, &9_u64.to_le_bytes()));
    assert_eq!(wide, siphash_of(&key, 3, &9_u128.to_le_bytes()));
}

/// SipHash-2-4 of the number of a domain, followed by the bytes.
fn siphash_of(key: &[u8; 16], domain: u64, bytes: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = siphasher::sip::SipHasher24::new_with_key(key);
    hasher.write(&[&domain.to_le_bytes(), bytes].concat());
    hasher.finish()
}

#[test]
fn debug_output_does_not_depend_on_the_secret_key() {
    let shown = |key| format!("{:?}", KeyHasher::keyed(key));
    assert_eq!(shown([7; 16]), shown(*b"a secret of ours"));
    assert!(shown([7; 16]).contains("Keyed(secret)"));
    assert_ne!(
        format!("{:?}", KeyHasher::seeded(1)),
        format!("{:?}", KeyHasher::seeded(2))
    );
}

/// wyhash, final version 3, with seed 0, from the streaming hasher of its crate.
fn wyhash_of(bytes: &[u8]) -> u64 {
    use std::hash::Hasher;
    let secret = [
        0xa076_1d64_78bd_642f,
        0xe703_7ed1_a0b4_28db,
        0x8ebc_6af0_9c88_c6e3,
        0x5899_65cc_7537_4cc3,
    ];
    let mut hasher = wyhash::final3::WyHash::new(0, secret);
    hasher.write(bytes);
    hasher.finish()
}

const FIXED_HASHES: [u64; 2] = [12_607_990_046_738_991_007, 1_555_820_890_552_674_331];
