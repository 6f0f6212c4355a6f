//! The most keys of a window that each filter remembers within bounds of its error rates.

use clap::Args;
use echoless::FilterSpec;
use echoless_lab::parallel;
use echoless_lab::plan::settings;

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
    fn candidates(&self) -> Result<Vec<FilterSpec>, Failure> {
        let memory = self.memory_kib << 10;
        let settings = settings(memory, TICKS)?;
        let specs = settings
            .into_iter()
            .filter(|spec| spec.facts().window.is_some())
            .filter(|spec| self.only.is_empty() || self.only.iter().any(|name| name == spec.name()))
            .map(|spec| spec.memory(memory))
            .filter(|spec| spec.build().is_ok());
        Ok(specs.collect())
    }
}

/// Errors that are expected at a bound: enough for a relative deviation of a tenth.
const ERRORS: f64 = 100.0;

/// The most keys a tick at which both rates keep their bounds, to 2 %, and below `high`; `None` if
/// there are none.
fn densest(
    spec: &FilterSpec,
    fpr: f64,
    misses: f64,
    mut high: u64,
) -> Result<Option<(u64, Rates)>, Failure> {
    let probes = (ERRORS / fpr.min(misses)).ceil() as u64;
    // A load that any filter worth a row keeps.
    let mut low = memory_bits(spec) / 2000 / TICKS;
    let mut best = None;
    while high > low && high - low > (low / 50).max(1) {
        let middle = if low == 0 {
            high / 2
        } else {
            ((low * high) as f64).sqrt() as u64
        };
        let middle = middle.clamp(low + 1, high - 1);
        let rates = load::rates(spec, middle, probes)?;
        if rates.fpr <= fpr && rates.misses <= misses {
            low = middle;
            best = Some((middle, rates));
        } else {
            high = middle;
        }
    }
    Ok(best)
}

fn memory_bits(spec: &FilterSpec) -> u64 {
    spec.memory.unwrap_or(0) * 8
}

/// The rows of a filter: one for each bound of the false positive rate that it keeps.
fn rows(spec: &FilterSpec, arguments: &Arguments) -> Result<Vec<Row>, Failure> {
    let mut bounds = arguments.fpr.clone();
    bounds.sort_by(|a, b| b.total_cmp(a));
    // Four bits for a key are too few for any filter with a window.
    let mut high = (memory_bits(spec) / 4 / TICKS).max(2);
    let mut rows = Vec::new();
    for max_fpr in bounds {
        let Some((keys_per_tick, rates)) = densest(spec, max_fpr, arguments.misses, high)? else {
            break;
        };
        // A lower bound allows no higher load.
        high = keys_per_tick + 1 + keys_per_tick / 50;
        rows.push(Row {
            spec: *spec,
            max_fpr,
            keys: keys_per_tick * TICKS,
            rates,
        });
    }
    Ok(rows)
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
        memory_bits(&self.spec) as f64 / self.keys as f64
    }

    fn cells(&self) -> Vec<Cell> {
        let granule = self.spec.facts().window.map_or(0, |window| window.granule);
        let slack = granule as f64 / TICKS as f64;
        let bound = bound::bits_per_key(self.max_fpr, slack);
        let bits = self.bits_per_key();
        vec![
            self.spec.name().into(),
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
    let threads = std::thread::available_parallelism()?;
    let measured = parallel::map(&arguments.candidates()?, threads, |spec| {
        rows(spec, arguments).map_err(|error| format!("{spec}: {error}"))
    })?;
    let mut rows: Vec<Row> = measured.into_iter().flatten().collect();
    rows.sort_by(|a, b| {
        let name = |row: &Row| row.spec.name();
        (b.max_fpr.total_cmp(&a.max_fpr))
            .then(name(a).cmp(name(b)))
            .then(b.keys.cmp(&a.keys))
    });
    if !arguments.all {
        let family = |row: &Row| (row.max_fpr.to_bits(), row.spec.name());
        rows.dedup_by_key(|row| family(row));
    }
    let mut table = Table::new(&COLUMNS);
    for row in &rows {
        table.push(row.cells());
    }
    table.publish(&arguments.outputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_bound_allows_fewer_keys() {
        let arguments = Arguments {
            memory_kib: 64,
            fpr: vec![1e-3, 2e-2],
            misses: 1e-2,
            only: Vec::new(),
            all: true,
            outputs: Outputs::default(),
        };
        let specs = arguments.candidates().unwrap();
        let clocked = specs
            .iter()
            .find(|spec| spec.to_string().contains("bits=16"));
        let rows = rows(clocked.expect("a candidate"), &arguments).unwrap();
        // Misses limit the load at both bounds; 28 slots of 16 bits in a line.
        let bits: Vec<f64> = rows.iter().map(Row::bits_per_key).collect();
        assert_eq!(bits.len(), 2);
        assert!(
            bits.iter().all(|bits| (18.3..32.0).contains(bits)),
            "{bits:?}"
        );
        let jumping = specs.iter().find(|spec| spec.name() == "gbf");
        let rows = super::rows(jumping.expect("a candidate"), &arguments).unwrap();
        assert!(rows.len() < 2 || rows[1].bits_per_key() > rows[0].bits_per_key());
        let rows = rows.iter().all(|row| row.rates.fpr <= row.max_fpr);
        assert!(rows);
    }
}
