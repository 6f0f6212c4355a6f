//! The planner: predict every candidate, refine closer at the best, rank.

use echoless::filters::adapters::tracked::TrackedFraction;
use echoless::spec::format_bytes;
use echoless::{FilterSpec, SpecError};

use super::candidate::{Basis, Candidate, Plan, family};
use super::formula::uniform_rates;
use super::goal::Prediction;
use super::grid::{COARSE_SHARES, fine_shares, grid, tracking};
use super::request::PlanRequest;
use super::simulation::Simulation;
use crate::error::LabError;

/// Records of the simulation that every candidate goes through.
const COARSE_RECORDS: u64 = 1 << 18;
/// Records of the simulation of the best of each kind.
const REFINE_RECORDS: u64 = 1 << 21;
/// Records of the simulation of what would be the first candidate.
const CONFIRM_RECORDS: u64 = 1 << 23;
/// How many candidates may be looked at closely, one after the other, until one keeps its place.
const MAX_CONFIRMATIONS: u32 = 6;
/// Candidates that are looked at besides the best of each kind.
const REFINED_FIRST: usize = 8;
/// Of each kind and form, how many are tried with tracked shares.
const TRACKED_OF_A_KIND: usize = 2;

/// Ranks all filters for the request. `progress` is told how many records were simulated since it was told last.
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
/// use echoless_lab::plan::{Goal, PlanRequest, plan};
/// use echoless_lab::stream::Stream;
/// // Nineteen bits for each distinct key: nothing needs to be forgotten.
/// let request = PlanRequest {
///     memory: 64 << 10,
///     records: 45_000,
///     stream: Stream::with_distinct_share(45_000, 0.6)?,
///     window: None,
///     goal: Goal { max_fpr: Some(0.01), max_fnr: Some(0.01), costs: None },
///     seed: 1,
///     threads: NonZeroUsize::MIN,
/// };
/// let plan = plan(&request, &|_| ())?;
/// let first = plan.first();
/// assert!(first.rates.fpr <= 0.01 && first.rates.fnr <= 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(request: &PlanRequest, progress: &(dyn Fn(u64) + Sync)) -> Result<Plan, LabError> {
    request.goal.check()?;
    let mut planner = Planner::new(request, progress)?;
    planner.coarse()?;
    planner.track()?;
    planner.refine()?;
    planner.confirm()?;
    Ok(Plan {
        candidates: planner.candidates,
    })
}

struct Planner<'a> {
    request: &'a PlanRequest,
    progress: &'a (dyn Fn(u64) + Sync),
    fresh_share: f64,
    candidates: Vec<Candidate>,
}

impl<'a> Planner<'a> {
    fn new(request: &'a PlanRequest, progress: &'a (dyn Fn(u64) + Sync)) -> Result<Self, LabError> {
        let coarse = Simulation::new(request, COARSE_RECORDS, request.seed)?;
        Ok(Self {
            request,
            progress,
            fresh_share: coarse.fresh_share()?,
            candidates: Vec::new(),
        })
    }

    /// The rates by formula, where there is one and it is about this stream.
    fn formula(&self, spec: &FilterSpec) -> Option<Prediction> {
        let stream = &self.request.stream;
        if !stream.is_uniform() || self.request.window.is_some() {
            return None;
        }
        let (records, universe) = (stream.records() as f64, stream.universe() as f64);
        uniform_rates(spec, records, universe).map(Prediction::exact)
    }

    fn candidate(&self, spec: FilterSpec, predicted: &Prediction, basis: Basis) -> Candidate {
        let goal = &self.request.goal;
        let lines = spec.cache_lines();
        let rank = goal.rank(predicted, lines, self.fresh_share);
        Candidate {
            spec,
            rates: predicted.rates,
            basis,
            lines,
            why: goal.why(predicted.rates, &rank),
            rank,
        }
    }

    /// Simulates some filters; those that cannot be built are left out.
    fn simulate(
        &self,
        specs: &[FilterSpec],
        records: u64,
        seed: u64,
    ) -> Result<Vec<Candidate>, LabError> {
        let simulation = Simulation::new(self.request, records, seed)?;
        let records = simulation.records();
        let predictions = simulation.predict(specs, self.progress)?;
        Ok(specs
            .iter()
            .zip(predictions)
            .filter_map(|(spec, predicted)| {
                Some(self.candidate(*spec, &predicted?, Basis::Simulation { records }))
            })
            .collect())
    }

    fn rank(&mut self) {
        // The sort is stable, so equals keep the order of the grid.
        self.candidates
            .sort_by(|one, two| one.rank.compare(&two.rank));
    }

    /// A first prediction of everything.
    fn coarse(&mut self) -> Result<(), LabError> {
        let mut to_simulate = Vec::new();
        for spec in grid(self.request) {
            match self.formula(&spec) {
                Some(predicted) => {
                    let candidate = self.candidate(spec, &predicted, Basis::Formula);
                    self.candidates.push(candidate);
                }
                None => to_simulate.push(spec),
            }
        }
        let simulated = self.simulate(&to_simulate, COARSE_RECORDS, self.request.seed)?;
        self.candidates.extend(simulated);
        self.rank();
        if self.candidates.is_empty() {
            let memory = format_bytes(self.request.memory);
            return Err(SpecError::new("memory", memory, "more memory: no filter fits").into());
        }
        Ok(())
    }

    /// Tries tracked shares, and keeps for each filter the best one.
    fn track(&mut self) -> Result<(), LabError> {
        if self.request.window.is_some() {
            return Ok(());
        }
        let mut tried = Vec::new();
        let mut to_simulate = Vec::new();
        for index in 0..self.candidates.len() {
            let spec = self.candidates[index].spec;
            if self.candidates[index].basis == Basis::Formula {
                for spec in fine_shares().map(|share| tracking(&spec, share)) {
                    if let Some(predicted) = self.formula(&spec) {
                        self.improve(self.candidate(spec, &predicted, Basis::Formula));
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
        for candidate in self.simulate(&to_simulate, COARSE_RECORDS, self.request.seed)? {
            self.improve(candidate);
        }
        self.rank();
        Ok(())
    }

    /// Puts a candidate in the place of the same filter with another tracked share, if it is better.
    fn improve(&mut self, candidate: Candidate) {
        let whole = |spec: &FilterSpec| spec.tracked(TrackedFraction::ALL);
        let mut places = self.candidates.iter_mut();
        let place = places.find(|other| whole(&other.spec) == whole(&candidate.spec));
        if let Some(place) = place
            && candidate.rank.compare(&place.rank).is_lt()
        {
            *place = candidate;
        }
    }

    /// Simulates longer what is at the front, and the best of each kind.
    fn refine(&mut self) -> Result<(), LabError> {
        let mut seen = Vec::new();
        let mut to_simulate = Vec::new();
        for (place, candidate) in self.candidates.iter().enumerate() {
            let family = family(&candidate.spec);
            let first_of_its_kind = !seen.contains(&family);
            seen.push(family);
            let simulated = matches!(candidate.basis, Basis::Simulation { .. });
            if simulated && (first_of_its_kind || place < REFINED_FIRST) {
                to_simulate.push(candidate.spec);
            }
        }
        self.replace(&to_simulate, REFINE_RECORDS)
    }

    /// Simulates the first candidate at length, until it is first even so.
    fn confirm(&mut self) -> Result<(), LabError> {
        for _ in 0..MAX_CONFIRMATIONS {
            let first = &self.candidates[0];
            let length = Simulation::new(self.request, CONFIRM_RECORDS, 0)?.records();
            match first.basis {
                Basis::Simulation { records } if records < length => {
                    let spec = first.spec;
                    self.replace(&[spec], CONFIRM_RECORDS)?;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Simulates again and ranks by what comes out.
    fn replace(&mut self, specs: &[FilterSpec], records: u64) -> Result<(), LabError> {
        // Other draws than before, for what was picked was picked for its luck, too.
        let seed = self.request.seed.wrapping_add(records);
        for candidate in self.simulate(specs, records, seed)? {
            let place = self
                .candidates
                .iter()
                .position(|other| other.spec == candidate.spec);
            if let Some(place) = place {
                self.candidates[place] = candidate;
            }
        }
        self.rank();
        Ok(())
    }
}
