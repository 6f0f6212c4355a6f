//! Hashing what programs have at hand: parts of a record, and batches of byte strings. Each is
//! defined by the hashes of bytes in [`bytes`](super::bytes).

use super::KeyHash;
use super::bytes::KeyHasher;

impl KeyHasher {
    /// Hashes a key made of parts. The boundaries of parts count.
    ///
    /// The same fields have this hash in `echoless dedup --key` with the same seed or secret key:
    /// a program and the command can share the result of a run. A single part has the hash of [the
    /// same bytes](Self::hash) if the hasher is seeded. Parts that may be missing are for
    /// [`hash_fields`](Self::hash_fields).
    ///
    /// # Examples
    /// ```
    /// use echoless::KeyHasher;
    /// let hasher = KeyHasher::seeded(0);
    /// assert_ne!(hasher.hash_parts(["ab", "c"]), hasher.hash_parts(["a", "bc"]));
    /// assert_eq!(hasher.hash_parts(["call 17"]), hasher.hash("call 17"));
    /// ```
    #[must_use]
    pub fn hash_parts(&self, parts: impl IntoIterator<Item: AsRef<[u8]>>) -> KeyHash {
        self.hash_fields(parts.into_iter().map(Some))
    }

    /// Hashes each byte string as [`hash`](Self::hash) does, into `hashes`, whose allocation is
    /// used again.
    ///
    /// # Examples
    /// ```
    /// use echoless::KeyHasher;
    /// let hasher = KeyHasher::seeded(0);
    /// let mut hashes = Vec::new();
    /// hasher.hash_all("one two one".split(' '), &mut hashes);
    /// assert_eq!(hashes, ["one", "two", "one"].map(|word| hasher.hash(word)));
    /// ```
    pub fn hash_all(&self, keys: impl IntoIterator<Item: AsRef<[u8]>>, hashes: &mut Vec<KeyHash>) {
        hashes.clear();
        hashes.extend(keys.into_iter().map(|key| self.hash(key)));
    }

    /// A number that equal hashers have in common, and others practically never, for programs that
    /// exchange key hashes or keep a filter's lines: with other hashes than those it was filled
    /// with, a filter finds nothing again.
    ///
    /// It depends on the algorithm, and on the seed or the secret key. It does not reveal a secret
    /// key; a seed can be guessed from it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.hash("the id of a key hasher").get()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_are_fields_that_are_all_there(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..5),
            secret in any::<[u8; 16]>(),
            seed in any::<u64>(),
        ) {
            for hasher in [KeyHasher::seeded(seed), KeyHasher::keyed(secret)] {
                let fields = hasher.hash_fields(parts.iter().map(|part| Some(&part[..])));
                prop_assert_eq!(hasher.hash_parts(&parts), fields);
                let mut hashes = vec![KeyHash(1)];
                hasher.hash_all(&parts, &mut hashes);
                prop_assert!(parts.iter().map(|part| hasher.hash(part)).eq(hashes));
            }
        }
    }
}
