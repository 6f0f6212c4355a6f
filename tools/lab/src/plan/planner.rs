//! The planner: predicts every candidate coarsely, then the best ones more precisely, and ranks
//! them.
//!
//! ```text
//! coarse    every candidate of the grid    formula, or 2^18 records
//! track     the best two of each kind      tracked fractions, 2^18 records
//! refine    the best of each kind          2^21 records
//! confirm   the first candidate            2^23 records, until it stays first
//! ```

use echoless::filters::adapters::tracked::TrackedFraction;
use echoless::spec::format_bytes;
use echoless::{FilterSpec, SpecError};

use super::candidate::{Basis, Candidate, Plan, family};
use super::formula::uniform_rates;
use super::goal::Prediction;
use super::grid::{COARSE_FRACTIONS, fine_fractions, grid, tracking};
use super::request::PlanRequest;
use super::simulation::Simulation;
use crate::error::LabError;

/// Records of the coarse simulation, which every candidate without a formula goes through.
const COARSE_RECORDS: u64 = 1 << 18;
/// Records of the simulation that refines the best candidate of each kind.
const REFINE_RECORDS: u64 = 1 << 21;
/// Records of the simulation that confirms the first candidate.
const CONFIRM_RECORDS: u64 = 1 << 23;
/// The most candidates to confirm, one after the other, until one stays first.
const MAX_CONFIRMATIONS: u32 = 6;
/// The number of first candidates to refine besides the best of each kind.
const REFINED_FIRST: usize = 8;
/// The number of candidates of each kind and form to try with tracked fractions.
const TRACKED_OF_A_KIND: usize = 2;

/// Ranks all filters for the request.
///
/// Every candidate gets its rates from a formula or a short simulation. The best of each kind are
/// then simulated longer, and the first one longer still, until it stays first. Equal requests give
/// equal plans, for any number of threads. `progress` is called with the number of records
/// simulated since its last call.
///
/// # Errors
/// [`LabError`] if a bound or cost of the goal is out of range, no filter fits into the memory, or
/// a simulation cannot allocate its memory.
///
/// # Examples
/// ```
/// use echoless_lab::plan::{Goal, PlanRequest, plan};
/// use echoless_lab::stream::Stream;
/// // Nineteen bits for each distinct key: no filter needs to evict.
/// let stream = Stream::with_distinct_share(45_000, 0.6)?;
/// let goal = Goal::default().max_fpr(0.01).max_fnr(0.01);
/// let plan = plan(&PlanRequest::new(stream, 64 << 10).goal(goal), &|_| ())?;
/// let first = plan.first();
/// assert!(first.rates.fpr <= 0.01 && first.rates.fnr <= 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(request: &PlanRequest, progress: &(dyn Fn(u64) + Sync)) -> Result<Plan, LabError> {
    request.goal.check()?;
    let most = u64::MAX / 8;
    if request.memory > most {
        let allowed = format!("at most {}", format_bytes(most));
        return Err(SpecError::new("memory", format_bytes(request.memory), allowed).into());
    }
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
    /// The share of fresh arrivals in the stream of the request.
    fresh_share: f64,
    /// Ranked, best first, after each stage.
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

    /// The prediction by formula; `None` if there is no formula for this filter and stream.
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

    /// Simulates filters, and skips those that cannot be built.
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
        // The sort is stable: equal ranks keep the order of the grid.
        self.candidates
            .sort_by(|one, two| one.rank.compare(&two.rank));
    }

    /// Predicts every candidate of the grid.
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

    /// Tries tracked fractions, and keeps the best one of each filter.
    fn track(&mut self) -> Result<(), LabError> {
        if self.request.window.is_some() {
            return Ok(());
        }
        // The families of the candidates tried so far, best first.
        let mut tried = Vec::new();
        let mut to_simulate = Vec::new();
        for index in 0..self.candidates.len() {
            let spec = self.candidates[index].spec;
            if self.candidates[index].basis == Basis::Formula {
                for spec in fine_fractions().map(|fraction| tracking(&spec, fraction)) {
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
                to_simulate.extend(COARSE_FRACTIONS.map(|fraction| tracking(&spec, fraction)));
            }
        }
        for candidate in self.simulate(&to_simulate, COARSE_RECORDS, self.request.seed)? {
            self.improve(candidate);
        }
        self.rank();
        Ok(())
    }

    /// Replaces the same filter with another tracked fraction, if this candidate is better.
    fn improve(&mut self, candidate: Candidate) {
        let whole = |spec: &FilterSpec| spec.tracked(TrackedFraction::ALL);
        let mut current = self.candidates.iter_mut();
        let current = current.find(|other| whole(&other.spec) == whole(&candidate.spec));
        if let Some(current) = current
            && candidate.rank.compare(&current.rank).is_lt()
        {
            *current = candidate;
        }
    }

    /// Simulates the first candidates and the best of each kind longer.
    fn refine(&mut self) -> Result<(), LabError> {
        let mut seen = Vec::new();
        let mut to_simulate = Vec::new();
        for (index, candidate) in self.candidates.iter().enumerate() {
            let family = family(&candidate.spec);
            let first_of_its_kind = !seen.contains(&family);
            seen.push(family);
            let simulated = matches!(candidate.basis, Basis::Simulation { .. });
            if simulated && (first_of_its_kind || index < REFINED_FIRST) {
                to_simulate.push(candidate.spec);
            }
        }
        self.replace(&to_simulate, REFINE_RECORDS)
    }

    /// Simulates the first candidate at full length, until it stays first.
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

    /// Simulates candidates again, replaces their predictions and ranks all.
    fn replace(&mut self, specs: &[FilterSpec], records: u64) -> Result<(), LabError> {
        // A new seed: candidates were selected partly for their luck on the previous draws.
        let seed = self.request.seed.wrapping_add(records);
        for candidate in self.simulate(specs, records, seed)? {
            let index = self
                .candidates
                .iter()
                .position(|other| other.spec == candidate.spec);
            if let Some(index) = index {
                self.candidates[index] = candidate;
            }
        }
        self.rank();
        Ok(())
    }
}
