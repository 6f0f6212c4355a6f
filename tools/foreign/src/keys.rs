//! Keys in the forms in which programs have them, and their hashes.

use echoless::hash::KeyDigest;
use echoless::{Batch, KeyHash, KeyHasher, Verdicts};

use crate::failure::Failure;

/// The keys that are hashed at a time. Their hashes stay in the first-level cache, and the filter
/// looks ahead far enough in them.
const BLOCK: usize = 2048;

/// The most bytes that a handle or a thread keeps of a buffer for the next call. Calls with so many
/// keys are rare, and cost more than the allocation.
const KEPT_BYTES: usize = 1 << 20;

/// The keys of the longest batch whose divided keys are kept, as many as take [`KEPT_BYTES`].
pub(crate) const KEPT_KEYS: usize = KEPT_BYTES / size_of::<KeyHash>();

/// Gives back the memory of a buffer that is larger than those that are kept. Its content is lost
/// then.
pub fn give_back<T>(buffer: &mut Vec<T>) {
    if buffer.capacity() * size_of::<T>() > KEPT_BYTES {
        *buffer = Vec::new();
    }
}

/// As [`give_back`], for verdicts that nothing needs any more.
pub(crate) fn give_back_verdicts(verdicts: &mut Verdicts) {
    if size_of_val(verdicts.words()) > KEPT_BYTES {
        *verdicts = Verdicts::new();
    }
}

/// The keys of one call. A binding implements it for forms of its own, such as packets.
pub trait Keys {
    /// The number of keys.
    fn len(&self) -> usize;

    /// Whether there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hashes the keys from number `from` on, as many as there are `hashes`. The caller keeps to
    /// [`len`](Self::len).
    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]);

    /// The hashes themselves, if that is what the caller has.
    fn hashes(&self) -> Option<&[KeyHash]> {
        None
    }

    /// The digests of all keys, if the caller has them; otherwise they are made by
    /// [`hash`](Self::hash).
    ///
    /// # Errors
    /// [`Failure`] if the caller has hashes in place of keys: those of two keys may be equal.
    fn digests(&self) -> Result<Option<&[KeyDigest]>, Failure> {
        self.hashes().map_or(Ok(None), |_| Err(no_digests()))
    }

    /// The tick of each key, if they have some.
    fn ticks(&self) -> Option<&[u64]> {
        None
    }
}

/// The failure of hashes where keys are compared.
#[must_use]
pub fn no_digests() -> Failure {
    let allowed = "the keys themselves, for a filter without errors";
    Failure::argument("keys", "hashes", allowed)
}

impl<K: Keys + ?Sized> Keys for &K {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        (**self).hash(hasher, from, hashes);
    }

    fn hashes(&self) -> Option<&[KeyHash]> {
        (**self).hashes()
    }

    fn digests(&self) -> Result<Option<&[KeyDigest]>, Failure> {
        (**self).digests()
    }

    fn ticks(&self) -> Option<&[u64]> {
        (**self).ticks()
    }
}

/// Hashes that are uniform in all 64 bits; see [`KeyHash::from_uniform`].
#[derive(Debug, Clone, Copy)]
pub struct Hashes<'a>(pub &'a [KeyHash]);

impl Keys for Hashes<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn hash(&self, _hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        hashes.copy_from_slice(&self.0[from..from + hashes.len()]);
    }

    fn hashes(&self) -> Option<&[KeyHash]> {
        Some(self.0)
    }
}

/// Numbers of 64 bits, such as ids; see [`KeyHasher::hash_u64`].
#[derive(Debug, Clone, Copy)]
pub struct Numbers<'a>(pub &'a [u64]);

impl Keys for Numbers<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        hasher.hash_u64s(&self.0[from..from + hashes.len()], hashes);
    }
}

/// Keys of one width, at equal distances: a column of fixed-width bytes, or a field of an array of
/// structs.
#[derive(Debug, Clone, Copy)]
pub struct Fixed<'a> {
    bytes: &'a [u8],
    width: usize,
    stride: usize,
    count: usize,
}

impl<'a> Fixed<'a> {
    /// The first `width` bytes of `count` pieces of `stride` bytes. The last piece may end behind
    /// its key.
    ///
    /// # Errors
    /// [`Failure`] if the keys overlap, or `bytes` are too few.
    pub fn new(
        bytes: &'a [u8],
        width: usize,
        stride: usize,
        count: usize,
    ) -> Result<Self, Failure> {
        if stride < width {
            let allowed = format!("at least the width of a key, {width}");
            return Err(Failure::argument("stride", stride, allowed));
        }
        let needed = match count.checked_sub(1) {
            Some(last) => last
                .checked_mul(stride)
                .and_then(|at| at.checked_add(width)),
            None => Some(0),
        };
        if needed.is_none_or(|needed| needed > bytes.len()) {
            let allowed = format!("as many as {} bytes have", bytes.len());
            return Err(Failure::argument("count", count, allowed));
        }
        Ok(Self {
            bytes,
            width,
            stride,
            count,
        })
    }
}

impl Keys for Fixed<'_> {
    fn len(&self) -> usize {
        self.count
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        for (index, hash) in (from..).zip(hashes) {
            let start = index * self.stride;
            *hash = hasher.hash(&self.bytes[start..start + self.width]);
        }
    }
}

/// Keys behind each other in one buffer, with the offsets of their ends: a column of Arrow, and
/// what Java and Go pass in one piece.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a, O> {
    bytes: &'a [u8],
    offsets: &'a [O],
}

impl<'a, O: Copy + TryInto<usize>> Packed<'a, O> {
    /// Key `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    ///
    /// # Errors
    /// [`Failure`] if there are no offsets, or they descend, or one is negative or behind the end
    /// of `bytes`.
    pub fn new(bytes: &'a [u8], offsets: &'a [O]) -> Result<Self, Failure> {
        check_offsets(offsets, bytes.len())?;
        Ok(Self { bytes, offsets })
    }
}

impl<O: Copy + TryInto<usize>> Keys for Packed<'_, O> {
    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        // Checked by `new`, and a slice out of its range panics all the same.
        let at = |offset: O| offset.try_into().unwrap_or(usize::MAX);
        let offsets = &self.offsets[from..=from + hashes.len()];
        for (pair, hash) in offsets.windows(2).zip(hashes) {
            *hash = hasher.hash(&self.bytes[at(pair[0])..at(pair[1])]);
        }
    }
}

/// Checks the offsets of keys that are packed into so many bytes.
///
/// # Errors
/// [`Failure`] if there are none, or they descend, or one is negative or behind the end.
pub fn check_offsets<O: Copy + TryInto<usize>>(offsets: &[O], bytes: usize) -> Result<(), Failure> {
    if offsets.is_empty() {
        return Err(Failure::argument("offsets", 0, "one more than keys"));
    }
    let mut last = 0;
    for (index, offset) in offsets.iter().enumerate() {
        let end = (*offset).try_into().unwrap_or(usize::MAX);
        if end < last || end > bytes {
            let allowed = format!("ascending offsets in {bytes} bytes");
            let value = format!("number {index}");
            return Err(Failure::argument("offset", value, allowed));
        }
        last = end;
    }
    Ok(())
}

/// Hashes all keys, into `hashes`, whose allocation is used again.
pub fn hash_all<'a>(
    keys: &'a dyn Keys,
    hasher: &KeyHasher,
    hashes: &'a mut Vec<KeyHash>,
) -> &'a [KeyHash] {
    if let Some(hashes) = keys.hashes() {
        return hashes;
    }
    hashes.resize(keys.len(), KeyHash::default());
    keys.hash(hasher, 0, hashes);
    hashes
}

/// Checks that the keys fit in one batch of an ordered filter, a port or partitions. Fails if there
/// are 2^31 or more.
pub(crate) fn check_batch(keys: usize) -> Result<(), Failure> {
    let most = (1 << 31) - 1;
    if keys > most {
        let allowed = format!("at most {most} in a batch");
        return Err(Failure::argument("count", keys, allowed));
    }
    Ok(())
}

/// Checks the memory of the caller for the verdicts, and the ticks if there are any.
///
/// # Errors
/// [`Failure`] if `duplicates` has not one bit for each key and no whole word more, or `ticks` has
/// another length than the keys.
pub fn check_masks(keys: usize, ticks: Option<usize>, duplicates: usize) -> Result<(), Failure> {
    let words = keys.div_ceil(64);
    if duplicates != words {
        let value = format!("{duplicates} words");
        let allowed = format!("{words} for {keys} keys");
        return Err(Failure::argument("length of duplicates", value, allowed));
    }
    match ticks {
        Some(ticks) if ticks != keys => {
            let allowed = format!("{keys}, one for each key");
            Err(Failure::argument("number of ticks", ticks, allowed))
        }
        _ => Ok(()),
    }
}

/// Observes all keys in blocks, each with its words of `duplicates`. Returns the number of
/// duplicates.
pub(crate) fn observe_blocks(
    keys: &dyn Keys,
    ticks: Option<&[u64]>,
    hasher: &KeyHasher,
    hashes: &mut Vec<KeyHash>,
    duplicates: &mut [u64],
    mut observe: impl FnMut(Batch<'_>, &mut [u64]),
) -> Result<u64, Failure> {
    check_masks(keys.len(), ticks.map(<[u64]>::len), duplicates.len())?;
    if let Some(hashes) = keys.hashes() {
        observe(batch(hashes, ticks), duplicates);
    } else {
        for (number, words) in duplicates.chunks_mut(BLOCK / 64).enumerate() {
            let from = number * BLOCK;
            let to = keys.len().min(from + BLOCK);
            hashes.resize(to - from, KeyHash::default());
            keys.hash(hasher, from, hashes);
            observe(batch(hashes, ticks.map(|ticks| &ticks[from..to])), words);
        }
    }
    Ok(count_ones(duplicates))
}

/// The number of duplicates in these words.
pub(crate) fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

fn batch<'a>(hashes: &'a [KeyHash], ticks: Option<&'a [u64]>) -> Batch<'a> {
    match ticks {
        Some(ticks) => Batch::at_each(hashes, ticks),
        None => Batch::new(hashes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_long_call_needs_is_given_back() {
        let mut small = Vec::<u64>::with_capacity(1 << 17);
        let mut large = Vec::<u64>::with_capacity((1 << 17) + 1);
        give_back(&mut small);
        give_back(&mut large);
        assert!(small.capacity() >= 1 << 17);
        assert_eq!(large.capacity(), 0);
        let mut verdicts = Verdicts::new();
        verdicts.reset(1 << 20);
        give_back_verdicts(&mut verdicts);
        assert_eq!(verdicts.len(), 1 << 20);
        verdicts.reset(1 << 24);
        give_back_verdicts(&mut verdicts);
        assert_eq!(verdicts.len(), 0);
    }
}
