//! The bit filter: one mechanism for Bloom, RSBF, BSBF, BSBFSD and RLBSBF.

use super::{Ageing, BitTable, Reservoir};
use crate::error::{BuildError, SpecError};
use crate::filters::cell_table::CellTable;
use crate::filters::filter::{observe_each, tally_of_cells};
use crate::filters::kind::{KindSpec, unknown_name};
use crate::filters::scattered::random::SeededRng;
use crate::filters::{Filter, Form, Workload};
use crate::hash::KeyHash;
use crate::limits::{HASHES, closed_unit};
use crate::options::Options;
use crate::report::Tally;
use crate::theory::RateModel;

/// The parameters of a bit filter, except its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BitsSpec {
    /// k: the number of filters and of a key's bits (1 to 64).
    pub hashes: u32,
    /// The bits that an arrival clears.
    pub ageing: Ageing,
}

/// k filters of s = M/k bits; a key is a duplicate if and only if its bit is set in all of them
/// (paper 000, section 3; Bloom 1970).
///
/// Cache lines touched per key: up to k to probe. A fresh key writes those k and touches k more to
/// clear (BSBFSD one more, Bloom none).
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHasher, Verdict};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// use echoless::filters::scattered::bits::{Ageing, BitsSpec};
/// let mut filter = BitsSpec::new(2, Ageing::ByFill).build(1 << 20, 7)?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct BitFilters {
    table: BitTable,
    ageing: Ageing,
    arrivals: u64,
    rng: SeededRng,
}

impl BitsSpec {
    /// `hashes` filters that age like this.
    #[must_use]
    pub const fn new(hashes: u32, ageing: Ageing) -> Self {
        Self { hashes, ageing }
    }

    /// Builds the filter in `memory_bytes`; `seed` seeds its random draws.
    ///
    /// # Errors
    /// [`BuildError`] if k is not 1 to 64, the memory holds no bit for each filter, p* is not 0 to
    /// 1, or the memory cannot be allocated.
    pub fn build(self, memory_bytes: u64, seed: u64) -> Result<BitFilters, BuildError> {
        if let Ageing::Reservoir(Reservoir::Described { threshold }) = self.ageing {
            closed_unit("pstar", threshold)?;
        }
        Ok(BitFilters {
            table: BitTable::new(self.hashes, memory_bytes)?,
            ageing: self.ageing,
            arrivals: 0,
            rng: SeededRng::seeded(seed),
        })
    }
}

impl BitFilters {
    /// The fraction of bits that are set.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.table.cells().fill()
    }

    /// Tests and records one key; true means duplicate.
    #[inline]
    pub(super) fn observe_key(&mut self, key: KeyHash) -> bool {
        self.arrivals += 1;
        let seen = self.table.holds(key);
        let insert =
            self.ageing
                .make_room(&mut self.table, key, seen, self.arrivals, &mut self.rng);
        if insert {
            self.table.insert(key);
        }
        seen
    }
}

impl Filter for BitFilters {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        observe_each(keys, duplicates, |key| self.observe_key(key));
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.table.holds(key)
    }

    fn clear(&mut self) {
        self.table.clear_all();
        self.arrivals = 0;
        self.rng.restart();
    }

    fn memory_bytes(&self) -> u64 {
        self.table.bytes()
    }

    fn tally(&self) -> Tally {
        tally_of_cells(self.memory_bytes(), self.table.cells())
    }
}

/// The processes that go by the name RSBF, and whether they are the tabled one.
const PROCESSES: [(&str, bool); 2] = [("described", false), ("tabled", true)];

impl KindSpec for BitsSpec {
    const NAMES: &'static [&'static str] = &["bloom", "rsbf", "bsbf", "bsbfsd", "rlbsbf"];

    fn parse(name: &str, _form: Form, options: &mut Options) -> Result<Self, SpecError> {
        let (hashes, ageing) = match name {
            "rsbf" => (2, Ageing::Reservoir(parse_reservoir(options)?)),
            "bsbf" => (2, Ageing::EachFilter),
            "bsbfsd" => (2, Ageing::OneFilter),
            "rlbsbf" => (2, Ageing::ByFill),
            "bloom" => (4, Ageing::Never),
            _ => return Err(unknown_name(name, Self::NAMES)),
        };
        Ok(Self::new(options.integer("k", hashes, HASHES)?, ageing))
    }

    fn name(&self) -> &'static str {
        match self.ageing {
            Ageing::Never => "bloom",
            Ageing::Reservoir(_) => "rsbf",
            Ageing::EachFilter => "bsbf",
            Ageing::OneFilter => "bsbfsd",
            Ageing::ByFill => "rlbsbf",
        }
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = vec![("k", self.hashes.to_string())];
        match self.ageing {
            Ageing::Reservoir(Reservoir::Tabled) => options.push(("as", "tabled".into())),
            Ageing::Reservoir(Reservoir::Described { threshold }) => {
                options.push(("as", "described".into()));
                options.push(("pstar", threshold.to_string()));
            }
            Ageing::Never | Ageing::EachFilter | Ageing::OneFilter | Ageing::ByFill => {}
        }
        options
    }

    fn build_scattered(&self, memory_bytes: u64, seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        Ok(Box::new(self.build(memory_bytes, seed)?))
    }

    fn build_cells(&self, memory_bytes: u64) -> Option<Result<Box<dyn CellTable>, BuildError>> {
        match self.ageing {
            Ageing::Never => {
                let table = BitTable::new(self.hashes, memory_bytes);
                Some(table.map(|table| Box::new(table) as Box<dyn CellTable>))
            }
            Ageing::Reservoir(_) | Ageing::EachFilter | Ageing::OneFilter | Ageing::ByFill => None,
        }
    }

    fn cache_lines(&self, _memory_bytes: u64) -> f64 {
        f64::from(match self.ageing {
            Ageing::Never => self.hashes,
            Ageing::OneFilter => self.hashes + 1,
            Ageing::EachFilter | Ageing::ByFill | Ageing::Reservoir(_) => 2 * self.hashes,
        })
    }

    fn rate_model(&self, form: Form, memory_bytes: u64) -> Option<RateModel> {
        let (hashes, bits) = (self.hashes, memory_bytes.checked_mul(8)?);
        match (self.ageing, form) {
            (Ageing::Never, Form::Scattered) => Some(RateModel::Bloom { hashes, bits }),
            (Ageing::Never, Form::Line) => Some(RateModel::LineBloom { hashes, bits }),
            _ => None,
        }
    }

    fn fpr_limit(&self, _form: Form, _memory_bytes: u64) -> Option<f64> {
        None
    }

    fn settles(&self) -> bool {
        match self.ageing {
            Ageing::Never | Ageing::OneFilter => false,
            // Keys are inserted ever more rarely, so the filter is that of an old part.
            Ageing::Reservoir(Reservoir::Tabled) => false,
            // Once the probability is down to the threshold, every fresh key is inserted again.
            Ageing::Reservoir(Reservoir::Described { threshold }) => threshold > 0.0,
            // A fresh key sets its one bit for certain, and clears less than one bit of those set.
            Ageing::EachFilter | Ageing::ByFill => self.hashes > 1,
        }
    }

    fn scaled(self, _scale: f64) -> Self {
        self
    }

    fn grid(_workload: &Workload) -> Vec<String> {
        let bloom = (1..=12).chain([14, 16, 20, 24]);
        let mut texts: Vec<String> = bloom.map(|k| format!("bloom:k={k}")).collect();
        for k in 1..=4 {
            texts.extend(["bsbf", "bsbfsd", "rlbsbf"].map(|name| format!("{name}:k={k}")));
            texts.extend(["described", "tabled"].map(|process| format!("rsbf:k={k},as={process}")));
        }
        texts
    }
}

fn parse_reservoir(options: &mut Options) -> Result<Reservoir, SpecError> {
    if options.choice("as", &PROCESSES)? {
        Ok(Reservoir::Tabled)
    } else {
        let threshold = options.decimal("pstar", 0.03, 0.0..=1.0)?;
        Ok(Reservoir::Described { threshold })
    }
}
