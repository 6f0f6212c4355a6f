//! The age-partitioned Bloom filter: slices that move from young to old.

use crate::scattered::bits::BitTable;
use crate::theory::windows;
use echoless::extend::{
    FilterRow, Head, MOST_HASHES, MOST_SCATTERED, Named, OptionRow, Units, at_least_bits,
    tally_of_cells, units, within,
};
use echoless::memory::LINE_BYTES;
use echoless::spec::{Facts, Form};
use echoless::{Batch, BuildError, Filter, KeyHash, RateSum, Report, SpecError, Tally};

/// The parameters of an age-partitioned Bloom filter, except its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgePartitionedSpec {
    /// W: the window in ticks, 1 to 2^63 - 1.
    pub(crate) window: u64,
    /// k: the slices that a key is recorded in (1 to 63).
    pub(crate) hashes: u32,
    /// l: the most generations that the window is cut into (1 to 64 - k).
    pub(crate) generations: u32,
    /// Whether a duplicate is recorded again, in the newest slices.
    pub(crate) refresh: bool,
}

/// The age-partitioned Bloom filter (Shtul, Baquero, Almeida 2020), by time as in the time-limited
/// one (Rodrigues, Shtul, Baquero, Almeida 2023).
///
/// There are k + l slices of s bits, newest first; a key has one position in each. A key is
/// recorded in the first k slices, and is a duplicate if its bits are set in any k consecutive
/// ones. After each generation of W/l ticks the slices shift: the oldest is emptied and becomes the
/// newest.
///
/// ```text
///  k = 3, l = 4          newest                    oldest
///  recorded               |1|  |1|  |1|  | |  | |  | |  | |
///  a generation later     | |  |1|  |1|  |1|  | |  | |  | |
///  4 generations later    | |  | |  | |  | |  |1|  |1|  |1|     5: two of three, forgotten
/// ```
///
/// A slice has taken the keys of 1 to k generations when it stops, and holds its ones until it is
/// emptied, so the first slices are less full ([`windows::age_partitioned_fpr`]). If l does not
/// divide W, a generation is ceil(W/l) ticks long, and the window is ceil(W / ceil(W/l)) of them,
/// which can be fewer than l.
///
/// The source shifts after a number of recorded keys; with the record numbers as the ticks, that is
/// a window of records here. A slice has s = (floor(M/8) - k - l) * 64 / (k + l) bits in M bytes,
/// because the ones of each slice are counted in 8 bytes.
///
/// Cache lines touched per key: up to k + l to probe; a fresh key writes k of them. The probe
/// starts at the oldest k slices and skips those that no run can contain. A shift empties a slice,
/// 1 of k + l parts of the memory.
#[derive(Debug, Clone)]
pub(crate) struct AgePartitionedBloom {
    /// A filter for each slice, in a ring.
    slices: BitTable,
    /// The filter that is the newest slice. The older ones follow it.
    newest: usize,
    units: Units,
    spec: AgePartitionedSpec,
    /// The number of the current unit, which is a generation.
    now: u64,
}

impl AgePartitionedSpec {
    fn of(named: &Named) -> Self {
        Self {
            window: named.whole("window"),
            hashes: named.small("k"),
            generations: named.small("l"),
            refresh: named.flag("refresh"),
        }
    }

    fn units(self) -> Result<Units, SpecError> {
        let generations = within("l", self.generations, 1..=MOST_HASHES - self.hashes)?;
        Ok(Units::new(self.window, u64::from(generations)))
    }

    /// Builds the filter in `memory_bytes`.
    ///
    /// # Errors
    /// [`BuildError`] if there are more than 64 slices, the memory holds no bit for each of them,
    /// or it cannot be allocated.
    fn build(self, memory_bytes: u64) -> Result<AgePartitionedBloom, BuildError> {
        let units = self.units()?;
        let slices = self.hashes + units.alive as u32;
        // A word for the bits, and one for the count of each slice.
        let least = 64 * u128::from(slices + 1);
        let words = at_least_bits(memory_bytes, least, "one bit and a count for each slice")? / 64;
        Ok(AgePartitionedBloom {
            slices: BitTable::new(slices, (words - u64::from(slices)) * 8)?,
            newest: 0,
            units,
            spec: self,
            now: 0,
        })
    }
}

impl AgePartitionedBloom {
    /// The filter that is a slice; slice 0 is the newest.
    #[inline(always)]
    fn filter(&self, slice: usize) -> usize {
        let filter = self.newest + slice;
        filter
            - if filter < self.slices.filters() {
                0
            } else {
                self.slices.filters()
            }
    }

    #[inline(always)]
    fn has(&self, key: KeyHash, slice: usize) -> bool {
        let filter = self.filter(slice);
        self.slices.get(filter, self.slices.position(key, filter))
    }

    /// The oldest slice is emptied and becomes the newest.
    fn shift(&mut self) {
        self.newest = self.filter(self.slices.filters() - 1);
        self.slices.clear_filter(self.newest);
    }

    /// Tests and records one key; true means duplicate.
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let seen = self.contains(key);
        if !seen || self.spec.refresh {
            for slice in 0..self.spec.hashes as usize {
                let filter = self.filter(slice);
                self.slices.set(filter, self.slices.position(key, filter));
            }
        }
        seen
    }

    /// Moves the clock.
    fn advance(&mut self, tick: u64) {
        let now = self.units.number(tick);
        if now <= self.now {
            return;
        }
        // After as many shifts as slices, all are empty, and their order does not matter.
        let shifts = (now - self.now).min(self.slices.filters() as u64);
        for _ in 0..shifts {
            self.shift();
        }
        self.now = now;
    }
}

impl Filter for AgePartitionedBloom {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        batch.observe_runs(duplicates, |tick, batch, duplicates| {
            if let Some(tick) = tick {
                self.advance(tick);
            }
            self.slices.step(batch.keys().len());
            batch.observe_each(duplicates, |key| self.observe_key(key));
        });
    }

    /// Searches for a run of k set bits, as the source does: from the oldest k slices on.
    ///
    /// ```text
    ///  slice   0 1 2 3 4 5 6     k = 3
    ///  bit         1 1 1 0
    ///                  ^         from 4 on: 4 is set, but 5 is not, so no run contains 5
    ///              ^             from 5 - 3 on, up to 4, which is known to be set
    /// ```
    fn contains(&self, key: KeyHash) -> bool {
        let hashes = self.spec.hashes as usize;
        let mut start = self.slices.filters() - hashes;
        // The set bits from `start + hashes - known` on.
        let mut known = 0;
        loop {
            let wanted = hashes - known;
            let run = (start..start + wanted)
                .take_while(|slice| self.has(key, *slice))
                .count();
            if run == wanted {
                return true;
            }
            let unset = start + run;
            if unset < hashes {
                return false;
            }
            start = unset - hashes;
            known = run;
        }
    }

    fn clear(&mut self) {
        self.slices.clear_all();
        self.newest = 0;
        self.now = 0;
    }

    fn memory_bytes(&self) -> u64 {
        self.slices.bytes()
    }

    fn tally(&self) -> Tally {
        let slices = 0..self.slices.filters();
        let ones = slices.map(|slice| self.slices.ones(self.filter(slice)));
        let fills: Vec<f64> = ones
            .map(|ones| ones as f64 / self.slices.size() as f64)
            .collect();
        let mut rates = RateSum::default();
        rates.push(windows::age_partitioned_fpr(self.spec.hashes, &fills));
        Tally {
            rates: Some(rates),
            ..tally_of_cells(self.memory_bytes(), self.slices.cells())
        }
    }

    fn report_on(&self, tally: Tally) -> Report {
        Report {
            window: Some(self.units.window()),
            ..Report::new(tally)
        }
    }
}

const OPTIONS: &[OptionRow] = &[
    units::WINDOW,
    OptionRow::whole("k", 1, MOST_HASHES as u64 - 1, 10),
    OptionRow::whole("l", 1, MOST_HASHES as u64 - 1, 7),
    OptionRow::flag("refresh", false),
];

/// The age-partitioned Bloom filter.
pub(crate) static AGE_PARTITIONED: [FilterRow; 1] = [FilterRow {
    head: Head {
        name: "apbf",
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    default_form: Form::Scattered,
    scattered: Some(|named, memory, _| Ok(Box::new(AgePartitionedSpec::of(named).build(memory)?))),
    cells: None,
    lines: None,
    facts: |named, _, _| {
        let spec = AgePartitionedSpec::of(named);
        let units = spec.units().ok();
        // A window cut into fewer parts has fewer slices; l if it is invalid.
        let generations = units.map_or(spec.generations, |units| units.alive as u32);
        Facts {
            cache_lines: f64::from(spec.hashes) + f64::from(generations),
            rate_model: None,
            fpr_limit: None,
            most_memory: MOST_SCATTERED,
            memory_unit: LINE_BYTES,
            window: units.map(Units::window),
            renews_keys: spec.refresh,
            forgets_by_time: true,
            settles: true,
            power_of_two_rows: false,
        }
    },
}];
