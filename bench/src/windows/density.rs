//! The most keys of a window that each filter remembers within bounds of its error rates.

use std::collections::BTreeMap;

use clap::Args;
use echoless::FilterSpec;
use echoless::spec::{FilterKind, Workload};
use echoless_lab::parallel;

use super::bound;
use super::load::{self, Rates, TICKS};
use crate::failure::Failure;
use crate::table::{Cell, Outputs, Table};

/// The options of `windows`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Memory of each filter, in KiB.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(64..=1 << 30))]
    memory_kib: u64,
    /// Bounds of the false positive rate.
    #[arg(long, value_delimiter = ',', default_value = "1e-2,1e-3,5e-4,1e-4")]
    fpr: Vec<f64>,
    /// Bound of the fraction of the keys of a window that is missed.
    #[arg(long, default_value_t = 1e-3)]
    misses: f64,
    /// Names of the filters to measure. Default: all that have a window.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Print every setting of each filter, and not only the one that remembers the most keys.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    outputs: Outputs,
}

impl Arguments {
    fn check(&self) -> Result<(), Failure> {
        let rates = self.fpr.iter().map(|rate| ("fpr", *rate));
        for (option, rate) in rates.chain([("misses", self.misses)]) {
            if !(1e-6..=0.5).contains(&rate) {
                return Err(format!("invalid --{option} {rate}: expected 1e-6 to 0.5").into());
            }
        }
        Ok(())
    }

    /// The filters with a window, in all settings that the planner tries.
    fn candidates(&self) -> Vec<FilterSpec> {
        let memory = self.memory_kib << 10;
        FilterKind::grid(&Workload::new(memory, TICKS))
            .iter()
            .filter_map(|text| text.parse::<FilterSpec>().ok())
            .filter(|spec| spec.window().is_some())
            .filter(|spec| {
                self.only.is_empty() || self.only.iter().any(|name| name == spec.kind.name())
            })
            .map(|spec| spec.memory(memory))
            .filter(|spec| spec.build().is_ok())
            .collect()
    }

    /// Keys to look up for each rate: a hundred errors at the lowest bound.
    fn probes(&self) -> u64 {
        let lowest = self.fpr.iter().copied().fold(self.misses, f64::min);
        (100.0 / lowest).ceil() as u64
    }
}

/// A filter, and the rates at the loads that were tried.
struct Trials {
    spec: FilterSpec,
    probes: u64,
    rates: BTreeMap<u64, Rates>,
}

impl Trials {
    fn rates(&mut self, keys_per_tick: u64) -> Result<Rates, Failure> {
        if let Some(rates) = self.rates.get(&keys_per_tick) {
            return Ok(*rates);
        }
        let rates = load::rates(&self.spec, keys_per_tick, self.probes)?;
        self.rates.insert(keys_per_tick, rates);
        Ok(rates)
    }

    /// The most keys a tick at which both rates keep their bounds, to 2 %; `None` if there are
    /// none.
    fn densest(&mut self, fpr: f64, misses: f64) -> Result<Option<(u64, Rates)>, Failure> {
        let bits = self.spec.memory.unwrap_or(0) * 8;
        // Loads that no filter keeps, and that any filter worth a row keeps.
        let (mut high, mut low) = ((bits / 4 / TICKS).max(2), bits / 2000 / TICKS);
        let mut best = None;
        while high - low > (low / 50).max(1) {
            let middle = if low == 0 {
                high / 2
            } else {
                ((low * high) as f64).sqrt() as u64
            };
            let middle = middle.clamp(low + 1, high - 1);
            let rates = self.rates(middle)?;
            if rates.fpr <= fpr && rates.misses <= misses {
                low = middle;
                best = Some((middle, rates));
            } else {
                high = middle;
            }
        }
        Ok(best)
    }
}

/// One row of the table.
struct Row {
    spec: FilterSpec,
    max_fpr: f64,
    keys: u64,
    rates: Rates,
}

impl Row {
    fn bits_per_key(&self) -> f64 {
        (self.spec.memory.unwrap_or(0) * 8) as f64 / self.keys as f64
    }

    fn cells(&self) -> Vec<Cell> {
        let granule = self.spec.window().map_or(0, |window| window.granule);
        let slack = granule as f64 / TICKS as f64;
        let bound = bound::bits_per_key(self.max_fpr, slack);
        let bits = self.bits_per_key();
        vec![
            self.spec.kind.name().into(),
            self.spec.to_string().into(),
            self.max_fpr.into(),
            self.keys.into(),
            bits.into(),
            self.rates.fpr.into(),
            self.rates.misses.into(),
            self.rates.misses_at_end.into(),
            slack.into(),
            bound.into(),
            (bound / bits).into(),
        ]
    }
}

const COLUMNS: [&str; 11] = [
    "name",
    "filter",
    "max_fpr",
    "keys_in_window",
    "bits_per_key",
    "fpr",
    "misses",
    "misses_at_end",
    "granule_of_window",
    "bound_bits_per_key",
    "bound_share",
];

/// Measures and prints the table.
///
/// # Errors
/// If a bound is out of range, a filter cannot be built, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.check()?;
    let probes = arguments.probes();
    let threads = std::thread::available_parallelism()?;
    let candidates = arguments.candidates();
    let measured = parallel::map(&candidates, threads, |spec| {
        let mut trials = Trials {
            spec: *spec,
            probes,
            rates: BTreeMap::new(),
        };
        let rows = arguments.fpr.iter().map(|max_fpr| {
            let found = trials.densest(*max_fpr, arguments.misses);
            let found = found.map_err(|error| error.to_string())?;
            Ok(found.map(|(keys_per_tick, rates)| Row {
                spec: *spec,
                max_fpr: *max_fpr,
                keys: keys_per_tick * TICKS,
                rates,
            }))
        });
        rows.collect::<Result<Vec<Option<Row>>, String>>()
    })?;
    let mut rows: Vec<Row> = measured.into_iter().flatten().flatten().collect();
    rows.sort_by(|a, b| {
        let name = |row: &Row| row.spec.kind.name();
        (b.max_fpr.total_cmp(&a.max_fpr))
            .then(name(a).cmp(name(b)))
            .then(b.keys.cmp(&a.keys))
    });
    if !arguments.all {
        let family = |row: &Row| (row.max_fpr.to_bits(), row.spec.kind.name());
        rows.dedup_by_key(|row| family(row));
    }
    let mut table = Table::new(&COLUMNS);
    for row in &rows {
        table.push(row.cells());
    }
    table.publish(&arguments.outputs)
}
