//! Hashing what programs have at hand: parts of a record, addresses, Rust values, and batches of
//! byte strings. Each is defined by the hashes of bytes and numbers in [`bytes`](super::bytes).

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

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
        let mut hash = self.start_fields();
        for part in parts {
            hash.push(Some(part.as_ref()));
        }
        hash.finish()
    }

    /// Hashes the address of a host. An IPv4 address and the same address mapped into IPv6
    /// (`::ffff:a.b.c.d`) have one hash.
    ///
    /// An IPv4 address has the hash of its number as [a `u64`](Self::hash_u64), an IPv6 address
    /// that of its number as [a `u128`](Self::hash_u128), both in network byte order.
    ///
    /// # Examples
    /// ```
    /// use echoless::KeyHasher;
    /// let hash = |text: &str| KeyHasher::seeded(0).hash_ip(text.parse().unwrap());
    /// assert_eq!(hash("192.0.2.1"), hash("::ffff:192.0.2.1"));
    /// assert_ne!(hash("192.0.2.1"), hash("192.0.2.2"));
    /// ```
    #[must_use]
    pub fn hash_ip(&self, address: IpAddr) -> KeyHash {
        match address.to_canonical() {
            IpAddr::V4(v4) => self.hash_u64(v4.to_bits().into()),
            IpAddr::V6(v6) => self.hash_u128(v6.to_bits()),
        }
    }

    /// Hashes any value that implements [`Hash`].
    ///
    /// **Not stable.** What a type feeds into its hash may change with the version of Rust, of its
    /// crate, and with the byte order and pointer width of the machine. Do not store these hashes
    /// or filters of them; use the other functions for that. What the value feeds are the fields of
    /// [`hash_fields`](Self::hash_fields), so do not mix both in one filter.
    ///
    /// # Examples
    /// ```
    /// use echoless::KeyHasher;
    /// let hasher = KeyHasher::seeded(0);
    /// let call = ("+4930123", "+4930456", 1_700_000_000_u64);
    /// assert_eq!(hasher.hash_value(&call), hasher.hash_value(&call.clone()));
    /// assert_ne!(hasher.hash_value(&call), hasher.hash_value(&(call.1, call.0, call.2)));
    /// ```
    #[must_use]
    pub fn hash_value<T: Hash + ?Sized>(&self, value: &T) -> KeyHash {
        let mut hasher = ValueHasher(self.start_fields());
        value.hash(&mut hasher);
        hasher.0.finish()
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
    ///
    /// # Examples
    /// ```
    /// use echoless::KeyHasher;
    /// let id = KeyHasher::seeded(7).id();
    /// assert_eq!(id, KeyHasher::seeded(7).id());
    /// assert_ne!(id, KeyHasher::seeded(8).id());
    /// assert_ne!(id, KeyHasher::keyed([7; 16]).id());
    /// ```
    #[must_use]
    pub fn id(&self) -> u64 {
        self.hash("the id of a key hasher").get()
    }
}

/// The parts that a value feeds into its hash are fields of a key.
struct ValueHasher(super::bytes::FieldsHash);

impl Hasher for ValueHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.push(Some(bytes));
    }

    fn finish(&self) -> u64 {
        self.0.clone().finish().get()
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

    #[test]
    fn values_that_differ_have_different_hashes() {
        for hasher in [KeyHasher::seeded(0), KeyHasher::keyed([0; 16])] {
            let mut hashes = vec![
                hasher.hash_value(&()),
                hasher.hash_value(""),
                hasher.hash_value(&0_u8),
                hasher.hash_value(&0_u64),
                hasher.hash_value(&1_u64),
                hasher.hash_value(&(1_u64, 2_u64)),
                hasher.hash_value(&(2_u64, 1_u64)),
                hasher.hash_value(&("ab", "c")),
                hasher.hash_value(&("a", "bc")),
                hasher.hash_value(&Some(1_u64)),
            ];
            let all = hashes.len();
            hashes.sort_unstable();
            hashes.dedup();
            assert_eq!(hashes.len(), all);
        }
    }

    #[test]
    fn an_ipv6_address_differs_from_every_mapped_one() {
        let hasher = KeyHasher::seeded(3);
        let hash = |text: &str| hasher.hash_ip(text.parse().unwrap());
        assert_eq!(hash("0.0.0.1"), hasher.hash_u64(1));
        assert_eq!(hash("::1"), hasher.hash_u128(1));
        assert_ne!(hash("::1"), hash("0.0.0.1"));
    }
}
