//! The block-decaying Bloom filter: cells hold wrapping timestamps of a window divided into blocks.

use crate::error::{BuildError, SpecError};
use crate::filters::filter::{observe_each, tally_of_cells};
use crate::filters::kind::KindSpec;
use crate::filters::scattered::storage::PackedCells;
use crate::filters::{Filter, Form, Workload};
use crate::hash::KeyHash;
use crate::limits::{HASHES, MOST_HASHES, at_least_bits, bits_of, within};
use crate::options::Options;
use crate::report::{Cells, Tally};
use crate::theory::RateModel;

/// The parameters of a block-decaying Bloom filter, except its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct DecayingSpec {
    /// W: the number of arrivals within which no duplicate is missed (1 or more).
    pub window: u64,
    /// K: the number of a key's cells (1 to 64). `None` takes ceil(sqrt(M ln2 / W)) and rejects a
    /// window so short that this exceeds 64.
    pub hashes: Option<u32>,
    /// c: the number of bits of a cell (2 to 32). `None` takes K, at least 2, and rejects a K above
    /// 32.
    pub cell_bits: Option<u32>,
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
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHasher, Verdict};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// use echoless::spec::DecayingSpec;
/// let mut filter = DecayingSpec::new(1000).build(4096, 0)?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct DecayingBloom {
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
    /// The last `window` arrivals; k and c follow from the memory.
    #[must_use]
    pub const fn new(window: u64) -> Self {
        Self {
            window,
            hashes: None,
            cell_bits: None,
        }
    }

    /// k: the cells of a key.
    #[must_use]
    pub const fn hashes(mut self, hashes: u32) -> Self {
        self.hashes = Some(hashes);
        self
    }

    /// c: the bits of a cell.
    #[must_use]
    pub const fn cell_bits(mut self, bits: u32) -> Self {
        self.cell_bits = Some(bits);
        self
    }

    /// Builds the filter in `memory_bytes`. It draws no random numbers and ignores the seed.
    ///
    /// # Errors
    /// [`BuildError`] if the window is 0, K or c is out of its range, the window is too short to
    /// derive them from the memory, the memory holds fewer than K cells, or the memory cannot be
    /// allocated.
    pub fn build(self, memory_bytes: u64, _seed: u64) -> Result<DecayingBloom, BuildError> {
        if self.window == 0 {
            return Err(SpecError::new("window", "0", "1 or more").into());
        }
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

    /// K for a filter of `memory_bytes`: the given one, or ceil(sqrt(M ln2 / W)).
    ///
    /// # Errors
    /// [`SpecError`] if K is out of its range, or if the window is so short that K, or c with it,
    /// would be.
    pub fn hashes_in(self, memory_bytes: u64) -> Result<u32, SpecError> {
        if let Some(hashes) = self.hashes {
            return within("k", hashes, 1..=MOST_HASHES);
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
    fn advance(&mut self) {
        self.arrivals = 0;
        self.block = (self.block + 1) % self.blocks;
        if self.block == 0 {
            for cell in 0..self.cells.len() {
                let value = self.cells.get(cell);
                self.cells.set(cell, value.saturating_sub(self.blocks));
            }
        }
    }

    /// Tests and records one key; true means duplicate.
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let seen = self.contains(key);
        let stamp = self.life + self.block + 1;
        for hash in 0..self.hashes {
            let cell = self.cells.position(key, hash);
            self.cells.set(cell, stamp);
        }
        self.arrivals += 1;
        if self.arrivals == self.block_len {
            self.advance();
        }
        seen
    }
}

impl Filter for DecayingBloom {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        observe_each(keys, duplicates, |key| self.observe_key(key));
    }

    #[inline(always)]
    fn contains(&self, key: KeyHash) -> bool {
        (0..self.hashes).all(|hash| self.cells.get(self.cells.position(key, hash)) > self.block)
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.block = 0;
        self.arrivals = 0;
    }

    fn memory_bytes(&self) -> u64 {
        self.cells.bytes()
    }

    fn tally(&self) -> Tally {
        let live = self.cells.iter().filter(|cell| *cell > self.block);
        let cells = Cells::new(live.count() as u64, self.cells.len());
        tally_of_cells(self.memory_bytes(), cells)
    }
}

impl KindSpec for DecayingSpec {
    const NAMES: &'static [&'static str] = &["bdbf"];

    fn parse(_name: &str, _form: Form, options: &mut Options) -> Result<Self, SpecError> {
        Ok(Self {
            window: options.integer("window", 1 << 20, 1..=u64::MAX)?,
            hashes: options.optional_integer("k", HASHES)?,
            cell_bits: options.optional_integer("c", 2..=32)?,
        })
    }

    fn name(&self) -> &'static str {
        "bdbf"
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = vec![("window", self.window.to_string())];
        options.extend(self.hashes.map(|hashes| ("k", hashes.to_string())));
        options.extend(self.cell_bits.map(|bits| ("c", bits.to_string())));
        options
    }

    fn build_scattered(&self, memory_bytes: u64, seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        Ok(Box::new(self.build(memory_bytes, seed)?))
    }

    fn cache_lines(&self, memory_bytes: u64) -> f64 {
        self.hashes_in(memory_bytes).map_or(0.0, f64::from)
    }

    fn rate_model(&self, _form: Form, _memory_bytes: u64) -> Option<RateModel> {
        None
    }

    fn fpr_limit(&self, _form: Form, _memory_bytes: u64) -> Option<f64> {
        None
    }

    fn settles(&self) -> bool {
        true
    }

    fn scaled(mut self, scale: f64) -> Self {
        self.window = (self.window as f64 / scale).round().max(1.0) as u64;
        self
    }

    fn grid(workload: &Workload) -> Vec<String> {
        let windows = [1, 4, 16].map(|part| (workload.span / part).max(1));
        let texts = windows.map(|window| {
            // With more memory than the default parameters can use, the largest of them.
            let parameters = match Self::new(window).hashes_in(workload.memory_bytes) {
                Ok(_) => "",
                Err(_) => ",k=32,c=32",
            };
            format!("bdbf:window={window}{parameters}")
        });
        texts.to_vec()
    }
}
