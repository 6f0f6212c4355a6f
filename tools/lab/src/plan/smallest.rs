//! How much memory is needed: the least in which some filter meets both bounds.

use echoless::SpecError;

use super::candidate::Plan;
use super::planner::plan;
use super::request::PlanRequest;
use crate::error::LabError;

/// The most sizes tried, each a half or a third larger than the one before: the last is about 2^10 times the first.
const SIZES: usize = 20;

/// A key needs no more than the 64 bits that its hash has.
const MOST_BITS: f64 = 64.0;

/// The smallest of the memories 2^i and 3 2^i bytes in which the first candidate meets both bounds with room, and the plan for it; the memory of the
/// request does not count.
///
/// The search begins at the information limit: two-sided errors over D keys need D KL(1 - FNR || FPR) bits, whatever the filter.
///
/// # Errors
/// [`LabError`] as for [`plan`], and if one of the bounds is missing or about 1000 times the limit is not enough.
///
/// # Examples
/// ```
/// use std::num::NonZeroUsize;
/// use echoless_lab::plan::{Goal, PlanRequest, plan_smallest};
/// use echoless_lab::stream::Stream;
/// let request = PlanRequest {
///     memory: 0,
///     records: 20_000,
///     stream: Stream::with_distinct_share(20_000, 0.5)?,
///     window: None,
///     goal: Goal { max_fpr: Some(0.02), max_fnr: Some(0.02), costs: None },
///     seed: 1,
///     threads: NonZeroUsize::MIN,
/// };
/// let (memory, plan) = plan_smallest(&request, &|_| ())?;
/// // 5.4 bits for each of 10,000 keys is the limit; no filter is that good.
/// assert!((6_800..14_000).contains(&memory));
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
    let sizes = (limit.log2().floor() as u32..)
        .flat_map(|exponent| [2_u64 << (exponent - 1), 3_u64 << (exponent - 1)])
        .filter(|memory| *memory as f64 >= limit);
    for memory in sizes.take(SIZES) {
        let request = PlanRequest {
            memory,
            ..request.clone()
        };
        let plan = plan(&request, progress)?;
        if plan.first().rank.has_room() {
            return Ok((memory, plan));
        }
    }
    let asked = format!("FPR {max_fpr} and FNR {max_fnr}");
    let allowed = "bounds that some filter can meet on this stream";
    Err(SpecError::new("bounds", asked, allowed).into())
}

/// The distinct keys that have to be told apart: those of the stream, or of a window of it.
fn keys(request: &PlanRequest) -> f64 {
    let stream = &request.stream;
    let distinct = stream.expected_distinct() * request.records as f64 / stream.records() as f64;
    match request.window {
        Some(window) => distinct.min(window as f64),
        None => distinct,
    }
}

/// KL(p || q) of two coins, in bits; 0 if p is not above q, for then coin flips meet the bounds.
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
    use std::num::NonZeroUsize;

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
        let request = PlanRequest {
            memory: 0,
            records: 1000,
            stream: Stream::with_distinct_share(1000, 0.5).unwrap(),
            window: None,
            goal: Goal {
                max_fpr: Some(0.1),
                ..Goal::default()
            },
            seed: 0,
            threads: NonZeroUsize::MIN,
        };
        let error = plan_smallest(&request, &|_| ()).unwrap_err();
        assert!(error.to_string().starts_with("missing memory: "), "{error}");
    }
}
