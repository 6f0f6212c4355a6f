//! The planner: predict every candidate, look closer at the best, rank.

use echoless::filters::tracked::TrackedShare;
use echoless::spec::format_bytes;
use echoless::{FilterSpec, SpecError};

use super::candidates::{COARSE_SHARES, fine_shares, grid, tracking};
use super::choice::{Basis, Choice, Plan, family};
use super::cost::lines_touched;
use super::formula::uniform_rates;
use super::goal::Prediction;
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
