//! What a filter that is divided over the nodes of a cluster would need: a model of memory,
//! records, network and checkpoints, and a simulation of how unevenly streams load the nodes.
//!
//! ```text
//!   key hash -> key group (a contiguous range of lines) -> node
//! ```
//!
//! The geometry of the filter is computed as everywhere else; the loads are counted on generated
//! streams. What a node can do is not measured but an option, so a row says which of its resources
//! would be used up first, and not how fast a cluster is.

use clap::Args;
use echoless::{FingerprintGeometry, KeyHasher, Partitioning, SlotWidth};
use echoless_lab::stream::{Stream, parse_count};

use crate::failure::Failure;
use crate::table::{Cell, Outputs, Table};

/// The distinct keys in the window.
const KEYS: [u64; 4] = [
    1_000_000_000,
    10_000_000_000,
    100_000_000_000,
    1_000_000_000_000,
];

/// The numbers of nodes.
const NODES: [usize; 3] = [1, 10, 100];

/// The bytes of a fresh key in a log of changes.
const LOG_BYTES_PER_KEY: f64 = 8.0;

/// The options of `cluster`.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Hours for which a key is remembered.
    #[arg(long, default_value_t = 24.0)]
    hours: f64,
    /// Fraction of the records that are duplicates.
    #[arg(long, default_value_t = 0.1)]
    duplicates: f64,
    /// Fraction of the records that have the most frequent key.
    #[arg(long, default_value_t = 0.01)]
    hot: f64,
    /// Highest false positive rate.
    #[arg(long, default_value_t = 1e-8)]
    fpr: f64,
    /// Fraction of the duplicates of the greatest age that may be missed.
    #[arg(long, default_value_t = 1e-3)]
    miss: f64,
    /// Bytes of a record.
    #[arg(long, default_value_t = 200.0)]
    record_bytes: f64,
    /// Contiguous ranges of lines, which are distributed over the nodes.
    #[arg(long, default_value_t = 1280)]
    key_groups: usize,
    /// Memory of a node for the filter, in GiB.
    #[arg(long, default_value_t = 64.0)]
    node_gib: f64,
    /// Records a second that a node can read, judge and write: an assumption.
    #[arg(long, default_value_t = 4e6)]
    node_records: f64,
    /// Network of a node in one direction, in Gbit/s.
    #[arg(long, default_value_t = 10.0)]
    node_gbit: f64,
    /// Bytes a second that a node can write to the store of checkpoints.
    #[arg(long, default_value_t = 5e8)]
    node_store: f64,
    /// Seconds from checkpoint to checkpoint.
    #[arg(long, default_value_t = 60.0)]
    checkpoint_seconds: f64,
    /// Records of each simulated stream.
    #[arg(long, default_value = "10M")]
    records: String,
    #[command(flatten)]
    outputs: Outputs,
}

/// What the busiest node of a cluster needs.
#[derive(Debug, Clone, PartialEq)]
struct Needs {
    gib: f64,
    fpr: f64,
    records: f64,
    gbit: f64,
    /// Bytes a second of checkpoints that have all lines.
    full: f64,
    /// Bytes a second of checkpoints that have the keys since the last one.
    log: f64,
    /// The resource that is used most, and which part of it.
    first: &'static str,
    used: f64,
}

/// Computes and prints the table.
///
/// # Errors
/// If an option is out of range, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    check(arguments)?;
    let mut table = Table::new(&[
        "part",
        "stream",
        "keys",
        "nodes",
        "gib_per_node",
        "fpr",
        "records_per_second",
        "gbit_per_second",
        "full_checkpoint_bytes_per_second",
        "log_checkpoint_bytes_per_second",
        "first_limit",
        "used",
        "busiest_records",
        "busiest_keys",
    ]);
    for keys in KEYS {
        for nodes in NODES {
            let needs = needs(arguments, keys, nodes);
            table.push(vec![
                "needs".into(),
                Cell::Nothing,
                keys.into(),
                (nodes as u64).into(),
                needs.gib.into(),
                needs.fpr.into(),
                needs.records.into(),
                needs.gbit.into(),
                needs.full.into(),
                needs.log.into(),
                needs.first.into(),
                needs.used.into(),
                Cell::Nothing,
                Cell::Nothing,
            ]);
        }
    }
    for stream in streams(parse_count("records", &arguments.records)?)? {
        for nodes in NODES {
            let (records, keys) = busiest(&stream, arguments.key_groups, nodes)?;
            let mut row = vec![Cell::Nothing; 14];
            row[0] = "load".into();
            row[1] = stream.to_string().into();
            row[3] = (nodes as u64).into();
            row[12] = records.into();
            row[13] = keys.into();
            table.push(row);
        }
    }
    table.publish(&arguments.outputs)
}

/// Checks the options that are divided by, or are fractions.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let most = *NODES.iter().max().expect("some");
    if arguments.key_groups < most {
        let groups = arguments.key_groups;
        return Err(format!("--key-groups {groups}: at least {most}, one for each node").into());
    }
    for (option, value) in [
        ("--duplicates", arguments.duplicates),
        ("--hot", arguments.hot),
    ] {
        if !(0.0..1.0).contains(&value) {
            return Err(format!("{option} {value}: at least 0 and below 1").into());
        }
    }
    for (option, value) in [
        ("--hours", arguments.hours),
        ("--fpr", arguments.fpr),
        ("--record-bytes", arguments.record_bytes),
        ("--node-gib", arguments.node_gib),
        ("--node-records", arguments.node_records),
        ("--node-gbit", arguments.node_gbit),
        ("--node-store", arguments.node_store),
        ("--checkpoint-seconds", arguments.checkpoint_seconds),
    ] {
        if !(value > 0.0 && value.is_finite()) {
            return Err(format!("{option} {value}: above 0").into());
        }
    }
    if !(arguments.miss > 0.0 && arguments.miss <= 0.5) {
        return Err(format!("--miss {}: above 0 and at most 0.5", arguments.miss).into());
    }
    Ok(())
}

/// What the busiest of `nodes` needs while `keys` distinct keys are in the window.
fn needs(arguments: &Arguments, keys: u64, nodes: usize) -> Needs {
    let shape = smallest(arguments, keys);
    // The node with one group more than others, if they cannot be shared out evenly.
    let groups = arguments.key_groups.div_ceil(nodes);
    let share = groups as f64 / arguments.key_groups as f64;
    let fresh = keys as f64 / (arguments.hours * 3600.0);
    let records = fresh / (1.0 - arguments.duplicates);
    // The most frequent key has one group; the others are spread evenly.
    let busiest = records * (arguments.hot + (1.0 - arguments.hot) * share);
    let bytes = shape.bytes() as f64 * share;
    let remote = 1.0 - 1.0 / nodes as f64;
    let gbit = busiest * remote * arguments.record_bytes * 8.0 / 1e9;
    let gib = bytes / f64::from(1 << 30);
    let full = bytes / arguments.checkpoint_seconds;
    let log = fresh * share * LOG_BYTES_PER_KEY;
    let (first, used) = [
        ("hash of 64 bits", shape.full_fpr() / arguments.fpr),
        ("memory", gib / arguments.node_gib),
        ("records", busiest / arguments.node_records),
        ("network", gbit / arguments.node_gbit),
        ("full checkpoints", full / arguments.node_store),
    ]
    .into_iter()
    // A rate within the limit is no resource that runs out.
    .filter(|(name, used)| *name != "hash of 64 bits" || *used > 1.0)
    .max_by(|left, right| left.1.total_cmp(&right.1))
    .expect("resources");
    Needs {
        gib,
        fpr: shape.full_fpr(),
        records: busiest,
        gbit,
        full,
        log,
        first,
        used,
    }
}

/// The smallest filter for these keys within the rate, or the one with the lowest rate if there is
/// none: then 64 bits of hash are too few.
fn smallest(arguments: &Arguments, keys: u64) -> FingerprintGeometry {
    let shapes = SlotWidth::ALL
        .iter()
        .map(|width| FingerprintGeometry::for_keys(keys, arguments.miss, *width));
    let within = shapes
        .clone()
        .filter(|shape| shape.full_fpr() <= arguments.fpr)
        .min_by_key(|shape| shape.lines);
    let lowest = || shapes.min_by(|left, right| left.full_fpr().total_cmp(&right.full_fpr()));
    within.or_else(lowest).expect("widths")
}

/// The streams whose loads are counted: from even to very uneven.
fn streams(records: u64) -> Result<Vec<Stream>, Failure> {
    let universe = (records / 2).max(1);
    Ok(vec![
        Stream::uniform(records, universe)?,
        Stream::zipf(records, universe, 0.8)?,
        Stream::zipf(records, universe, 1.0)?,
        Stream::zipf(records, universe, 1.2)?,
    ])
}

/// The records and the distinct keys of the node with most of them, as multiples of the mean.
fn busiest(stream: &Stream, key_groups: usize, nodes: usize) -> Result<(f64, f64), Failure> {
    // One line for each key group: only their borders matter here.
    let groups = Partitioning::new(key_groups as u64, key_groups)?;
    let hasher = KeyHasher::seeded(0);
    let mut seen = vec![false; usize::try_from(stream.universe())?];
    let mut loads = vec![(0u64, 0u64); nodes];
    let mut draws = stream.draws(1);
    let mut batch = [0; 4096];
    loop {
        let len = draws.fill(&mut batch);
        if len == 0 {
            break;
        }
        for key in &batch[..len] {
            let group = groups.partition_of(hasher.hash_u64(*key));
            let load = &mut loads[group * nodes / key_groups];
            load.0 += 1;
            load.1 += u64::from(!std::mem::replace(&mut seen[*key as usize], true));
        }
    }
    let over_mean = |counts: Vec<u64>| {
        let sum: u64 = counts.iter().sum();
        counts.into_iter().max().unwrap_or(0) as f64 * nodes as f64 / sum as f64
    };
    let (records, keys) = loads.into_iter().unzip();
    Ok((over_mean(records), over_mean(keys)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(words: &[&str]) -> Arguments {
        let words = std::iter::once("cluster").chain(words.iter().copied());
        Command::parse_from(words).arguments
    }

    #[test]
    fn a_node_needs_its_share_and_the_hash_breaks_at_last() {
        let defaults = arguments(&["--hot", "0"]);
        let (one, ten) = (
            needs(&defaults, 1_000_000_000, 1),
            needs(&defaults, 1_000_000_000, 10),
        );
        assert!((one.gib / ten.gib - 10.0).abs() < 1e-9);
        assert!((one.records / ten.records - 10.0).abs() < 1e-9);
        assert_eq!((one.gbit, one.fpr), (0.0, ten.fpr));
        // 10^9 keys in a day, of which 9 in 10 records are.
        assert!((one.records - 1e9 / 86_400.0 / 0.9).abs() < 1.0);
        assert!(one.fpr <= 1e-8);
        // Each of 10^12 keys has 10^12 chances of 2^-64 to have the hash of another one.
        let most = needs(&defaults, 1_000_000_000_000, 100);
        assert!(most.fpr > 1e12 / 2f64.powi(64), "{most:?}");
        assert!(most.fpr < 1e13 / 2f64.powi(64), "{most:?}");
    }

    #[test]
    fn a_hot_key_loads_one_node() {
        let hot = arguments(&["--hot", "0.1"]);
        let even = arguments(&["--hot", "0"]);
        let records = |arguments| needs(arguments, 1_000_000_000, 10).records;
        assert!((records(&hot) / records(&even) - (0.1 * 10.0 + 0.9)).abs() < 1e-9);
        assert_eq!(needs(&hot, 1 << 30, 10).gib, needs(&even, 1 << 30, 10).gib);
    }

    #[test]
    fn even_streams_load_nodes_evenly_and_zipf_does_not() {
        let load = |stream: &Stream, nodes| busiest(stream, 1280, nodes).unwrap();
        let uniform = Stream::uniform(400_000, 200_000).unwrap();
        assert_eq!(load(&uniform, 1), (1.0, 1.0));
        let (records, keys) = load(&uniform, 10);
        assert!((1.0..1.05).contains(&records), "{records}");
        assert!((1.0..1.05).contains(&keys), "{keys}");
        // The first of 200,000 keys has 1 of 5.2 records with this exponent.
        let (records, keys) = load(&Stream::zipf(400_000, 200_000, 1.2).unwrap(), 10);
        assert!((2.4..3.2).contains(&records), "{records}");
        assert!(keys < 1.1, "{keys}");
    }

    #[test]
    fn options_out_of_range_are_named() {
        for (words, start) in [
            (["--key-groups", "99"], "--key-groups 99: at least 100"),
            (["--hot", "1"], "--hot 1: at least 0"),
            (["--hours", "0"], "--hours 0: above 0"),
            (["--miss", "0.6"], "--miss 0.6: above 0 and at most 0.5"),
        ] {
            let error = run(&arguments(&words)).unwrap_err().to_string();
            assert!(error.starts_with(start), "{error}");
        }
    }
}
