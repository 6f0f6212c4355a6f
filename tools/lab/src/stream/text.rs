//! The text form of a stream, as users type it and as results name it, and that of its length:
//! `10M` is ten million.

use std::fmt;
use std::str::FromStr;

use echoless::SpecError;
use echoless::spec::Options;
pub use echoless_stream::format_count;

use super::definition::{Distribution, Stream};

impl FromStr for Stream {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let mut options = Options::parse(options)?;
        let mut count = |field| {
            let text = options.take(field);
            text.map(|text| parse_count(field, &text)).transpose()
        };
        let missing = |field, example| SpecError::missing(field, example);
        let records = count("records")?;
        let universe = count("universe")?;
        let records = |example| records.ok_or_else(|| missing("records", example));
        let stream = match name {
            "uniform" => {
                let records = records("a count, as in uniform:records=10M,distinct=0.6")?;
                let distinct: Option<f64> = options.number("distinct", "a number")?;
                match (distinct, universe) {
                    (Some(fraction), None) => Self::with_distinct_fraction(records, fraction)?,
                    (None, Some(universe)) => Self::uniform(records, universe)?,
                    (fraction, _) => {
                        let asked = fraction.map_or(String::new(), |fraction| fraction.to_string());
                        let allowed = "either distinct or universe, not both";
                        return Err(SpecError::new("distinct", asked, allowed));
                    }
                }
            }
            "zipf" => {
                let records = records("a count, as in zipf:records=10M,universe=1M")?;
                let universe = universe.ok_or_else(|| {
                    missing("universe", "a count, as in zipf:records=10M,universe=1M")
                })?;
                Self::zipf(
                    records,
                    universe,
                    options.decimal("exponent", 1.0, 0.0..=10.0)?,
                )?
            }
            _ => return Err(SpecError::new("stream", name, "uniform or zipf")),
        };
        options.finish()?;
        Ok(stream)
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = format_count(self.records);
        let universe = format_count(self.universe);
        match &self.distribution {
            Distribution::Uniform => {
                write!(formatter, "uniform:records={records},universe={universe}")
            }
            Distribution::Zipf { exponent } => write!(
                formatter,
                "zipf:records={records},universe={universe},exponent={exponent}"
            ),
            Distribution::Recorded(_) => write!(
                formatter,
                "{records} recorded keys, {universe} of them distinct"
            ),
        }
    }
}

/// Parses a number of records: a whole number above 0, alone or with `k`, `M`, `G` or `T` (powers
/// of 1000).
///
/// # Errors
/// [`SpecError`] about `field` if the text has another form, or its value is 0 or at least 2^64.
///
/// # Examples
/// ```
/// use echoless_lab::stream::parse_count;
/// assert_eq!(parse_count("records", "10M"), Ok(10_000_000));
/// assert_eq!(parse_count("records", "1500"), Ok(1500));
/// let error = parse_count("records", "0").unwrap_err();
/// assert!(error.to_string().starts_with("invalid records=0: expected"));
/// ```
pub fn parse_count(field: &'static str, text: &str) -> Result<u64, SpecError> {
    echoless_stream::parse_count(text).ok_or_else(|| {
        let allowed = "a whole number above 0, alone or with k, M, G or T (x 1000)";
        SpecError::new(field, text, allowed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatted_streams_parse_to_the_same_stream() {
        for text in [
            "uniform:records=10M,universe=12345",
            "zipf:records=3k,universe=1M,exponent=1.25",
        ] {
            let stream: Stream = text.parse().unwrap();
            assert_eq!(stream.to_string(), text);
        }
    }

    #[test]
    fn errors_name_the_field() {
        for (text, field) in [
            ("", "stream"),
            ("normal:records=1", "stream"),
            ("uniform", "records"),
            ("uniform:records=0,distinct=0.5", "records"),
            ("uniform:records=1k", "distinct"),
            ("uniform:records=1k,distinct=1", "distinct"),
            ("uniform:records=1k,distinct=0", "distinct"),
            ("uniform:records=1k,distinct=x", "distinct"),
            ("uniform:records=1k,distinct=0.5,universe=10", "distinct"),
            ("uniform:records=1k,universe=0", "universe"),
            ("uniform:records=1k,distinct=0.5,colour=red", "option"),
            ("uniform:records", "option"),
            ("zipf:universe=5", "records"),
            ("zipf:records=5", "universe"),
            ("zipf:records=5,universe=5,exponent=0", "exponent"),
            ("zipf:records=5,universe=5,exponent=11", "exponent"),
        ] {
            let error = text.parse::<Stream>().expect_err(text);
            assert_eq!(error.field, field, "{text}: {error}");
        }
    }
}
