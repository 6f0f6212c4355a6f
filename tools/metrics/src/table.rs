//! The table of metrics, and the text that is made of it.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text::encode};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use serde_json::Value;

use crate::Fields;

/// What the values of a metric do from one scrape to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// They only rise, in whole numbers, while the run goes on.
    Counter,
    /// They may be any number.
    Gauge,
}

/// A field of the statistics that is a metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name of the field, or `LIST.FIELD`: that field of each object in a list, whose `name` is
    /// the label `interface`.
    pub field: &'static str,
    /// What its values do.
    pub kind: Kind,
    /// What it says, in a few words.
    pub help: &'static str,
}

impl Metric {
    /// The name of the metric, which never changes.
    ///
    /// # Examples
    /// ```
    /// use echoless_metrics::METRICS;
    /// assert_eq!(METRICS[0].name(), "echoless_records_total");
    /// ```
    #[must_use]
    pub fn name(&self) -> String {
        let end = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge => "",
        };
        format!("{PREFIX}_{}{end}", self.base())
    }

    /// The name without prefix and end.
    fn base(&self) -> String {
        self.field.replace('.', "_")
    }

    fn encode(&self, fields: &Fields, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (list, field) = match self.field.split_once('.') {
            Some((list, field)) => (fields.get(list).and_then(Value::as_array), field),
            None => (None, self.field),
        };
        let single = fields.get(field).filter(|_| !self.field.contains('.'));
        if list.is_none() && single.is_none_or(Value::is_null) {
            return Ok(());
        }
        let kind = match self.kind {
            Kind::Counter => ConstCounter::<u64>::TYPE,
            Kind::Gauge => ConstGauge::<f64>::TYPE,
        };
        let base = self.base();
        let mut encoder = encoder.encode_descriptor(&base, self.help, None, kind)?;
        let known = |object: &&Value| !object[field].is_null();
        for object in list.into_iter().flatten().filter(known) {
            let name = object["name"].as_str().unwrap_or_default();
            let labels = [("interface", name)];
            encode_value(kind, &object[field], encoder.encode_family(&labels)?)?;
        }
        single.map_or(Ok(()), |value| encode_value(kind, value, encoder))
    }
}

fn encode_value(kind: MetricType, value: &Value, encoder: MetricEncoder<'_>) -> fmt::Result {
    match kind {
        MetricType::Counter => ConstCounter::new(value.as_u64().unwrap_or(0)).encode(encoder),
        _ => ConstGauge::new(value.as_f64().unwrap_or(f64::NAN)).encode(encoder),
    }
}

/// What every metric begins with.
const PREFIX: &str = "echoless";

const fn counter(field: &'static str, help: &'static str) -> Metric {
    let kind = Kind::Counter;
    Metric { field, kind, help }
}

const fn gauge(field: &'static str, help: &'static str) -> Metric {
    let kind = Kind::Gauge;
    Metric { field, kind, help }
}

/// All metrics. A run has those whose fields it has.
pub const METRICS: &[Metric] = &[
    counter("records", "Records, or packets, that were read"),
    counter("fresh", "Records that passed as the first of their keys"),
    counter("duplicates", "Records with a key that came before"),
    counter("unkeyed", "Records that passed unjudged"),
    counter("rejected", "Faulty records that were set aside"),
    counter("late", "Records that are older than the window"),
    counter("ahead", "Records whose time is too far ahead of the clock"),
    counter("partial_inputs", "Inputs that were left before their end"),
    counter("bytes_in", "Bytes that were read, as they are in the files"),
    counter("bytes_out", "Bytes that were written"),
    gauge("seconds", "Seconds since the run began"),
    gauge("clock_to", "Clock of the stream, in seconds since 1970"),
    counter("evictions", "Keys that were forgotten too early"),
    gauge(
        "expected_false_duplicates_high",
        "Bound of the expected number of fresh records that are taken for duplicates",
    ),
    gauge(
        "estimated_false_duplicates",
        "Estimated number of fresh records that were taken for duplicates",
    ),
    gauge("estimated_false_duplicates_low", "Its lower bound"),
    gauge("estimated_false_duplicates_high", "Its upper bound"),
    gauge(
        "estimated_missed_duplicates",
        "Estimated number of duplicates that passed as fresh",
    ),
    gauge("estimated_missed_duplicates_low", "Its lower bound"),
    gauge("estimated_missed_duplicates_high", "Its upper bound"),
    gauge(
        "estimated_fnr",
        "Estimated fraction of the duplicates that passed as fresh",
    ),
    gauge("estimated_fnr_low", "Its lower bound"),
    gauge("estimated_fnr_high", "Its upper bound"),
    gauge(
        "expected_fpr",
        "Expected fraction of the fresh records that are taken for duplicates",
    ),
    gauge("fill", "Occupied fraction of the filter"),
    gauge("memory_bytes", "Memory of the filter"),
    gauge(
        "busiest_window_keys",
        "Most distinct keys in a window so far",
    ),
    counter(
        "dropped",
        "Packets that the kernel dropped, because a buffer was full",
    ),
    counter("sent", "Packets that were sent"),
    counter("unsent", "Packets that could not be sent"),
    counter("captured.packets", "Packets of an interface"),
    counter(
        "captured.dropped",
        "Packets of an interface that the kernel dropped",
    ),
    counter(
        "captured.freezes",
        "How often the buffer of an interface became full",
    ),
    counter(
        "captured.reopened",
        "How often an interface was captured again after it was removed",
    ),
    counter("transactions", "Transactions of Kafka that were committed"),
    counter("again", "Records that were read again for the filter alone"),
    counter("copied", "Records that passed without a filter"),
    counter(
        "shared_keys",
        "Records of a sample whose key is in another partition, too",
    ),
    gauge("partitions", "Partitions of the topic that the member has"),
    gauge(
        "lag",
        "Records from where the group is to the ends of its partitions",
    ),
];

/// The metrics of a run with these fields, as OpenMetrics text.
#[must_use]
pub fn text(fields: &Fields) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Collected(fields.clone())));
    let mut text = String::new();
    encode(&mut text, &registry)
        .unwrap_or_else(|error| unreachable!("a string takes all text: {error}"));
    text
}

#[derive(Debug)]
struct Collected(Fields);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        METRICS
            .iter()
            .try_for_each(|metric| metric.encode(&self.0, &mut encoder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_field_has_its_line() {
        let fields = serde_json::json!({
            "records": u64::MAX, "fill": 0.5, "memory_bytes": 65536, "lag": null,
            "captured": [
                {"name": "eth0", "packets": 7, "dropped": 1, "freezes": 0, "reopened": 0},
                {"name": "a\"b", "packets": 8, "dropped": 2, "freezes": 3},
            ],
        });
        let expected = "\
# HELP echoless_records Records, or packets, that were read
# TYPE echoless_records counter
echoless_records_total 18446744073709551615
# HELP echoless_fill Occupied fraction of the filter
# TYPE echoless_fill gauge
echoless_fill 0.5
# HELP echoless_memory_bytes Memory of the filter
# TYPE echoless_memory_bytes gauge
echoless_memory_bytes 65536.0
# HELP echoless_captured_packets Packets of an interface
# TYPE echoless_captured_packets counter
echoless_captured_packets_total{interface=\"eth0\"} 7
echoless_captured_packets_total{interface=\"a\\\"b\"} 8
# HELP echoless_captured_dropped Packets of an interface that the kernel dropped
# TYPE echoless_captured_dropped counter
echoless_captured_dropped_total{interface=\"eth0\"} 1
echoless_captured_dropped_total{interface=\"a\\\"b\"} 2
# HELP echoless_captured_freezes How often the buffer of an interface became full
# TYPE echoless_captured_freezes counter
echoless_captured_freezes_total{interface=\"eth0\"} 0
echoless_captured_freezes_total{interface=\"a\\\"b\"} 3
# HELP echoless_captured_reopened How often an interface was captured again after it was removed
# TYPE echoless_captured_reopened counter
echoless_captured_reopened_total{interface=\"eth0\"} 0
# EOF
";
        assert_eq!(text(fields.as_object().unwrap()), expected);
    }

    /// All that has the form of a metric's name.
    fn names(page: &str) -> Vec<&str> {
        let is_name = |byte: char| byte.is_ascii_lowercase() || byte == '_';
        page.split(|byte| !is_name(byte))
            .filter(|word| word.starts_with("echoless_") && !word.ends_with('_'))
            .collect()
    }

    #[test]
    fn pages_name_the_metrics_that_there_are() {
        let page = include_str!("../README.md");
        let all: Vec<String> = METRICS.iter().map(Metric::name).collect();
        for (metric, name) in METRICS.iter().zip(&all) {
            let (field, kind) = (metric.field, format!("{:?}", metric.kind).to_lowercase());
            let row = format!("| `{name}` | {kind} | `{field}` | {} |", metric.help);
            assert!(
                page.lines().any(|line| line == row),
                "README.md lacks {row}"
            );
        }
        for page in [page, include_str!("../dashboard.json")] {
            let unknown: Vec<_> = names(page)
                .into_iter()
                .filter(|name| !all.iter().any(|known| known == name))
                .collect();
            assert!(unknown.is_empty(), "{unknown:?}");
        }
        let board: Value = serde_json::from_str(include_str!("../dashboard.json")).unwrap();
        assert!(
            board["panels"]
                .as_array()
                .is_some_and(|panels| panels.len() >= 8)
        );
    }
}
