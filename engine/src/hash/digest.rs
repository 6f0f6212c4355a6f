//! A keyed digest of 128 bits, for those who compare keys where the hash of a filter is too short.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use siphasher::sip128::{Hasher128, SipHasher13};

use super::bytes::keyed_fields;

/// The digest of a key, of 128 bits.
///
/// Of `n` different keys that were chosen without the secret key, two have one digest with a
/// probability of at most `n^2 / 2^129`: 1.5e-21 for a billion. That is for random numbers, from
/// which no way is known to tell SipHash.
///
/// Digests have the order of their [words](Self::words).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyDigest([u64; 2]);

impl KeyDigest {
    /// The digest with these words, which was stored.
    #[must_use]
    pub const fn from_words(words: [u64; 2]) -> Self {
        Self(words)
    }

    /// The digest as two numbers, each uniform.
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        self.0
    }
}

/// Maps keys to digests, by SipHash-1-3 with 128 bits and a secret key. Byte strings and lists of
/// fields are two domains, as of a keyed [`KeyHasher`](super::KeyHasher). The `Debug` output does
/// not contain the key.
///
/// # Examples
/// ```
/// use echoless::hash::KeyDigester;
/// let digester = KeyDigester::keyed([7; 16]);
/// assert_eq!(digester.digest(b"call 17"), digester.digest(b"call 17"));
/// assert_ne!(digester.digest(b"call 17"), digester.digest(b"call 18"));
/// // The boundaries of fields count.
/// let ab_c: [Option<&[u8]>; 2] = [Some(b"ab"), Some(b"c")];
/// let a_bc: [Option<&[u8]>; 2] = [Some(b"a"), Some(b"bc")];
/// assert_ne!(digester.digest_fields(ab_c), digester.digest_fields(a_bc));
/// // A random key is no other one.
/// assert_ne!(digester.digest(b"call 17"), KeyDigester::random().digest(b"call 17"));
/// ```
#[derive(Clone)]
pub struct KeyDigester {
    /// The states of the two domains, each after a first block with its number.
    bytes: SipHasher13,
    fields: SipHasher13,
}

impl fmt::Debug for KeyDigester {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyDigester(secret)")
    }
}

impl KeyDigester {
    /// The digests of this key.
    #[must_use]
    pub fn keyed(key: [u8; 16]) -> Self {
        let domain = |number: u64| {
            let mut sip = SipHasher13::new_with_key(&key);
            sip.write(&number.to_le_bytes());
            sip
        };
        Self {
            bytes: domain(0),
            fields: domain(1),
        }
    }

    /// A random key, which the standard library has from the system.
    #[must_use]
    pub fn random_key() -> [u8; 16] {
        let random = RandomState::new();
        let words = [random.hash_one(0), random.hash_one(1)].map(u64::to_le_bytes);
        let mut key = [0; 16];
        key.copy_from_slice(words.as_flattened());
        key
    }

    /// The digests of a [random key](Self::random_key).
    #[must_use]
    pub fn random() -> Self {
        Self::keyed(Self::random_key())
    }

    /// The digest of a key of bytes.
    #[must_use]
    pub fn digest(&self, key: impl AsRef<[u8]>) -> KeyDigest {
        let mut sip = self.bytes;
        sip.write(key.as_ref());
        finish(sip)
    }

    /// The digest of a key of fields; `None` is a missing one, which is no empty one.
    #[must_use]
    pub fn digest_fields<'a>(
        &self,
        fields: impl IntoIterator<Item = Option<&'a [u8]>>,
    ) -> KeyDigest {
        let mut sip = self.fields;
        keyed_fields(&mut sip, fields);
        finish(sip)
    }
}

fn finish(sip: SipHasher13) -> KeyDigest {
    let digest = sip.finish128();
    KeyDigest([digest.h1, digest.h2])
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// By another program, from the definition of SipHash.
    const GOLDEN: [[u64; 2]; 3] = [
        [5_161_118_297_315_666_811, 1_738_183_429_519_969_476],
        [4_213_515_503_842_994_682, 6_391_481_648_635_015_166],
        [9_603_605_672_201_177_145, 11_562_309_964_259_160_911],
    ];

    #[test]
    fn stored_digests_stay_what_they_are() {
        let digester = KeyDigester::keyed(*b"0123456789abcdef");
        let fields: [Option<&[u8]>; 3] = [Some(b"a"), None, Some(b"")];
        let digests = [
            digester.digest([]),
            digester.digest(b"call 17"),
            digester.digest_fields(fields),
        ];
        let words = digests.map(KeyDigest::words);
        assert_eq!(words, GOLDEN);
        assert_eq!(words.map(KeyDigest::from_words), digests);
    }

    proptest! {
        #[test]
        fn digests_are_equal_exactly_where_keys_are(
            lists in vec(vec(proptest::option::of("[ab\0]{0,9}|a{100,140}"), 0..4), 1..60),
        ) {
            let digester = KeyDigester::keyed([3; 16]);
            let mut fields = HashMap::new();
            let mut bytes = HashMap::new();
            for list in &lists {
                let digest = digester.digest_fields(list.iter().map(|field| Some(field.as_ref()?.as_bytes())));
                prop_assert_eq!(fields.entry(digest).or_insert_with(|| list.clone()), list);
                let whole = list.iter().flatten().cloned().collect::<String>();
                let digest = digester.digest(&whole);
                prop_assert_eq!(bytes.entry(digest).or_insert_with(|| whole.clone()), &whole);
            }
            let mut distinct = lists.clone();
            distinct.sort();
            distinct.dedup();
            prop_assert_eq!(fields.len(), distinct.len());
        }
    }

    #[test]
    fn the_secret_key_is_not_shown_and_decides() {
        let one = KeyDigester::keyed([1; 16]);
        assert_eq!(format!("{one:?}"), "KeyDigester(secret)");
        assert_ne!(one.digest(b"a"), KeyDigester::keyed([2; 16]).digest(b"a"));
        // The domains differ.
        assert_ne!(one.digest(b""), one.digest_fields([]));
    }
}
