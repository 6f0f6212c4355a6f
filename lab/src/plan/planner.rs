//! The planner: predict every candidate, look closer at the best, rank.

use echoless::filters::tracked::TrackedShare;
use echoless::spec::{Form, format_bytes};
use echoless::{FilterSpec, SpecError};
use serde::Serialize;

use super::candidates::{COARSE_SHARES, fine_shares, grid, tracking};
use super::cost::lines_touched;
use super::formula::uniform_rates;
use super::goal::{Prediction, Rates, Standing};
use super::question::Question;
use super::simulation::Simulation;
use crate::error::LabError;

/// Records of the simulation that every candidate goes through.
const GLANCE: u64 = 1 << 18;
/// Records of the simulation of the best of each kind.
const LOOK: u64 = 1 << 21;
/// Records of the simulation of what would be the first choice.
const CLOSE_LOOK: u64 = 1 << 23;
/// How many candidates may be looked at closely, one after the other, until one keeps its place.
const CLOSE_LOOKS: u32 = 6;
/// Candidates that are looked at besides the best of each kind.
const CONTENDERS: usize = 8;
/// Of each kind and form, how many are tried with tracked shares.
const TRACKED_OF_A_KIND: usize = 2;

/// Where a prediction comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// A formula.
    Formula,
    /// A simulation, scaled down.
    Simulation {
        /// The records it took.
        records: u64,
    },
}

/// A filter and what is predicted of it.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The filter, in the memory of the question.
    pub spec: FilterSpec,
    /// The rates to expect.
    pub rates: Rates,
    /// Where they come from.
    pub basis: Basis,
    /// Cache lines a key: see [`lines_touched`].
    pub lines: f64,
    /// How it stands to what was asked.
    pub standing: Standing,
    /// The same in words.
    pub why: String,
}

/// The ranking.
#[derive(Debug, Clone)]
pub struct Plan {
    /// All candidates that can be built, the best first.
    pub choices: Vec<Choice>,
}

impl Plan {
    /// The filter to use.
    #[must_use]
    pub fn first(&self) -> &Choice {
        &self.choices[0]
    }

    /// The best of each kind and form, in order.
    pub fn best_of_each(&self) -> impl Iterator<Item = &Choice> {
        let mut seen = Vec::new();
        self.choices.iter().filter(move |choice| {
            let key = family(&choice.spec);
            let new = !seen.contains(&key);
            if new {
                seen.push(key);
            }
            new
        })
    }
}

/// What counts as one filter in different settings.
fn family(spec: &FilterSpec) -> (&'static str, Form) {
    (spec.kind().name(), spec.form())
}

/// Ranks all filters for the question. `progress` is told how many records were simulated since it was told last.
///
/// Every candidate gets its rates from a formula or from a short simulation; the best of each kind are then simulated longer, and what would be
/// first longer still, until it stays first. Equal questions get equal answers, whatever the number of threads.
///
/// # Errors
/// [`LabError`] if the goal makes no sense, no filter fits into the memory, or there is no memory for the simulation.
///
/// # Examples
/// ```
/// use std::num::NonZeroUsize;
/// use echoless_lab::plan::{Goal, Question, plan};
/// use echoless_lab::stream::Stream;
/// // Nineteen bits for each distinct key: nothing needs to be forgotten.
/// let question = Question {
///     memory: 64 << 10,
///     records: 45_000,
///     stream: Stream::with_distinct_share(45_000, 0.6)?,
///     window: None,
///     goal: Goal { max_fpr: Some(0.01), max_fnr: Some(0.01), costs: None },
///     seed: 1,
///     threads: NonZeroUsize::MIN,
/// };
/// let plan = plan(&question, &|_| ())?;
/// let first = plan.first();
/// assert!(first.rates.fpr <= 0.01 && first.rates.fnr <= 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(question: &Question, progress: &(dyn Fn(u64) + Sync)) -> Result<Plan, LabError> {
    question.goal.check()?;
    let mut planner = Planner::new(question, progress)?;
    planner.glance()?;
    planner.track()?;
    planner.look()?;
    planner.look_closely()?;
    Ok(Plan {
        choices: planner.choices,
    })
}

struct Planner<'a> {
    question: &'a Question,
    progress: &'a (dyn Fn(u64) + Sync),
    fresh_share: f64,
    choices: Vec<Choice>,
}

impl<'a> Planner<'a> {
    fn new(question: &'a Question, progress: &'a (dyn Fn(u64) + Sync)) -> Result<Self, LabError> {
        let glance = Simulation::new(question, GLANCE, question.seed)?;
        Ok(Self {
            question,
            progress,
            fresh_share: glance.fresh_share()?,
            choices: Vec::new(),
        })
    }

    /// The rates by formula, where there is one and it is about this stream.
    fn formula(&self, spec: &FilterSpec) -> Option<Prediction> {
        let stream = &self.question.stream;
        if !stream.is_uniform() || self.question.window.is_some() {
            return None;
        }
        let (records, universe) = (stream.records() as f64, stream.universe() as f64);
        uniform_rates(spec, records, universe).map(Prediction::exact)
    }

    fn choice(&self, spec: FilterSpec, predicted: &Prediction, basis: Basis) -> Choice {
        let goal = &self.question.goal;
        let lines = lines_touched(&spec);
        let standing = goal.standing(predicted, lines, self.fresh_share);
        Choice {
            spec,
            rates: predicted.rates,
            basis,
            lines,
            why: goal.why(predicted.rates, &standing),
            standing,
        }
    }

    /// Simulates some filters; those that cannot be built are left out.
    fn simulate(
        &self,
        specs: &[FilterSpec],
        records: u64,
        seed: u64,
    ) -> Result<Vec<Choice>, LabError> {
        let simulation = Simulation::new(self.question, records, seed)?;
        let records = simulation.records();
        let predictions = simulation.predict(specs, self.progress)?;
        Ok(specs
            .iter()
            .zip(predictions)
            .filter_map(|(spec, predicted)| {
                Some(self.choice(*spec, &predicted?, Basis::Simulation { records }))
            })
            .collect())
    }

    fn rank(&mut self) {
        // The sort is stable, so equals keep the order of the grid.
        self.choices
            .sort_by(|one, two| one.standing.compare(&two.standing));
    }

    /// A first prediction of everything.
    fn glance(&mut self) -> Result<(), LabError> {
        let mut to_simulate = Vec::new();
        for spec in grid(self.question) {
            match self.formula(&spec) {
                Some(predicted) => {
                    let choice = self.choice(spec, &predicted, Basis::Formula);
                    self.choices.push(choice);
                }
                None => to_simulate.push(spec),
            }
        }
        let simulated = self.simulate(&to_simulate, GLANCE, self.question.seed)?;
        self.choices.extend(simulated);
        self.rank();
        if self.choices.is_empty() {
            let memory = format_bytes(self.question.memory);
            return Err(SpecError::new("memory", memory, "more: no filter fits into it").into());
        }
        Ok(())
    }

    /// Tries tracked shares, and keeps for each filter the best one.
    fn track(&mut self) -> Result<(), LabError> {
        if self.question.window.is_some() {
            return Ok(());
        }
        let mut tried = Vec::new();
        let mut to_simulate = Vec::new();
        for index in 0..self.choices.len() {
            let spec = self.choices[index].spec;
            if self.choices[index].basis == Basis::Formula {
                for spec in fine_shares().map(|share| tracking(&spec, share)) {
                    if let Some(predicted) = self.formula(&spec) {
                        self.improve(self.choice(spec, &predicted, Basis::Formula));
                    }
                }
            } else if tried
                .iter()
                .filter(|tried| **tried == family(&spec))
                .count()
                < TRACKED_OF_A_KIND
            {
                tried.push(family(&spec));
                to_simulate.extend(COARSE_SHARES.map(|share| tracking(&spec, share)));
            }
        }
        for choice in self.simulate(&to_simulate, GLANCE, self.question.seed)? {
            self.improve(choice);
        }
        self.rank();
        Ok(())
    }

    /// Puts a choice in the place of the same filter with another tracked share, if it is better.
    fn improve(&mut self, choice: Choice) {
        let whole = |spec: &FilterSpec| spec.with_tracked(TrackedShare::ALL);
        let mut places = self.choices.iter_mut();
        let place = places.find(|other| whole(&other.spec) == whole(&choice.spec));
        if let Some(place) = place
            && choice.standing.compare(&place.standing).is_lt()
        {
            *place = choice;
        }
    }

    /// Simulates longer what is at the front, and the best of each kind.
    fn look(&mut self) -> Result<(), LabError> {
        let mut seen = Vec::new();
        let mut to_simulate = Vec::new();
        for (place, choice) in self.choices.iter().enumerate() {
            let family = family(&choice.spec);
            let first_of_its_kind = !seen.contains(&family);
            seen.push(family);
            let simulated = matches!(choice.basis, Basis::Simulation { .. });
            if simulated && (first_of_its_kind || place < CONTENDERS) {
                to_simulate.push(choice.spec);
            }
        }
        self.replace(&to_simulate, LOOK)
    }

    /// Simulates the first choice at length, until it is first even so.
    fn look_closely(&mut self) -> Result<(), LabError> {
        for _ in 0..CLOSE_LOOKS {
            let first = &self.choices[0];
            let length = Simulation::new(self.question, CLOSE_LOOK, 0)?.records();
            match first.basis {
                Basis::Simulation { records } if records < length => {
                    let spec = first.spec;
                    self.replace(&[spec], CLOSE_LOOK)?;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Simulates again and ranks by what comes out.
    fn replace(&mut self, specs: &[FilterSpec], records: u64) -> Result<(), LabError> {
        // Other draws than before, for what was picked was picked for its luck, too.
        let seed = self.question.seed.wrapping_add(records);
        for choice in self.simulate(specs, records, seed)? {
            let place = self
                .choices
                .iter()
                .position(|other| other.spec == choice.spec);
            if let Some(place) = place {
                self.choices[place] = choice;
            }
        }
        self.rank();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use echoless::KeyHash;

    use super::*;
    use crate::evaluate::{Options, evaluate};
    use crate::plan::{Costs, Goal};
    use crate::stream::Stream;

    const RECORDS: u64 = 30_000;

    fn question(distinct: f64, memory: u64, goal: Goal) -> Question {
        Question {
            memory,
            records: RECORDS,
            stream: Stream::with_distinct_share(RECORDS, distinct).unwrap(),
            window: None,
            goal,
            seed: 5,
            threads: NonZeroUsize::new(2).unwrap(),
        }
    }

    fn bounds(max_fpr: f64, max_fnr: f64) -> Goal {
        Goal {
            max_fpr: Some(max_fpr),
            max_fnr: Some(max_fnr),
            costs: None,
        }
    }

    /// The rates of the first choice on draws that the planner has not seen.
    fn measured(question: &Question, plan: &Plan) -> Rates {
        let options = Options {
            seed: 77,
            window: question.window,
            ..Options::default()
        };
        let spec = plan.first().spec.with_seed(78);
        let evaluation = &evaluate(&[spec], &question.stream, &options, &|_| ()).unwrap()[0];
        Rates {
            fpr: evaluation.score.fpr(),
            fnr: evaluation.score.fnr(),
        }
    }

    #[test]
    fn short_memory_is_shared_out_by_tracking_and_both_printed_rates_are_beaten() {
        // 1 billion records, 60 % distinct, in 64 MiB: RLBSBF's printed rates, here at the same ratios.
        let memory = ((64_u64 << 20) * RECORDS / 1_000_000_000) / 64 * 64;
        let question = question(0.6, memory, bounds(0.300_44, 0.257_526));
        let plan = plan(&question, &|_| ()).unwrap();
        let first = plan.first();
        assert_eq!(first.spec.kind().name(), "bloom");
        assert!(first.spec.tracked().get() < 1.0, "{}", first.spec);
        assert!(first.standing.has_room(), "{}", first.why);
        let rates = measured(&question, &plan);
        assert!(rates.fpr <= 0.300_44 && rates.fnr <= 0.257_526, "{rates:?}");
    }

    #[test]
    fn ample_memory_is_used_without_forgetting_in_one_line() {
        let question = question(0.6, 32 << 10, bounds(0.02, 0.02));
        let plan = plan(&question, &|_| ()).unwrap();
        let first = plan.first();
        assert_eq!(first.lines, 1.0, "{}", first.spec);
        let rates = measured(&question, &plan);
        assert!(rates.fpr <= 0.02 && rates.fnr <= 0.02, "{rates:?}");
        // Every kind is ranked, in every form that it has.
        let names = echoless::spec::FilterKind::NAMES;
        let best: Vec<&Choice> = plan.best_of_each().collect();
        assert!(
            names
                .iter()
                .all(|name| best.iter().any(|choice| choice.spec.kind().name() == *name))
        );
        assert!(best.len() > names.len());
        assert!(
            best.iter()
                .all(|choice| choice.spec.memory() == Some(32 << 10))
        );
    }

    #[test]
    fn what_must_not_be_wrong_is_exact() {
        let goal = Goal {
            max_fpr: Some(0.0),
            ..Goal::default()
        };
        let plan = plan(&question(0.6, 8 << 10, goal), &|_| ()).unwrap();
        assert_eq!(plan.first().spec.kind().name(), "lru");
        assert_eq!(plan.first().rates.fpr, 0.0);
    }

    #[test]
    fn a_bound_far_below_what_can_be_simulated_is_kept() {
        let goal = Goal {
            max_fpr: Some(1e-15),
            ..Goal::default()
        };
        // 2^12 lines leave 52 bits of the hash for 8 slots: a chance of 2e-15, of which the simulation in less memory would have shown half or less.
        let question = question(0.6, 256 << 10, goal);
        let plan = plan(&question, &|_| ()).unwrap();
        assert!(plan.first().rates.fpr <= 1e-15, "{}", plan.first().spec);
        let wide = plan.choices.iter().filter(|choice| {
            choice.spec.form() == Form::Line && choice.spec.to_string().contains("bits=64")
        });
        let mut seen = 0;
        for choice in wide {
            seen += 1;
            let limit = 8.0 / 2_f64.powi(52);
            assert_eq!(choice.rates.fpr, limit, "{}", choice.spec);
            assert!(!choice.standing.meets_bounds(), "{}", choice.spec);
        }
        assert!(seen > 0);
    }

    #[test]
    fn costs_decide_which_error_is_made() {
        let costs = |false_positive, false_negative| {
            let goal = Goal {
                costs: Some(Costs {
                    false_positive,
                    false_negative,
                }),
                ..Goal::default()
            };
            plan(&question(0.6, 4 << 10, goal), &|_| ())
                .unwrap()
                .first()
                .rates
        };
        let (dear_misses, dear_mistakes) = (costs(1.0, 1000.0), costs(1000.0, 1.0));
        assert_eq!(dear_misses.fnr, 0.0);
        assert!(
            dear_mistakes.fpr < 0.001 && dear_mistakes.fnr > 0.5,
            "{dear_mistakes:?}"
        );
    }

    #[test]
    fn a_window_asks_for_filters_that_forget() {
        let question = Question {
            window: Some(500),
            ..question(0.6, 2 << 10, Goal::default())
        };
        let plan = plan(&question, &|_| ()).unwrap();
        assert_ne!(plan.first().spec.kind().name(), "bloom");
        assert!(
            plan.choices
                .iter()
                .all(|choice| choice.basis != Basis::Formula)
        );
        assert!(
            plan.choices
                .iter()
                .all(|choice| choice.spec.tracked() == TrackedShare::ALL)
        );
        let rates = measured(&question, &plan);
        let predicted = plan.first().rates;
        assert!(
            (rates.fpr - predicted.fpr).abs() < 0.01,
            "{rates:?} for {predicted:?}"
        );
        assert!(
            (rates.fnr - predicted.fnr).abs() < 0.02,
            "{rates:?} for {predicted:?}"
        );
    }

    #[test]
    fn a_sample_is_run_in_its_share_of_the_memory() {
        let sample: Vec<KeyHash> = (0..RECORDS).map(|i| KeyHash(i * i % 9973)).collect();
        let question = Question {
            records: 10 * RECORDS,
            stream: Stream::recorded(sample).unwrap(),
            ..question(0.5, 80 << 10, Goal::default())
        };
        let plan = plan(&question, &|_| ()).unwrap();
        let shrunk = Question {
            records: RECORDS,
            memory: 8 << 10,
            ..question.clone()
        };
        let smaller = super::plan(&shrunk, &|_| ()).unwrap();
        assert_eq!(plan.first().rates, smaller.first().rates);
        assert_eq!(plan.first().spec.memory(), Some(80 << 10));
    }

    #[test]
    fn plans_do_not_depend_on_threads() {
        let one = Question {
            threads: NonZeroUsize::MIN,
            ..question(0.3, 2 << 10, Goal::default())
        };
        let three = Question {
            threads: NonZeroUsize::new(3).unwrap(),
            ..one.clone()
        };
        let ranking = |question| {
            let plan = plan(question, &|_| ()).unwrap();
            let choices = plan.choices.into_iter();
            choices
                .map(|choice| (choice.spec, choice.rates))
                .collect::<Vec<_>>()
        };
        assert_eq!(ranking(&one), ranking(&three));
    }

    #[test]
    fn impossible_questions_are_refused() {
        let error = plan(&question(0.5, 1024, bounds(2.0, 0.1)), &|_| ()).unwrap_err();
        assert!(error.to_string().starts_with("max-fpr: 2 "), "{error}");
        let error = plan(&question(0.5, 0, Goal::default()), &|_| ()).unwrap_err();
        assert!(
            error.to_string().starts_with("memory: 0B is not possible"),
            "{error}"
        );
    }
}
