//! The values of the fields that a key leaves out, so that a report can show which of them differ.

use super::field::{Field, FieldSet};
use super::visit::{Sink, Tag};

/// The values of the fields that the key of one packet leaves out: those that are ignored, and
/// those in front of the layer that the key begins at.
///
/// A value is kept as a 64-bit digest (FNV-1a), so two values that differ could be taken for equal
/// with a probability of about 2^-64. 168 bytes; `Copy`.
///
/// # Examples
/// ```
/// use echoless_packets::key::{Field, FieldSet, KeyOptions, KeyReader};
/// use echoless_packets::synth::{Header, Stack};
///
/// let mut behind_router = Header::ipv4();
/// if let Header::Ipv4(ip) = &mut behind_router {
///     ip.ttl -= 1;
/// }
/// let reader = KeyReader::new(KeyOptions::default())?;
/// let [before, behind] = [Header::ipv4(), behind_router].map(|ip| {
///     let stack = Stack::new(vec![Header::ethernet(), ip, Header::tcp()]);
///     let bytes = stack.bytes(b"hello");
///     reader.ignored_fields(&stack.packet(&bytes))
/// });
/// assert_eq!(before.differing(&behind).to_string(), "ttl,ip-checksum");
/// # Ok::<(), echoless_packets::key::KeyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoredFields {
    present: FieldSet,
    digests: [u64; Field::COUNT],
}

impl IgnoredFields {
    /// The fields that the packet has and its key leaves out.
    #[must_use]
    pub fn present(&self) -> FieldSet {
        self.present
    }

    /// The fields that differ between two packets, or that only one of them has.
    #[must_use]
    pub fn differing(&self, other: &Self) -> FieldSet {
        let differs = |field: &Field| {
            self.present.contains(*field) != other.present.contains(*field)
                || self.digests[field.index()] != other.digests[field.index()]
        };
        let fields = Field::ALL.iter().copied().filter(differs);
        fields.fold(FieldSet::EMPTY, FieldSet::with)
    }
}

/// Digests the ignored fields that it visits.
pub(super) struct IgnoredSink {
    ignore: FieldSet,
    owner: Option<Field>,
    values: IgnoredFields,
}

impl IgnoredSink {
    pub(super) fn new(ignore: FieldSet) -> Self {
        /// The offset basis of 64-bit FNV-1a.
        const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        Self {
            ignore,
            owner: None,
            values: IgnoredFields {
                present: FieldSet::EMPTY,
                digests: [BASIS; Field::COUNT],
            },
        }
    }

    pub(super) fn finish(self) -> IgnoredFields {
        self.values
    }

    fn digest(&mut self, field: Field, bytes: &[u8]) {
        /// The prime of 64-bit FNV-1a.
        const PRIME: u64 = 0x0100_0000_01b3;
        self.values.present = self.values.present.with(field);
        let digest = &mut self.values.digests[field.index()];
        // The length first: a field may consist of several pieces.
        let len = (bytes.len() as u64).to_le_bytes();
        for byte in len.iter().chain(bytes) {
            *digest = (*digest ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }
}

impl Sink for IgnoredSink {
    fn item(&mut self, _tag: Tag, owner: Option<Field>) {
        self.owner = owner.filter(|field| self.ignore.contains(*field));
    }

    fn fixed(&mut self, bytes: &[u8]) {
        if let Some(owner) = self.owner {
            self.digest(owner, bytes);
        }
    }

    fn field(&mut self, field: Field, bytes: &[u8]) {
        if self.ignore.contains(field) {
            self.digest(field, bytes);
        } else {
            // A field that is compared elsewhere, in an item that is ignored as a whole.
            self.fixed(bytes);
        }
    }
}
