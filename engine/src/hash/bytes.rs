//! The hasher: one seeded and fast form, one keyed form that resists chosen keys, both behind one type.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use wyhash::final3::wyhash;

use super::KeyHash;
use super::fixed::{self, FixedKeys};
use crate::error::SpecError;
use crate::kernels::isa::{DetectedKernel, Kernel};

/// The default secret of wyhash, final version 3.
const WYHASH_SECRET: [u64; 4] = [
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
    0x5899_65cc_7537_4cc3,
];

/// What stands in for the length of a field that is missing; no field is this long.
const MISSING: u64 = u64::MAX;

/// Turns keys into key hashes. The same hasher gives the same hash on every machine and kernel.
///
/// Bytes, `u64` and `u128` keys are three domains: the bytes of a number do not hash like the number. Keyed, fields are a fourth.
/// Its `Debug` form does not show the secret key.
///
/// # Examples
/// ```
/// use echoless::KeyHasher;
/// let hasher = KeyHasher::seeded(7);
/// assert_eq!(hasher.hash(b"call 17"), hasher.hash(b"call 17"));
/// assert_ne!(hasher.hash(b"call 17"), KeyHasher::seeded(8).hash(b"call 17"));
/// // Fields are never run together.
/// let ab_c: [Option<&[u8]>; 2] = [Some(b"ab"), Some(b"c")];
/// let a_bc: [Option<&[u8]>; 2] = [Some(b"a"), Some(b"bc")];
/// assert_ne!(hasher.hash_fields(ab_c), hasher.hash_fields(a_bc));
/// ```
#[derive(Debug, Clone)]
pub struct KeyHasher {
    form: Form,
    kernel: DetectedKernel,
}

#[derive(Clone)]
enum Form {
    Seeded { seed: u64, fixed: FixedKeys },
    Keyed(Box<Domains>),
}

/// The state of a keyed hasher gives its key away, so it stays out of logs and panics.
impl fmt::Debug for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seeded { seed, .. } => write!(formatter, "Seeded({seed})"),
            Self::Keyed { .. } => formatter.write_str("Keyed(secret)"),
        }
    }
}

/// SipHash once for each kind of key, past a first block that names the kind: so no two kinds ever hash the same message, and a hash costs
/// no block more.
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

impl KeyHasher {
    /// wyhash for bytes and a seeded multiply-xorshift mix for numbers: fast, and open to chosen keys if the seed is known.
    ///
    /// Long keys could be hashed faster (rapidhash takes up to 1.9 times the bytes at 4 KiB, and is level at 256 bytes). wyhash stays because a key
    /// hash must be the same in every version, on every machine: the algorithm is named, final and has several implementations that agree, and
    /// records are mostly short.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            form: Form::Seeded {
                seed,
                fixed: FixedKeys::new(seed),
            },
            kernel: DetectedKernel::best(),
        }
    }

    /// SipHash-2-4 under a secret key: nobody without the key can choose colliding keys (paper 002, section 7).
    ///
    /// # Choosing keys against the filter
    /// Under a public seed anyone can compute every [`KeyHash`], and with it the line and all positions of a key. Who also chooses keys can
    /// - pick keys that the filter takes for duplicates, with a copy of it that saw the same stream;
    /// - oversubscribed one line: as many keys on the line of a victim as it has slots (8 to 64) make a filter of any size forget it, and fill
    ///   a line of bits that never age so that all its keys are called duplicates.
    ///
    /// Under a secret key both are guesses, for the whole hash comes from it: the line, the partition and every position. A third attack remains,
    /// whatever the hash: as many keys as fill the whole filter make it forget, as they do any filter of bounded memory.
    #[must_use]
    pub fn keyed(key: [u8; 16]) -> Self {
        Self {
            form: Form::Keyed(Box::new(Domains::new(&key))),
            kernel: DetectedKernel::best(),
        }
    }

    /// The same hasher with its batch loops on `kernel`; hashes do not change.
    ///
    /// # Errors
    /// [`SpecError`] if this CPU cannot run the kernel.
    pub fn with_kernel(mut self, kernel: Kernel) -> Result<Self, SpecError> {
        self.kernel = kernel.detect()?;
        Ok(self)
    }

    /// The hash of a key of any length.
    #[must_use]
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        match &self.form {
            Form::Seeded { seed, .. } => KeyHash(wyhash(key, *seed, WYHASH_SECRET)),
            Form::Keyed(domains) => finish(domains.bytes, key),
        }
    }

    /// The hash of a key made of fields, `None` being a missing one.
    ///
    /// Every field enters with its length, so fields never run together, and missing differs from empty. Seeded, a single field hashes like
    /// [the same bytes alone](Self::hash).
    #[must_use]
    pub fn hash_fields<'a>(&self, fields: impl IntoIterator<Item = Option<&'a [u8]>>) -> KeyHash {
        match &self.form {
            Form::Seeded { seed, .. } => {
                let chained = fields.into_iter().fold(*seed, |state, field| match field {
                    // wyhash folds the length in; the previous hash is the seed.
                    Some(bytes) => wyhash(bytes, state, WYHASH_SECRET),
                    None => fixed::mix(state ^ MISSING),
                });
                KeyHash(chained)
            }
            Form::Keyed(domains) => {
                let mut sip = domains.fields;
                for field in fields {
                    match field {
                        Some(bytes) => {
                            sip.write(&(bytes.len() as u64).to_le_bytes());
                            sip.write(bytes);
                        }
                        None => sip.write(&MISSING.to_le_bytes()),
                    }
                }
                KeyHash(sip.finish())
            }
        }
    }

    /// The hash of one `u64` key. Seeded, it is a bijection: different keys never share a hash.
    #[must_use]
    #[inline]
    pub fn hash_u64(&self, key: u64) -> KeyHash {
        match &self.form {
            Form::Seeded { fixed, .. } => KeyHash(fixed.hash_u64(key)),
            Form::Keyed(domains) => finish(domains.u64s, &key.to_le_bytes()),
        }
    }

    /// The hash of one `u128` key.
    #[must_use]
    #[inline]
    pub fn hash_u128(&self, key: u128) -> KeyHash {
        match &self.form {
            Form::Seeded { fixed, .. } => KeyHash(fixed.hash_u128(key)),
            Form::Keyed(domains) => finish(domains.u128s, &key.to_le_bytes()),
        }
    }

    /// [`hash_u64`](Self::hash_u64) of each key, eight at a time.
    ///
    /// # Panics
    /// If `hashes` is not as long as `keys`.
    pub fn hash_u64s(&self, keys: &[u64], hashes: &mut [KeyHash]) {
        assert_eq!(keys.len(), hashes.len(), "one hash for each key");
        match &self.form {
            Form::Seeded { fixed, .. } => fixed.hash_u64s(self.kernel, keys, hashes),
            Form::Keyed(_) => {
                for (hash, key) in hashes.iter_mut().zip(keys) {
                    *hash = self.hash_u64(*key);
                }
            }
        }
    }

    /// [`hash_u128`](Self::hash_u128) of each key, eight at a time.
    ///
    /// # Panics
    /// If `hashes` is not as long as `keys`.
    pub fn hash_u128s(&self, keys: &[u128], hashes: &mut [KeyHash]) {
        assert_eq!(keys.len(), hashes.len(), "one hash for each key");
        match &self.form {
            Form::Seeded { fixed, .. } => fixed.hash_u128s(self.kernel, keys, hashes),
            Form::Keyed(_) => {
                for (hash, key) in hashes.iter_mut().zip(keys) {
                    *hash = self.hash_u128(*key);
                }
            }
        }
    }
}
