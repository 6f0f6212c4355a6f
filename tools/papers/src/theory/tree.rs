//! Bloom trees (paper 001, section 6): where duplicates are found, how often a level is accessed,
//! and the false positive rate of top-down testing.
//!
//! The paper gives the rate of each node, which is [`bloom::fpr`] of the keys below it. The rest
//! follows for producers that are drawn uniformly and independently of the keys, without false
//! positives. Levels are numbered from the root, 0, to the leaves, `levels - 1`.

use super::bloom;

/// The probability that an arrival is tested at `level`, if its key was recorded at `copies` leaves
/// drawn uniformly: that none of them lies below the node of the next lower level.
///
/// A fresh key has no copies. A duplicate has 1 in a sparse tree, and in a dense one as many as it
/// had arrivals before, because each of them records it at its own leaf.
///
/// Simulations agree within 0.01.
///
/// # Panics
/// If `level` is not below `levels`.
///
/// # Examples
/// ```
/// use echoless_papers::theory::tree::tested;
/// // Four leaves: a duplicate of a sparse tree is found at its leaf one time in four.
/// assert_eq!(tested(2, 4, 1, 1), 1.0);
/// assert_eq!(tested(2, 4, 0, 1), 0.75);
/// assert_eq!(tested(2, 4, 0, 2), 0.5625);
/// ```
#[must_use]
pub fn tested(levels: u32, fanout: u32, level: u32, copies: u64) -> f64 {
    assert!(level < levels, "level {level} of {levels}");
    if level + 1 == levels {
        return 1.0;
    }
    let elsewhere = 1.0 - f64::from(fanout).powi(-(level as i32 + 1));
    elsewhere.powf(copies as f64)
}

/// The probability that a duplicate is found at `level`, if its key was recorded at `copies` leaves
/// drawn uniformly.
///
/// Simulations agree within 0.01.
///
/// # Panics
/// If `level` is not below `levels`.
///
/// # Examples
/// ```
/// use echoless_papers::theory::tree::hit;
/// let levels = [0, 1, 2].map(|level| hit(3, 2, level, 1));
/// assert_eq!(levels, [0.5, 0.25, 0.25]);
/// ```
#[must_use]
pub fn hit(levels: u32, fanout: u32, level: u32, copies: u64) -> f64 {
    let passed_on = match level {
        0 if copies > 0 => 0.0,
        0 => 1.0,
        below => tested(levels, fanout, below - 1, copies),
    };
    tested(levels, fanout, level, copies) - passed_on
}

/// The accesses of a sparse tree at `level` for each arrival, if the fraction `fresh` of the
/// arrivals is fresh: tests, and one more access for each fresh key, which is set.
///
/// Simulations agree within 0.01.
///
/// # Panics
/// If `level` is not below `levels`.
///
/// # Examples
/// ```
/// use echoless_papers::theory::tree::sparse_accesses;
/// assert_eq!(sparse_accesses(2, 4, 0, 1.0), 2.0);
/// assert_eq!(sparse_accesses(2, 4, 0, 0.0), 0.75);
/// ```
#[must_use]
pub fn sparse_accesses(levels: u32, fanout: u32, level: u32, fresh: f64) -> f64 {
    2.0 * fresh + (1.0 - fresh) * tested(levels, fanout, level, 1)
}

/// The accesses of a dense tree at `level` for each arrival, if every key arrives `arrivals` times:
/// the mean of [`tested`] over 0 to `arrivals - 1` copies.
///
/// Simulations agree within 0.01.
///
/// # Panics
/// If `level` is not below `levels`, or `arrivals` is 0.
///
/// # Examples
/// ```
/// use echoless_papers::theory::tree::dense_accesses;
/// assert_eq!(dense_accesses(2, 2, 1, 3), 1.0);
/// assert_eq!(dense_accesses(2, 2, 0, 3), (1.0 + 0.5 + 0.25) / 3.0);
/// ```
#[must_use]
pub fn dense_accesses(levels: u32, fanout: u32, level: u32, arrivals: u64) -> f64 {
    assert!(arrivals > 0, "a key without arrivals");
    let first = tested(levels, fanout, level, 1);
    if first == 1.0 {
        return 1.0;
    }
    // The sum of a geometric series.
    (1.0 - first.powf(arrivals as f64)) / (arrivals as f64 * (1.0 - first))
}

/// The FPR of a sparse tree of Bloom filters of `bits` bits with k = `hashes`, if top-down testing
/// ends at a level of `nodes` nodes that hold `keys` distinct keys together: an arrival is a false
/// positive if any of these nodes, with its share of the keys, holds it.
///
/// One node is the root, which holds every key that arrived: without top-down testing a tree,
/// sparse or dense, has the FPR of a single filter. More nodes hold the keys that were reported as
/// fresh.
///
/// Simulations agree within 5 % of it.
///
/// # Examples
/// ```
/// use echoless_papers::theory::{bloom, tree};
/// let single = bloom::fpr(4, 100_000, 1 << 19);
/// assert_eq!(tree::sparse_fpr(4, 100_000, 1 << 19, 1), single);
/// assert!(tree::sparse_fpr(4, 100_000, 1 << 19, 4) < 0.2 * single);
/// ```
#[must_use]
pub fn sparse_fpr(hashes: u32, keys: u64, bits: u64, nodes: u64) -> f64 {
    // A node with 1/n of the keys has the rate of a filter n times as large with all keys.
    let node = bloom::fpr(hashes, keys, bits.saturating_mul(nodes));
    if nodes == 1 {
        return node;
    }
    -((-node).ln_1p() * nodes as f64).exp_m1()
}
