//! The timing Bloom filter: cells of wrapped time stamps, and the equal-timers heuristic.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::adapters::cell_table::CellTable;
use crate::scattered::mechanism::{Mechanism, filter, row};
use crate::scattered::storage::PackedCells;
use crate::theory::windows;
use echoless::extend::{
    Allowed, FilterRow, Head, MOST_HASHES, Named, OptionRow, Units, units, within,
};
use echoless::spec::Facts;
use echoless::{BuildError, Cells, KeyHash, SpecError, Window};

/// The parameters of a timing Bloom filter, except its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimerSpec {
    /// W: the window in ticks, 1 to 2^63 - 1.
    window: u64,
    /// k: the timers of a key (1 to 64).
    hashes: u32,
    /// k': the timers of a key that must be equal (1 to k). 1 is the filter without the heuristic.
    equal: u32,
    /// Whether a duplicate sets its timers again.
    refresh: bool,
    /// b: the bits of a timer (2 to 32). `None` takes as many as stamps of a tick need, at most 32.
    bits: Option<u32>,
}

/// The widths of a timer.
const TIMER_BITS: std::ops::RangeInclusive<u32> = 2..=PackedCells::MOST_BITS;

/// The most units of a window in timers of `bits`: a quarter of the values is left for the slack,
/// and one for an empty cell.
const fn most_alive(bits: u32) -> u64 {
    (1 << bits) - (1 << (bits - 2)) - 1
}

impl TimerSpec {
    fn of(named: &Named) -> Self {
        Self {
            window: named.whole("window"),
            hashes: named.small("k"),
            equal: named.small("equal"),
            refresh: named.flag("refresh"),
            bits: named.given("bits").map(|bits| bits as u32),
        }
    }

    /// b: the bits of a timer: the given ones, or the fewest whose stamps count the window in
    /// single ticks, at most 32.
    fn timer_bits(self) -> u32 {
        let fewest = || {
            TIMER_BITS
                .into_iter()
                .find(|bits| self.window <= most_alive(*bits))
        };
        self.bits.or_else(fewest).unwrap_or(PackedCells::MOST_BITS)
    }

    fn units(self) -> Units {
        Units::new(self.window, most_alive(self.timer_bits()))
    }

    /// Builds the filter in `memory_bytes`. Fails if more timers must be equal than a key has, the
    /// memory holds fewer than k timers, or it cannot be allocated.
    fn build(self, memory_bytes: u64) -> Result<TimerBloom, BuildError> {
        within("equal", self.equal, 1..=self.hashes)?;
        let bits = self.timer_bits();
        let reason = "k timers and a word";
        let len = PackedCells::len_within(memory_bytes, bits, self.hashes, reason)?;
        Ok(TimerBloom::new(
            PackedCells::new(len, bits)?,
            self.units(),
            self,
        ))
    }

    /// Builds the filter as a table of cells, which are set or not and have no ages.
    fn build_table(self, memory_bytes: u64) -> Result<Box<dyn CellTable>, BuildError> {
        if self.equal != 1 {
            let allowed = "1 under vertical slices and growth";
            return Err(SpecError::new("equal", self.equal.to_string(), allowed).into());
        }
        if self.refresh {
            let allowed = "false under vertical slices and growth";
            return Err(SpecError::new("refresh", "true", allowed).into());
        }
        Ok(Box::new(self.build(memory_bytes)?))
    }
}

const OPTIONS: &[OptionRow] = &[
    units::WINDOW,
    OptionRow::hashes(4),
    OptionRow::whole("equal", 1, MOST_HASHES as u64, 1),
    OptionRow::flag("refresh", false),
    OptionRow::new("bits", Allowed::Whole(2, PackedCells::MOST_BITS as u64)),
];

/// The timing Bloom filter.
pub(crate) static TIMERS: [FilterRow; 1] = [row(
    Head {
        name: "tbf",
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    |named, memory, _| filter(TimerSpec::of(named).build(memory)),
    |named, _, _| {
        let spec = TimerSpec::of(named);
        Facts {
            window: Some(spec.units().window()),
            renews_keys: spec.refresh,
            forgets_by_time: spec.equal == 1,
            ..Facts::touching(f64::from(spec.hashes))
        }
    },
)];

/// A timing Bloom filter as a table of cells.
pub(crate) fn cell_table(named: &Named, memory: u64) -> Result<Box<dyn CellTable>, BuildError> {
    TimerSpec::of(named).build_table(memory)
}

/// Timers in place of the bits of a Bloom filter (paper 001, section 4; Metwally, Agrawal, El
/// Abbadi 2005; Zhang and Guan 2008, whose TBF it is).
///
/// A fresh key sets its k timers to the time. A key is a duplicate if all of its timers are active,
/// at most W old. A timer is stored as a stamp, the number of its unit of time modulo 2^b - 1, plus
/// 1; 0 is an empty cell. A unit is a tick, or more if W is too long for the stamps; then a key is
/// remembered for a unit longer ([`Window`](echoless::Window)).
///
/// **Expiry.** With W in units, 2^b = W + C + 1: there are stamps for W + C units. Each unit
/// that passes sweeps the next 1/C of the cells and empties those older than W. A cell is therefore
/// swept every C units, and at W + C units, where its stamp would look new, it is empty. A clock
/// that jumps over n units sweeps n parts, or all of them, and the sweep adds the jump to the ages
/// from before it, in 64 bits; past a whole window it empties all cells. The slack C is at least a
/// quarter of 2^b, so a sweep costs m/C cells a unit, at most three passes in a window.
///
/// **Equal timers.** With k' above 1 a key is a duplicate only if, besides, k' of its timers are
/// equal: they were probably set by one key. Later keys overwrite timers, so a key can be missed
/// within the window once k - k' + 1 of its timers were overwritten. It is then recorded again. A
/// key of which fewer were overwritten is never missed.
///
/// The timers are m = (8 * floor(M/8) - 8) * 8 / b in M bytes; the last 8 bytes are a word for
/// access. A clock per filter replaces the paper's correction for events that arrive late: a late
/// key is judged and recorded at the clock.
///
/// Cache lines touched per key: up to k.
#[derive(Debug, Clone)]
struct TimerBloom {
    cells: PackedCells,
    units: Units,
    spec: TimerSpec,
    /// The number of the current unit.
    now: u64,
}

impl TimerBloom {
    /// Empty cells. The stamps of their width leave a slack beyond the window.
    fn new(cells: PackedCells, units: Units, spec: TimerSpec) -> Self {
        debug_assert!(units.alive < u64::from(cells.max()));
        Self {
            cells,
            units,
            spec,
            now: 0,
        }
    }

    /// The units after which stamps repeat: W + C.
    fn stamps(&self) -> u64 {
        u64::from(self.cells.max())
    }

    /// C: the units in which every cell is swept once.
    fn slack(&self) -> u64 {
        self.stamps() - self.units.alive
    }

    /// The cell that a key of the current unit writes.
    fn stamp(&self) -> u32 {
        (self.now % self.stamps()) as u32 + 1
    }

    /// The age of a cell in units, below [`stamps`](Self::stamps); `None` if it is empty.
    /// `stamp` is that of the current unit.
    #[inline(always)]
    fn age(&self, stamp: u32, cell: u32) -> Option<u64> {
        let (stamp, cell) = (u64::from(stamp), u64::from(cell));
        let wrap = if cell <= stamp { 0 } else { self.stamps() };
        (cell != 0).then(|| stamp + wrap - cell)
    }

    /// Whether the timer in a cell is active. `stamp` is that of the current unit.
    #[inline(always)]
    fn is_active(&self, stamp: u32, cell: u32) -> bool {
        let age = self.age(stamp, cell);
        age.is_some_and(|age| age <= self.units.alive)
    }

    /// Empties the cells of a range that will be older than the window once `passed` more units
    /// are over.
    fn sweep(&mut self, range: Range<u64>, passed: u64) {
        let stamp = self.stamp();
        let mut cell = range.start;
        while cell < range.end {
            let Some(age) = self.age(stamp, self.cells.get(cell)) else {
                // A sparse stream sweeps much, and has few timers.
                cell = self.cells.behind_zeros(cell, range.end);
                continue;
            };
            // No overflow: ages and jumps that come here are at most a wrap.
            if age + passed > self.units.alive {
                self.cells.set(cell, 0);
            }
            cell += 1;
        }
    }

    /// Sweeps the parts of `passed` units: part r of C begins at cell floor(m r / C).
    fn sweep_parts(&mut self, passed: u64) {
        let (len, slack) = (self.cells.len(), self.slack());
        let begin = |part: u64| (u128::from(len) * u128::from(part) / u128::from(slack)) as u64;
        let first = (self.now + 1) % slack;
        let end = first + passed.min(slack);
        self.sweep(begin(first)..begin(end.min(slack)), passed);
        if end > slack {
            self.sweep(0..begin(end - slack), passed);
        }
    }

    /// The number of active timers of each age.
    fn ages(&self) -> BTreeMap<u64, u64> {
        let stamp = self.stamp();
        let mut ages = BTreeMap::new();
        for age in self.cells.iter().filter_map(|cell| self.age(stamp, cell)) {
            if age <= self.units.alive {
                *ages.entry(age).or_insert(0) += 1;
            }
        }
        ages
    }
}

impl Mechanism for TimerBloom {
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let seen = self.contains(key);
        if !seen || self.spec.refresh {
            self.cells.fill(key, self.spec.hashes, self.stamp());
        }
        seen
    }

    fn contains(&self, key: KeyHash) -> bool {
        let (hashes, stamp) = (self.spec.hashes, self.stamp());
        if self.spec.equal == 1 {
            return (self.cells).all(key, hashes, |cell| self.is_active(stamp, cell));
        }
        let mut timers = [0; MOST_HASHES as usize];
        for (hash, timer) in (0..hashes).zip(&mut timers) {
            *timer = self.cells.get(self.cells.position(key, hash));
            if !self.is_active(stamp, *timer) {
                return false;
            }
        }
        let timers = &timers[..hashes as usize];
        let equal = |timer| timers.iter().filter(|other| **other == timer).count();
        let needed = self.spec.equal as usize;
        timers.iter().any(|timer| equal(*timer) >= needed)
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.now = 0;
    }

    fn memory_bytes(&self) -> u64 {
        self.cells.bytes()
    }

    fn fill(&self) -> (Cells, Option<f64>) {
        let (ages, len) = (self.ages(), self.cells.len());
        let fractions: Vec<f64> = ages
            .values()
            .map(|timers| *timers as f64 / len as f64)
            .collect();
        let fpr = windows::timers_fpr(self.spec.hashes, self.spec.equal, &fractions);
        (Cells::new(ages.values().sum(), len), Some(fpr))
    }

    fn window(&self) -> Option<Window> {
        Some(self.units.window())
    }

    fn advance(&mut self, tick: u64) {
        let passed = self.units.number(tick).saturating_sub(self.now);
        if passed > self.units.alive {
            self.cells.clear_in_steps();
        } else if passed > 0 {
            self.sweep_parts(passed);
        }
        self.now += passed;
    }

    fn step(&mut self, keys: usize) {
        self.cells.step(keys);
    }

    fn slot_bits(&self) -> Option<u32> {
        Some(self.cells.width())
    }
}

/// A cell is set while its timer is active. What reads the cells one by one sees no ages, so the
/// specification allows neither equal timers nor `refresh` here.
impl CellTable for TimerBloom {
    fn hashes(&self) -> usize {
        self.spec.hashes as usize
    }

    fn cell_count(&self) -> u64 {
        self.cells.len()
    }

    fn position(&self, key: KeyHash, index: usize) -> u64 {
        self.cells.position(key, index as u32)
    }

    fn is_set(&self, cell: u64) -> bool {
        self.is_active(self.stamp(), self.cells.get(cell))
    }

    fn set(&mut self, cell: u64) {
        let stamp = self.stamp();
        self.cells.set(cell, stamp);
    }

    fn empty(&mut self, cells: Range<u64>) {
        for cell in cells {
            self.cells.set(cell, 0);
        }
    }

    /// The number of active timers. Reads every cell.
    fn cells(&self) -> Cells {
        let stamp = self.stamp();
        let active = (self.cells.iter()).filter(|cell| self.is_active(stamp, *cell));
        Cells::new(active.count() as u64, self.cells.len())
    }

    fn bytes(&self) -> u64 {
        self.cells.bytes()
    }

    fn advance_to(&mut self, tick: u64) {
        self.advance(tick);
    }

    fn restart(&mut self) {
        self.clear();
    }
}
