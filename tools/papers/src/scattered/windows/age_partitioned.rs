//! The age-partitioned Bloom filter: slices that move from young to old, a generation at a time.

use super::generations::WindowSpec;
use crate::limits::at_least_bits;
use crate::scattered::bits::BitTable;
use crate::scattered::mechanism::{Mechanism, filter, row};
use crate::theory::windows;
use echoless::extend::{FilterRow, Head, MOST_HASHES, Named, OptionRow, Units, units, within};
use echoless::spec::Facts;
use echoless::{BuildError, Cells, KeyHash, SpecError, Window};

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
struct AgePartitionedBloom {
    /// A filter for each slice, in a ring.
    slices: BitTable,
    /// The filter that is the newest slice. The older ones follow it.
    newest: usize,
    units: Units,
    spec: WindowSpec,
    /// The number of the current unit, which is a generation.
    now: u64,
}

impl AgePartitionedBloom {
    /// The units of the clock. Fails if there are more than 64 slices.
    fn units(spec: WindowSpec) -> Result<Units, SpecError> {
        within("l", spec.generations, 1..=MOST_HASHES - spec.hashes).map(|_| spec.units())
    }

    /// Builds the filter in `memory_bytes`. Fails if there are more than 64 slices, the memory
    /// holds no bit for each of them, or it cannot be allocated.
    fn build(spec: WindowSpec, memory_bytes: u64) -> Result<Self, BuildError> {
        let units = Self::units(spec)?;
        let slices = spec.hashes + units.alive as u32;
        // A word for the bits, and one for the count of each slice.
        let least = 64 * u128::from(slices + 1);
        let words = at_least_bits(memory_bytes, least, "one bit and a count for each slice")? / 64;
        Ok(Self {
            slices: BitTable::new(slices, (words - u64::from(slices)) * 8)?,
            newest: 0,
            units,
            spec,
            now: 0,
        })
    }

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
}

impl Mechanism for AgePartitionedBloom {
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

    fn fill(&self) -> (Cells, Option<f64>) {
        let slices = 0..self.slices.filters();
        let ones = slices.map(|slice| self.slices.ones(self.filter(slice)));
        let fills: Vec<f64> = ones
            .map(|ones| ones as f64 / self.slices.size() as f64)
            .collect();
        let fpr = windows::age_partitioned_fpr(self.spec.hashes, &fills);
        (self.slices.cells(), Some(fpr))
    }

    fn window(&self) -> Option<Window> {
        Some(self.units.window())
    }

    fn advance(&mut self, tick: u64) {
        let passed = self.units.number(tick).saturating_sub(self.now);
        // After as many shifts as slices, all are empty, and their order does not matter.
        for _ in 0..passed.min(self.slices.filters() as u64) {
            self.shift();
        }
        self.now += passed;
    }

    fn step(&mut self, keys: usize) {
        self.slices.step(keys);
    }
}

const OPTIONS: &[OptionRow] = &[
    units::WINDOW,
    OptionRow::whole("k", 1, MOST_HASHES as u64 - 1, 10),
    OptionRow::whole("l", 1, MOST_HASHES as u64 - 1, 7),
    OptionRow::flag("refresh", false),
];

/// The age-partitioned Bloom filter.
pub(crate) static AGE_PARTITIONED: [FilterRow; 1] = [row(
    Head {
        name: "apbf",
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    |named, memory, _| {
        filter(AgePartitionedBloom::build(
            WindowSpec::of(named, "l"),
            memory,
        ))
    },
    |named, _, _| {
        let spec = WindowSpec::of(named, "l");
        let units = AgePartitionedBloom::units(spec).ok();
        // A window cut into fewer parts has fewer slices; l if it is invalid.
        let generations = units.map_or(spec.generations, |units| units.alive as u32);
        Facts {
            window: units.map(Units::window),
            renews_keys: spec.refresh,
            forgets_by_time: true,
            ..Facts::touching(f64::from(spec.hashes) + f64::from(generations))
        }
    },
)];
