//! The clocks against plain models of them.

use echoless_stream::{
    AheadRun, Clock, MaxAdvance, Place, TaskClock, Window, format_count, is_late, parse_count,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// What the clock of a task does, in 128 bits, with the whole history of each partition.
struct Model {
    window: Window,
    judges_beyond_skew: bool,
    ticks: Vec<Vec<i128>>,
    watermarks: Vec<i128>,
}

impl Model {
    fn tick(&self, time: i64) -> i128 {
        i128::from(time).div_euclid(i128::from(self.window.resolution)) + 1
    }

    fn place(&mut self, partition: usize, time: i64) -> Place {
        let tick = self.tick(time);
        let watermark = self.watermarks.iter().max().copied();
        let skew = i128::from(self.window.skew);
        let is_beyond_skew = skew > 0 && watermark.is_some_and(|watermark| tick - watermark > skew);
        if is_beyond_skew && !self.judges_beyond_skew {
            return Place {
                tick: tick as u64,
                is_beyond_skew,
                ..Place::default()
            };
        }
        self.ticks[partition].push(tick);
        let latest = *self.ticks[partition].iter().max().unwrap();
        let clock = match skew {
            0 => latest,
            _ => (latest - skew).max(watermark.unwrap_or(0)),
        };
        Place {
            tick: if skew > 0 { tick } else { latest } as u64,
            is_late: clock - tick > i128::from(self.window.late_after),
            is_beyond_skew,
            is_too_far_ahead: false,
        }
    }
}

#[derive(Debug, Clone)]
enum Event {
    Record(usize, i64),
    Watermark(i64),
    /// The task is stopped, and another one goes on.
    Restore,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let times = || prop_oneof![8 => 0_i64..5_000, 1 => 0..i64::MAX];
    let event = prop_oneof![
        20 => (0_usize..3, times()).prop_map(|(partition, time)| Event::Record(partition, time)),
        2 => times().prop_map(Event::Watermark),
        1 => Just(Event::Restore),
    ];
    vec(event, 0..150)
}

proptest! {
    #[test]
    fn the_clocks_of_a_task_are_those_of_the_model(
        events in events(),
        length in 1_u64..3_000,
        lateness in 0_u64..500,
        skew in prop_oneof![Just(0), 1_u64..3_000],
        judges_beyond_skew: bool,
    ) {
        let window = Window::new(length, lateness, skew);
        let new = || TaskClock::new(3, window, None, judges_beyond_skew);
        let mut clock = new();
        let mut model = Model {
            window,
            judges_beyond_skew,
            ticks: vec![Vec::new(); 3],
            watermarks: Vec::new(),
        };
        for event in events {
            match event {
                Event::Record(partition, time) => {
                    let expected = model.place(partition, time);
                    prop_assert_eq!(clock.place(partition, time, 0), expected);
                }
                Event::Watermark(time) => {
                    clock.set_watermark(time, 0);
                    model.watermarks.push(model.tick(time));
                }
                Event::Restore => {
                    let saved = std::mem::replace(&mut clock, new());
                    for (partition, latest) in saved.latest().iter().enumerate() {
                        clock.restore(partition, *latest, saved.watermark());
                    }
                }
            }
        }
    }

    #[test]
    fn times_too_far_ahead_leave_the_task_as_it_was(
        times in vec(prop_oneof![8 => 0_i64..2_000, 1 => 50_000_i64..i64::MAX], 1..100),
    ) {
        let window = Window::new(100, 0, 0);
        let mut bounded = TaskClock::new(1, window, Some(3_000), true);
        let mut plain = TaskClock::new(1, window, None, true);
        for time in times {
            let place = bounded.place(0, time, 0);
            prop_assert_eq!(place.is_too_far_ahead, time >= 50_000);
            if !place.is_too_far_ahead {
                prop_assert_eq!(place, plain.place(0, time, 0));
            }
            // So does a watermark of such a time.
            bounded.set_watermark(i64::MAX - 1, 0);
            prop_assert_eq!(bounded.watermark(), 0);
        }
    }

    #[test]
    fn a_clock_is_the_latest_time_that_was_admitted(
        times in vec(prop_oneof![8 => -500_i64..500, 1 => any::<i64>()], 0..200),
        most in 0_u64..600,
        now in proptest::option::of(-500_i64..500),
        late_after in 0_u64..600,
    ) {
        let bound = MaxAdvance { most, now };
        let (mut clock, mut ahead) = (Clock::default(), AheadRun::default());
        let mut admitted: Vec<i64> = Vec::new();
        for time in times {
            let before = admitted.iter().max().copied();
            let expected = ahead.admit(before.or(now), time, most);
            prop_assert_eq!(clock.admit(time, Some(bound)), expected);
            admitted.extend(expected);
            prop_assert_eq!(clock.latest, admitted.iter().max().copied());
            if let Some(latest) = clock.latest {
                let age = i128::from(latest) - i128::from(time);
                prop_assert_eq!(is_late(latest, time, late_after), age > i128::from(late_after));
            }
        }
    }

    #[test]
    fn a_window_has_2000_to_4999_ticks_or_ticks_of_one_unit(units in 1_u64.., shift in 0_u32..64) {
        let window = Window::new((units >> shift).max(1), 0, 0);
        prop_assert!(window.ticks < 5000);
        prop_assert!(window.ticks >= 2000 || window.resolution == 1);
    }

    #[test]
    fn formatted_counts_parse_to_the_same_value(count in 1_u64.., thousands in 0_u32..5) {
        let count = (count >> 50).max(1) * 1000_u64.pow(thousands);
        prop_assert_eq!(parse_count(&format_count(count)), Some(count));
    }
}

#[test]
fn the_record_that_ends_a_run_of_times_ahead_has_its_own_time() {
    for skew in [0, 50] {
        let mut clock = TaskClock::new(1, Window::new(100, 0, skew), Some(1_000), true);
        let before = clock.place(0, 10, 0).tick;
        let run = 1..AheadRun::LONGEST as i64;
        assert!(
            run.clone()
                .all(|_| clock.place(0, 90_000, 0).is_too_far_ahead)
        );
        let last = clock.place(0, 89_990, 0);
        assert!(!last.is_too_far_ahead);
        // The clock of the task went on to the latest time of all of them.
        assert_eq!(clock.reference(0), 90_000);
        let mut plain = TaskClock::new(1, Window::new(100, 0, skew), None, true);
        assert_eq!(plain.place(0, 10, 0).tick, before);
        assert_eq!(last.tick, plain.place(0, 89_990, 0).tick);
    }
}
