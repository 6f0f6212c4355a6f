//! The smallest memory in which some filter meets both bounds.

use echoless::SpecError;

use super::candidate::Plan;
use super::planner::plan_with_room;
use super::request::PlanRequest;
use crate::error::LabError;

/// The most sizes to try. Sizes grow by a half and a third in turn, so the last is about 2^10 times
/// the first.
const SIZES: usize = 20;

/// Each plan of the search gets this part of the budget.
const TRIALS: u32 = 5;

/// The most bits that a key can need: a key hash has no more.
const MOST_BITS: f64 = 64.0;

/// Returns the smallest memory in which the best candidate [meets both bounds with
/// room](super::Rank::has_room), among 2^i to 2^(i+1) bytes in eighths of 2^i, and its plan. The
/// memory of the request is ignored.
///
/// The search begins at the information limit: any filter with both errors over D keys needs at
/// least D KL(1 - FNR || FPR) bits. It tries 2^i and 3 2^(i-1) bytes upwards, then the eighths
/// below the first that meets the bounds. It never concludes from one size on another: a simulation
/// of a larger memory can show less. Each size gets a fifth of the budget of the request; one in
/// which no candidate comes near the bounds takes half of that, and one that short simulations
/// leave undecided twice as much.
///
/// # Errors
/// [`LabError`] as for [`plan`](super::plan()); also if a bound is missing, or if about 1000 times
/// the limit is not enough.
///
/// # Examples
/// ```
/// use echoless_lab::plan::{Goal, PlanRequest, plan_smallest};
/// use echoless_lab::stream::Stream;
/// let stream = Stream::with_distinct_fraction(20_000, 0.5)?;
/// let goal = Goal::default().max_fpr(0.02).max_fnr(0.02);
/// let (memory, plan) = plan_smallest(&PlanRequest::new(stream, 0).goal(goal), &|_| ())?;
/// // The limit is 5.4 bits for each of 10,000 keys; no filter reaches it.
/// assert!((6_800..12_000).contains(&memory));
/// assert!(plan.first().rank.has_room());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan_smallest(
    request: &PlanRequest,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(u64, Plan), LabError> {
    request.goal.check()?;
    let (Some(max_fpr), Some(max_fnr)) = (request.goal.max_fpr, request.goal.max_fnr) else {
        let allowed = "a size, or both max-fpr and max-fnr, which determine it";
        return Err(SpecError::missing("memory", allowed).into());
    };
    let bits = divergence_bits(1.0 - max_fnr, max_fpr).clamp(0.0, MOST_BITS);
    let limit = (bits * keys(request) / 8.0).max(64.0);
    let sizes = (limit.log2().floor() as u32..62)
        .flat_map(|exponent| [2_u64 << (exponent - 1), 3_u64 << (exponent - 1)])
        .filter(|memory| *memory as f64 >= limit);
    let part = request.clone().budget(request.budget / TRIALS);
    let try_size = |memory: u64| -> Result<Option<(u64, Plan)>, LabError> {
        let plan = plan_with_room(&part.clone().memory(memory), progress)?;
        Ok(plan.map(|plan| (memory, plan)))
    };
    let mut too_small = 0;
    for memory in sizes.take(SIZES) {
        let Some(found) = try_size(memory)? else {
            too_small = memory;
            continue;
        };
        // The power of two from which the sizes up to this one are counted in eighths.
        let eighth = (1 << (memory - 1).ilog2()) / 8;
        let between = (1..8).map(|eighths| eighth * (8 + eighths));
        for memory in between.filter(|size| (too_small + 1..memory).contains(size)) {
            if let Some(found) = try_size(memory)? {
                return Ok(found);
            }
        }
        return Ok(found);
    }
    let asked = format!("FPR {max_fpr} and FNR {max_fnr}");
    let allowed = "bounds that some filter is shown to meet on this stream, in the budget";
    Err(SpecError::new("bounds", asked, allowed).into())
}

/// The number of distinct keys that the filter must distinguish: those of the stream, or of a
/// window.
fn keys(request: &PlanRequest) -> f64 {
    let stream = &request.stream;
    let distinct = stream.expected_distinct() * request.records as f64 / stream.records() as f64;
    match request.window {
        Some(window) => distinct.min(window as f64),
        None => distinct,
    }
}

/// The divergence KL(p || q) of two biased coins, in bits. It is 0 if p is not above q, because
/// coin flips then meet the bounds.
fn divergence_bits(p: f64, q: f64) -> f64 {
    let term = |p: f64, q: f64| if p == 0.0 { 0.0 } else { p * (p / q).log2() };
    if p > q {
        term(p, q) + term(1.0 - p, 1.0 - q)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Goal;
    use crate::stream::Stream;

    #[test]
    fn the_limit_without_misses_is_that_of_exact_filters() {
        assert!((divergence_bits(1.0, 1.0 / 1024.0) - 10.0).abs() < 1e-12);
        assert_eq!(divergence_bits(0.5, 0.5), 0.0);
        assert_eq!(divergence_bits(0.2, 0.5), 0.0);
        assert_eq!(divergence_bits(1.0, 0.0), f64::INFINITY);
        assert!(divergence_bits(0.9, 0.01) < divergence_bits(0.99, 0.01));
    }

    #[test]
    fn both_bounds_are_needed() {
        let stream = Stream::with_distinct_fraction(1000, 0.5).unwrap();
        let request = PlanRequest::new(stream, 0).goal(Goal::default().max_fpr(0.1));
        let error = plan_smallest(&request, &|_| ()).unwrap_err();
        assert!(error.to_string().starts_with("missing memory: "), "{error}");
    }
}
