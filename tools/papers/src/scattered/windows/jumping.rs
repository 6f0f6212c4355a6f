//! The jumping window: cells that hold a bit for each generation of the window.

use super::generations::WindowSpec;
use crate::scattered::mechanism::{Mechanism, filter, row};
use crate::scattered::storage::PackedCells;
use crate::theory::windows;
use echoless::extend::{FilterRow, Head, Named, OptionRow, Units, units};
use echoless::spec::Facts;
use echoless::{BuildError, Cells, KeyHash, Window};

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
struct JumpingBloom {
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
    /// Builds the filter in `memory_bytes`. Fails if the memory holds fewer than k cells, or cannot
    /// be allocated.
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

const OPTIONS: &[OptionRow] = &[
    units::WINDOW,
    OptionRow::hashes(4),
    OptionRow::whole("q", 1, MOST_GENERATIONS as u64, 8),
    OptionRow::flag("refresh", false),
];

/// The jumping window.
pub(crate) static JUMPING: [FilterRow; 1] = [row(
    Head {
        name: "gbf",
        options: |_| OPTIONS,
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
