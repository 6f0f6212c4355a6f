//! Growth under a window, with tables of plain timers, whose memory can be made to run out. The
//! engine's own tables of cells are tested from outside.

use std::collections::HashMap;
use std::ops::Range;

use proptest::prelude::*;

use super::{Growing, Threshold};
use crate::adapters::cell_table::CellTable;
use echoless::{Cells, Filter, KeyHash, Verdict, Window};

const CELLS: u64 = 64;
const HASHES: usize = 3;
const WINDOW: u64 = 20;

/// Cells that are set for [`WINDOW`] ticks.
#[derive(Debug, Default)]
struct Timers {
    now: u64,
    set_at: HashMap<u64, u64>,
}

impl CellTable for Timers {
    fn hashes(&self) -> usize {
        HASHES
    }

    fn cell_count(&self) -> u64 {
        CELLS
    }

    fn position(&self, key: KeyHash, index: usize) -> u64 {
        KeyHash::from_uniform(key.remix(index as u64)).line(CELLS)
    }

    fn is_set(&self, cell: u64) -> bool {
        let set_at = self.set_at.get(&cell);
        set_at.is_some_and(|set_at| self.now - set_at <= WINDOW)
    }

    fn set(&mut self, cell: u64) {
        self.set_at.insert(cell, self.now);
    }

    fn empty(&mut self, cells: Range<u64>) {
        self.set_at.retain(|cell, _| !cells.contains(cell));
    }

    fn cells(&self) -> Cells {
        let set = (0..CELLS).filter(|cell| self.is_set(*cell)).count();
        Cells::new(set as u64, CELLS)
    }

    fn bytes(&self) -> u64 {
        8 * CELLS
    }

    fn advance_to(&mut self, tick: u64) {
        assert!(tick >= self.now, "the clock went back");
        self.now = tick;
    }

    fn restart(&mut self) {
        *self = Self::default();
    }
}

fn growing(fpr: f64, threshold: Threshold, most: usize) -> Growing {
    let open = || Some(Box::new(Timers::default()) as Box<dyn CellTable>);
    let window = Some(Window::new(WINDOW, 1));
    let first = Box::new(Timers::default());
    Growing::new(fpr, threshold, first, Box::new(open), most, window).expect("room for a key")
}

/// A filter of the model: when each of its cells was set last, and its keys.
#[derive(Debug, Default)]
struct Plain {
    /// Cells that were never set are missing.
    set_at: HashMap<usize, u64>,
    inserted: u64,
    last: u64,
}

impl Plain {
    fn is_set(&self, cell: usize, now: u64) -> bool {
        let set_at = self.set_at.get(&cell);
        set_at.is_some_and(|set_at| now <= set_at + WINDOW)
    }

    fn live(&self, now: u64) -> usize {
        (0..CELLS as usize)
            .filter(|cell| self.is_set(*cell, now))
            .count()
    }
}

fn cells_of(key: KeyHash) -> [usize; HASHES] {
    [0, 1, 2].map(|index| KeyHash::from_uniform(key.remix(index)).line(CELLS) as usize)
}

proptest! {
    #[test]
    fn windows_drop_filters_whose_keys_have_expired(
        by_count in any::<bool>(),
        fpr in 0.05_f64..0.5,
        most in 1_usize..5,
        arrivals in prop::collection::vec(
            (0_u64..200, prop_oneof![9 => 0_u64..3, 1 => 0_u64..100]),
            0..400,
        ),
    ) {
        let threshold = if by_count { Threshold::Cardinality } else { Threshold::Density };
        let mut filter = growing(fpr, threshold, most);
        let mut model = vec![Plain::default()];
        let root = fpr.cbrt();
        let (mut now, mut dropped, mut expired) = (0, 0, 0);
        for (number, ticks) in arrivals {
            now += ticks;
            filter.advance_to(now);
            // A filter whose keys have all expired is dropped; the newest is opened again.
            let empty = |plain: &Plain| plain.inserted > 0 && now > plain.last + WINDOW;
            expired += model.iter().filter(|plain| empty(plain)).count() as u64;
            let newest = model.len() - 1;
            if empty(&model[newest]) {
                model[newest] = Plain { last: now, ..Plain::default() };
            }
            let mut index = 0;
            model.retain(|plain| {
                index += 1;
                index - 1 == newest || !empty(plain)
            });
            let key = KeyHash::from_uniform(KeyHash::from_uniform(number).remix(77));
            let cells = cells_of(key);
            let seen = model.iter().any(|plain| cells.iter().all(|cell| plain.is_set(*cell, now)));
            prop_assert_eq!(filter.contains(key), seen);
            if !seen {
                let newest = model.last().expect("never empty");
                let full = if by_count {
                    newest.inserted as f64 > -(CELLS as f64 / 3.0) * (1.0 - root).ln()
                } else {
                    newest.live(now) as f64 > CELLS as f64 * root
                };
                if full {
                    if model.len() == most {
                        model.remove(0);
                        dropped += 1;
                    }
                    model.push(Plain { last: now, ..Plain::default() });
                }
                let newest = model.last_mut().expect("never empty");
                for cell in cells {
                    newest.set_at.insert(cell, now);
                }
                newest.inserted += 1;
                newest.last = now;
            }
            prop_assert_eq!(filter.observe_one(key) == Verdict::Duplicate, seen);
            prop_assert_eq!(filter.counts().0, model.len());
        }
        prop_assert_eq!(filter.counts(), (model.len(), dropped, expired));
        let live: usize = model.iter().map(|plain| plain.live(now)).sum();
        let tally = filter.tally();
        prop_assert_eq!(tally.cells.map(|cells| cells.occupied), Some(live as u64));
        // Keys leave by themselves, so the absence of evictions promises nothing.
        prop_assert_eq!(tally.evictions, None);
        prop_assert_eq!(filter.report().window, Some(Window::new(WINDOW, 1)));
        filter.clear();
        prop_assert_eq!(filter.counts().0, 1);
        prop_assert_eq!(filter.observe_one(KeyHash::from_uniform(5)), Verdict::Fresh);
    }
}

#[test]
fn a_burst_opens_filters_that_leave_with_it() {
    let mut filter = growing(0.1, Threshold::Density, 100);
    let mut number = 0;
    let mut arrive = |filter: &mut Growing, ticks: Range<u64>, keys: u64| {
        for tick in ticks {
            filter.advance_to(tick);
            for _ in 0..keys {
                filter.observe_one(KeyHash::from_uniform(
                    KeyHash::from_uniform(number).remix(1),
                ));
                number += 1;
            }
        }
        filter.counts().0
    };
    let before = arrive(&mut filter, 0..100, 1);
    let burst = arrive(&mut filter, 100..200, 5);
    let after = arrive(&mut filter, 200..300, 1);
    assert!(
        before <= 4 && burst >= 2 * before && after <= before + 1,
        "{before} {burst} {after}"
    );
    let (_, dropped, expired) = filter.counts();
    assert_eq!(dropped, 0);
    assert!(expired > 0);
}

#[test]
fn without_memory_for_another_filter_the_oldest_is_dropped() {
    let first = Box::new(Timers::default());
    let open = Box::new(|| None);
    let mut filter =
        Growing::new(0.2, Threshold::Density, first, open, 100, None).expect("room for a key");
    for number in 0..200 {
        filter.observe_one(KeyHash::from_uniform(
            KeyHash::from_uniform(number).remix(1),
        ));
    }
    let (filters, dropped, _) = filter.counts();
    assert_eq!(filters, 1);
    assert!(dropped > 3, "{dropped} dropped");
    assert!(filter.tally().evictions > Some(30));
}
