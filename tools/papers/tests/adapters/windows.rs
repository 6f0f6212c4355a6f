//! Growth and vertical slices under a window, with timers as cells, against plain tables of the
//! times at which the cells were set.

use echoless::{Filter, KeyHash, Window};
use proptest::prelude::*;

use crate::harness::{build, fail, is_duplicate, key, parse, restore};

/// Timers of `bits` bits under a window, as text and as a plain table.
#[derive(Debug, Clone)]
struct Timers {
    hashes: usize,
    /// The ticks of a unit.
    unit: u64,
    /// The units that a key outlives.
    alive: u64,
    /// The unit in which each timer was set.
    set_in: Vec<Option<u64>>,
}

impl Timers {
    fn new(window: u64, bits: usize, hashes: usize, bytes: usize) -> Self {
        // A quarter of the stamps is slack, one is the empty cell.
        let most = 3 * (1 << bits) / 4 - 1;
        let unit = window.div_ceil(most);
        Self {
            hashes,
            unit,
            alive: window.div_ceil(unit),
            // The last word is for access.
            set_in: vec![None; (bytes / 8 - 1) * 64 / bits],
        }
    }

    fn cells(&self, key: KeyHash) -> Vec<usize> {
        let len = self.set_in.len() as u64;
        (0..self.hashes)
            .map(|index| KeyHash::from_uniform(key.remix(index as u64)).line(len) as usize)
            .collect()
    }

    fn is_set(&self, cell: usize, tick: u64) -> bool {
        let age = self.set_in[cell].map(|unit| tick / self.unit - unit);
        age.is_some_and(|age| age <= self.alive)
    }

    fn holds(&self, key: KeyHash, tick: u64) -> bool {
        let cells = self.cells(key);
        cells.iter().all(|cell| self.is_set(*cell, tick))
    }

    fn record(&mut self, key: KeyHash, tick: u64) {
        for cell in self.cells(key) {
            self.set_in[cell] = Some(tick / self.unit);
        }
    }

    fn live(&self, tick: u64) -> usize {
        let cells = 0..self.set_in.len();
        cells.filter(|cell| self.is_set(*cell, tick)).count()
    }

    /// The age at which every key has expired.
    fn forgotten(&self) -> u64 {
        (self.alive + 1) * self.unit
    }
}

/// A filter of the plain list: its timers, the number of its keys, the tick of the last one.
struct Stage {
    timers: Timers,
    inserted: u64,
    last: u64,
}

/// The ticks that pass before an arrival: mostly few, sometimes most of a window or several.
fn steps(window: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        30 => Just(0),
        10 => 0..window / 10 + 2,
        1 => 0..2 * window + 2,
        1 => 0..20 * window + 2,
    ]
}

fn arrivals() -> impl Strategy<Value = (u64, Vec<(u64, u64)>)> {
    let windows = prop_oneof![1_u64..40, 1_u64..5000];
    windows.prop_flat_map(|window| {
        let arrivals = prop::collection::vec((steps(window), 0_u64..300), 0..500);
        (Just(window), arrivals)
    })
}

proptest! {
    #[test]
    fn growing_timers_agree_with_a_plain_list(
        (window, arrivals) in arrivals(),
        bits in 3_usize..11,
        hashes in 1_usize..6,
        bytes in 24_usize..120,
        most in 1_usize..5,
        fpr in 0.05_f64..0.6,
        by_count in any::<bool>(),
    ) {
        let threshold = if by_count { "cardinality" } else { "density" };
        let text = format!(
            "growing:fpr={fpr},threshold={threshold},step={bytes}/\
             tbf:window={window},k={hashes},bits={bits},memory={}B",
            bytes * most
        );
        let empty = Timers::new(window, bits, hashes, bytes);
        let (cells, root) = (empty.set_in.len() as f64, fpr.powf(1.0 / hashes as f64));
        let full = if by_count {
            -(cells / hashes as f64) * (1.0 - root).ln()
        } else {
            cells * root
        };
        let least = if by_count { 1.0 } else { hashes as f64 };
        let built = parse(&text).build();
        prop_assert_eq!(built.is_ok(), full >= least);
        let Ok(mut filter) = built else {
            return Ok(());
        };
        let stage = |tick| Stage { timers: empty.clone(), inserted: 0, last: tick };
        let mut model = vec![stage(0)];
        let mut tick = 0;
        for (ticks, number) in arrivals {
            tick += ticks;
            filter.advance_to(tick);
            // A filter whose keys have all expired is dropped; the newest is opened again.
            let newest = model.pop().expect("never empty");
            let expired = |stage: &Stage| {
                stage.inserted > 0 && tick - stage.last >= stage.timers.forgotten()
            };
            model.retain(|stage| !expired(stage));
            model.push(if expired(&newest) { stage(tick) } else { newest });
            let key = key(number);
            let seen = model.iter().any(|stage| stage.timers.holds(key, tick));
            prop_assert_eq!(filter.contains(key), seen, "{}", text);
            prop_assert_eq!(is_duplicate(&mut *filter, key), seen);
            if !seen {
                let newest = model.last().expect("never empty");
                let size = if by_count {
                    newest.inserted as f64
                } else {
                    newest.timers.live(tick) as f64
                };
                if size > full {
                    if model.len() == most {
                        model.remove(0);
                    }
                    model.push(stage(tick));
                }
                let newest = model.last_mut().expect("never empty");
                newest.timers.record(key, tick);
                newest.inserted += 1;
                newest.last = tick;
            }
            let one = (bytes / 8 * 8) as u64;
            // Whole words of timers, and the word for access.
            let words = (empty.set_in.len() * bits).div_ceil(64) as u64 + 1;
            prop_assert!(8 * words <= one);
            prop_assert_eq!(filter.memory_bytes(), 8 * words * model.len() as u64);
        }
        let live: usize = model.iter().map(|stage| stage.timers.live(tick)).sum();
        let tally = filter.tally();
        prop_assert_eq!(tally.cells.map(|cells| cells.occupied), Some(live as u64));
        prop_assert_eq!(tally.evictions, None);
        let granule = empty.forgotten() - window;
        prop_assert_eq!(filter.report().window, Some(Window::new(window, granule)));
        filter.clear();
        prop_assert_eq!(filter.report().fill(), Some(0.0));
    }

    #[test]
    fn vertical_slices_of_timers_agree_with_a_plain_table_through_failures(
        (window, arrivals) in arrivals(),
        bits in 3_usize..11,
        hashes in 1_usize..6,
        bytes in 32_usize..120,
        slices in 1_usize..15,
        fresh in any::<bool>(),
        failures in prop::collection::vec(any::<(prop::sample::Index, usize, bool)>(), 0..6),
    ) {
        let policy = if fresh { "fresh" } else { "duplicate" };
        let mut filter = build(&format!(
            "vertical:slices={slices},failed={policy}/\
             tbf:window={window},k={hashes},bits={bits},memory={bytes}B"
        ));
        let mut timers = Timers::new(window, bits, hashes, bytes);
        let len = timers.set_in.len();
        let mut failed = vec![false; slices];
        let mut tick = 0;
        for (index, (ticks, number)) in arrivals.iter().enumerate() {
            tick += ticks;
            filter.advance_to(tick);
            for (at, slice, fails) in &failures {
                let slice = slice % slices;
                if at.index(arrivals.len()) != index {
                    continue;
                }
                if *fails {
                    fail(&mut *filter, &[slice]).unwrap();
                    let owned = (0..len).filter(|cell| cell * slices / len == slice);
                    owned.for_each(|cell| timers.set_in[cell] = None);
                } else {
                    restore(&mut *filter, &[slice]).unwrap();
                }
                failed[slice] = *fails;
            }
            let key = key(*number);
            let cells = timers.cells(key);
            let (missing, live): (Vec<usize>, Vec<usize>) =
                cells.iter().partition(|cell| failed[**cell * slices / len]);
            let all_set = live.iter().all(|cell| timers.is_set(*cell, tick));
            let seen = all_set && (missing.is_empty() || !fresh);
            prop_assert_eq!(filter.contains(key), seen);
            prop_assert_eq!(is_duplicate(&mut *filter, key), seen);
            if !seen {
                for cell in live {
                    timers.set_in[cell] = Some(tick / timers.unit);
                }
            }
        }
        let cells = filter.tally().cells.map(|cells| cells.occupied);
        prop_assert_eq!(cells, Some(timers.live(tick) as u64));
        let granule = timers.forgotten() - window;
        prop_assert_eq!(filter.report().window, Some(Window::new(window, granule)));
    }

    #[test]
    fn uncut_timers_and_vertical_ones_are_the_same(
        (window, arrivals) in arrivals(),
        slices in 1_usize..50,
        hashes in 1_usize..6,
    ) {
        let timers = format!("tbf:window={window},k={hashes},bits=6,memory=100B");
        let spec = parse(&format!("vertical:slices={slices}/{timers}"));
        let (mut cut, mut whole) = (spec.build().unwrap(), build(&timers));
        let mut tick = 0;
        for (ticks, number) in arrivals {
            tick += ticks;
            cut.advance_to(tick);
            whole.advance_to(tick);
            let key = key(number);
            prop_assert_eq!(cut.observe_one(key), whole.observe_one(key));
        }
        prop_assert_eq!(cut.report().fill(), whole.report().fill());
        prop_assert_eq!(cut.report().window, whole.report().window);
        prop_assert_eq!(spec.facts().window, parse(&timers).facts().window);
    }
}

#[test]
fn slices_grow_with_a_burst_and_shrink_after_it() {
    let text = "horizontal:slices=4/growing:fpr=0.05,step=1KiB/tbf:window=100,memory=64KiB";
    let mut filter = build(text);
    let one = filter.memory_bytes();
    let mut number = 0;
    let mut arrive = |ticks: std::ops::Range<u64>, keys: u64| {
        for tick in ticks {
            filter.advance_to(tick);
            for _ in 0..keys {
                is_duplicate(&mut *filter, key(number));
                number += 1;
            }
        }
        filter.memory_bytes()
    };
    assert_eq!(arrive(0..300, 3), one);
    let burst = arrive(300..600, 60);
    assert!(burst > 3 * one, "{burst} B of {one} B");
    assert_eq!(arrive(600..900, 3), one);
}
