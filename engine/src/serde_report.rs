//! Reports and counts in files (serde), written and not read: structures with the names of their
//! fields, values that are not known as none.

use serde::{Serialize, Serializer};

use crate::hash::KeyHash;
use crate::isa::Kernel;
use crate::kernels::LookAhead;
use crate::report::{AgeOrigin, Cells, MissAge, RateSum, Report, SampleError, Tally, Window};

// Not derived: the macro would be a dependency that is compiled before everything else.
macro_rules! as_struct {
    ($($type:ident { $($field:ident),* })*) => {$(
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeStruct;
                // A field that is left out does not compile.
                let Self { $($field),* } = self;
                let count = [$(stringify!($field)),*].len();
                let mut out = serializer.serialize_struct(stringify!($type), count)?;
                $(out.serialize_field(stringify!($field), $field)?;)*
                out.end()
            }
        }
    )*};
}
pub(crate) use as_struct;

as_struct! {
    Report {
        tally, kernel, look_ahead, slot_bits, expected_fpr, expected_false_duplicates, most_fpr,
        miss_age, window, expired, sample_error
    }
    Tally {
        memory_bytes, observed, fresh, evictions, unavailable, cells, rates
    }
    Cells { occupied, total }
    MissAge { age, since, least }
    SampleError { fill, expected_fpr }
    Window { ticks, granule }
}

/// As its mean, since the sum has more bits than the numbers of most formats.
impl Serialize for RateSum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.mean().serialize(serializer)
    }
}

/// As its name.
impl Serialize for Kernel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// As people read it.
impl Serialize for LookAhead {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for AgeOrigin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::LastSeen => "last_seen",
            Self::Recorded => "recorded",
        })
    }
}

/// As its number.
impl Serialize for KeyHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.get())
    }
}

/// From its number.
impl<'de> serde::Deserialize<'de> for KeyHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::from_uniform)
    }
}
