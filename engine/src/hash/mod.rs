//! Key hashes, and the split of a hash into line and fingerprint.
//!
//! ```text
//! bit 63                                                                0
//!     +-------------------------------+-----------------------------------+
//!     | decides the line (high bits)  | the fingerprint (low 8/16/32/64)  |
//!     +-------------------------------+-----------------------------------+
//! ```
//! The line of a hash `h` among `n` lines is `floor(h * n / 2^64)`. The hashes of one line form an
//! interval, so a range of lines is a range of hashes. Within a line the low bits are uniform as
//! long as `n` is small compared with `2^(64 - fingerprint bits)`. A filter that needs more random
//! bits mixes the whole hash again ([`KeyHash::remix`]) instead of reusing these.

mod bytes;
mod digest;
mod fixed;
mod key_hash;
mod keys;
mod secret_key;

pub use bytes::KeyHasher;
pub use digest::{KeyDigest, KeyDigester};
pub use key_hash::KeyHash;
pub use secret_key::{SecretKeyError, read_secret_key};
