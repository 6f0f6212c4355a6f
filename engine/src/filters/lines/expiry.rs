//! Expiry in steps: at the first tick of an era every line must forget what has expired, but no
//! call may pass over the whole memory for it.
//!
//! A new era only notes that all lines are **pending**. A pending line expires before a key visits
//! it, and each batch expires some more lines in their order, until none is pending:
//!
//! ```text
//! lines     | expired in this era           | pending                                  |
//!           | x x x x x x x x x x x x x x x | . . . x . . . . . . x . . . . . . . . .  |
//!                                             ^ next step     ^ visited by a key
//! ```
//!
//! A line expires by the units that passed up to the first tick of the era, however late its turn
//! comes, so its bytes do not depend on the size of batches.
//!
//! A line that is still pending when the next era begins was not visited for the whole era between
//! them. An era is longer than a window, so all its keys are dead, and it forgets everything when
//! its turn comes. Its times may wrap around any number of times until then: nothing reads them.
//! Two bitmaps are therefore enough for any number of eras: the lines that have expired in this
//! era, and in the one before.

use super::rule::Rule;
use crate::hash::KeyHash;
use crate::kernels::{BLOCK, Bucket, LineRange};
use crate::memory::{CacheLevel, Line};

/// The most lines that a call expires in their order: 128 KiB, some 30 us. As many lines expire at
/// once when an era begins, without bitmaps.
const STEP: usize = 2048;

/// How many lines a key pays for, so that the pages of a small batch cost little.
const LINES_PER_KEY: usize = 32;

/// The most bits of a bitmap, 256 KiB, so that clearing one takes some 10 us. A bit stands for a
/// group of lines, which expire together.
const MOST_GROUPS: usize = 1 << 21;

/// The fewest lines of a group: their reads overlap, so four take little longer than one.
const LEAST_GROUP: usize = 4;

/// The lines of a filter that have not expired in the current era yet.
#[derive(Debug)]
pub(super) struct Expiry<R> {
    /// The rule at the clock before the era.
    rule: R,
    /// The units from that clock to the first tick of the era.
    passed: u64,
    /// The groups of lines that have expired, one bit each.
    expired: Vec<u64>,
    /// The groups that had expired when the era before ended; `None` if all had.
    expired_before: Option<Vec<u64>>,
    /// The lines of a group.
    group: usize,
    /// The first group that no step has reached.
    next: usize,
}

impl<R: Rule> Expiry<R> {
    /// Begins an era, whose first unit is `passed` units after the clock of `rule`. `before` is
    /// what is left of the era before. Returns what is pending, if anything is.
    pub(super) fn begin(
        before: Option<Self>,
        rule: R,
        passed: u64,
        lines: &mut [Line],
    ) -> Option<Self> {
        if lines.len() <= STEP {
            lines.iter_mut().for_each(|line| rule.expire(line, passed));
            return None;
        }
        let group = lines.len().div_ceil(MOST_GROUPS).max(LEAST_GROUP);
        let words = lines.len().div_ceil(group).div_ceil(64);
        Some(Self {
            rule,
            passed,
            expired: vec![0; words],
            expired_before: before.map(|before| before.expired),
            group,
            next: 0,
        })
    }

    /// Expires the lines that a batch will visit, and a step of the others. Returns whether no line
    /// is pending any more.
    #[inline(never)]
    pub(super) fn step(&mut self, lines: &mut [Line], range: LineRange, keys: &[KeyHash]) -> bool {
        for keys in keys.chunks(BLOCK) {
            for key in keys {
                R::Bucket::prefetch(lines, range.position(*key), *key, CacheLevel::L1);
            }
            for key in keys {
                R::Bucket::for_each_line(range.position(*key), *key, |line| {
                    // The visit panics at a key of another partition.
                    if line < lines.len() {
                        self.expire_group(lines, line / self.group);
                    }
                });
            }
        }
        let step = STEP.min(keys.len().saturating_mul(LINES_PER_KEY));
        self.sweep(lines, step)
    }

    /// Expires all lines that are pending.
    pub(super) fn finish(mut self, lines: &mut [Line]) {
        self.sweep(lines, lines.len());
    }

    /// Expires pending lines in their order, about `count` of them. Returns whether none is left.
    fn sweep(&mut self, lines: &mut [Line], count: usize) -> bool {
        let groups = lines.len().div_ceil(self.group);
        let end = groups.min(self.next + count.div_ceil(self.group));
        for group in self.next..end {
            self.expire_group(lines, group);
        }
        self.next = end;
        end == groups
    }

    #[inline(always)]
    fn expire_group(&mut self, lines: &mut [Line], group: usize) {
        let (word, bit) = (group / 64, 1 << (group % 64));
        if self.expired[word] & bit != 0 {
            return;
        }
        let units = self.units(group);
        let first = group * self.group;
        let end = lines.len().min(first + self.group);
        for line in &mut lines[first..end] {
            self.rule.expire(line, units);
        }
        self.expired[word] |= bit;
    }

    /// The units by which a pending group is older than its times state.
    fn units(&self, group: usize) -> u64 {
        let had_expired = (self.expired_before.as_ref())
            .is_none_or(|expired| expired[group / 64] >> (group % 64) & 1 == 1);
        if had_expired { self.passed } else { u64::MAX }
    }

    /// Copies the lines from `first` on as they are once they have expired.
    pub(super) fn expired(&self, first: usize, lines: &[Line]) -> Vec<Line> {
        let mut lines = lines.to_vec();
        self.expire_copy(first, &mut lines);
        lines
    }

    /// Expires a copy of the lines from `first` on.
    pub(super) fn expire_copy(&self, first: usize, lines: &mut [Line]) {
        for (position, line) in (first..).zip(lines) {
            let group = position / self.group;
            if self.expired[group / 64] >> (group % 64) & 1 == 0 {
                self.rule.expire(line, self.units(group));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fingerprint::ClockedRule;
    use super::*;
    use crate::filters::replacement::Lru;
    use crate::filters::units::Units;

    type Rule = ClockedRule<u32, Lru>;

    /// Lines whose clock word is that of one key in unit 0, so that each changes when it expires.
    fn lines_of_one_key(count: usize) -> Vec<Line> {
        vec![Line([1, 0, 0, 0, 0, 0, 0, 0b00_0001]); count]
    }

    fn changed(lines: &[Line]) -> usize {
        lines.iter().filter(|line| line.0[7] != 1).count()
    }

    fn keys(count: u64) -> Vec<KeyHash> {
        (0..count)
            .map(|key| KeyHash(KeyHash(key).remix(1)))
            .collect()
    }

    #[test]
    fn a_call_expires_few_lines_and_those_of_its_keys() {
        for (count, group) in [(100_000, 4), (MOST_GROUPS * 5, 5)] {
            let mut lines = lines_of_one_key(count);
            let (total, first) = (count as u64, 0);
            let range = LineRange { total, first };
            let rule = Rule::new(Units::new(100, 5));
            let mut expiry = Expiry::begin(None, rule, 1000, &mut lines).expect("many lines");
            assert_eq!((changed(&lines), expiry.group), (0, group));
            let one = keys(1);
            assert!(!expiry.step(&mut lines, range, &one));
            assert_eq!(lines[range.position(one[0])].0[7], 0);
            assert!(
                changed(&lines) <= LINES_PER_KEY + 2 * group,
                "{}",
                changed(&lines)
            );
            let many = keys(500);
            assert!(!expiry.step(&mut lines, range, &many));
            assert!(many.iter().all(|key| lines[range.position(*key)].0[7] == 0));
            assert!(changed(&lines) <= STEP + LINES_PER_KEY + 503 * group);
            expiry.finish(&mut lines);
            assert_eq!(changed(&lines), count);
        }
    }

    #[test]
    fn steps_end() {
        let mut lines = lines_of_one_key(3 * STEP);
        let range = LineRange {
            total: lines.len() as u64,
            first: 0,
        };
        let rule = Rule::new(Units::new(100, 5));
        let mut expiry = Expiry::begin(None, rule, 1000, &mut lines).expect("many lines");
        let steps = keys(3)
            .into_iter()
            .map(|key| expiry.step(&mut lines, range, &[key; 64]));
        assert_eq!(steps.collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(changed(&lines), lines.len());
    }

    #[test]
    fn few_lines_expire_at_once() {
        let mut lines = lines_of_one_key(STEP);
        let rule = Rule::new(Units::new(100, 5));
        assert!(Expiry::begin(None, rule, 1000, &mut lines).is_none());
        assert_eq!(changed(&lines), STEP);
    }
}
