//! The look-ahead of the batch loop: chosen once for the process, by the CPU.
//!
//! A line must still be in the cache when it is visited. Three blocks ahead and the one that is
//! visited are 16 KiB of lines, beside the keys and the verdicts: a third of an L1 cache of 48 KiB,
//! and too much of one of 32 KiB.
//!
//! AMD CPUs with an L1 cache of 32 KiB prefetch lines from memory into their L2 cache: they can
//! follow more of its misses at a time, so more than twice as many keys pass. A visit then reads
//! its line from the L2 cache, which takes no longer, because the reads of several visits overlap.
//! Lines of a filter that fits into the L3 cache come fast enough for the L1 cache. AMD CPUs with
//! 48 KiB gain nothing. `bench/record/TRIED.md` has the measurements.

mod cpu;

use std::env::{self, VarError};
use std::fmt;

use crate::error::SpecError;
use crate::memory::{CacheLevel, LINE_BYTES};
use crate::sync::unmodelled::OnceLock;
use cpu::Cpu;

/// The environment variable that sets the look-ahead.
const VARIABLE: &str = "ECHOLESS_LOOKAHEAD";

/// The field that [`LookAhead::fix`] sets.
const FIELD: &str = "lookahead";

/// What the variable and [`LookAhead::fix`] accept.
const ALLOWED: &str = "1, 2 or 3 blocks of 64 keys, and perhaps a cache, as in 2,l1 or 2,l2";

/// The largest L1 data cache, in bytes, for which one block is best.
const SMALL_L1: u64 = 32 << 10;

/// The number of lines from which the caches hold too little of an array to matter: 128 MiB.
///
/// Below it a part of the lines is read from the caches, so keys pass faster and more misses must
/// be in flight. Measured on a CPU with 32 MiB of L3 cache.
const CACHED_LINES: u64 = 1 << 21;

/// The size of an L3 cache of AMD, in bytes, if the system does not report it: 32 MiB.
const USUAL_L3: u64 = 32 << 20;

/// How many blocks of 64 keys the filters prefetch ahead, in batches of at least 256 keys, and
/// into which cache. Shorter ones, and filters of 2^32 lines or more, use two blocks. The verdicts
/// do not depend on it.
///
/// # Examples
/// ```
/// let chosen = echoless::LookAhead::of_process()?;
/// assert!(chosen.to_string().starts_with(['1', '2', '3']));
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookAhead {
    /// In filters that the caches hold a part of.
    cached: Blocks,
    /// The same for long visits: those of every rule without `HAS_SHORT_VISITS`.
    cached_long: Blocks,
    /// In larger filters.
    memory: Blocks,
    /// The same if a key has two lines.
    memory_pairs: Blocks,
    /// The least number of lines of these filters.
    memory_lines: u64,
    /// Below this number of lines, those of a block are found at once, in vectors.
    vector_lines: u64,
    /// The cache that lines are prefetched into, in filters that the caches hold a part of.
    cached_level: CacheLevel,
    /// The same in larger filters.
    memory_level: CacheLevel,
}

/// A number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocks {
    One,
    Two,
    Three,
}

impl Blocks {
    pub(crate) const fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
        }
    }
}

/// The choice of this process.
static CHOICE: OnceLock<Result<LookAhead, SpecError>> = OnceLock::new();

impl LookAhead {
    /// The look-ahead of the filters of this process: that of [`fix`](Self::fix), or of the
    /// variable `ECHOLESS_LOOKAHEAD`, or the best one for this CPU. The first call chooses it for
    /// good, as does the first filter that is built.
    ///
    /// # Errors
    /// [`SpecError`] if the variable is not a number of blocks from 1 to 3, and perhaps a cache.
    pub fn of_process() -> Result<Self, SpecError> {
        let choose = || match env::var(VARIABLE) {
            Ok(text) => Self::of_cpu(Cpu::detect()).fixed(VARIABLE, &text),
            Err(VarError::NotUnicode(text)) => Err(SpecError::new(
                VARIABLE,
                text.display().to_string(),
                ALLOWED,
            )),
            Err(VarError::NotPresent) => Ok(Self::of_cpu(Cpu::detect())),
        };
        CHOICE.get_or_init(choose).clone()
    }

    /// Sets the look-ahead of all filters of this process, for measurements: `2`, or with the cache
    /// `2,l1` or `2,l2`. Call it first: a filter that is built and a call of
    /// [`of_process`](Self::of_process) choose the look-ahead of the process, too.
    ///
    /// # Errors
    /// [`SpecError`] if `text` is not a number of blocks from 1 to 3, and perhaps a cache, or if
    /// another look-ahead was chosen before, which then stays in force.
    ///
    /// # Examples
    /// ```standalone_crate
    /// use echoless::LookAhead;
    /// LookAhead::fix("2,l1")?;
    /// assert_eq!(LookAhead::of_process()?.to_string(), "2 blocks into L1");
    /// assert!(LookAhead::fix("3,l1").is_err());
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    pub fn fix(text: &str) -> Result<(), SpecError> {
        let fixed = Self::of_cpu(Cpu::detect()).fixed(FIELD, text)?;
        let chosen = CHOICE.get_or_init(|| Ok(fixed)).clone()?;
        if chosen == fixed {
            return Ok(());
        }
        let allowed = format!("the choice that this process has made before, {chosen}");
        Err(SpecError::new(FIELD, text, allowed))
    }

    /// The best look-ahead for a CPU.
    const fn of_cpu(cpu: Cpu) -> Self {
        let has_small_l1 = cpu.l1_bytes > 0 && cpu.l1_bytes <= SMALL_L1;
        let chosen = if has_small_l1 {
            Self::of_blocks(Blocks::One, Blocks::One)
        } else {
            // From `CACHED_LINES` on 2 blocks are best: by 4 % over 3 at 512 MiB. Below, 3 are:
            // keys pass faster, so more misses must be in flight; by 2 % over 2 at 64 MiB. Long
            // visits do not pass faster there: 2 are ahead of 3 by up to 12 % at 16 and 64 MiB, by
            // 4 % in the median.
            Self::of_blocks(Blocks::Three, Blocks::Two)
        };
        if !(cpu.is_amd && has_small_l1) {
            return chosen;
        }
        let l3_bytes = match cpu.l3_bytes {
            0 => USUAL_L3,
            bytes => bytes,
        };
        // At 64 and 512 MiB, 2 blocks are ahead of 1 and 3 by up to 7 %; where a key has two lines,
        // 1 block is ahead by up to 4 %. Vectors pass up to 1.08 times the keys at 64 MiB, 0.98
        // times at 128 MiB and 0.93 to 1.05 times at 512 MiB.
        Self {
            memory: Blocks::Two,
            memory_pairs: Blocks::One,
            memory_lines: l3_bytes / LINE_BYTES,
            vector_lines: CACHED_LINES,
            memory_level: CacheLevel::L2,
            ..chosen
        }
    }

    /// So many blocks into the L1 cache.
    pub(super) const fn of_blocks(cached: Blocks, memory: Blocks) -> Self {
        Self {
            cached,
            cached_long: memory,
            memory,
            memory_pairs: memory,
            memory_lines: CACHED_LINES,
            // With 1 block ahead, vectors are best at any size; with more, the prefetches of a
            // block then come in a burst, and hardly any miss is in flight between two bursts.
            vector_lines: match memory {
                Blocks::One => u64::MAX,
                Blocks::Two | Blocks::Three => CACHED_LINES,
            },
            cached_level: CacheLevel::L1,
            memory_level: CacheLevel::L1,
        }
    }

    /// This one with another cache, for filters of any size.
    #[cfg(test)]
    pub(super) const fn prefetching_into(self, cache: CacheLevel) -> Self {
        Self {
            cached_level: cache,
            memory_level: cache,
            ..self
        }
    }

    /// This one with the blocks, and perhaps the cache, that a text names.
    fn fixed(self, field: &'static str, text: &str) -> Result<Self, SpecError> {
        let invalid = || SpecError::new(field, text, ALLOWED);
        let (blocks, cache) = match text.split_once(',') {
            Some((blocks, "l1")) => (blocks, Some(CacheLevel::L1)),
            Some((blocks, "l2")) => (blocks, Some(CacheLevel::L2)),
            Some(_) => return Err(invalid()),
            None => (text, None),
        };
        let blocks = match blocks {
            "1" => Blocks::One,
            "2" => Blocks::Two,
            "3" => Blocks::Three,
            _ => return Err(invalid()),
        };
        Ok(Self {
            cached: blocks,
            cached_long: blocks,
            memory: blocks,
            memory_pairs: blocks,
            cached_level: cache.unwrap_or(self.cached_level),
            memory_level: cache.unwrap_or(self.memory_level),
            ..self
        })
    }

    /// The blocks for a filter of this many lines, of which a key has `key_lines`. The partitions
    /// of a filter share the cache, so its whole size counts.
    #[inline(always)]
    pub(crate) const fn blocks(
        self,
        lines: u64,
        key_lines: usize,
        has_short_visits: bool,
    ) -> Blocks {
        if lines < self.memory_lines {
            if has_short_visits {
                self.cached
            } else {
                self.cached_long
            }
        } else if key_lines > 1 {
            self.memory_pairs
        } else {
            self.memory
        }
    }

    /// Whether the lines of a block are found at once, in vectors, in a filter of this many lines.
    ///
    /// Not for short visits of lines that are prefetched into the L2 cache: with so few
    /// instructions for each key, the prefetches come faster than the cache follows its misses, and
    /// the visits fall behind. FIFO passes 0.96 times the keys with vectors at 64 MiB, Bloom 0.73
    /// times, and longer visits 1.02 to 1.2 times.
    #[inline(always)]
    pub(crate) const fn finds_in_vectors(self, lines: u64, has_short_visits: bool) -> bool {
        let into_l2 = matches!(self.cache_for(lines), CacheLevel::L2);
        lines < self.vector_lines && !(has_short_visits && into_l2)
    }

    /// The cache to prefetch into, for a filter of this many lines, all partitions together.
    #[inline(always)]
    pub(crate) const fn cache_for(self, lines: u64) -> CacheLevel {
        if lines < self.memory_lines {
            self.cached_level
        } else {
            self.memory_level
        }
    }
}

impl fmt::Display for LookAhead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |blocks: Blocks, cache| {
            let unit = if blocks == Blocks::One {
                "block"
            } else {
                "blocks"
            };
            let cache = if cache == CacheLevel::L1 { "L1" } else { "L2" };
            format!("{} {unit} into {cache}", blocks.count())
        };
        let cached = shown(self.cached, self.cached_level);
        let memory = shown(self.memory, self.memory_level);
        formatter.write_str(&cached)?;
        if self.cached_long != self.cached {
            write!(formatter, " ({} for long visits)", self.cached_long.count())?;
        }
        if cached != memory {
            let bytes = self.memory_lines * LINE_BYTES;
            write!(formatter, ", {memory} from {} MiB on", bytes >> 20)?;
        }
        if self.memory_pairs != self.memory {
            let count = self.memory_pairs.count();
            write!(formatter, " ({count} where a key has two lines)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
