//! Plans for windows: every filter that is shown to meet the bounds meets them on streams that the
//! planner did not use, beside the exact oracle.

use std::num::NonZeroUsize;
use std::time::Duration;

use echoless_lab::evaluate::{EvalOptions, evaluate};
use echoless_lab::oracle::Score;
use echoless_lab::plan::{Candidate, Goal, Interval, PlanRequest, plan};
use echoless_lab::stream::Stream;

/// The bounds of FPR and FNR.
type Bounds = [Option<f64>; 2];

/// Memory, window, universe and bounds.
const SETTINGS: [(u64, u64, u64, Bounds); 10] = [
    (4 << 10, 500, 40_000, [Some(0.001), None]),
    (4 << 10, 500, 2_000, [Some(0.01), None]),
    (16 << 10, 3_000, 20_000, [Some(0.05), None]),
    (16 << 10, 3_000, 20_000, [Some(0.02), Some(0.02)]),
    (8 << 10, 1_000, 4_000, [Some(0.1), None]),
    (32 << 10, 2_000, 100_000, [None, Some(0.001)]),
    (2 << 10, 4_000, 30_000, [Some(0.3), Some(0.3)]),
    (64 << 10, 10_000, 50_000, [Some(0.01), Some(0.01)]),
    (8 << 10, 10, 1_000, [Some(0.01), None]),
    (4 << 10, 20_000, 60_000, [Some(0.2), None]),
];

/// The counts of the second half of a long stream, when every filter is as full as it becomes.
fn measured(candidates: &[&Candidate], window: u64, universe: u64) -> Vec<Score> {
    let records = (24 * window).max(200_000);
    let stream = Stream::uniform(records, universe).unwrap();
    let specs: Vec<_> = candidates.iter().map(|it| it.spec.seed(4711)).collect();
    let options = EvalOptions::default().seed(99).window(window).points(2);
    let evaluations = evaluate(&specs, &stream, &options, &|_| ()).unwrap();
    evaluations.iter().map(|it| it.points[1].recent).collect()
}

#[test]
fn every_recommendation_meets_its_goal_on_fresh_streams() {
    let mut recommended = 0;
    let mut checked = 0;
    for (memory, window, universe, [max_fpr, max_fnr]) in SETTINGS {
        let goal = Goal::default().max_fpr(max_fpr).max_fnr(max_fnr);
        let request = PlanRequest::new(Stream::uniform(100_000, universe).unwrap(), memory)
            .window(window)
            .goal(goal)
            .budget(Duration::from_millis(700))
            .threads(NonZeroUsize::new(2).unwrap())
            .seed(11);
        let plan = plan(&request, &|_| ()).unwrap();
        let setting = format!("{memory} B, window {window}, universe {universe}");
        assert!(
            plan.candidates.iter().all(|it| it.spec.facts().settles),
            "{setting}"
        );
        let shown: Vec<&Candidate> = plan
            .candidates
            .iter()
            .filter(|candidate| candidate.rank.meets_bounds())
            .collect();
        recommended += usize::from(plan.recommended().is_some());
        checked += shown.len();
        for (index, (candidate, score)) in shown
            .iter()
            .zip(measured(&shown, window, universe))
            .enumerate()
        {
            for (name, rate, interval, bound) in [
                (
                    "FPR",
                    score.fpr(),
                    Interval::counted(score.false_positives, score.distinct),
                    max_fpr,
                ),
                (
                    "FNR",
                    score.fnr(),
                    Interval::counted(score.false_negatives, score.duplicates),
                    max_fnr,
                ),
            ] {
                let Some(bound) = bound else { continue };
                let first = index == 0;
                // Of the others, one that uses a bound up may exceed it by chance.
                assert!(
                    interval.low <= bound && (!first || rate <= bound),
                    "{setting}: {} has {name} {rate} above {bound} ({})",
                    candidate.spec,
                    candidate.why
                );
            }
        }
    }
    assert!(recommended >= 8, "{recommended} of {}", SETTINGS.len());
    assert!(checked >= 50, "{checked} candidates");
}
