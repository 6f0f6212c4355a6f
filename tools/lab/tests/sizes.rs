//! Plans without a memory find what a search through all sizes finds.

use std::num::NonZeroUsize;
use std::time::Duration;

use echoless_lab::plan::{Goal, PlanRequest, plan, plan_smallest};
use echoless_lab::stream::Stream;

fn bounds(max_fpr: f64, max_fnr: f64) -> Goal {
    Goal::default().max_fpr(max_fpr).max_fnr(max_fnr)
}

/// The least memory of a search through all sizes, from half of the `found` one on.
fn exhaustive(request: &PlanRequest, found: u64) -> Option<u64> {
    let part = request.clone().budget(request.budget / 5);
    let eighths = (found.ilog2() - 2..=found.ilog2())
        .flat_map(|exponent| (8..16).map(move |eighths| (1_u64 << exponent) / 8 * eighths));
    let mut sizes = eighths.filter(|size| *size >= found / 2 && *size < found);
    sizes.find(|size| {
        let plan = plan(&part.clone().memory(*size), &|_| ());
        plan.is_ok_and(|plan| plan.first().rank.has_room())
    })
}

#[test]
fn the_least_memory_is_that_of_a_search_through_all_sizes() {
    // Records, distinct fraction, window, bounds.
    for (records, distinct, window, goal) in [
        (1_000_000, 0.6, Some(10_000), bounds(2e-3, 2e-3)),
        (50_000, 0.6, None, bounds(0.02, 0.02)),
        (50_000, 0.9, Some(1_000), bounds(0.01, 0.05)),
    ] {
        let stream = Stream::with_distinct_fraction(records, distinct).unwrap();
        let request = PlanRequest::new(stream, 0)
            .window(window)
            .goal(goal)
            .budget(Duration::from_secs(if window == Some(10_000) {
                10
            } else {
                3
            }))
            .threads(NonZeroUsize::new(2).unwrap());
        let (memory, plan) = plan_smallest(&request, &|_| ()).unwrap();
        assert!(plan.first().rank.has_room());
        assert!(memory <= 64 << 10, "{records} {window:?}: {memory}");
        // The search is the same for all streams; one takes the least time.
        if window.is_some() {
            continue;
        }
        // A smaller size may be found where a plan of it has more of the sizes between.
        let less = exhaustive(&request, memory);
        assert!(
            less.is_none_or(|less| less > memory * 3 / 4),
            "{records} {window:?}: {memory}, {less:?} is enough"
        );
    }
}

/// Where short simulations leave a size undecided, longer ones decide: this stream was given the
/// next larger size.
#[test]
fn a_size_that_is_enough_is_shown_to_be() {
    let stream = Stream::uniform(500_000, 443_946).unwrap();
    let request = PlanRequest::new(stream, 0)
        .window(10_000)
        .goal(bounds(1e-3, 1e-3))
        .threads(NonZeroUsize::new(2).unwrap());
    let (memory, plan) = plan_smallest(&request, &|_| ()).unwrap();
    assert!(plan.first().rank.has_room());
    assert!(memory <= 32 << 10, "{memory}");
}
