//! Windows that are cut into generations: the jumping window, whose cells hold a bit for each
//! generation, and the age-partitioned Bloom filter, whose slices move from young to old.

use crate::scattered::bits::BitTable;
use crate::scattered::mechanism::{Mechanism, filter, row};
use crate::scattered::storage::PackedCells;
use crate::theory::windows;
use echoless::extend::{
    FilterRow, Head, MOST_HASHES, Named, OptionRow, Units, at_least_bits, units, within,
};
use echoless::spec::Facts;
use echoless::{BuildError, Cells, KeyHash, SpecError, Window};

/// The parameters of a window in generations, except the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WindowSpec {
    /// W: the window in ticks, 1 to 2^63 - 1.
    window: u64,
    /// k: the bits of a key in its generation, or the slices that a key is recorded in (1 to 64).
    hashes: u32,
    /// Q or l: the most generations that the window is cut into.
    generations: u32,
    /// Whether a duplicate is recorded again, in the newest generation.
    refresh: bool,
}

impl WindowSpec {
    fn of(named: &Named, generations: &str) -> Self {
        Self {
            window: named.whole("window"),
            hashes: named.small("k"),
            generations: named.small(generations),
            refresh: named.flag("refresh"),
        }
    }

    fn units(self) -> Units {
        Units::new(self.window, u64::from(self.generations))
    }
}

/// Group Bloom filters (Zhang and Guan 2008, GBF, for the jumping windows of Metwally, Agrawal, El
/// Abbadi 2005): generations of W/Q ticks, each with a Bloom filter.
///
/// The generations are bit-interleaved: cell i holds bit i of every generation, so one probe of k
/// cells tests all of them.
///
/// ```text
///            generation  0 1 2 3 4 5
///  cell of hash 1        0 1 1 0 0 1
///  cell of hash 2        0 1 0 0 1 0
///  cell of hash 3        1 1 0 0 0 0
///  live                  1 1 1 1 0 1     4: expired, being emptied
///  AND                   0 1 0 0 0 0     not 0: a duplicate
/// ```
///
/// There are Q + 2 generations: those of the window, the current one, and one that expired. The
/// source counts the current one among the Q, and remembers a key for W - W/Q at least; here it is
/// W at least. If Q does not divide W, a generation is ceil(W/Q) ticks long, and the window is
/// ceil(W / ceil(W/Q)) of them, which can be fewer than Q.
///
/// **Expiry.** The bit of the expired generation is emptied cell by cell, as time passes: all of
/// them once its successor begins. A clock that jumps over generations empties them in one pass.
///
/// The cells are m = (8 * floor(M/8) - 8) * 8 / (Q + 2) in M bytes; the last 8 bytes are a word for
/// access. Cache lines touched per key: up to k.
#[derive(Debug, Clone)]
pub(crate) struct JumpingBloom {
    /// A bit for each generation: unit n of the clock has bit n modulo the width.
    cells: PackedCells,
    units: Units,
    spec: WindowSpec,
    /// The number of the current unit.
    now: u64,
    /// The cells whose bit of the expired generation is empty: all in front of this one.
    emptied: u64,
}

/// The most generations of a window: with the current and the expired one, the bits of a cell.
const MOST_GENERATIONS: u32 = PackedCells::MOST_BITS - 2;

impl JumpingBloom {
    /// Builds the filter in `memory_bytes`.
    ///
    /// # Errors
    /// [`BuildError`] if the memory holds fewer than k cells, or cannot be allocated.
    fn build(spec: WindowSpec, memory_bytes: u64) -> Result<Self, BuildError> {
        let units = spec.units();
        let width = units.alive as u32 + 2;
        let reason = "k cells and a word";
        let len = PackedCells::len_within(memory_bytes, width, spec.hashes, reason)?;
        Ok(Self {
            cells: PackedCells::new(len, width)?,
            units,
            spec,
            now: 0,
            emptied: len,
        })
    }

    /// The bit of a unit in every cell.
    fn bit(&self, unit: u64) -> u32 {
        1 << (unit % u64::from(self.cells.width()))
    }

    /// The bit of the generation that expired last, which the next unit will have. (The number of
    /// the next unit can overflow.)
    fn expired(&self) -> u32 {
        let width = u64::from(self.cells.width());
        self.bit(self.now % width + 1)
    }

    /// The bits of the generations that are alive.
    fn live(&self) -> u32 {
        self.cells.max() & !self.expired()
    }

    /// The ones of each live generation.
    fn ones(&self) -> Vec<u64> {
        let live = self.live();
        let bits = (0..self.cells.width()).map(|generation| 1 << generation);
        let bits: Vec<u32> = bits.filter(|bit| live & bit != 0).collect();
        let mut ones = vec![0; bits.len()];
        for cell in self.cells.iter() {
            for (ones, bit) in ones.iter_mut().zip(&bits) {
                *ones += u64::from(cell & bit != 0);
            }
        }
        ones
    }
}

impl Mechanism for JumpingBloom {
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let seen = self.contains(key);
        if !seen || self.spec.refresh {
            let bit = self.bit(self.now);
            for hash in 0..self.spec.hashes {
                let cell = self.cells.position(key, hash);
                self.cells.set(cell, self.cells.get(cell) | bit);
            }
        }
        seen
    }

    fn contains(&self, key: KeyHash) -> bool {
        let mut holding = self.live();
        for hash in 0..self.spec.hashes {
            holding &= self.cells.get(self.cells.position(key, hash));
            if holding == 0 {
                return false;
            }
        }
        true
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.now = 0;
        self.emptied = self.cells.len();
    }

    fn memory_bytes(&self) -> u64 {
        self.cells.bytes()
    }

    fn fill(&self) -> (Cells, Option<f64>) {
        let (ones, len) = (self.ones(), self.cells.len());
        let fills: Vec<f64> = ones.iter().map(|ones| *ones as f64 / len as f64).collect();
        let fpr = windows::jumping_fpr(self.spec.hashes, &fills);
        let cells = Cells::new(ones.iter().sum(), len * ones.len() as u64);
        (cells, Some(fpr))
    }

    fn window(&self) -> Option<Window> {
        Some(self.units.window())
    }

    fn advance(&mut self, tick: u64) {
        let (unit, len) = (self.units.number(tick), self.cells.len());
        if unit < self.now {
            return;
        }
        let passed = unit - self.now;
        if passed > self.units.alive {
            self.cells.clear_in_steps();
            self.emptied = len;
        } else if passed > 0 {
            // The generations of the passed units expired long before; the first of them is partly
            // empty already.
            let bits = (self.now + 1..=unit).fold(0, |bits, unit| bits | self.bit(unit));
            let first = if passed == 1 { self.emptied } else { 0 };
            self.cells.clear_bits(bits, first..len);
            self.emptied = 0;
        }
        self.now = unit;
        // For an earlier tick of the same unit, fewer cells must be empty than are empty already.
        let end = self.units.elapsed(tick, len).max(self.emptied);
        self.cells.clear_bits(self.expired(), self.emptied..end);
        self.emptied = end;
    }

    fn step(&mut self, keys: usize) {
        self.cells.step(keys);
    }
}

const JUMPING_OPTIONS: &[OptionRow] = &[
    units::WINDOW,
    OptionRow::hashes(4),
    OptionRow::whole("q", 1, MOST_GENERATIONS as u64, 8),
    OptionRow::flag("refresh", false),
];

/// The jumping window.
pub(crate) static JUMPING: [FilterRow; 1] = [row(
    Head {
        name: "gbf",
        options: |_| JUMPING_OPTIONS,
        complete: Named::as_given,
    },
    |named, memory, _| filter(JumpingBloom::build(WindowSpec::of(named, "q"), memory)),
    |named, _, _| {
        let spec = WindowSpec::of(named, "q");
        Facts {
            window: Some(spec.units().window()),
            renews_keys: spec.refresh,
            forgets_by_time: true,
            ..Facts::touching(f64::from(spec.hashes))
        }
    },
)];

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
    spec: WindowSpec,
    /// The number of the current unit, which is a generation.
    now: u64,
}

impl AgePartitionedBloom {
    /// The units of the clock.
    ///
    /// # Errors
    /// [`SpecError`] if there are more than 64 slices.
    fn units(spec: WindowSpec) -> Result<Units, SpecError> {
        within("l", spec.generations, 1..=MOST_HASHES - spec.hashes).map(|_| spec.units())
    }

    /// Builds the filter in `memory_bytes`.
    ///
    /// # Errors
    /// [`BuildError`] if there are more than 64 slices, the memory holds no bit for each of them,
    /// or it cannot be allocated.
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

    fn step(&mut self, keys: usize) {
        self.slices.step(keys);
    }
}

const SLICES_OPTIONS: &[OptionRow] = &[
    units::WINDOW,
    OptionRow::whole("k", 1, MOST_HASHES as u64 - 1, 10),
    OptionRow::whole("l", 1, MOST_HASHES as u64 - 1, 7),
    OptionRow::flag("refresh", false),
];

/// The age-partitioned Bloom filter.
pub(crate) static AGE_PARTITIONED: [FilterRow; 1] = [row(
    Head {
        name: "apbf",
        options: |_| SLICES_OPTIONS,
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
