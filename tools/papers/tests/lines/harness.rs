//! Shared by the models: draws, positions, streams and the comparison.

use std::ops::Range;

use echoless::{Filter, FilterSpec, KeyHash, KeyHasher, Verdict};
use proptest::prelude::*;

use crate::kernels::kernels;
use crate::verdicts::observe_all;

/// A line as its bits, bit 0 first.
pub(crate) type Bits = [bool; 512];

/// The effect of a key on its line; true means duplicate.
pub(crate) trait Model {
    fn visit(&self, line: &mut Bits, key: KeyHash, draw: KeyHash) -> bool;
}

/// The exclusive or of all words of the line, by the parity of each bit.
fn fold(line: &Bits) -> u64 {
    (0..64).fold(0, |folded, bit| {
        let odd = (0..8).filter(|word| line[word * 64 + bit]).count() % 2;
        folded | (odd as u64) << bit
    })
}

/// The hash that a visit derives its random numbers from.
fn draw(line: &Bits, key: KeyHash, seed: u64) -> KeyHash {
    let salt = KeyHash::from_uniform(seed).remix(u64::from_be_bytes(*b"line slt"));
    KeyHash::from_uniform(key.get() ^ salt ^ fold(line))
}

/// Number `index` of a sequence of numbers below `bound`, four from each hash from stream `first`
/// on.
pub(crate) fn piece(hash: KeyHash, first: usize, index: usize, bound: usize) -> usize {
    let pieces = hash.remix((first + index / 4) as u64).to_le_bytes();
    let piece = u16::from_le_bytes([pieces[index % 4 * 2], pieces[index % 4 * 2 + 1]]);
    usize::from(piece) * bound / 65536
}

/// `count` ranges that divide `len` positions, the first ones longer by one if they cannot be
/// equal.
pub(crate) fn ranges(len: usize, count: usize) -> impl Iterator<Item = Range<usize>> {
    let start = move |range: usize| range * (len / count) + range.min(len % count);
    (0..count).map(move |range| start(range)..start(range + 1))
}

/// A number below `bound`, from a stream of the draw.
pub(crate) fn below(draw: KeyHash, stream: usize, bound: usize) -> usize {
    KeyHash::from_uniform(draw.remix(stream as u64)).line(bound as u64) as usize
}

/// The number in the `width` bits from `start` on.
pub(crate) fn number(line: &Bits, start: usize, width: usize) -> u64 {
    let bits = line[start..start + width].iter().enumerate();
    bits.fold(0, |number, (bit, set)| number | u64::from(*set) << bit)
}

pub(crate) fn set_number(line: &mut Bits, start: usize, width: usize, value: u64) {
    for bit in 0..width {
        line[start + bit] = value >> bit & 1 == 1;
    }
}

/// Streams with many repeats, near and far, for keys that share few lines.
pub(crate) fn streams() -> impl Strategy<Value = Vec<u64>> {
    (1_u64..600).prop_flat_map(|universe| prop::collection::vec(0..universe, 0..1500))
}

pub(crate) fn parse(text: &str) -> FilterSpec {
    echoless_papers::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Feeds the stream to the filter that `spec` names and to the model: the verdicts agree on every
/// kernel and in partitions, and again once the filter is cleared.
pub(crate) fn agree(
    spec: &str,
    lines: usize,
    seed: u64,
    model: &dyn Model,
    stream: &[u64],
) -> Result<(), TestCaseError> {
    let text = format!("{spec},form=line,memory={}B,seed={seed}", lines * 64);
    let parsed = parse(&text);
    let hasher = KeyHasher::seeded(9);
    let keys: Vec<KeyHash> = stream.iter().map(|key| hasher.hash_u64(*key)).collect();
    let mut model_lines = vec![[false; 512]; lines];
    let expected: Vec<bool> = keys
        .iter()
        .map(|key| {
            let line = &mut model_lines[key.line(lines as u64) as usize];
            model.visit(line, *key, draw(line, *key, seed))
        })
        .collect();
    let others: Vec<KeyHash> = (0..700).map(|key| hasher.hash_u64(key)).collect();
    let known: Vec<bool> = others
        .iter()
        .map(|key| {
            // The answer of a visit on a copy of the line.
            let mut line = model_lines[key.line(lines as u64) as usize];
            model.visit(&mut line, *key, KeyHash::from_uniform(0))
        })
        .collect();
    for kernel in kernels() {
        let mut filter = parsed.kernel(kernel).build_lines().expect("valid");
        prop_assert_eq!(
            observe_all(&mut *filter, &keys, 1000),
            &expected[..],
            "{} on {}",
            text,
            kernel
        );
        for (key, known) in others.iter().zip(&known) {
            prop_assert_eq!(filter.contains(*key), *known, "{} on {}", text, kernel);
        }
        filter.clear();
        prop_assert_eq!(
            observe_all(&mut *filter, &keys, 77),
            &expected[..],
            "{} cleared",
            text
        );
        filter.clear();
        let single = keys
            .iter()
            .map(|key| filter.observe_one(*key).is_duplicate());
        prop_assert_eq!(
            single.collect::<Vec<_>>(),
            &expected[..],
            "single keys: {} on {}",
            text,
            kernel
        );
    }
    let count = 1 + seed as usize % lines;
    let mut parts = parsed.build_partitions(count).expect("enough lines");
    for (key, expected) in keys.iter().zip(&expected) {
        let owner = parts.partitioning().partition_of(*key);
        let verdict = parts.filters_mut()[owner].observe_one(*key);
        prop_assert_eq!(
            verdict == Verdict::Duplicate,
            *expected,
            "{} in {}",
            text,
            count
        );
    }
    Ok(())
}
