//! The bit filter: one mechanism for Bloom, RSBF, BSBF, BSBFSD and RLBSBF.

use super::{Ageing, BitTable, Reservoir};
use crate::adapters::cell_table::CellTable;
use crate::lines;
use crate::scattered::mechanism::{self, Mechanism, filter};
use crate::scattered::random::SeededRng;
use echoless::extend::{FilterRow, Head, Named, OptionRow};
use echoless::spec::{Facts, Form};
use echoless::theory::RateModel;
use echoless::{BuildError, Cells, KeyHash};

/// The parameters of a bit filter, except its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BitsSpec {
    /// k: the number of filters and of a key's bits (1 to 64).
    pub(crate) hashes: u32,
    /// The bits that an arrival clears.
    pub(crate) ageing: Ageing,
}

/// k filters of s = M/k bits; a key is a duplicate if and only if its bit is set in all of them
/// (paper 000, section 3; Bloom 1970).
///
/// Cache lines touched per key: up to k to probe. A fresh key writes those k and touches k more to
/// clear (BSBFSD one more, Bloom none).
#[derive(Debug, Clone)]
pub(crate) struct BitFilters {
    table: BitTable,
    ageing: Ageing,
    arrivals: u64,
    rng: SeededRng,
}

impl BitsSpec {
    /// The parameters of a filter of [`ROWS`].
    fn of(named: &Named) -> Self {
        let ageing = match named.name() {
            "bloom" => Ageing::Never,
            "bsbf" => Ageing::EachFilter,
            "bsbfsd" => Ageing::OneFilter,
            "rlbsbf" => Ageing::ByFill,
            _ => Ageing::Reservoir(match named.decimal("pstar") {
                Some(threshold) => Reservoir::Described { threshold },
                None => Reservoir::Tabled,
            }),
        };
        let hashes = named.small("k");
        Self { hashes, ageing }
    }

    /// Builds the filter in `memory_bytes`; `seed` seeds its random draws. Fails if the memory
    /// holds no bit for each filter, or cannot be allocated.
    pub(crate) fn build(self, memory_bytes: u64, seed: u64) -> Result<BitFilters, BuildError> {
        Ok(BitFilters {
            table: BitTable::new(self.hashes, memory_bytes)?,
            ageing: self.ageing,
            arrivals: 0,
            rng: SeededRng::seeded(seed),
        })
    }
}

impl Mechanism for BitFilters {
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
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

    fn fill(&self) -> (Cells, Option<f64>) {
        (self.table.cells(), None)
    }
}

const BLOOM: &[OptionRow] = &[OptionRow::hashes(4)];
const OTHERS: &[OptionRow] = &[OptionRow::hashes(2)];
const RESERVOIR: &[OptionRow] = &[
    OptionRow::hashes(2),
    OptionRow::choice("as", &["described", "tabled"]),
    OptionRow::fraction("pstar", 0.03).beside("as", &["described"]),
];

/// The bit filters.
pub(crate) static ROWS: [FilterRow; 5] = [
    row("bloom", |_| BLOOM),
    row("rsbf", |_| RESERVOIR),
    row("bsbf", |_| OTHERS),
    row("bsbfsd", |_| OTHERS),
    row("rlbsbf", |_| OTHERS),
];

/// A Bloom filter as a table of cells.
pub(crate) fn cell_table(named: &Named, memory: u64) -> Result<Box<dyn CellTable>, BuildError> {
    Ok(Box::new(BitTable::new(named.small("k"), memory)?))
}

const fn row(name: &'static str, options: fn(Form) -> &'static [OptionRow]) -> FilterRow {
    let head = Head {
        name,
        options,
        complete: Named::as_given,
    };
    FilterRow {
        lines: Some(|named, allocation| lines::bits::build(&BitsSpec::of(named), allocation)),
        ..mechanism::row(
            head,
            |named, memory, seed| filter(BitsSpec::of(named).build(memory, seed)),
            facts,
        )
    }
}

fn facts(named: &Named, form: Form, memory: u64) -> Facts {
    let BitsSpec { hashes, ageing } = BitsSpec::of(named);
    let rate_model = |bits| match (ageing, form) {
        (Ageing::Never, Form::Scattered) => Some(RateModel::Bloom { hashes, bits }),
        (Ageing::Never, Form::Line) => Some(RateModel::LineBloom { hashes, bits }),
        _ => None,
    };
    Facts {
        rate_model: memory.checked_mul(8).and_then(rate_model),
        settles: match ageing {
            Ageing::Never | Ageing::OneFilter => false,
            // Keys are inserted ever more rarely, so the filter is that of an old part.
            Ageing::Reservoir(Reservoir::Tabled) => false,
            // Once the probability is down to the threshold, every fresh key is inserted again.
            Ageing::Reservoir(Reservoir::Described { threshold }) => threshold > 0.0,
            // A fresh key sets its one bit for certain, and clears less than one bit of those set.
            Ageing::EachFilter | Ageing::ByFill => hashes > 1,
        },
        ..Facts::touching(f64::from(match ageing {
            Ageing::Never => hashes,
            Ageing::OneFilter => hashes + 1,
            Ageing::EachFilter | Ageing::ByFill | Ageing::Reservoir(_) => 2 * hashes,
        }))
    }
}
