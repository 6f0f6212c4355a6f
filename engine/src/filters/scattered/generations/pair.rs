//! The pair of Bloom filters: one mechanism for A2 and double buffering.

use std::mem::swap;

use crate::error::{BuildError, SpecError};
use crate::filters::filter::{observe_each, tally_of_cells};
use crate::filters::kind::{KindSpec, unknown_name};
use crate::filters::scattered::bits::BitTable;
use crate::filters::{Filter, Form, Workload};
use crate::hash::KeyHash;
use crate::limits::{HASHES, MOST_HASHES, bits_of, rate_text, within};
use crate::options::{Options, name_of};
use crate::report::{Cells, Tally};
use crate::theory::RateModel;
use crate::theory::generations::{insertions_to_half_fill, pair_fpr, pair_hashes};

/// The role of the second Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Succession {
    /// A2, active-active (Yoon 2010; paper 003, section 2.1): both filters answer, and a key that
    /// only the older one holds is inserted into the newer one.
    ActiveActive,
    /// Double buffering (Chang, Feng, Li 2004; paper 003, section 2.1): only the active filter
    /// answers; once it is half full, keys are also inserted into the next one.
    WarmUp,
}

/// When a generation is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rotate {
    /// After n = floor(M ln2 / (2k)) insertions, as published. By then more than half of the bits
    /// are set: only keys that miss are inserted, and those set more new bits than others.
    Count,
    /// When half of its bits are set, so that the FPR of a generation never exceeds 2^-k.
    Fill,
}

/// The parameters of a pair of generations, except its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct GenerationSpec {
    /// k: the number of a key's bits in each generation (1 to 64).
    pub hashes: u32,
    /// The role of the second generation.
    pub succession: Succession,
    /// When a generation is full.
    pub rotate: Rotate,
}

/// Two Bloom filters of M/2 bits each (Yoon 2010; Chang, Feng, Li 2004).
///
/// Paper 003 describes both in its section 2.1, under each other's name; paper 002 measures A2 in
/// its section 6.1.
///
/// Cache lines touched per key: up to 2k to probe, k to insert. A rotation clears one generation,
/// M/2 bits.
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHasher, Verdict};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// use echoless::spec::{GenerationSpec, Rotate, Succession};
/// let a2 = GenerationSpec::new(4, Succession::ActiveActive).rotate(Rotate::Fill);
/// let mut filter = a2.build(1 << 16, 0)?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct GenerationFilter {
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
    /// k bits for each key in each generation; generations rotate by count, as published.
    #[must_use]
    pub const fn new(hashes: u32, succession: Succession) -> Self {
        Self {
            hashes,
            succession,
            rotate: Rotate::Count,
        }
    }

    /// When a generation is full.
    #[must_use]
    pub const fn rotate(mut self, rotate: Rotate) -> Self {
        self.rotate = rotate;
        self
    }

    /// Builds the filter in `memory_bytes`. It draws no random numbers and ignores the seed.
    ///
    /// # Errors
    /// [`BuildError`] if k is not 1 to 64, a generation has room for fewer than two keys, or the
    /// memory cannot be allocated.
    pub fn build(self, memory_bytes: u64, _seed: u64) -> Result<GenerationFilter, BuildError> {
        let hashes = within("k", self.hashes, 1..=MOST_HASHES)?;
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

    /// Tests and records one key; true means duplicate.
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
}

impl Filter for GenerationFilter {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        observe_each(keys, duplicates, |key| self.observe_key(key));
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

    fn tally(&self) -> Tally {
        let (active, other) = (self.active.cells(), self.other.cells());
        let occupied = active.occupied + other.occupied;
        let cells = Cells::new(occupied, active.total + other.total);
        tally_of_cells(self.memory_bytes(), cells)
    }
}

const ROTATIONS: [(&str, Rotate); 2] = [("count", Rotate::Count), ("fill", Rotate::Fill)];

impl KindSpec for GenerationSpec {
    const NAMES: &'static [&'static str] = &["a2", "dbuf"];

    fn parse(name: &str, _form: Form, options: &mut Options) -> Result<Self, SpecError> {
        let succession = match name {
            "dbuf" => Succession::WarmUp,
            "a2" => Succession::ActiveActive,
            _ => return Err(unknown_name(name, Self::NAMES)),
        };
        Ok(Self {
            hashes: parse_hashes(options)?,
            succession,
            rotate: options.choice("rotate", &ROTATIONS)?,
        })
    }

    fn name(&self) -> &'static str {
        match self.succession {
            Succession::ActiveActive => "a2",
            Succession::WarmUp => "dbuf",
        }
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        vec![
            ("k", self.hashes.to_string()),
            ("rotate", name_of(&ROTATIONS, &self.rotate)),
        ]
    }

    fn build_scattered(&self, memory_bytes: u64, seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        Ok(Box::new(self.build(memory_bytes, seed)?))
    }

    fn cache_lines(&self, _memory_bytes: u64) -> f64 {
        2.0 * f64::from(self.hashes)
    }

    fn rate_model(&self, _form: Form, _memory_bytes: u64) -> Option<RateModel> {
        None
    }

    fn fpr_limit(&self, _form: Form, _memory_bytes: u64) -> Option<f64> {
        None
    }

    fn settles(&self) -> bool {
        true
    }

    fn scaled(self, _scale: f64) -> Self {
        self
    }

    fn grid(_workload: &Workload) -> Vec<String> {
        let names = Self::NAMES.iter();
        let settings = |name| [1, 2, 3, 4, 6, 8].map(|k| format!("{name}:k={k},rotate=fill"));
        names.flat_map(settings).collect()
    }
}

/// k, or the k that keeps a false positive rate.
fn parse_hashes(options: &mut Options) -> Result<u32, SpecError> {
    let hashes = options.optional_integer("k", HASHES)?;
    let least = pair_fpr(MOST_HASHES + 1);
    let allowed = format!("a rate above {least:.2e} (k={MOST_HASHES}) and below 1");
    let in_range = |fpr: &f64| *fpr > 0.0 && *fpr < 1.0 && pair_hashes(*fpr) <= MOST_HASHES;
    let fpr = options.checked("fpr", &allowed, in_range)?;
    match (hashes, fpr) {
        (Some(_), Some(fpr)) => {
            let allowed = "either k or fpr, not both";
            Err(SpecError::new("fpr", rate_text(fpr), allowed))
        }
        (Some(hashes), None) => Ok(hashes),
        (None, fpr) => Ok(pair_hashes(fpr.unwrap_or(0.1))),
    }
}
