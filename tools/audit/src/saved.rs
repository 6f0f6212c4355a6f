//! What an audit has found and sampled as bytes, so that the estimates of a run go on after a
//! restart.
//!
//! Fields in their order, numbers little-endian, a length in front of what has one. The keys of a
//! table are sorted, so equal audits are equal bytes.

use std::collections::VecDeque;

use echoless::extend::DetectedKernel;
use echoless::{AgeOrigin, KeyHash, MissAge, Window};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;

use crate::errors::ErrorCounts;
use crate::sampling::KeyMap;
use crate::stream::Audit;
use crate::window::WindowAudit;

/// Audits and their counts as bytes: with them, estimates go on after a restart.
///
/// # Examples
/// ```
/// use echoless_audit::{Audit, ErrorCounts, SavedAudit};
/// use echoless::{KeyHasher, Verdict};
/// let key = KeyHasher::seeded(0).hash(b"call 17");
/// let mut audit = Audit::new();
/// audit.observe_one(key, Verdict::Fresh);
/// let mut restarted = Audit::load(&audit.save()).unwrap();
/// restarted.observe_one(key, Verdict::Fresh);
/// assert_eq!(restarted.estimates(None).missed_duplicates.value, 1);
/// assert_eq!(ErrorCounts::load(&audit.counts().save()), Some(audit.counts()));
/// assert!(Audit::load(b"no audit").is_none());
/// ```
pub trait SavedAudit: Saved {
    /// What was found and sampled, as bytes that [`load`](Self::load) reads: up to some 700 KB of
    /// an [`Audit`], and 3 MB of a [`WindowAudit`].
    #[must_use]
    fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        Saved::save(self, &mut bytes);
        bytes
    }

    /// What was [saved](Self::save) as these bytes; `None` if they are something else.
    #[must_use]
    fn load(mut bytes: &[u8]) -> Option<Self> {
        let value = Saved::load(&mut bytes)?;
        bytes.is_empty().then_some(value)
    }
}

impl SavedAudit for Audit {}
impl SavedAudit for ErrorCounts {}
impl SavedAudit for WindowAudit {}

/// A value as bytes.
pub trait Saved: Sized {
    /// Appends the value.
    fn save(&self, bytes: &mut Vec<u8>);

    /// Reads the value from the front of `bytes`. `None` if they are not one.
    fn load(bytes: &mut &[u8]) -> Option<Self>;
}

/// Saves and loads structures field by field.
macro_rules! saved {
    ($($type:ident $(<$parameter:ident>)? { $($field:ident),* })*) => {$(
        impl $(<$parameter: $crate::saved::Saved>)? $crate::saved::Saved
            for $type $(<$parameter>)?
        {
            fn save(&self, bytes: &mut Vec<u8>) {
                // A field that is left out does not compile.
                let Self { $($field),* } = self;
                $($crate::saved::Saved::save($field, bytes);)*
            }

            fn load(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: $crate::saved::Saved::load(bytes)?),* })
            }
        }
    )*};
}
pub(crate) use saved;

macro_rules! saved_numbers {
    ($($type:ident)*) => {$(
        impl Saved for $type {
            fn save(&self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn load(bytes: &mut &[u8]) -> Option<Self> {
                let (number, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*number))
            }
        }
    )*};
}

saved_numbers! { u8 u32 u64 u128 f64 }

impl Saved for usize {
    fn save(&self, bytes: &mut Vec<u8>) {
        (*self as u64).save(bytes);
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        u64::load(bytes)?.try_into().ok()
    }
}

impl Saved for bool {
    fn save(&self, bytes: &mut Vec<u8>) {
        u8::from(*self).save(bytes);
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        match u8::load(bytes)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Saved for () {
    fn save(&self, _: &mut Vec<u8>) {}

    fn load(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

/// No part of what was found: that of the CPU that loads it.
impl Saved for DetectedKernel {
    fn save(&self, _: &mut Vec<u8>) {}

    fn load(_: &mut &[u8]) -> Option<Self> {
        Some(Self::best())
    }
}

impl<T: Saved> Saved for Option<T> {
    fn save(&self, bytes: &mut Vec<u8>) {
        self.is_some().save(bytes);
        if let Some(value) = self {
            value.save(bytes);
        }
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        Some(if bool::load(bytes)? {
            Some(T::load(bytes)?)
        } else {
            None
        })
    }
}

/// A list of values, as in files: nothing is allocated before it is read.
fn load_list<T: Saved, C: Default + Extend<T>>(bytes: &mut &[u8]) -> Option<C> {
    let mut list = C::default();
    for _ in 0..u64::load(bytes)? {
        list.extend([T::load(bytes)?]);
    }
    Some(list)
}

impl<T: Saved> Saved for Box<[T]> {
    fn save(&self, bytes: &mut Vec<u8>) {
        self.len().save(bytes);
        self.iter().for_each(|value| value.save(bytes));
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        load_list::<T, Vec<T>>(bytes).map(Self::from)
    }
}

impl<T: Saved> Saved for VecDeque<T> {
    fn save(&self, bytes: &mut Vec<u8>) {
        self.len().save(bytes);
        self.iter().for_each(|value| value.save(bytes));
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        load_list(bytes)
    }
}

impl<const N: usize> Saved for Box<[u64; N]> {
    fn save(&self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|word| word.save(bytes));
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        let words: Option<Vec<u64>> = (0..N).map(|_| u64::load(bytes)).collect();
        words?.try_into().ok()
    }
}

impl Saved for KeyHash {
    fn save(&self, bytes: &mut Vec<u8>) {
        self.get().save(bytes);
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        u64::load(bytes).map(Self::from_uniform)
    }
}

impl<V: Saved> Saved for KeyMap<V> {
    fn save(&self, bytes: &mut Vec<u8>) {
        let mut keys: Vec<_> = self.keys().copied().collect();
        keys.sort_unstable();
        keys.len().save(bytes);
        for key in keys {
            key.save(bytes);
            self[&key].save(bytes);
        }
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        let mut map = Self::default();
        for _ in 0..u64::load(bytes)? {
            let key = KeyHash::load(bytes)?;
            map.insert(key, V::load(bytes)?);
        }
        Some(map)
    }
}

impl Saved for SplitMix64 {
    fn save(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.state());
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        u64::load(bytes).map(|state| Self::from_seed(state.to_le_bytes()))
    }
}

impl Saved for Window {
    fn save(&self, bytes: &mut Vec<u8>) {
        self.ticks.save(bytes);
        self.granule.save(bytes);
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self::new(u64::load(bytes)?, u64::load(bytes)?))
    }
}

impl Saved for MissAge {
    fn save(&self, bytes: &mut Vec<u8>) {
        self.age.save(bytes);
        self.since.save(bytes);
        self.least.save(bytes);
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        let age = Self::new(f64::load(bytes)?, AgeOrigin::load(bytes)?);
        Some(age.least(f64::load(bytes)?))
    }
}

impl Saved for AgeOrigin {
    fn save(&self, bytes: &mut Vec<u8>) {
        matches!(self, Self::LastSeen).save(bytes);
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        Some(if bool::load(bytes)? {
            Self::LastSeen
        } else {
            Self::Recorded
        })
    }
}
