//! The key hasher: a fast seeded algorithm and a keyed one that resists chosen keys, in one type.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use wyhash::final3::wyhash;

use super::KeyHash;
use super::fixed::{self, FixedKeys};
use crate::error::SpecError;
use crate::isa::{DetectedKernel, Kernel};

/// The default secret of wyhash, final version 3. It is part of the algorithm: other constants
/// would give other hashes than its published implementations.
const WYHASH_SECRET: [u64; 4] = [
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
    0x5899_65cc_7537_4cc3,
];

/// The length of the fields that a keyed hasher gets at once, in bytes.
const BLOCK_BYTES: usize = 128;

/// Encodes a missing field, in place of a length. No field is this long.
const MISSING: u64 = u64::MAX;

/// Maps keys to key hashes. Equal hashers give equal hashes on every machine and kernel.
///
/// Byte strings, `u64` keys and `u128` keys are three domains: a number and its bytes have
/// different hashes. In a keyed hasher, lists of fields are a fourth domain. The `Debug` output
/// does not contain the secret key.
///
/// # Examples
/// ```
/// use echoless::KeyHasher;
/// let hasher = KeyHasher::seeded(7);
/// assert_eq!(hasher.hash(b"call 17"), hasher.hash(b"call 17"));
/// assert_ne!(hasher.hash(b"call 17"), KeyHasher::seeded(8).hash(b"call 17"));
/// // The boundaries of fields count.
/// let ab_c: [Option<&[u8]>; 2] = [Some(b"ab"), Some(b"c")];
/// let a_bc: [Option<&[u8]>; 2] = [Some(b"a"), Some(b"bc")];
/// assert_ne!(hasher.hash_fields(ab_c), hasher.hash_fields(a_bc));
/// ```
#[derive(Debug, Clone)]
pub struct KeyHasher {
    algorithm: Algorithm,
    /// The kernel of the batch functions. It does not affect hashes.
    kernel: DetectedKernel,
}

#[derive(Clone)]
enum Algorithm {
    /// wyhash for bytes and a multiply-xorshift mix for numbers.
    Seeded { seed: u64, fixed: FixedKeys },
    /// SipHash-2-4. Boxed, because the four states are much larger than the other variant.
    Keyed(Box<Domains>),
}

/// Written by hand: the state of a keyed hasher reveals its key and must not reach logs or panics.
impl fmt::Debug for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seeded { seed, .. } => write!(formatter, "Seeded({seed})"),
            Self::Keyed { .. } => formatter.write_str("Keyed(secret)"),
        }
    }
}

/// The SipHash states of the four domains, each after a first block with the number of the domain.
///
/// Keys of different domains are thus different messages. The block is absorbed once, when the
/// hasher is made, so a hash costs nothing extra.
#[derive(Clone)]
struct Domains {
    bytes: SipHasher24,
    fields: SipHasher24,
    u64s: SipHasher24,
    u128s: SipHasher24,
}

impl Domains {
    fn new(key: &[u8; 16]) -> Self {
        let domain = |number: u64| {
            let mut sip = SipHasher24::new_with_key(key);
            sip.write(&number.to_le_bytes());
            sip
        };
        Self {
            bytes: domain(0),
            fields: domain(1),
            u64s: domain(2),
            u128s: domain(3),
        }
    }
}

#[inline]
fn finish(mut sip: SipHasher24, key: &[u8]) -> KeyHash {
    sip.write(key);
    KeyHash(sip.finish())
}

/// The hash of some fields and the next one.
#[inline]
fn seeded_field(before: u64, field: Option<impl AsRef<[u8]>>) -> u64 {
    match field {
        // The hash of the previous fields is the seed. wyhash includes the length.
        Some(bytes) => wyhash(bytes.as_ref(), before, WYHASH_SECRET),
        None => fixed::mix(before ^ MISSING),
    }
}

/// Hashes all fields of a key. Short ones go in one call: each call has a cost.
#[inline]
pub(super) fn keyed_fields<F: AsRef<[u8]>>(
    sip: &mut impl Hasher,
    fields: impl IntoIterator<Item = Option<F>>,
) {
    let (mut block, mut filled) = ([0; BLOCK_BYTES], 0);
    for field in fields {
        let field = field.as_ref().map(AsRef::as_ref);
        let length = field.map_or(MISSING, |bytes| bytes.len() as u64);
        for part in [&length.to_le_bytes()[..], field.unwrap_or_default()] {
            if let Some(free) = block.get_mut(filled..filled + part.len()) {
                free.copy_from_slice(part);
                filled += part.len();
            } else {
                sip.write(&block[..filled]);
                filled = 0;
                sip.write(part);
            }
        }
    }
    sip.write(&block[..filled]);
}

impl KeyHasher {
    /// A fast hasher: wyhash for bytes, and a seeded multiply-xorshift mix for numbers. Anyone who
    /// knows the seed can choose keys that collide.
    ///
    /// rapidhash is faster on long keys (up to 1.9 times the throughput at 4 KiB, equal at 256
    /// bytes). wyhash stays because a key hash must be the same in every version and on every
    /// machine: the algorithm is named and final, several implementations of it agree, and most
    /// records are short.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            algorithm: Algorithm::Seeded {
                seed,
                fixed: FixedKeys::new(seed),
            },
            kernel: DetectedKernel::best(),
        }
    }

    /// A hasher that resists chosen keys: SipHash-2-4 under a secret key. Without the key it is not
    /// feasible to choose keys that collide (paper 002, section 7).
    ///
    /// # Attacks on a filter with a public seed
    /// Anyone who knows the seed can compute every [`KeyHash`], and from it the line and all
    /// positions of a key. An attacker who also chooses keys has two attacks:
    ///
    /// - With a copy of the filter that observed the same stream, find keys that are false
    ///   positives.
    /// - Send many keys to one line. As many keys as the line has slots (8 to 64) evict a victim
    ///   from a filter of any size. In a line of bits that never age, they set all bits, and every
    ///   key of the line becomes a false positive.
    ///
    /// Under a secret key both attacks are guesses: line, partition and positions all depend on the
    /// whole hash. A third attack works against every hash and every filter of bounded memory: send
    /// as many keys as fill the whole filter, which then evicts the earlier ones.
    #[must_use]
    pub fn keyed(key: [u8; 16]) -> Self {
        Self {
            algorithm: Algorithm::Keyed(Box::new(Domains::new(&key))),
            kernel: DetectedKernel::best(),
        }
    }

    /// The name of the algorithm: `wyhash` or `siphash-2-4`.
    #[must_use]
    pub const fn algorithm(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Seeded { .. } => "wyhash",
            Algorithm::Keyed(_) => "siphash-2-4",
        }
    }

    /// Selects the kernel of the batch functions. Hashes do not change.
    ///
    /// # Errors
    /// [`SpecError`] if this CPU cannot run the kernel.
    pub fn with_kernel(mut self, kernel: Kernel) -> Result<Self, SpecError> {
        self.kernel = kernel.detect()?;
        Ok(self)
    }

    /// Hashes a key of any length.
    #[must_use]
    #[inline]
    pub fn hash(&self, key: impl AsRef<[u8]>) -> KeyHash {
        let key = key.as_ref();
        match &self.algorithm {
            Algorithm::Seeded { seed, .. } => KeyHash(wyhash(key, *seed, WYHASH_SECRET)),
            Algorithm::Keyed(domains) => finish(domains.bytes, key),
        }
    }

    /// Hashes a key made of fields; `None` is a missing field.
    ///
    /// Every field is hashed with its length, so the boundaries of fields count, and a missing
    /// field differs from an empty one. In a seeded hasher, a single field has the hash of [the
    /// same bytes](Self::hash).
    #[must_use]
    pub fn hash_fields<F: AsRef<[u8]>>(
        &self,
        fields: impl IntoIterator<Item = Option<F>>,
    ) -> KeyHash {
        // The algorithm is looked at once, and not for each field.
        match &self.algorithm {
            Algorithm::Seeded { seed, .. } => KeyHash(fields.into_iter().fold(*seed, seeded_field)),
            Algorithm::Keyed(domains) => {
                let mut sip = domains.fields;
                keyed_fields(&mut sip, fields);
                KeyHash(sip.finish())
            }
        }
    }

    /// Hashes a `u64` key. In a seeded hasher this is a bijection: different keys have different
    /// hashes.
    #[must_use]
    #[inline]
    pub fn hash_u64(&self, key: u64) -> KeyHash {
        match &self.algorithm {
            Algorithm::Seeded { fixed, .. } => KeyHash(fixed.hash_u64(key)),
            Algorithm::Keyed(domains) => finish(domains.u64s, &key.to_le_bytes()),
        }
    }

    /// Hashes a `u128` key.
    #[must_use]
    #[inline]
    pub fn hash_u128(&self, key: u128) -> KeyHash {
        match &self.algorithm {
            Algorithm::Seeded { fixed, .. } => KeyHash(fixed.hash_u128(key)),
            Algorithm::Keyed(domains) => finish(domains.u128s, &key.to_le_bytes()),
        }
    }

    /// Hashes each key as [`hash_u64`](Self::hash_u64) does, in vector lanes where the hasher is
    /// seeded.
    ///
    /// # Panics
    /// If `hashes` is not as long as `keys`.
    pub fn hash_u64s(&self, keys: &[u64], hashes: &mut [KeyHash]) {
        assert_eq!(keys.len(), hashes.len(), "one hash for each key");
        match &self.algorithm {
            Algorithm::Seeded { fixed, .. } => fixed.hash_u64s(self.kernel, keys, hashes),
            Algorithm::Keyed(_) => {
                for (hash, key) in hashes.iter_mut().zip(keys) {
                    *hash = self.hash_u64(*key);
                }
            }
        }
    }

    /// Hashes each key as [`hash_u128`](Self::hash_u128) does, in vector lanes where the hasher is
    /// seeded.
    ///
    /// # Panics
    /// If `hashes` is not as long as `keys`.
    pub fn hash_u128s(&self, keys: &[u128], hashes: &mut [KeyHash]) {
        assert_eq!(keys.len(), hashes.len(), "one hash for each key");
        match &self.algorithm {
            Algorithm::Seeded { fixed, .. } => fixed.hash_u128s(self.kernel, keys, hashes),
            Algorithm::Keyed(_) => {
                for (hash, key) in hashes.iter_mut().zip(keys) {
                    *hash = self.hash_u128(*key);
                }
            }
        }
    }
}
