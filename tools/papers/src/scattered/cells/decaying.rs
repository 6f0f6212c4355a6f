//! The block-decaying Bloom filter: cells hold wrapping timestamps of a window divided into blocks.

use crate::limits::{at_least_bits, bits_of};
use crate::scattered::mechanism::{Mechanism, filter, row};
use crate::scattered::storage::PackedCells;
use echoless::extend::{Allowed, FilterRow, Head, MOST_HASHES, Named, OptionRow, within};
use echoless::spec::Facts;
use echoless::{BuildError, Cells, KeyHash, SpecError};

/// The parameters of a block-decaying Bloom filter, except its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
struct DecayingSpec {
    /// W: the number of arrivals within which no duplicate is missed (1 or more).
    window: u64,
    /// K: the number of a key's cells (1 to 64). `None` takes ceil(sqrt(M ln2 / W)) and rejects a
    /// window so short that this exceeds 64.
    hashes: Option<u32>,
    /// c: the number of bits of a cell (2 to 32). `None` takes K, at least 2, and rejects a K above
    /// 32.
    cell_bits: Option<u32>,
}

/// `b_DBF` (Shen and Zhang 2008; measured in paper 002, section 6.1): the last W arrivals, counted
/// in blocks of q.
///
/// There are T = 2^(c-1) block numbers, q = ceil(W / (T-1)) arrivals in a block, B = ceil(W / q)
/// blocks in the life of a key, and a current block number r. A cell is live if it is above r.
/// Every arrival, duplicates included, sets its K cells to B + r + 1. After q arrivals r advances
/// modulo T; when it wraps, T is subtracted from every cell. (The source takes floor(W/q), which
/// forgets before W when q does not divide W.) A key of one of the last W arrivals is never missed;
/// it is forgotten at most 2q arrivals later.
///
/// Cache lines touched per key: K, and all lines of the filter once in q T arrivals, when r wraps.
#[derive(Debug, Clone)]
struct DecayingBloom {
    cells: PackedCells,
    hashes: u32,
    /// T: the number of block numbers.
    blocks: u32,
    /// B: the number of blocks a key lives.
    life: u32,
    /// q: the number of arrivals in a block.
    block_len: u64,
    /// r: the current block number, below T.
    block: u32,
    /// The number of arrivals in the current block so far.
    arrivals: u64,
}

impl DecayingSpec {
    fn of(named: &Named) -> Self {
        let small = |key| named.given(key).map(|number| number as u32);
        Self {
            window: named.whole("window"),
            hashes: small("k"),
            cell_bits: small("c"),
        }
    }

    /// Builds the filter in `memory_bytes`. Fails if the window is too short to derive K and c from
    /// the memory, c would be more than 32, the memory holds fewer than K cells, or the memory
    /// cannot be allocated.
    fn build(self, memory_bytes: u64) -> Result<DecayingBloom, BuildError> {
        let hashes = self.hashes_in(memory_bytes)?;
        let cell_bits = self.cell_bits.unwrap_or(hashes.max(2));
        let width = within("c", cell_bits, 2..=PackedCells::MOST_BITS)?;
        let least = u128::from(hashes) * u128::from(width);
        let len = at_least_bits(memory_bytes, least, "k cells")? / u64::from(width);
        let blocks = 1_u32 << (width - 1);
        let block_len = self.window.div_ceil(u64::from(blocks - 1));
        Ok(DecayingBloom {
            cells: PackedCells::new(len, width)?,
            hashes,
            blocks,
            life: self.window.div_ceil(block_len) as u32,
            block_len,
            block: 0,
            arrivals: 0,
        })
    }

    /// K for a filter of `memory_bytes`: the given one, or ceil(sqrt(M ln2 / W)). Fails if the
    /// window is so short that K, or c with it, would be out of its range.
    fn hashes_in(self, memory_bytes: u64) -> Result<u32, SpecError> {
        if let Some(hashes) = self.hashes {
            return Ok(hashes);
        }
        let (most, derived) = match self.cell_bits {
            Some(_) => (MOST_HASHES, "k"),
            None => (PackedCells::MOST_BITS, "k and c"),
        };
        let bits = bits_of(memory_bytes)? as f64 * std::f64::consts::LN_2;
        let best = (bits / self.window as f64).sqrt().ceil().max(1.0);
        if best <= f64::from(most) {
            return Ok(best as u32);
        }
        let least = (bits / f64::from(most).powi(2)).ceil();
        let allowed = format!(
            "{least} or more in {memory_bytes} B, where {derived} would be {best} \
             (at most {most}), unless k is given"
        );
        let asked = self.window.to_string();
        Err(SpecError::new("window", asked, allowed))
    }
}

impl DecayingBloom {
    fn next_block(&mut self) {
        self.arrivals = 0;
        self.block = (self.block + 1) % self.blocks;
        if self.block == 0 {
            for cell in 0..self.cells.len() {
                let value = self.cells.get(cell);
                self.cells.set(cell, value.saturating_sub(self.blocks));
            }
        }
    }
}

impl Mechanism for DecayingBloom {
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let seen = self.contains(key);
        let stamp = self.life + self.block + 1;
        self.cells.fill(key, self.hashes, stamp);
        self.arrivals += 1;
        if self.arrivals == self.block_len {
            self.next_block();
        }
        seen
    }

    #[inline(always)]
    fn contains(&self, key: KeyHash) -> bool {
        self.cells.all(key, self.hashes, |cell| cell > self.block)
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.block = 0;
        self.arrivals = 0;
    }

    fn memory_bytes(&self) -> u64 {
        self.cells.bytes()
    }

    fn fill(&self) -> (Cells, Option<f64>) {
        let live = self.cells.iter().filter(|cell| *cell > self.block);
        (Cells::new(live.count() as u64, self.cells.len()), None)
    }
}

const OPTIONS: &[OptionRow] = &[
    OptionRow::whole("window", 1, u64::MAX, 1 << 20),
    OptionRow::new("k", Allowed::Whole(1, MOST_HASHES as u64)),
    OptionRow::new("c", Allowed::Whole(2, PackedCells::MOST_BITS as u64)),
];

/// The block-decaying Bloom filter.
pub(crate) static DECAYING: [FilterRow; 1] = [row(
    Head {
        name: "bdbf",
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    |named, memory, _| filter(DecayingSpec::of(named).build(memory)),
    |named, _, memory| {
        let hashes = DecayingSpec::of(named).hashes_in(memory);
        Facts::touching(hashes.map_or(0.0, f64::from))
    },
)];
