//! The options, checked, and the settings of librdkafka that they lead to.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use echoless::SpecError;
use echoless_metrics::parse_address;
use rdkafka::ClientConfig;

use crate::args::Args;
use crate::failure::Failure;
use crate::key::KeyParts;
use crate::partition::FilterConfig;
use crate::window::parse_time;

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
    /// Gets what the other outputs do not accept.
    pub(crate) reject: Option<String>,
    pub(crate) key: KeyParts,
    /// `None` if records are copied to partitions by their keys.
    pub(crate) filter: Option<FilterConfig>,
    pub(crate) interval: Duration,
    /// How often a member reports.
    pub(crate) report: Option<Duration>,
    /// Where the counts can be asked for.
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) strict: bool,
    pub(crate) consumer: ClientConfig,
    pub(crate) producer: ClientConfig,
    /// For questions about topics.
    pub(crate) client: ClientConfig,
}

impl Config {
    /// The topics that are written to.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &str> {
        let others = self.duplicates.iter().chain(&self.reject);
        [&self.output].into_iter().chain(others).map(String::as_str)
    }

    /// Checks the options. `unique` is a text that no other member has.
    pub(crate) fn new(args: Args, unique: &str) -> Result<Self, Failure> {
        let topics = [&args.input, &args.output].into_iter();
        let topics: Vec<&String> = topics.chain(&args.duplicates).chain(&args.reject).collect();
        if (1..topics.len()).any(|next| topics[next..].contains(&topics[next - 1])) {
            let allowed = "different topics for --in, --out, --duplicates and --reject";
            return Err(SpecError::new("--in", args.input, allowed).into());
        }
        let key = KeyParts::parse(&args.key)?;
        let filter = match &args.state {
            Some(state) => {
                let is_name = !args.group.contains(['/', '\\']) && !args.group.starts_with('.');
                if !is_name || args.group.is_empty() {
                    let allowed = "a name that a folder in --state can have";
                    return Err(SpecError::new("--group", args.group, allowed).into());
                }
                let folder = state.join(&args.group).join(&args.input);
                Some(FilterConfig::new(&args, folder)?)
            }
            // Only with --repartition.
            None => None,
        };
        let settings = settings(&args)?;
        let mut client = ClientConfig::new();
        for (name, value) in &settings {
            client.set(name, value);
        }
        if let Some(brokers) = &args.brokers {
            client.set("bootstrap.servers", brokers);
        }
        if client.get("bootstrap.servers").is_none() {
            let allowed = "HOST:PORT, or bootstrap.servers in --config";
            return Err(SpecError::missing("--brokers", allowed).into());
        }
        let (mut consumer, mut producer) = (client.clone(), client.clone());
        let default = |of: &mut ClientConfig, name: &str, value: &str| {
            if of.get(name).is_none() {
                of.set(name, value);
            }
        };
        // With the other protocol brokers assign the partitions.
        if client.get("group.protocol") != Some("consumer") {
            // Moves no partition that can stay, so that few filters move.
            let strategy = "partition.assignment.strategy";
            default(&mut consumer, strategy, "cooperative-sticky");
        }
        // Below the session timeout of 45 s: what a killed member left is aborted before others
        // get its partitions, and they need not wait for it.
        default(&mut producer, "transaction.timeout.ms", "30000");
        default(&mut producer, "linger.ms", "20");
        // As the producers of Java do.
        default(&mut producer, "partitioner", "murmur2_random");
        // What is too long for a topic is found in `session.rs`, with the settings of the topic.
        default(&mut producer, "message.max.bytes", "1000000000");
        consumer.set("group.id", &args.group);
        consumer.set("enable.auto.commit", "false");
        consumer.set("enable.auto.offset.store", "false");
        // The end of a partition may be behind the last record, where transactions ended.
        consumer.set("enable.partition.eof", "true");
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
        let metrics = args.metrics.as_deref();
        let metrics = metrics
            .map(|text| parse_address("--metrics", text))
            .transpose()?;
        Ok(Self {
            input: args.input,
            output: args.output,
            duplicates: args.duplicates,
            reject: args.reject,
            key,
            filter,
            interval,
            report,
            metrics,
            strict: args.strict,
            consumer,
            producer,
            client,
        })
    }
}

/// The settings of `--config` and `-c`, those of `-c` last.
fn settings(args: &Args) -> Result<Vec<(String, String)>, Failure> {
    let mut settings = Vec::new();
    if let Some(path) = &args.config {
        let text = fs::read_to_string(path).map_err(|error| Failure::File {
            path: path.clone(),
            error,
        })?;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            // The line may have a password.
            let place = || format!("{}, line {number}", path.display());
            let (name, value) = line.split_once('=').ok_or_else(|| {
                let allowed = "NAME=VALUE, such as security.protocol=ssl";
                SpecError::new("--config", place(), allowed)
            })?;
            let (name, value) = (name.trim(), value.trim());
            if DECIDED.contains(&name) && name != "bootstrap.servers" {
                let asked = format!("{}: {name}", place());
                return Err(SpecError::new("--config", asked, other_settings()).into());
            }
            settings.push((name.to_owned(), value.to_owned()));
        }
    }
    for setting in &args.settings {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            SpecError::new("-c", setting, "NAME=VALUE, such as security.protocol=ssl")
        })?;
        if DECIDED.contains(&name) {
            return Err(SpecError::new("-c", setting, other_settings()).into());
        }
        settings.push((name.to_owned(), value.to_owned()));
    }
    Ok(settings)
}

fn other_settings() -> String {
    format!("another setting than {}", DECIDED.join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

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
        let named = config("--filter rowlru:form=line").unwrap();
        assert_eq!(named.filter.unwrap().spec.name(), "rowlru");
        let named = config("--filter clocked --window 10k").unwrap();
        assert_eq!(window(&named), Some(2000));
    }

    #[test]
    fn settings_come_from_a_file_and_its_content_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("client.properties");
        let with = |text: &str, options: &str| {
            fs::write(&path, text).unwrap();
            config(&format!("--config {} {options}", path.display()))
        };
        let text = "# comment\n\n ! another\nsasl.password = a=b c \nsession.timeout.ms=7000\r\n\
                    bootstrap.servers=elsewhere:1\n";
        let config = with(text, "-c session.timeout.ms=8000").unwrap();
        for (name, value) in [
            ("sasl.password", "a=b c"),
            ("session.timeout.ms", "8000"),
            ("bootstrap.servers", "b:1"),
        ] {
            for of in [&config.consumer, &config.producer, &config.client] {
                assert_eq!(of.get(name), Some(value), "{name}");
            }
        }
        for (text, expected) in [
            ("acks=all\nsecret\n", "line 2: expected NAME=VALUE"),
            (
                "group.id=secret",
                "line 1: group.id: expected another setting than",
            ),
        ] {
            let error = with(text, "").unwrap_err();
            assert!(
                error.contains(expected) && !error.contains("secret"),
                "{error}"
            );
        }
        let words = "echoless-kafka --group g --in a --out b --state s --config";
        let parse = |text: &str| {
            fs::write(&path, text).unwrap();
            let words = words.split_whitespace().chain([path.to_str().unwrap()]);
            let config = Config::new(Args::try_parse_from(words).unwrap(), "unique");
            config.map_err(|error| error.to_string())
        };
        let config = parse("bootstrap.servers=c:2").unwrap();
        assert_eq!(config.client.get("bootstrap.servers"), Some("c:2"));
        let error = parse("").unwrap_err();
        assert!(
            error.starts_with("missing --brokers: expected HOST:PORT"),
            "{error}"
        );
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
                "invalid --key=id: expected key, value, header:NAME",
            ),
            ("--report 10", "invalid --report=10: expected a time"),
            ("--window 1w", "invalid --window=1w: expected a time"),
            (
                "--duplicates calls",
                "invalid --in=calls: expected different topics",
            ),
            (
                "--duplicates again --reject again",
                "invalid --in=calls: expected different topics",
            ),
            (
                "--window 10k --max-advance 1h",
                "invalid --max-advance=1h: expected a window of time",
            ),
            (
                "--window 1h --max-advance 7",
                "invalid --max-advance=7: expected a time",
            ),
            (
                "--duplicates fresh",
                "invalid --in=calls: expected different topics",
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
