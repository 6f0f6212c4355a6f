//! Two Bloom filters used in turn, so that old keys leave a whole generation at a time: one mechanism
//! for A2 and double buffering.

use std::mem::swap;

use super::bits::BitTable;
use super::mechanism::{self, Mechanism, filter};
use crate::limits::bits_of;
use crate::theory::generations::{insertions_to_half_fill, pair_hashes};
use echoless::extend::{
    Allowed, FilterRow, Head, MOST_HASHES, Named, OptionRow, Value, names, rate_text,
};
use echoless::spec::Facts;
use echoless::{BuildError, Cells, KeyHash, SpecError};

/// The role of the second Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Succession {
    /// A2, active-active (Yoon 2010; paper 003, section 2.1): both filters answer, and a key that
    /// only the older one holds is inserted into the newer one.
    ActiveActive,
    /// Double buffering (Chang, Feng, Li 2004; paper 003, section 2.1): only the active filter
    /// answers; once it is half full, keys are also inserted into the next one.
    WarmUp,
}

/// When a generation is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rotate {
    /// After n = floor(M ln2 / (2k)) insertions, as published. By then more than half of the bits
    /// are set: only keys that miss are inserted, and those set more new bits than others.
    Count,
    /// When half of its bits are set, so that the FPR of a generation never exceeds 2^-k.
    Fill,
}

/// The parameters of a pair of generations, except its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
struct GenerationSpec {
    /// k: the number of a key's bits in each generation (1 to 64).
    hashes: u32,
    /// The role of the second generation.
    succession: Succession,
    /// When a generation is full.
    rotate: Rotate,
}

/// Two Bloom filters of M/2 bits each (Yoon 2010; Chang, Feng, Li 2004).
///
/// Paper 003 describes both in its section 2.1, under each other's name; paper 002 measures A2 in
/// its section 6.1.
///
/// Cache lines touched per key: up to 2k to probe, k to insert. A rotation clears one generation,
/// M/2 bits.
#[derive(Debug, Clone)]
struct GenerationFilter {
    /// The generation that keys are inserted into: A1, or the active buffer.
    active: BitTable,
    /// The older generation of A2, or the warm-up buffer.
    other: BitTable,
    spec: GenerationSpec,
    /// The number of insertions into `active`.
    inserted: u64,
    /// The number of insertions into the warm-up buffer.
    warmed: u64,
    capacity: u64,
}

impl GenerationSpec {
    fn of(named: &Named) -> Self {
        Self {
            hashes: named.small("k"),
            succession: match named.name() {
                "dbuf" => Succession::WarmUp,
                _ => Succession::ActiveActive,
            },
            rotate: named.choice("rotate", &ROTATIONS),
        }
    }

    /// Builds the filter in `memory_bytes`. Fails if a generation has room for fewer than two keys,
    /// or the memory cannot be allocated.
    fn build(self, memory_bytes: u64) -> Result<GenerationFilter, BuildError> {
        let hashes = self.hashes;
        let half = memory_bytes / 2;
        let capacity = insertions_to_half_fill(bits_of(half)?, hashes);
        if capacity < 2 {
            let least = 2 * (f64::from(2 * hashes) / std::f64::consts::LN_2 / 8.0).ceil() as u64;
            return Err(SpecError::new(
                "memory",
                format!("{memory_bytes} B"),
                format!("at least {least} B (two keys in each generation)"),
            )
            .into());
        }
        Ok(GenerationFilter {
            active: BitTable::new(hashes, half)?,
            other: BitTable::new(hashes, half)?,
            spec: self,
            inserted: 0,
            warmed: 0,
            capacity,
        })
    }
}

impl GenerationFilter {
    /// Whether the active generation has used up this fraction of its capacity (1 or 1/2).
    ///
    /// By fill, a fraction x of the keys that set half of the bits sets 1 - 2^-x of them.
    fn used_up(&self, fraction: f64) -> bool {
        match self.spec.rotate {
            Rotate::Count => self.inserted as f64 >= self.capacity as f64 * fraction,
            Rotate::Fill => {
                self.active.cells().fill() >= 1.0 - (-std::f64::consts::LN_2 * fraction).exp()
            }
        }
    }
}

impl Mechanism for GenerationFilter {
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let in_active = self.active.holds(key);
        match self.spec.succession {
            Succession::ActiveActive => {
                if in_active {
                    return true;
                }
                let seen = self.other.holds(key);
                self.active.insert(key);
                self.inserted += 1;
                if self.used_up(1.0) {
                    swap(&mut self.active, &mut self.other);
                    self.active.clear_all();
                    self.active.insert(key);
                    self.inserted = 1;
                }
                seen
            }
            Succession::WarmUp => {
                if !in_active {
                    self.active.insert(key);
                    self.inserted += 1;
                }
                if self.used_up(0.5) && !self.other.holds(key) {
                    self.other.insert(key);
                    self.warmed += 1;
                }
                if self.used_up(1.0) {
                    swap(&mut self.active, &mut self.other);
                    self.other.clear_all();
                    self.inserted = self.warmed;
                    self.warmed = 0;
                }
                in_active
            }
        }
    }

    fn contains(&self, key: KeyHash) -> bool {
        let older = self.spec.succession == Succession::ActiveActive && self.other.holds(key);
        older || self.active.holds(key)
    }

    fn clear(&mut self) {
        self.active.clear_all();
        self.other.clear_all();
        self.inserted = 0;
        self.warmed = 0;
    }

    fn memory_bytes(&self) -> u64 {
        self.active.bytes() + self.other.bytes()
    }

    fn fill(&self) -> (Cells, Option<f64>) {
        let (active, other) = (self.active.cells(), self.other.cells());
        let occupied = active.occupied + other.occupied;
        (Cells::new(occupied, active.total + other.total), None)
    }
}

const ROTATIONS: [(&str, Rotate); 2] = [("count", Rotate::Count), ("fill", Rotate::Fill)];

const OPTIONS: &[OptionRow] = &[
    OptionRow::new("k", Allowed::Whole(1, MOST_HASHES as u64)),
    OptionRow::new("fpr", Allowed::Number(is_reached, RATES)),
    OptionRow::choice("rotate", &names(&ROTATIONS)),
];

/// The accepted values of `fpr`: the rate of more than 64 bits is excluded.
const RATES: &str = "a rate above 5.42e-20 (k=64) and below 1";

fn is_reached(fpr: f64) -> bool {
    fpr > 0.0 && fpr < 1.0 && pair_hashes(fpr) <= MOST_HASHES
}

/// The pairs of generations.
pub(crate) static ROWS: [FilterRow; 2] = [row("a2"), row("dbuf")];

const fn row(name: &'static str) -> FilterRow {
    mechanism::row(
        Head {
            name,
            options: |_| OPTIONS,
            // The rate becomes the k that keeps it.
            complete: |named, _| match (named.given("k"), named.decimal("fpr")) {
                (Some(_), Some(fpr)) => {
                    let allowed = "either k or fpr, not both";
                    Err(SpecError::new("fpr", rate_text(fpr), allowed))
                }
                (Some(_), None) => Ok(()),
                (None, fpr) => {
                    let hashes = pair_hashes(fpr.unwrap_or(0.1));
                    named.set("k", Value::Whole(hashes.into()));
                    named.set("fpr", Value::Unset);
                    Ok(())
                }
            },
        },
        |named, memory, _| filter(GenerationSpec::of(named).build(memory)),
        |named, _, _| Facts::touching(2.0 * f64::from(named.small("k"))),
    )
}
