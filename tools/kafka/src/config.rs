//! The options, checked, and the settings of librdkafka that they lead to.

use std::path::PathBuf;
use std::time::Duration;

use echoless::hash::{SecretKeyError, read_secret_key};
use echoless::spec::parse_bytes;
use echoless::{FilterSpec, FingerprintSpec, KeyHasher, Replacement, SpecError};
use echoless_durable::LastingOption;
use rdkafka::ClientConfig;

use crate::args::Args;
use crate::failure::Failure;
use crate::key::KeyPart;
use crate::partition::FilterConfig;
use crate::span::{Window, parse_time};

/// Settings that exactly-once delivery or an option decides.
const DECIDED: [&str; 11] = [
    "metadata.broker.list",
    "bootstrap.servers",
    "group.id",
    "group.instance.id",
    "transactional.id",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "auto.offset.reset",
    "isolation.level",
];

/// What a member does.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) input: String,
    pub(crate) output: String,
    pub(crate) duplicates: Option<String>,
    pub(crate) key: KeyPart,
    /// `None` if records are copied to partitions by their keys.
    pub(crate) filter: Option<FilterConfig>,
    pub(crate) interval: Duration,
    /// How often a member reports.
    pub(crate) report: Option<Duration>,
    pub(crate) strict: bool,
    pub(crate) consumer: ClientConfig,
    pub(crate) producer: ClientConfig,
}

impl Config {
    /// Checks the options. `unique` is a text that no other member has.
    ///
    /// # Errors
    /// [`Failure`] if a value is invalid or the filter cannot be in a journal.
    pub(crate) fn new(args: Args, unique: &str) -> Result<Self, Failure> {
        let topics = [Some(&args.output), args.duplicates.as_ref()];
        if topics.contains(&Some(&args.input)) || args.duplicates.as_ref() == Some(&args.output) {
            let allowed = "three different topics for --in, --out and --duplicates";
            return Err(SpecError::new("--in", args.input, allowed).into());
        }
        let key = KeyPart::parse(&args.key)?;
        let filter = match &args.state {
            Some(state) => {
                let is_name = !args.group.contains(['/', '\\']) && !args.group.starts_with('.');
                if !is_name || args.group.is_empty() {
                    let allowed = "a name that a folder in --state can have";
                    return Err(SpecError::new("--group", args.group, allowed).into());
                }
                let folder = state.join(&args.group).join(&args.input);
                Some(filter_of(&args, folder)?)
            }
            // Only with --repartition.
            None => None,
        };
        let mut consumer = ClientConfig::new();
        consumer.set("bootstrap.servers", &args.brokers);
        let mut producer = consumer.clone();
        // Moves no partition that can stay, so that few filters move.
        consumer.set("partition.assignment.strategy", "cooperative-sticky");
        // Below the session timeout of 45 s: what a killed member left is aborted before others
        // get its partitions, and they need not wait for it.
        producer.set("transaction.timeout.ms", "30000");
        producer.set("linger.ms", "20");
        // As the producers of Java do.
        producer.set("partitioner", "murmur2_random");
        for setting in &args.settings {
            let (name, value) = setting.split_once('=').ok_or_else(|| {
                SpecError::new("-c", setting, "NAME=VALUE, such as security.protocol=ssl")
            })?;
            if DECIDED.contains(&name) {
                let allowed = format!("another setting than {}", DECIDED.join(", "));
                return Err(SpecError::new("-c", setting, allowed).into());
            }
            if (name, value) == ("group.protocol", "consumer") {
                // Brokers assign the partitions then.
                consumer.remove("partition.assignment.strategy");
            }
            consumer.set(name, value);
            producer.set(name, value);
        }
        consumer.set("group.id", &args.group);
        consumer.set("enable.auto.commit", "false");
        consumer.set("enable.auto.offset.store", "false");
        consumer.set("auto.offset.reset", "earliest");
        consumer.set("isolation.level", "read_committed");
        if let Some(instance) = &args.instance {
            consumer.set("group.instance.id", instance);
        }
        let member = args.instance.as_deref().unwrap_or(unique);
        let id = format!("echoless-{}-{}-{member}", args.group, args.input);
        producer.set("transactional.id", id);
        let interval = parse_time("--interval", &args.interval)?;
        let report = args.report.as_deref();
        let report = report
            .map(|text| parse_time("--report", text))
            .transpose()?;
        Ok(Self {
            input: args.input,
            output: args.output,
            duplicates: args.duplicates,
            key,
            filter,
            interval: Duration::from_millis(interval),
            report: report.map(Duration::from_millis),
            strict: args.strict,
            consumer,
            producer,
        })
    }
}

/// The filter of the options, which is built once to see that it can be.
fn filter_of(args: &Args, state: PathBuf) -> Result<FilterConfig, Failure> {
    let window = args.window.as_deref().map(Window::parse).transpose()?;
    let memory = parse_bytes(&args.memory).map_err(|error| SpecError {
        field: "--memory",
        ..error
    })?;
    let spec = match (&args.filter, window) {
        (Some(text), None) => text.parse::<FilterSpec>()?,
        (Some(text), Some(window)) => {
            let separator = if text.contains(':') { ',' } else { ':' };
            format!("{text}{separator}window={}", window.ticks).parse::<FilterSpec>()?
        }
        (None, window) => {
            let mut spec = FingerprintSpec::new(memory);
            if let Some(window) = window {
                spec = spec.window(window.ticks).replacement(Replacement::Fifo);
            }
            FilterSpec::try_from(&spec)?
        }
    };
    let spec = spec.memory(memory);
    if spec.facts().window.is_some() && window.is_none() {
        let allowed = format!("the time or the records of the window of {}", spec.name());
        return Err(SpecError::missing("--window", allowed).into());
    }
    drop(spec.build_line_partitions(1)?);
    let hasher = match &args.hash_key {
        None => KeyHasher::seeded(0),
        Some(path) => {
            let key = read_secret_key("--hash-key", path).map_err(|error| match error {
                SecretKeyError::Invalid(error) => Failure::Option(error),
                SecretKeyError::Io(error) => Failure::File {
                    path: path.clone(),
                    error,
                },
            })?;
            KeyHasher::keyed(key)
        }
    };
    Ok(FilterConfig {
        state,
        spec,
        hasher,
        window,
        options: lasting(args),
    })
}

/// The options that must not change while there is a state. The journal itself holds the filter and
/// the hash of its keys.
fn lasting(args: &Args) -> Vec<LastingOption> {
    let options = [
        ("--key", Some(&args.key)),
        ("--memory", Some(&args.memory)),
        ("--window", args.window.as_ref()),
    ];
    let given = options.into_iter().filter_map(|(name, value)| {
        let value = value?.clone();
        Some((name.to_owned(), Some(value)))
    });
    given.collect()
}

/// Whether two texts of one of these options mean one value.
pub(crate) fn is_same(name: &str, one: &str, other: &str) -> bool {
    match name {
        "--memory" => same(parse_bytes(one), parse_bytes(other)),
        "--window" => same(Window::parse(one), Window::parse(other)),
        _ => one == other,
    }
}

fn same<T: PartialEq>(one: Result<T, SpecError>, other: Result<T, SpecError>) -> bool {
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn config(options: &str) -> Result<Config, String> {
        let common = "echoless-kafka --brokers b:1 --group g --in calls --out fresh --state s -m \
                      64k";
        let words = common.split_whitespace().chain(options.split_whitespace());
        let args = Args::try_parse_from(words).map_err(|error| error.to_string())?;
        Config::new(args, "unique").map_err(|error| error.to_string())
    }

    #[test]
    fn options_become_a_filter_and_settings() {
        let plain = config("").unwrap();
        let window = |config: &Config| {
            let filter = config.filter.as_ref().unwrap();
            filter.spec.facts().window.map(|window| window.ticks)
        };
        assert_eq!(window(&plain), None);
        let state = &plain.filter.as_ref().unwrap().state;
        assert_eq!(state, &PathBuf::from("s/g/calls"));
        assert_eq!(
            plain.producer.get("transactional.id"),
            Some("echoless-g-calls-unique")
        );
        let strategy = |config: &Config| {
            let strategy = config.consumer.get("partition.assignment.strategy");
            strategy.map(str::to_owned)
        };
        assert_eq!(strategy(&plain).as_deref(), Some("cooperative-sticky"));
        let options = "--window 24h --instance a -c session.timeout.ms=6000 -c \
                       group.protocol=consumer";
        let timed = config(options).unwrap();
        assert_eq!(window(&timed), Some(4320));
        assert_eq!(timed.consumer.get("session.timeout.ms"), Some("6000"));
        assert_eq!(timed.consumer.get("group.instance.id"), Some("a"));
        assert_eq!(
            timed.producer.get("transactional.id"),
            Some("echoless-g-calls-a")
        );
        assert_eq!(strategy(&timed), None);
        let named = config("--filter rlbsbf:k=2,form=line").unwrap();
        assert_eq!(named.filter.unwrap().spec.name(), "rlbsbf");
        let named = config("--filter clocked --window 10k").unwrap();
        assert_eq!(window(&named), Some(2000));
    }

    #[test]
    fn a_copy_has_no_filter() {
        let common = "echoless-kafka --brokers b:1 --group g --in calls --out keyed";
        let parse = |options: &str| {
            let words = common.split_whitespace().chain(options.split_whitespace());
            Args::try_parse_from(words)
        };
        let args = parse("--repartition --key value").unwrap();
        assert!(Config::new(args, "unique").unwrap().filter.is_none());
        for options in ["", "--repartition --state s", "--repartition --window 1h"] {
            assert!(parse(options).is_err(), "{options}");
        }
    }

    #[test]
    fn what_does_not_fit_is_rejected_with_one_line() {
        for (options, message) in [
            (
                "-c enable.auto.commit=true",
                "invalid -c=enable.auto.commit=true: expected another",
            ),
            ("-c acks", "invalid -c=acks: expected NAME=VALUE"),
            ("--interval 0s", "invalid --interval=0s: expected a time"),
            (
                "--key id",
                "invalid --key=id: expected key, value, or a JSON",
            ),
            ("--report 10", "invalid --report=10: expected a time"),
            ("--window 1w", "invalid --window=1w: expected a time"),
            (
                "--duplicates calls",
                "invalid --in=calls: expected three different topics",
            ),
            (
                "--duplicates fresh",
                "invalid --in=calls: expected three different topics",
            ),
            ("--filter nonsense", "invalid filter=nonsense"),
            ("--filter clocked:window=9", "missing --window"),
        ] {
            let error = config(options).unwrap_err();
            assert!(error.starts_with(message), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
