//! The look-ahead of the batch loop: chosen once for the process, by the L1 cache of the CPU.
//!
//! A line must still be in the L1 cache when it is visited. Three blocks ahead and the one that is
//! visited are 16 KiB of lines, beside the keys and the verdicts: a third of a cache of 48 KiB, and
//! too much of one of 32 KiB. `bench/record/TRIED.md` has the
//! measurements.

use std::env::{self, VarError};
use std::fmt;
use std::sync::OnceLock;

use crate::error::SpecError;

/// The environment variable that sets the look-ahead.
const VARIABLE: &str = "ECHOLESS_LOOKAHEAD";

/// What the variable and [`LookAhead::fix`] accept.
const ALLOWED: &str = "1, 2 or 3 blocks of 64 keys";

/// The largest L1 data cache, in bytes, for which one block is best.
const SMALL_L1: u64 = 32 << 10;

/// The number of lines from which the caches hold too little of an array to matter: 128 MiB.
///
/// Below it a part of the lines is read from the caches, so keys pass faster and more misses must
/// be in flight. Measured on a CPU with 32 MiB of L3 cache.
const CACHED_LINES: usize = 1 << 21;

/// How many blocks of 64 keys the filters prefetch ahead, in batches of at least 256 keys. Shorter
/// ones, and filters of 2^32 lines or more, use two blocks. The verdicts do not depend on it.
///
/// # Examples
/// ```
/// let chosen = echoless::LookAhead::of_process()?;
/// assert!(chosen.to_string().starts_with(['1', '2', '3']));
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookAhead {
    /// In arrays that the caches hold a part of.
    cached: Blocks,
    /// In larger arrays.
    memory: Blocks,
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
    /// variable `ECHOLESS_LOOKAHEAD`, or the best one for this CPU.
    ///
    /// # Errors
    /// [`SpecError`] if the variable is neither 1, 2 nor 3.
    pub fn of_process() -> Result<Self, SpecError> {
        let choose = || match env::var(VARIABLE) {
            Ok(text) => Self::parse(VARIABLE, &text),
            Err(VarError::NotUnicode(text)) => Err(SpecError::new(
                VARIABLE,
                text.display().to_string(),
                ALLOWED,
            )),
            Err(VarError::NotPresent) => Ok(Self::of_cache(l1_bytes())),
        };
        CHOICE.get_or_init(choose).clone()
    }

    /// Sets the look-ahead of all filters of this process, for measurements. Has no effect once a
    /// filter was built.
    ///
    /// # Errors
    /// [`SpecError`] if `blocks` is neither 1, 2 nor 3.
    pub fn fix(blocks: &str) -> Result<(), SpecError> {
        let fixed = Self::parse("lookahead", blocks)?;
        CHOICE.get_or_init(|| Ok(fixed));
        Ok(())
    }

    /// The best look-ahead for an L1 data cache of this size; of an unknown one, if it is 0.
    const fn of_cache(l1_bytes: u64) -> Self {
        if l1_bytes > 0 && l1_bytes <= SMALL_L1 {
            Self {
                cached: Blocks::One,
                memory: Blocks::One,
            }
        } else {
            // From `CACHED_LINES` on 2 blocks are best: by 4 % over 3 at 512 MiB. Below, 3 are:
            // keys pass faster, so more misses must be in flight; by 2 % over 2 at 64 MiB.
            Self {
                cached: Blocks::Three,
                memory: Blocks::Two,
            }
        }
    }

    fn parse(field: &'static str, text: &str) -> Result<Self, SpecError> {
        let blocks = match text {
            "1" => Blocks::One,
            "2" => Blocks::Two,
            "3" => Blocks::Three,
            _ => return Err(SpecError::new(field, text, ALLOWED)),
        };
        Ok(Self {
            cached: blocks,
            memory: blocks,
        })
    }

    /// The blocks for an array of this many lines.
    #[inline(always)]
    pub(crate) const fn blocks(self, lines: usize) -> Blocks {
        if lines < CACHED_LINES {
            self.cached
        } else {
            self.memory
        }
    }
}

impl fmt::Display for LookAhead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cached, memory) = (self.cached.count(), self.memory.count());
        let unit = if cached == 1 { "block" } else { "blocks" };
        write!(formatter, "{cached} {unit}")?;
        if cached != memory {
            write!(formatter, ", {memory} from 128 MiB on")?;
        }
        Ok(())
    }
}

/// The size of the L1 data cache in bytes; 0 if the system does not tell. Read from a file of the
/// system: the instruction of the CPU that tells it costs more in a virtual machine.
fn l1_bytes() -> u64 {
    let caches = "/sys/devices/system/cpu/cpu0/cache";
    (0..4)
        .find_map(|index| {
            let read = |name: &str| {
                let text = std::fs::read_to_string(format!("{caches}/index{index}/{name}"));
                Some(text.ok()?.trim().to_owned())
            };
            if read("level")? != "1" || read("type")? != "Data" {
                return None;
            }
            let kibibytes: u64 = read("size")?.strip_suffix('K')?.parse().ok()?;
            Some(kibibytes << 10)
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_decides() {
        let shown = |kibibytes: u64| LookAhead::of_cache(kibibytes << 10).to_string();
        assert_eq!(shown(32), "1 block");
        for kibibytes in [0, 48, 128] {
            assert_eq!(shown(kibibytes), "3 blocks, 2 from 128 MiB on");
        }
    }

    #[test]
    fn a_fixed_look_ahead_is_1_to_3_blocks() {
        for text in ["1", "2", "3"] {
            let parsed = LookAhead::parse("lookahead", text).unwrap();
            assert!(parsed.to_string().starts_with(text));
            assert_eq!(parsed.blocks(0), parsed.blocks(usize::MAX));
        }
        for text in ["0", "4", "x", "-1"] {
            let error = LookAhead::fix(text).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("invalid lookahead={text}: expected 1, 2 or 3 blocks of 64 keys")
            );
        }
    }
}
