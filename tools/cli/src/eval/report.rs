//! The measurements as text, CSV and JSON.

use std::fmt::Write as _;

use echoless_lab::evaluate::{AgeBin, EvalOptions, Evaluation};
use echoless_lab::oracle::Score;
use echoless_lab::stream::Stream;
use serde_json::{Value, json};

use crate::lab::output::{LabReport, aligned, percent, quoted};
use crate::number::grouped;

/// The results of a run.
pub(crate) struct EvalReport<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) options: &'a EvalOptions,
    pub(crate) evaluations: &'a [Evaluation],
}

const CSV_HEADER: &str = "spec,part,from,to,distinct,false_positives,duplicates,false_negatives,fpr,fnr,fill,bits_per_key,ns_per_key\n";

impl EvalReport<'_> {
    /// A row for each age that occurs, a column for each filter.
    fn by_age(&self) -> String {
        let bins = |evaluation: &'_ Evaluation| evaluation.ages.clone();
        let mut ages: Vec<AgeBin> = self.evaluations.iter().flat_map(bins).collect();
        ages.sort_by_key(|bin| bin.from);
        ages.dedup_by_key(|bin| bin.from);
        let numbers = (1..=self.evaluations.len()).map(|number| format!("({number})"));
        let mut rows = vec![
            ["age in records".to_owned(), "duplicates".to_owned()]
                .into_iter()
                .chain(numbers)
                .collect::<Vec<_>>(),
        ];
        for age in ages {
            let range = format!("{} to {}", grouped(age.from), grouped(age.below - 1));
            let mut row = vec![range, grouped(age.duplicates)];
            for evaluation in self.evaluations {
                let bin = evaluation.ages.iter().find(|bin| bin.from == age.from);
                row.push(bin.map_or(String::new(), |bin| percent(bin.fnr())));
            }
            rows.push(row);
        }
        aligned(&rows)
    }
}

impl LabReport for EvalReport<'_> {
    fn text(&self) -> String {
        let mut rows = vec![
            ["filter", "FPR %", "FNR %", "fill %", "bits/key", "ns/key"]
                .map(String::from)
                .to_vec(),
        ];
        for (evaluation, number) in self.evaluations.iter().zip(1..) {
            rows.push(vec![
                format!("({number}) {}", evaluation.spec),
                percent(evaluation.score.fpr()),
                percent(evaluation.score.fnr()),
                evaluation.fill.map_or("-".into(), percent),
                format!("{:.2}", evaluation.bits_per_key()),
                format!("{:.1}", evaluation.nanoseconds_per_key),
            ]);
        }
        let score = self.evaluations[0].score;
        let mut text = format!(
            "{}\n{} records: {} distinct, {} duplicates",
            self.stream,
            grouped(score.arrivals()),
            grouped(score.distinct),
            grouped(score.duplicates)
        );
        if let Some(window) = self.options.window {
            let _ = write!(text, " within {} records", grouped(window));
        }
        format!(
            "{text}\n\n{}\nFNR % by age\n{}",
            aligned(&rows),
            self.by_age()
        )
    }

    fn csv(&self) -> String {
        let mut text = String::from(CSV_HEADER);
        for evaluation in self.evaluations {
            let spec = quoted(&evaluation.spec);
            let mut row = |part, from: u64, to: u64, score: &Score, rest: &str| {
                let _ = writeln!(
                    text,
                    "{spec},{part},{from},{to},{},{},{},{},{},{},{rest}",
                    score.distinct,
                    score.false_positives,
                    score.duplicates,
                    score.false_negatives,
                    score.fpr(),
                    score.fnr(),
                );
            };
            let fill = |fill: Option<f64>| fill.map_or(String::new(), |fill| fill.to_string());
            let totals = format!(
                "{},{},{}",
                fill(evaluation.fill),
                evaluation.bits_per_key(),
                evaluation.nanoseconds_per_key
            );
            let score = &evaluation.score;
            row("total", 0, score.arrivals(), score, &totals);
            let mut from = 0;
            for point in &evaluation.points {
                let rest = format!("{},,", fill(point.fill));
                row("stream", from, point.records, &point.recent, &rest);
                from = point.records;
            }
            for bin in &evaluation.ages {
                let score = Score {
                    duplicates: bin.duplicates,
                    false_negatives: bin.missed,
                    ..Score::default()
                };
                row("age", bin.from, bin.below, &score, ",,");
            }
        }
        text
    }

    fn json(&self) -> Value {
        let evaluations = self.evaluations.iter().map(|evaluation| {
            let mut value = json!(evaluation);
            value["name"] = json!(evaluation.spec.to_string());
            value["fpr"] = json!(evaluation.score.fpr());
            value["fnr"] = json!(evaluation.score.fnr());
            value["bits_per_key"] = json!(evaluation.bits_per_key());
            value
        });
        json!({
            "stream": self.stream.to_string(),
            "seed": self.options.seed,
            "window": self.options.window,
            "records": self.stream.records(),
            "filters": evaluations.collect::<Vec<_>>(),
        })
    }
}
