//! Filters that grow (paper 001, section 5): another filter of the same shape is opened whenever
//! the newest one is full.

use std::fmt;

use crate::adapters::cell_table::{self, CellTable, cell_table};
use crate::theory::bloom::{cardinality_threshold, density_threshold};
use echoless::extend::{
    AdapterRow, Allowed, Head, Layers, MOST_HASHES, Named, OptionRow, Value, names, rate_text,
};
use echoless::spec::Facts;
use echoless::{
    Batch, BuildError, Cells, Filter, KeyHash, RateSum, Report, SpecError, Tally, Window,
};

#[cfg(test)]
mod tests;

/// Opens an empty table of the same shape; `None` if the memory is not available.
type Open = Box<dyn Fn() -> Option<Box<dyn CellTable>> + Send + Sync>;

/// One of the filters.
#[derive(Debug)]
struct Stage {
    table: Box<dyn CellTable>,
    /// The keys inserted since it was opened.
    inserted: u64,
    /// The tick of the last insertion.
    last: u64,
}

/// A filter that opens another one of the same shape when the newest is full (paper 001, section
/// 5).
///
/// ```text
///   oldest                          newest
///   | full | full, partly expired | takes the fresh keys |      at most `most` of them
/// ```
///
/// A key is a duplicate if one of the filters holds it. A fresh key is inserted into the newest;
/// before that, if the newest is full, another one is opened. When the memory is used up or cannot
/// be allocated, the oldest filter is dropped and its memory emptied for the new one: its keys are
/// forgotten, and counted as evictions. With a window a filter is dropped once all of its keys have
/// expired. The age of a key counts from when it was last reported as fresh.
///
/// Cache lines touched per key: up to k in each filter.
struct Growing {
    /// Oldest first, never empty.
    stages: Vec<Stage>,
    open: Open,
    most: usize,
    /// What the newest must exceed: set cells, or keys.
    full: f64,
    threshold: Threshold,
    window: Option<Window>,
    tick: u64,
    /// The newest cannot be full before so many more insertions.
    room: u64,
    observed: u64,
    fresh: u64,
    dropped: u64,
    evictions: u64,
    expired: u64,
}

impl Growing {
    /// A growing filter of at most `most` tables like `first`. Fails if a table is full with one
    /// key.
    fn new(
        fpr: f64,
        threshold: Threshold,
        first: Box<dyn CellTable>,
        open: Open,
        most: usize,
        window: Option<Window>,
    ) -> Result<Self, BuildError> {
        let (cells, hashes) = (first.cell_count(), first.hashes() as u32);
        // Density counts the cells that are set, cardinality the keys.
        let (full, one_key) = match threshold {
            Threshold::Density => (density_threshold(cells, hashes, fpr), f64::from(hashes)),
            Threshold::Cardinality => (cardinality_threshold(cells, hashes, fpr), 1.0),
        };
        if full < one_key {
            // Both thresholds are proportional to the number of cells.
            let least = (first.bytes() as f64 * one_key / full).ceil();
            let allowed = format!(
                "at least about {least} B, for one key at fpr={}",
                rate_text(fpr)
            );
            return Err(SpecError::new("step", format!("{} B", first.bytes()), allowed).into());
        }
        Ok(Self {
            stages: vec![Stage {
                table: first,
                inserted: 0,
                last: 0,
            }],
            open,
            most,
            full,
            threshold,
            window,
            tick: 0,
            room: 0,
            observed: 0,
            fresh: 0,
            dropped: 0,
            evictions: 0,
            expired: 0,
        })
    }

    /// The number of filters, and how many were dropped to make room and because all of their keys
    /// had expired.
    #[cfg(test)]
    const fn counts(&self) -> (usize, u64, u64) {
        (self.stages.len(), self.dropped, self.expired)
    }

    fn newest(&mut self) -> &mut Stage {
        let newest = self.stages.len() - 1;
        &mut self.stages[newest]
    }

    /// Whether the newest filter is full.
    ///
    /// Counting the cells of some tables reads all of them. An insertion sets at most k cells, so
    /// after a count the next one is needed only when k cells for each insertion since could have
    /// filled the table.
    fn is_full(&mut self) -> bool {
        if self.room > 0 {
            return false;
        }
        let (full, threshold) = (self.full, self.threshold);
        let stage = self.newest();
        let left = match threshold {
            Threshold::Density => {
                (full - stage.table.cells().occupied as f64) / stage.table.hashes() as f64
            }
            Threshold::Cardinality => full - stage.inserted as f64,
        };
        self.room = left.max(0.0) as u64;
        left < 0.0
    }

    /// Opens a filter, in the memory of the oldest if there is no other.
    fn grow(&mut self) {
        let opened = if self.stages.len() < self.most {
            (self.open)()
        } else {
            None
        };
        let table = opened.unwrap_or_else(|| {
            let oldest = self.stages.remove(0);
            self.dropped += 1;
            self.evictions += oldest.inserted;
            let mut table = oldest.table;
            table.restart();
            table
        });
        self.push(table);
    }

    fn push(&mut self, mut table: Box<dyn CellTable>) {
        table.advance_to(self.tick);
        self.stages.push(Stage {
            table,
            inserted: 0,
            last: self.tick,
        });
        self.room = 0;
    }

    /// The cells of a key: the tables have one shape, so they are the same in each.
    #[inline]
    fn find(&self, key: KeyHash) -> ([u64; MOST_HASHES as usize], usize) {
        let table = &self.stages[0].table;
        let mut cells = [0; MOST_HASHES as usize];
        for (index, cell) in cells.iter_mut().take(table.hashes()).enumerate() {
            *cell = table.position(key, index);
        }
        (cells, table.hashes())
    }

    /// Whether a filter holds the cells, the newest first: most duplicates are recent.
    fn holds(&self, cells: &[u64]) -> bool {
        let mut stages = self.stages.iter().rev();
        stages.any(|stage| cells.iter().all(|cell| stage.table.is_set(*cell)))
    }

    fn observe_key(&mut self, key: KeyHash) -> bool {
        self.observed += 1;
        let (cells, hashes) = self.find(key);
        let cells = &cells[..hashes];
        if self.holds(cells) {
            return true;
        }
        self.fresh += 1;
        if self.is_full() {
            self.grow();
        }
        let tick = self.tick;
        let stage = self.newest();
        for cell in cells {
            stage.table.set(*cell);
        }
        stage.inserted += 1;
        stage.last = tick;
        self.room = self.room.saturating_sub(1);
        false
    }

    /// Moves the clock.
    fn advance(&mut self, tick: u64) {
        if tick <= self.tick {
            return;
        }
        self.tick = tick;
        for stage in &mut self.stages {
            stage.table.advance_to(tick);
        }
        let Some(window) = self.window else {
            return;
        };
        let forgotten = window.ticks.saturating_add(window.granule);
        let newest = self.stages.len() - 1;
        let mut index = 0;
        let mut expired = 0;
        self.stages.retain_mut(|stage| {
            let empty = tick - stage.last >= forgotten && stage.inserted > 0;
            expired += u64::from(empty);
            let is_newest = index == newest;
            index += 1;
            if empty && is_newest {
                // Dropped and opened again, in the same memory.
                stage.table.restart();
                stage.table.advance_to(tick);
                stage.inserted = 0;
            }
            is_newest || !empty
        });
        self.expired += expired;
        if self.newest().inserted == 0 {
            self.room = 0;
        }
    }
}

impl Filter for Growing {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        batch.observe_runs(duplicates, |tick, batch, duplicates| {
            if let Some(tick) = tick {
                self.advance(tick);
            }
            batch.observe_each(duplicates, |key| self.observe_key(key));
        });
    }

    fn contains(&self, key: KeyHash) -> bool {
        let (cells, hashes) = self.find(key);
        self.holds(&cells[..hashes])
    }

    fn clear(&mut self) {
        self.stages.truncate(1);
        self.tick = 0;
        let stage = self.newest();
        stage.table.restart();
        (stage.inserted, stage.last) = (0, 0);
        self.room = 0;
        (self.observed, self.fresh) = (0, 0);
        (self.dropped, self.evictions, self.expired) = (0, 0, 0);
    }

    /// The memory of the filters that are open now.
    fn memory_bytes(&self) -> u64 {
        self.stages.iter().map(|stage| stage.table.bytes()).sum()
    }

    /// Evictions are the keys of filters that were dropped to make room. Without a window nothing
    /// else is ever forgotten. The rate is that of the cells as they are: 1 minus the product of
    /// 1 - fill^k over all filters.
    fn tally(&self) -> Tally {
        let mut cells = Cells::new(0, 0);
        let mut fresh = 1.0;
        for stage in &self.stages {
            let here = stage.table.cells();
            cells.occupied += here.occupied;
            cells.total += here.total;
            fresh *= 1.0 - here.fill().powi(stage.table.hashes() as i32);
        }
        let mut rates = RateSum::default();
        rates.push(1.0 - fresh);
        Tally {
            observed: Some(self.observed),
            fresh: Some(self.fresh),
            evictions: self.window.is_none().then_some(self.evictions),
            cells: Some(cells),
            rates: Some(rates),
            ..Tally::new(self.memory_bytes())
        }
    }

    fn report_on(&self, tally: Tally) -> Report {
        Report {
            window: self.window,
            ..Report::new(tally)
        }
    }
}

impl fmt::Debug for Growing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("Growing");
        fields.field("stages", &self.stages);
        fields.field("most", &self.most);
        fields.finish_non_exhaustive()
    }
}

/// The most filters at a time: every fresh key probes all of them.
const MOST_FILTERS: u64 = 1024;

/// The number of filters that fill the memory, unless the size of one is given.
const FILTERS: u64 = 8;

/// The condition on which a filter is full (paper 001, section 5). m is the number of its cells, k
/// that of a key's cells, p the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threshold {
    /// More than z = m p^(1/k) set cells.
    Density,
    /// More than n = -(m/k) ln(1 - p^(1/k)) keys inserted since it was opened. With a window keys
    /// leave a filter uncounted, so a filter is opened earlier than by density.
    Cardinality,
}

const THRESHOLDS: [(&str, Threshold); 2] = [
    ("density", Threshold::Density),
    ("cardinality", Threshold::Cardinality),
];

const OPTIONS: &[OptionRow] = &[
    // p: the FPR at which a filter is full. With j filters a key that was never seen is reported as
    // a duplicate with a probability of at most about j p.
    OptionRow::new("fpr", Allowed::Rate).or(Value::Decimal(0.01)),
    OptionRow::choice("threshold", &names(&THRESHOLDS)),
    // The memory of one filter; an eighth of the whole if it is not given.
    OptionRow::new("step", Allowed::Size),
];

/// Growing filters: Bloom filters, or timing Bloom filters for a window. Then the number of filters
/// follows the number of keys in the window (paper 001, section 5).
pub(crate) static ROW: AdapterRow = AdapterRow {
    head: Head {
        name: "growing",
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    build: |named, inner| Ok(Box::new(build(named, inner)?)),
    check_lines: None,
    facts: |named, inner| {
        let (size, most) = filters_in(named, inner.memory);
        let one = Layers {
            memory: size,
            ..inner
        };
        let one = one.facts();
        Facts {
            // Those of every filter, once there are as many as fit in the memory.
            cache_lines: most.max(1) as f64 * one.cache_lines,
            rate_model: None,
            // The thresholds bound the rate of a filter by its fill, not on any stream.
            fpr_limit: None,
            most_memory: match named.given("step") {
                None => one.most_memory.saturating_mul(FILTERS),
                Some(step) => step.saturating_mul(MOST_FILTERS),
            },
            // A duplicate changes no cell.
            renews_keys: false,
            forgets_by_time: false,
            // It drops its oldest filter.
            settles: true,
            ..one
        }
    },
};

/// The memory of one filter of the whole, in bytes, and how many filters fit.
fn filters_in(named: &Named, memory: u64) -> (u64, u64) {
    let size = named.given("step").unwrap_or(memory / FILTERS);
    (size, memory.checked_div(size).unwrap_or(0))
}

fn build(named: &Named, inner: Layers<'_>) -> Result<Growing, BuildError> {
    if inner.memory == 0 {
        return Err(SpecError::new("memory", "0 B", "at least 1 B, for one filter").into());
    }
    let (size, most) = filters_in(named, inner.memory);
    if !(1..=MOST_FILTERS).contains(&most) {
        let least = inner.memory.div_ceil(MOST_FILTERS).max(1);
        let allowed = format!("{least} B to {} B, the memory", inner.memory);
        return Err(SpecError::new("step", format!("{size} B"), allowed).into());
    }
    let one = Layers {
        memory: size,
        ..inner
    };
    let first = cell_table(one, named.name())?;
    let kind = inner.kind;
    let open = move || cell_table::build(&kind, size)?.ok();
    Growing::new(
        named.decimal("fpr").expect("a default"),
        named.choice("threshold", &THRESHOLDS),
        first,
        Box::new(open),
        most as usize,
        one.facts().window,
    )
}
