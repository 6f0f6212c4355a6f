//! The verdicts that an exact run has found so far.

use std::io;

use echoless::{Verdict, Verdicts};

/// What a pass of an exact run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExactPhase {
    /// Finding suspects: the verdicts are not used.
    Find,
    /// Naming a share of the suspects: there are no verdicts.
    Name,
    /// Judging a share of the suspects.
    Judge,
    /// Judging the last share: the records are delivered with all verdicts.
    Deliver,
}

/// The verdicts of the rounds before, a bit for each key.
#[derive(Debug)]
pub(crate) struct ExactVerdicts {
    pub(crate) phase: ExactPhase,
    /// Empty before the second round.
    found: Vec<u64>,
    /// The keys of this pass so far.
    keys: usize,
}

impl ExactVerdicts {
    /// Those of a run that has not begun.
    pub(crate) fn new() -> Self {
        Self {
            phase: ExactPhase::Find,
            found: Vec::new(),
            keys: 0,
        }
    }

    /// Begins a pass that names the suspects of a round.
    pub(crate) const fn begin_naming(&mut self) {
        self.phase = ExactPhase::Name;
    }

    /// Begins to judge a round, the first one of a direction or not.
    pub(crate) fn begin_round(&mut self, is_first: bool, is_last: bool) {
        if is_first {
            self.found = Vec::new();
        }
        self.keys = 0;
        self.phase = match is_last {
            true => ExactPhase::Deliver,
            false => ExactPhase::Judge,
        };
    }

    /// Adds what the rounds before have found to the verdicts on the next keys, and notes them for
    /// the rounds behind.
    pub(crate) fn complete(&mut self, verdicts: &mut Verdicts) -> io::Result<()> {
        let end = self.keys + verdicts.len();
        let is_last = self.phase == ExactPhase::Deliver;
        if !is_last && self.found.len() < end.div_ceil(64) {
            self.found
                .try_reserve(end.div_ceil(64) - self.found.len())?;
            self.found.resize(end.div_ceil(64), 0);
        }
        if !self.found.is_empty() {
            for key in 0..verdicts.len() {
                let (word, bit) = ((self.keys + key) / 64, 1 << ((self.keys + key) % 64));
                // An input that has grown is found behind the pass.
                let Some(found) = self.found.get_mut(word) else {
                    break;
                };
                if *found & bit != 0 {
                    verdicts.set(key, Verdict::Duplicate);
                } else if !is_last && verdicts.is_duplicate(key) {
                    *found |= bit;
                }
            }
        }
        self.keys = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_last_round_has_the_duplicates_of_all(
            rounds in vec(vec(any::<bool>(), 300), 1..5),
            lengths in vec(1_usize..90, 1..40),
        ) {
            let mut verdicts = ExactVerdicts::new();
            for (round, duplicates) in rounds.iter().enumerate() {
                let is_last = round + 1 == rounds.len();
                verdicts.begin_round(round == 0, is_last);
                let mut at = 0;
                // Chunks may be cut elsewhere in another round.
                for length in lengths.iter().cycle().skip(round) {
                    let end = (at + length).min(duplicates.len());
                    let mut of_chunk = Verdicts::new();
                    of_chunk.reset(end - at);
                    for key in (at..end).filter(|key| duplicates[*key]) {
                        of_chunk.set(key - at, Verdict::Duplicate);
                    }
                    verdicts.complete(&mut of_chunk).unwrap();
                    for key in (at..end).filter(|_| is_last) {
                        let expected = rounds.iter().any(|round| round[key]);
                        prop_assert_eq!(of_chunk.is_duplicate(key - at), expected);
                    }
                    at = end;
                    if at == duplicates.len() {
                        break;
                    }
                }
            }
        }
    }
}
