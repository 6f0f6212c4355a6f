//! Growing filters under a window, while arrivals come twice or five times as fast (figures 10 and
//! 11).
//!
//! **The paper:** the burst is the middle third of the stream. Both thresholds open filters for it,
//! which leave with the window; the cardinality threshold fluctuates more, because it does not
//! account for keys that have expired; the larger the window, the more filters there are and the
//! longer they stay.
//!
//! **Here:** the same shapes. The paper has no formula. Let n be the keys that fill a filter, L the
//! deliveries in a tick. Filters are opened every T = n/L ticks and live for T + W. So their mean
//! number is 1 + W/T; at a phase u of a period they were opened u, u + T, u + 2T ... ticks ago. One
//! of age a holds the keys of ages a - T to a that are at most W old. By density a filter is never
//! full, T is unbounded, if a whole window (L W keys) does not fill it: one filter. An event with
//! the share p of r arrivals in a tick is delivered every W + 1/(r p) ticks, so L is the sum of
//! r p / (1 + r p W) over the events. The FPR is 1 minus the product of 1 - fill^k of all filters,
//! averaged over the phases.
//!
//! **Differences:** figures hold for the second half of each third of the stream, when the window
//! is full of arrivals at the new rate. The access log is short: its thirds do not fill the longest
//! window, so it is not compared. An event is a duplicate if it was delivered at most a window
//! before (definition 4). The rate `fpr` is that of events that never arrive, looked up in every
//! tick. That of the arrivals (`fpr_of_arrivals`, the paper's) is higher and has no formula: an
//! event that is taken for a duplicate is not recorded, so its next arrival is tested again, often
//! against the same timers. By density, streams that fill a filter to within 10 % of its threshold
//! in a window are not compared, as chance decides on a second filter. The paper leaves the size of
//! the first filter open; here it holds 1200 events at a rate of 0.05.

use echoless::{Filter, FilterSpec, KeyHasher};
use echoless_lab::oracle::Score;
use echoless_papers::theory::bloom;

use super::arguments::{Arguments, Part};
use super::deliveries::Deliveries;
use super::inputs::{Input, UNSEEN, cells_for};
use super::rows::{Row, of_settings};
use crate::failure::Failure;

const HASHES: u32 = 4;
const RATE: f64 = 0.05;
/// The events that fill a filter.
const CAPACITY: u64 = 1200;
/// Arrivals in a tick before and after the burst.
const PER_TICK: u64 = 2;
const BURSTS: [u64; 2] = [2, 5];
const WINDOWS: [u64; 3] = [100, 500, 1000];
/// Timers of 11 bits hold 1535 ticks, the longest window.
const TIMER_BITS: u64 = 11;
/// Lookups of events that never arrive, in each tick.
const PROBES: u64 = 5;
/// The points of a curve over time.
const SAMPLES: u64 = 40;

/// The condition on which a filter is full, by its name in specifications.
const THRESHOLDS: [&str; 2] = ["density", "cardinality"];

#[derive(Clone, Copy)]
struct Setting<'a> {
    input: &'a Input,
    threshold: &'static str,
    burst: u64,
    window: u64,
}

/// The parts of the stream.
const PHASES: [&str; 3] = ["before", "burst", "after"];

/// What was measured in the second half of a third of the stream.
#[derive(Debug, Clone, Copy, Default)]
struct Phase {
    /// The number of filters, summed over the ticks.
    filters: u64,
    ticks: u64,
    score: Score,
    /// Events that never arrive, looked up, and found.
    unseen: u64,
    found: u64,
}

/// The memory of one filter: whole words of timers, and a word for access.
fn step() -> u64 {
    let bits = cells_for(CAPACITY, HASHES, RATE) * TIMER_BITS as f64;
    (bits / 64.0).round() as u64 * 8 + 8
}

fn timers() -> u64 {
    (step() / 8 - 1) * 64 / TIMER_BITS
}

impl Setting<'_> {
    fn is_cardinality(&self) -> bool {
        self.threshold == "cardinality"
    }

    fn build(&self) -> Result<Box<dyn Filter>, Failure> {
        let (threshold, window, step) = (self.threshold, self.window, step());
        let growing = format!("growing:fpr={RATE},threshold={threshold},step={step}");
        let timers = format!("tbf:window={window},k={HASHES},bits={TIMER_BITS}");
        let spec: FilterSpec =
            echoless_papers::parse(&format!("{growing}/{timers},memory={}", 64 * step))?;
        Ok(spec.build()?)
    }

    /// The arrivals in a tick, at arrival `index`.
    fn per_tick(&self, index: usize) -> usize {
        let third = 3 * index / self.input.events.len();
        (if third == 1 { self.burst } else { 1 } * PER_TICK) as usize
    }

    /// Runs a new filter over the stream. Returns the measured phases, and the number of filters
    /// at each tick.
    fn run(&self, seed: u64) -> Result<([Phase; 3], Vec<usize>), Failure> {
        let mut filter = self.build()?;
        // That of one filter.
        let memory = filter.memory_bytes();
        let hasher = KeyHasher::seeded(seed);
        let (keys, events) = (self.input.keys(seed), &self.input.events);
        let mut deliveries = Deliveries::new(self.input.counts.len(), self.window);
        let mut phases = [Phase::default(); 3];
        let mut filters = Vec::new();
        let (mut next, mut tick) = (0, 0);
        while next < events.len() {
            let end = (next + self.per_tick(next)).min(events.len());
            // Of six parts, each second one is the measured half of a third.
            let sixth = 6 * next / events.len();
            let phase = (sixth % 2 == 1).then(|| &mut phases[sixth / 2]);
            let (keys, events) = (&keys[next..end], &events[next..end]);
            let (score, _) = deliveries.observe(&mut filter, tick, keys, events);
            let open = filter.memory_bytes() / memory;
            filters.push(open as usize);
            if let Some(phase) = phase {
                phase.filters += open;
                phase.ticks += 1;
                phase.score = phase.score.plus(&score);
                let unseen = tick * PROBES..(tick + 1) * PROBES;
                let keys = unseen.map(|number| hasher.hash_u64(UNSEEN + number));
                phase.found += keys.filter(|key| filter.contains(*key)).count() as u64;
                phase.unseen += PROBES;
            }
            next = end;
            tick += 1;
        }
        Ok((phases, filters))
    }

    /// L, the deliveries in a tick.
    fn delivered_per_tick(&self, per_tick: u64) -> f64 {
        let counts = self.input.counts.iter();
        let deliveries = counts.map(|count| {
            let rate = per_tick as f64 * *count as f64 / self.input.arrivals();
            rate / (1.0 + rate * self.window as f64)
        });
        deliveries.sum()
    }

    /// Whether it takes chance to decide if a window fills a filter.
    fn is_undecided(&self, per_tick: u64) -> bool {
        let alive = self.delivered_per_tick(per_tick) * self.window as f64;
        !self.is_cardinality() && (0.9..1.1).contains(&(alive / CAPACITY as f64))
    }

    /// The expected number of filters, and their FPR.
    fn formulas(&self, per_tick: u64) -> (f64, f64) {
        let delivered = self.delivered_per_tick(per_tick);
        let window = (self.window + 1) as f64;
        let alive = delivered * window;
        let fpr = |keys: f64| bloom::fpr(HASHES, keys.round() as u64, timers());
        let capacity = CAPACITY as f64;
        if !self.is_cardinality() && alive <= capacity {
            return (1.0, fpr(alive));
        }
        let period = capacity / delivered;
        let phases = 200;
        let mut mean = 0.0;
        for phase in 0..phases {
            let mut age = (f64::from(phase) + 0.5) / f64::from(phases) * period;
            let mut fresh = 1.0;
            while age < period + window {
                let keys = (age.min(window) - (age - period).max(0.0)) * delivered;
                fresh *= 1.0 - fpr(keys.max(0.0));
                age += period;
            }
            mean += (1.0 - fresh) / f64::from(phases);
        }
        (1.0 + window / period, mean)
    }

    fn row(&self, figure: &'static str) -> Row {
        Row {
            part: Part::Bursts,
            figure,
            stream: self.input.name,
            setting: format!("window {}", self.window),
            series: format!("{}, burst {}x", self.threshold, self.burst),
            x_name: "phase",
            x: 0.0,
            measure: "",
            measured: 0.0,
            formula: None,
            printed: None,
            trials: None,
        }
    }

    fn rows(&self, seeds: std::ops::Range<u64>) -> Result<Vec<Row>, Failure> {
        let mut sums = [Phase::default(); 3];
        let mut curve = None;
        for seed in seeds {
            let (phases, filters) = self.run(seed)?;
            for (sum, phase) in sums.iter_mut().zip(&phases) {
                sum.filters += phase.filters;
                sum.ticks += phase.ticks;
                sum.score = sum.score.plus(&phase.score);
                sum.unseen += phase.unseen;
                sum.found += phase.found;
            }
            curve.get_or_insert(filters);
        }
        let figure = if self.is_cardinality() {
            "10(d)-(f)"
        } else {
            "10(a)-(c)"
        };
        let mut rows = Vec::new();
        for (index, (name, sum)) in PHASES.iter().zip(&sums).enumerate() {
            let per_tick = if *name == "burst" { self.burst } else { 1 } * PER_TICK;
            let (filters, fpr) = self.formulas(per_tick);
            let phase = |measure, measured, figure| Row {
                measure,
                measured,
                x: index as f64,
                ..self.row(figure)
            };
            let mean = phase(
                "mean_filters",
                sum.filters as f64 / sum.ticks.max(1) as f64,
                figure,
            );
            let found = sum.found as f64 / sum.unseen.max(1) as f64;
            let rate = phase("fpr", found, "11").formula(fpr);
            let missed = phase("fnr", sum.score.fnr(), "11");
            // Nothing delivered is forgotten within the window, in any stream.
            rows.push(missed.checked(0.0, sum.score.duplicates as f64));
            rows.push(phase("fpr_of_arrivals", sum.score.fpr(), "11"));
            let mut compared = [mean.formula(filters), rate];
            if self.input.is_drawn && !self.is_undecided(per_tick) {
                compared[0].trials = Some(sum.ticks as f64);
                compared[1].trials = Some(sum.unseen as f64);
            }
            rows.extend(compared);
        }
        // One curve over time for each setting of the uniform stream: the others look alike.
        let curve = curve.filter(|_| self.input.name == "uniform");
        let curve = curve.unwrap_or_default();
        let samples = curve.iter().enumerate();
        let apart = (curve.len() / SAMPLES as usize).max(1);
        rows.extend(samples.step_by(apart).map(|(tick, filters)| Row {
            measure: "filters",
            measured: *filters as f64,
            x_name: "tick",
            x: tick as f64,
            ..self.row(figure)
        }));
        Ok(rows)
    }
}

/// Filters and rates before, in and after a burst, for both thresholds.
pub(super) fn rows(arguments: &Arguments, inputs: &[Input]) -> Result<Vec<Row>, Failure> {
    let mut settings = Vec::new();
    for input in inputs {
        for window in WINDOWS {
            for threshold in THRESHOLDS {
                settings.extend(BURSTS.map(|burst| Setting {
                    input,
                    threshold,
                    burst,
                    window,
                }));
            }
        }
    }
    of_settings(&settings, arguments.threads, |setting| {
        setting.rows(arguments.few_seeds())
    })
}

#[cfg(test)]
mod tests {
    use echoless_lab::stream::Stream;

    use super::*;

    #[test]
    fn windows_that_fit_in_a_filter_need_another_one_by_cardinality_only() {
        // Every event arrives every 1000 ticks, so most are delivered each time.
        let stream = Stream::uniform(100_000, 2000).unwrap();
        let input = Input::drawn("uniform", &stream, 1);
        let setting = |threshold, window| Setting {
            input: &input,
            threshold,
            burst: 5,
            window,
        };
        let (one, rate) = setting("density", 100).formulas(PER_TICK);
        assert_eq!(one, 1.0);
        assert!(rate < RATE / 100.0, "{rate}");
        // 180 deliveries in a window.
        let (more, _) = setting("cardinality", 100).formulas(PER_TICK);
        assert!((more - 1.15).abs() < 0.01, "{more}");
        let (many, rate) = setting("density", 1000).formulas(5 * PER_TICK);
        let (same, _) = setting("cardinality", 1000).formulas(5 * PER_TICK);
        assert!(many > 2.0 && many == same, "{many}, {same}");
        assert!(rate > RATE / 2.0 && rate < 3.0 * RATE, "{rate}");
    }

    #[test]
    fn the_burst_is_the_middle_third() {
        let stream = Stream::uniform(600, 100).unwrap();
        let input = Input::drawn("uniform", &stream, 1);
        let setting = Setting {
            input: &input,
            threshold: "density",
            burst: 5,
            window: 100,
        };
        let rates = [0, 199, 200, 399, 400].map(|index| setting.per_tick(index));
        assert_eq!(rates, [2, 2, 10, 10, 2]);
        let (phases, filters) = setting.run(1).unwrap();
        assert_eq!(filters.len(), 100 + 20 + 100);
        assert_eq!(phases.map(|phase| phase.ticks), [50, 10, 50]);
        assert_eq!(phases.map(|phase| phase.score.false_negatives), [0; 3]);
    }
}
