//! In how short a time a filter forgets keys.
//!
//! A full filter begins to miss duplicates of a key once so many others were recorded. How long
//! that takes depends on how fast they come: in a burst, a fraction of what it takes on average.

use std::collections::VecDeque;

use echoless::MissAge;

use crate::saved::saved;

/// The blocks that the keys are counted in before a duplicate of the first of them is missed.
const PARTS: f64 = 32.0;

/// The most blocks. Renewed keys move to the last block, so it can take more than [`PARTS`].
const MOST_BLOCKS: usize = 256;

/// Finds the shortest time in which so many keys came that a filter begins to miss the first.
#[derive(Debug, Clone)]
pub(crate) struct Turnover {
    /// The number of keys.
    age: MissAge,
    /// The latest keys, in the order in which they came.
    blocks: VecDeque<Block>,
    /// The number of the first block.
    first: u64,
    /// The shortest time so far, in ticks.
    shortest: Option<u64>,
}

/// Keys that came one after the other.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// The tick of the first.
    start: u64,
    /// Those of the sample that have not come again.
    keys: u64,
}

impl Turnover {
    pub(crate) const fn new(age: MissAge) -> Self {
        Self {
            age,
            blocks: VecDeque::new(),
            first: 0,
            shortest: None,
        }
    }

    /// Counts a key of a sample of 1 in `2^halvings`, which was in the block `before` if it comes
    /// again. The busiest window had so many keys. Returns the block of the key.
    pub(crate) fn add(
        &mut self,
        before: Option<u64>,
        tick: u64,
        halvings: u32,
        busiest: u64,
    ) -> u64 {
        let before = before.and_then(|block| block.checked_sub(self.first));
        if let Some(block) = before.and_then(|block| self.blocks.get_mut(block as usize)) {
            block.keys = block.keys.saturating_sub(1);
        }
        let enough = self.keys(halvings, busiest) / PARTS;
        let is_open = |block: &Block| ((block.keys + 1) as f64) <= enough.max(1.0);
        if !self.blocks.back().is_some_and(is_open) {
            self.shortest = self.shortest(tick, halvings, busiest);
            self.blocks.push_back(Block {
                start: tick,
                keys: 0,
            });
            if self.blocks.len() > MOST_BLOCKS {
                self.blocks.pop_front();
                self.first += 1;
            }
        }
        if let Some(block) = self.blocks.back_mut() {
            block.keys += 1;
        }
        self.first + self.blocks.len() as u64 - 1
    }

    /// Counts the keys anew after some left the sample: these are the blocks of those that stay.
    pub(crate) fn recount(&mut self, blocks: impl Iterator<Item = u64>) {
        for block in &mut self.blocks {
            block.keys = 0;
        }
        for block in blocks {
            let index = block.checked_sub(self.first);
            if let Some(block) = index.and_then(|index| self.blocks.get_mut(index as usize)) {
                block.keys += 1;
            }
        }
    }

    /// The shortest time, in ticks, until now; `None` if there were never enough keys.
    pub(crate) fn shortest(&self, now: u64, halvings: u32, busiest: u64) -> Option<u64> {
        let most = self.keys(halvings, busiest);
        let (mut keys, mut start) = (0, None);
        for block in self.blocks.iter().rev() {
            keys += block.keys;
            if keys as f64 > most {
                // Fewer keys came since the block behind this one began.
                let latest = now.saturating_sub(start.unwrap_or(now));
                return Some(self.shortest.map_or(latest, |before| before.min(latest)));
            }
            start = Some(block.start);
        }
        self.shortest
    }

    /// The keys of the sample among as many as a filter remembers.
    fn keys(&self, halvings: u32, busiest: u64) -> f64 {
        self.age.in_window(busiest) / 2_f64.powi(halvings as i32)
    }
}

saved! {
    Turnover { age, blocks, first, shortest }
    Block { start, keys }
}

#[cfg(test)]
mod tests {
    use echoless::AgeOrigin;

    use super::*;

    fn of(keys: f64) -> Turnover {
        Turnover::new(MissAge::new(keys, AgeOrigin::Recorded))
    }

    #[test]
    fn the_shortest_time_is_that_of_the_burst() {
        let mut turnover = of(3200.0);
        // A key each 10 ticks, except for 5000 keys of which 20 come in a tick.
        let mut tick = 0;
        for key in 0..30_000 {
            tick += match key {
                10_000..15_000 => u64::from(key % 20 == 0),
                _ => 10,
            };
            turnover.add(None, tick, 0, 0);
        }
        let shortest = turnover.shortest(tick, 0, 0).unwrap();
        assert!((150..=160).contains(&shortest), "{shortest}");
    }

    #[test]
    fn too_few_keys_have_no_time() {
        let mut turnover = of(3200.0);
        for tick in 0..3200 {
            turnover.add(None, tick, 0, 0);
        }
        assert_eq!(turnover.shortest(3200, 0, 0), None);
        turnover.add(None, 3200, 0, 0);
        let shortest = turnover.shortest(3200, 0, 0).unwrap();
        assert!((3000..=3200).contains(&shortest), "{shortest}");
    }

    #[test]
    fn keys_that_are_renewed_count_once() {
        let mut turnover = of(320.0);
        let mut blocks = [None; 300];
        for tick in 0..30_000 {
            let key = tick as usize * 7 % 300;
            blocks[key] = Some(turnover.add(blocks[key], tick, 0, 0));
        }
        assert_eq!(turnover.shortest(30_000, 0, 0), None);
        // A sample of 1 in 2 stands for twice as many.
        turnover.recount(blocks.iter().step_by(2).flatten().copied());
        for tick in 30_000..60_000 {
            let key = tick as usize * 14 % 300;
            blocks[key] = Some(turnover.add(blocks[key], tick, 1, 0));
        }
        assert_eq!(turnover.shortest(60_000, 1, 0), None);
        // One of 1 in 4 for more than the filter remembers.
        assert!(turnover.shortest(60_000, 2, 0).is_some());
    }
}
