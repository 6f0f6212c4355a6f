//! The planner: predicts every candidate coarsely, then the best ones more precisely, and ranks
//! them.
//!
//! ```text
//! coarse    every candidate of the grid    formula, or at most 2^18 records
//! track     the best two of each kind      tracked fractions, at most 2^18 records
//! refine    the best of each kind          at most 2^21 records
//! confirm   those that may be first        at most 2^23 records
//! ```
//!
//! The [budget](super::budget) decides how many records it is.

use echoless::spec::TrackedFraction;
use echoless::spec::format_bytes;
use echoless::{FilterSpec, SpecError};

use super::budget::{self, MAX_CONFIRMATIONS, MAX_DECISIONS, Stage};
use super::candidate::{Basis, Candidate, Plan, family};
use super::formula::uniform_rates;
use super::grid::{COARSE_FRACTIONS, fine_fractions, grid, tracking};
use super::prediction::Prediction;
use super::request::PlanRequest;
use super::simulation::Simulation;
use crate::error::LabError;

/// The number of first candidates to refine besides the best of each kind.
const REFINED_FIRST: usize = 8;
/// The number of candidates of each kind and form to try with tracked fractions.
const TRACKED_OF_A_KIND: usize = 2;

/// Ranks all filters for the request.
///
/// Every candidate gets its rates from a formula or a short simulation. The best of each kind are
/// then simulated longer, and those that may be the first longer still, as far as the
/// [budget](PlanRequest#structfield.budget) allows. Equal requests give equal plans, for any number
/// of threads. `progress` is called with the number of records simulated since its last call.
///
/// The filters that are simulated at the same time take as much memory as the filter of the
/// request and 32 MiB for each thread, or less; so does the exact oracle of each thread.
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
/// let stream = Stream::with_distinct_fraction(45_000, 0.6)?;
/// let goal = Goal::default().max_fpr(0.01).max_fnr(0.01);
/// let plan = plan(&PlanRequest::new(stream, 64 << 10).goal(goal), &|_| ())?;
/// let first = plan.first();
/// assert!(first.predicted.fpr.high <= 0.01 && first.predicted.fnr.high <= 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(request: &PlanRequest, progress: &(dyn Fn(u64) + Sync)) -> Result<Plan, LabError> {
    let mut planner = Planner::sorted_out(request, progress)?;
    planner.refine()?;
    planner.confirm()?;
    Ok(planner.into_plan())
}

/// The same; `None` if no candidate is shown to meet the bounds with room. Where short simulations
/// cannot decide that, those candidates that may meet them are simulated longer.
pub(super) fn plan_with_room(
    request: &PlanRequest,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Option<Plan>, LabError> {
    let mut planner = match Planner::sorted_out(request, progress) {
        Err(LabError::Spec(error)) if error.field == "memory" => return Ok(None),
        planner => planner?,
    };
    if !planner.has_hope() {
        return Ok(None);
    }
    planner.refine()?;
    planner.confirm()?;
    planner.decide()?;
    let plan = planner.into_plan();
    Ok(Some(plan).filter(|plan| plan.first().rank.has_room()))
}

struct Planner<'a> {
    request: &'a PlanRequest,
    progress: &'a (dyn Fn(u64) + Sync),
    /// The fraction of fresh arrivals in the stream of the request.
    fresh_fraction: f64,
    /// Ranked, best first, after each stage.
    candidates: Vec<Candidate>,
}

impl<'a> Planner<'a> {
    fn new(request: &'a PlanRequest, progress: &'a (dyn Fn(u64) + Sync)) -> Result<Self, LabError> {
        let coarse = Simulation::new(request, Stage::Coarse.most_records(), request.seed)?;
        Ok(Self {
            request,
            progress,
            fresh_fraction: coarse.fresh_fraction()?,
            candidates: Vec::new(),
        })
    }

    /// A planner with predictions of all candidates from formulas and short simulations.
    fn sorted_out(
        request: &'a PlanRequest,
        progress: &'a (dyn Fn(u64) + Sync),
    ) -> Result<Self, LabError> {
        request.goal.check()?;
        let most = u64::MAX / 8;
        if request.memory > most {
            let allowed = format!("at most {}", format_bytes(most));
            return Err(SpecError::new("memory", format_bytes(request.memory), allowed).into());
        }
        let mut planner = Self::new(request, progress)?;
        planner.coarse()?;
        planner.track()?;
        Ok(planner)
    }

    fn into_plan(self) -> Plan {
        Plan {
            candidates: self.candidates,
        }
    }

    /// Whether a candidate meets the bounds with room, if its rates are as predicted.
    fn has_hope(&self) -> bool {
        let mut hopes = self.candidates.iter().map(|candidate| candidate.hope);
        hopes.any(|hope| hope.has_room())
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
        let lines = spec.facts().cache_lines;
        let rank = goal.rank(predicted, lines, self.fresh_fraction);
        Candidate {
            spec,
            predicted: *predicted,
            basis,
            lines,
            why: goal.why(predicted, &rank),
            rank,
            hope: goal.rank(&predicted.hoped(), lines, self.fresh_fraction),
        }
    }

    /// Simulates filters, and skips those that cannot be built.
    fn simulate(&self, specs: &[FilterSpec], stage: Stage) -> Result<Vec<Candidate>, LabError> {
        if specs.is_empty() {
            return Ok(Vec::new());
        }
        let most = budget::records(self.request, stage, specs);
        let seed = match stage {
            Stage::Coarse | Stage::Track => self.request.seed,
            // A new seed: candidates were selected partly for their luck on the previous draws.
            Stage::Refine | Stage::Confirm | Stage::Decide => {
                self.request.seed.wrapping_add(stage.most_records())
            }
        };
        let simulation = Simulation::new(self.request, most, seed)?;
        let simulation = simulation.repeated(stage.repeated_records().min(most));
        let records = simulation.records();
        let predictions = simulation.predict(specs, self.progress)?;
        let candidate = |(spec, predicted): (&FilterSpec, Option<Prediction>)| {
            let predicted = predicted?;
            let shown = predicted.is_shown();
            Some(self.candidate(*spec, &predicted, Basis::Simulation { records, shown }))
        };
        let pairs = specs.iter().zip(predictions);
        Ok(pairs.filter_map(candidate).collect())
    }

    fn rank(&mut self) {
        // The sort is stable: equal ranks keep the order of the grid.
        self.candidates
            .sort_by(|one, two| one.rank.compare(&two.rank));
    }

    /// Predicts every candidate of the grid.
    fn coarse(&mut self) -> Result<(), LabError> {
        let mut to_simulate = Vec::new();
        for spec in grid(self.request)? {
            match self.formula(&spec) {
                Some(predicted) => {
                    let candidate = self.candidate(spec, &predicted, Basis::Formula);
                    self.candidates.push(candidate);
                }
                None => to_simulate.push(spec),
            }
        }
        let simulated = self.simulate(&to_simulate, Stage::Coarse)?;
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
        for candidate in self.simulate(&to_simulate, Stage::Track)? {
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

    /// Simulates the candidates that may be the first, and the best of each kind, longer.
    fn refine(&mut self) -> Result<(), LabError> {
        let mut families = Vec::new();
        let mut to_simulate = Vec::new();
        let mut add = |candidate: &Candidate| {
            if is_simulated(candidate) && !to_simulate.contains(&candidate.spec) {
                to_simulate.push(candidate.spec);
            }
        };
        for candidate in &self.candidates {
            let family = family(&candidate.spec);
            if !families.contains(&family) {
                families.push(family);
                add(candidate);
            }
        }
        self.candidates
            .iter()
            .take(REFINED_FIRST)
            .for_each(&mut add);
        let mut hopeful: Vec<&Candidate> = self.candidates.iter().collect();
        hopeful.sort_by(|one, two| one.hope.compare(&two.hope));
        hopeful.into_iter().take(REFINED_FIRST).for_each(add);
        self.replace(&to_simulate, Stage::Refine)
    }

    /// Simulates those candidates longer that would be the first if their rates were known to be
    /// as predicted, the first one included.
    fn confirm(&mut self) -> Result<(), LabError> {
        let mut confirmed = Vec::new();
        for _ in 0..MAX_CONFIRMATIONS {
            let is_open = |candidate: &&Candidate| {
                is_simulated(candidate) && !confirmed.contains(&candidate.spec)
            };
            let open = self.candidates.iter().filter(is_open);
            let Some(best) = open.min_by(|one, two| one.hope.compare(&two.hope)) else {
                break;
            };
            let (spec, first) = (best.spec, &self.candidates[0]);
            if spec != first.spec && !best.hope.compare(&first.rank).is_lt() {
                break;
            }
            confirmed.push(spec);
            self.replace(&[spec], Stage::Confirm)?;
        }
        Ok(())
    }

    /// Simulates those candidates longer that meet the bounds with room if their rates are as
    /// predicted, until one of them is shown to meet them.
    fn decide(&mut self) -> Result<(), LabError> {
        let mut decided = Vec::new();
        while decided.len() < MAX_DECISIONS as usize && !self.candidates[0].rank.has_room() {
            let is_open = |candidate: &&Candidate| {
                let is_new = !decided.contains(&candidate.spec);
                is_simulated(candidate) && candidate.hope.has_room() && is_new
            };
            let open = self.candidates.iter().filter(is_open);
            let nearest = |one: &&Candidate, two: &&Candidate| one.rank.compare(&two.rank);
            let Some(spec) = open.min_by(nearest).map(|candidate| candidate.spec) else {
                break;
            };
            decided.push(spec);
            self.replace(&[spec], Stage::Decide)?;
        }
        Ok(())
    }

    /// Simulates candidates again, replaces their predictions and ranks all.
    fn replace(&mut self, specs: &[FilterSpec], stage: Stage) -> Result<(), LabError> {
        for candidate in self.simulate(specs, stage)? {
            let mut others = self.candidates.iter_mut();
            if let Some(old) = others.find(|other| other.spec == candidate.spec) {
                *old = candidate;
            }
        }
        self.rank();
        Ok(())
    }
}

fn is_simulated(candidate: &Candidate) -> bool {
    matches!(candidate.basis, Basis::Simulation { .. })
}
