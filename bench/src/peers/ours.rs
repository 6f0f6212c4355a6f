//! Our own filters as candidates.

use echoless::{
    Filter, FingerprintSpec, Kernel, KeyHash, LineFilter, Replacement, SharedFilter, SharedLayout,
    SharedSpec, SlotWidth, Verdicts,
};

use super::candidate::{Ages, Budget, Candidate, Peer, filling_up};
use super::rates;

/// Fingerprint lines with each replacement policy, and two layouts of the shared filter.
pub(super) fn ours(budget: Budget) -> Vec<Candidate> {
    let policies = [Replacement::Fifo, Replacement::Lru];
    let lines = policies.map(|replacement| fingerprint_lines(budget, replacement));
    let shared = [row(budget), bloom_words(budget)];
    lines.into_iter().chain(shared).collect()
}

fn fingerprint_lines(budget: Budget, replacement: Replacement) -> Candidate {
    let spec = FingerprintSpec::new(budget.bytes)
        .slot_width(SlotWidth::Bits16)
        .replacement(replacement);
    let keys_per_line = budget.keys as f64 * 64.0 / budget.bytes as f64;
    Candidate {
        name: "echoless",
        variant: format!("fingerprint 32 x 16, {replacement}"),
        kernel: Some(Kernel::best()),
        ages: Ages::Forgets,
        max_fpr: rates::over_blocks(keys_per_line, |keys| keys.min(32.0) / 65_536.0),
        max_fnr: 1e-4,
        ..filling_up(move || Ok(spec.build()?))
    }
}

/// A row of four fingerprints of 16 bits in each word.
fn row(budget: Budget) -> Candidate {
    let keys_per_word = budget.keys as f64 * 8.0 / budget.bytes as f64;
    Candidate {
        variant: "shared row 4 x 16".into(),
        ages: Ages::Forgets,
        max_fpr: rates::over_blocks(keys_per_word, |keys| keys.min(4.0) / 65_536.0),
        max_fnr: 0.02,
        ..shared(budget, SharedLayout::Row4x16)
    }
}

/// A Bloom filter in each word.
fn bloom_words(budget: Budget) -> Candidate {
    Candidate {
        variant: "shared bloom, 4 hashes".into(),
        max_fpr: rates::blocked_bloom(64.0, budget.bits(), budget.keys as f64, 4),
        ..shared(budget, SharedLayout::Bloom { k: 4 })
    }
}

fn shared(budget: Budget, layout: SharedLayout) -> Candidate {
    Candidate {
        name: "echoless",
        ..filling_up(move || {
            Ok(Shared {
                filter: SharedSpec::new(budget.bytes).layout(layout).build()?,
                verdicts: Verdicts::new(),
            })
        })
    }
}

impl Peer for Box<dyn LineFilter> {
    fn observe(&mut self, keys: &[KeyHash], seen: &mut [u64]) {
        self.observe_batch(keys.into(), seen);
    }

    fn holds(&self, key: KeyHash) -> bool {
        self.contains(key)
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(Filter::memory_bytes(self))
    }
}

/// The shared filter, which returns verdicts instead of filling words.
struct Shared {
    filter: SharedFilter,
    verdicts: Verdicts,
}

impl Peer for Shared {
    fn observe(&mut self, keys: &[KeyHash], seen: &mut [u64]) {
        self.filter.observe(keys, &mut self.verdicts);
        seen.copy_from_slice(self.verdicts.words());
    }

    fn holds(&self, key: KeyHash) -> bool {
        self.filter.contains(key)
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.filter.memory_bytes())
    }
}
