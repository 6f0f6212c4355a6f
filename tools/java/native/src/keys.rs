//! The keys of a batch, as Java has them, and the words for its verdicts.

use std::cell::RefCell;
use std::slice;

use echoless::hash::KeyDigest;
use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{Failure, Hashes, Keys, check_offsets, give_back, no_digests};
use jni::Env;
use jni::objects::{JByteArray, JByteBuffer, JIntArray, JLongArray};

use crate::call::{check_length, length, of_java};

thread_local! {
    /// The words and ticks of a batch.
    static NUMBERS: RefCell<(Vec<u64>, Vec<u64>)> = const { RefCell::new((Vec::new(), Vec::new())) };
    /// The times and the fates of a batch.
    static TIMED: RefCell<(Vec<i64>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
    /// The bytes of a block of keys.
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The offsets of a batch.
    static OFFSETS: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
}

/// Numbers of Java in place of those of the library, which are unsigned.
fn as_java(numbers: &mut [u64]) -> &mut [i64] {
    // SAFETY: both have the same size and alignment, and any bits are a number of either.
    unsafe { slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), numbers.len()) }
}

/// As [`as_java`], of hashes.
fn hashes_as_java(hashes: &mut [KeyHash]) -> &mut [i64] {
    // SAFETY: a `KeyHash` is a `u64` in memory (`repr(transparent)`), and any number is one.
    unsafe { slice::from_raw_parts_mut(hashes.as_mut_ptr().cast(), hashes.len()) }
}

/// An array of hashes, each block of which is copied when the filter reaches it.
pub(crate) struct HashArray<'a, 'local> {
    env: &'a Env<'local>,
    array: &'a JLongArray<'local>,
    count: usize,
}

impl<'a, 'local> HashArray<'a, 'local> {
    /// # Errors
    /// [`Failure`] if the array is null or has fewer hashes.
    pub(crate) fn new(
        env: &'a Env<'local>,
        array: &'a JLongArray<'local>,
        count: usize,
    ) -> Result<Self, Failure> {
        check_length(env, "hashes", array, count)?;
        Ok(Self { env, array, count })
    }
}

impl Keys for HashArray<'_, '_> {
    fn len(&self) -> usize {
        self.count
    }

    fn digests(&self) -> Result<Option<&[KeyDigest]>, Failure> {
        Err(no_digests())
    }

    fn hash(&self, _hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        let copied = (self.array).get_region(self.env, from as i32, hashes_as_java(hashes));
        copied.expect("the length of an array of Java does not change");
    }
}

/// Runs `with` on the keys that lie behind each other in an array.
pub(crate) fn with_packed<'local, T>(
    env: &Env<'local>,
    packed: &JByteArray<'local>,
    offsets: &JIntArray<'local>,
    count: usize,
    with: impl FnOnce(&dyn Keys) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let packed_length = length(env, "packed", packed)?;
    check_length(env, "offsets", offsets, count + 1)?;
    OFFSETS.with_borrow_mut(|copied| {
        copied.resize(count + 1, 0);
        let copied_all = offsets.get_region(env, 0, copied).map_err(of_java);
        let outcome = copied_all
            .and_then(|()| check_offsets(copied, packed_length))
            .and_then(|()| {
                with(&PackedArray {
                    env,
                    packed,
                    offsets: copied,
                })
            });
        give_back(copied);
        outcome
    })
}

/// Keys behind each other, with checked offsets.
struct PackedArray<'a, 'local> {
    env: &'a Env<'local>,
    packed: &'a JByteArray<'local>,
    offsets: &'a [i32],
}

impl Keys for PackedArray<'_, '_> {
    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        let offsets = &self.offsets[from..=from + hashes.len()];
        let (first, last) = (offsets[0], offsets[hashes.len()]);
        let count = (last - first) as usize;
        BYTES.with_borrow_mut(|bytes| {
            if bytes.len() < count {
                bytes.resize(count, 0);
            }
            // SAFETY: both have the same size and alignment, and any bits are a byte of either.
            let of_java = unsafe { slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), count) };
            let copied = self.packed.get_region(self.env, first, of_java);
            copied.expect("the length of an array of Java does not change");
            for (pair, hash) in offsets.windows(2).zip(hashes) {
                *hash = hasher.hash(&bytes[(pair[0] - first) as usize..(pair[1] - first) as usize]);
            }
            give_back(bytes);
        });
    }
}

/// Hashes in memory outside of the heap of Java, which are not copied. Fails if the buffer is null,
/// lies in the heap, or has too few bytes between its position and its limit, or they are
/// misaligned.
///
/// # Safety
/// Nothing writes or frees the hashes while they are used, during this call of Java.
pub(crate) unsafe fn direct<'a>(
    env: &Env<'_>,
    buffer: &'a JByteBuffer<'_>,
    [position, limit]: [usize; 2],
    count: usize,
) -> Result<Hashes<'a>, Failure> {
    if buffer.is_null() {
        return Err(Failure::argument("hashes", "null", "a direct buffer"));
    }
    let memory = env.get_direct_buffer_address(buffer);
    let (Ok(memory), Ok(capacity)) = (memory, env.get_direct_buffer_capacity(buffer)) else {
        let allowed = "a direct one, ByteBuffer.allocateDirect";
        return Err(Failure::argument("hashes", "a buffer in the heap", allowed));
    };
    let bytes = limit.min(capacity).saturating_sub(position);
    if count > bytes / 8 {
        let value = format!("{bytes} bytes");
        let allowed = format!("{} or more from the position on", count as u64 * 8);
        return Err(Failure::argument("hashes", value, allowed));
    }
    let first = memory.wrapping_add(position).cast::<KeyHash>();
    if !first.is_aligned() {
        let allowed = "an address divisible by 8";
        return Err(Failure::argument("hashes", format!("{first:p}"), allowed));
    }
    if count == 0 {
        return Ok(Hashes(&[]));
    }
    // SAFETY: the buffer has the bytes, and is referenced during the call; the address is aligned
    // and not NULL, and any number is a hash. That nothing writes them, nor frees memory that a
    // buffer does not own, the caller answers for.
    Ok(Hashes(unsafe { slice::from_raw_parts(first, count) }))
}

/// Judges a batch: `judge` gets the ticks, if there are any, and words for the verdicts, and the
/// verdicts are written to Java once it has succeeded.
pub(crate) fn judge(
    env: &Env<'_>,
    ticks: &JLongArray<'_>,
    count: usize,
    verdicts: &JLongArray<'_>,
    judge: impl FnOnce(Option<&[u64]>, &mut [u64]) -> Result<u64, Failure>,
) -> Result<i64, Failure> {
    check_length(env, "verdicts", verdicts, count.div_ceil(64))?;
    NUMBERS.with_borrow_mut(|(words, copied_ticks)| {
        words.resize(count.div_ceil(64), 0);
        let found = copy_ticks(env, ticks, count, copied_ticks).and_then(|()| {
            let found = judge((!ticks.is_null()).then_some(&copied_ticks[..]), words)?;
            let written = verdicts.set_region(env, 0, as_java(words));
            written.map_err(of_java)?;
            Ok(found.cast_signed())
        });
        give_back(words);
        give_back(copied_ticks);
        found
    })
}

/// Judges a batch of records with times: `judge` gets the times and writes the fates, which are
/// written to Java once it has succeeded.
pub(crate) fn judge_timed(
    env: &Env<'_>,
    count: usize,
    times: &JLongArray<'_>,
    fates: &JByteArray<'_>,
    judge: impl FnOnce(&[i64], &mut [u8]) -> Result<u64, Failure>,
) -> Result<i64, Failure> {
    check_length(env, "times", times, count)?;
    check_length(env, "fates", fates, count)?;
    TIMED.with_borrow_mut(|(copied, found)| {
        copied.resize(count, 0);
        found.resize(count, 0);
        times.get_region(env, 0, copied).map_err(of_java)?;
        let duplicates = judge(copied, found)?;
        // SAFETY: both have the same size and alignment, and any bits are a byte of either.
        let bytes = unsafe { slice::from_raw_parts(found.as_ptr().cast(), count) };
        fates.set_region(env, 0, bytes).map_err(of_java)?;
        give_back(copied);
        give_back(found);
        Ok(duplicates.cast_signed())
    })
}

/// Copies the ticks of a batch, if it has some. Fails if they are too few, or one is below 0.
fn copy_ticks(
    env: &Env<'_>,
    ticks: &JLongArray<'_>,
    count: usize,
    copied: &mut Vec<u64>,
) -> Result<(), Failure> {
    if ticks.is_null() {
        return Ok(());
    }
    check_length(env, "ticks", ticks, count)?;
    copied.resize(count, 0);
    let all = ticks.get_region(env, 0, as_java(copied));
    all.map_err(of_java)?;
    copied.iter().try_for_each(|tick| check_tick(*tick))
}

/// Rejects a number below 0 of Java: as a tick it would be the end of all times, and the clock of a
/// filter does not go back.
pub(crate) fn check_tick(tick: u64) -> Result<(), Failure> {
    match tick.cast_signed() {
        negative @ ..0 => Err(Failure::argument("tick", negative, "0 or more")),
        _ => Ok(()),
    }
}

/// Writes the hash of each key to Java.
pub(crate) fn write_hashes(
    env: &Env<'_>,
    keys: &dyn Keys,
    hasher: &KeyHasher,
    hashes: &JLongArray<'_>,
) -> Result<(), Failure> {
    check_length(env, "hashes", hashes, keys.len())?;
    let mut block = [KeyHash::default(); 512];
    for from in (0..keys.len()).step_by(block.len()) {
        let block = &mut block[..(keys.len() - from).min(512)];
        keys.hash(hasher, from, block);
        let written = hashes.set_region(env, from as i32, hashes_as_java(block));
        written.map_err(of_java)?;
    }
    Ok(())
}

/// An array of numbers such as ids.
pub(crate) struct NumberArray<'a, 'local>(pub(crate) HashArray<'a, 'local>);

impl Keys for NumberArray<'_, '_> {
    fn len(&self) -> usize {
        self.0.count
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        self.0.hash(hasher, from, hashes);
        for hash in hashes {
            *hash = hasher.hash_u64(hash.get());
        }
    }
}
