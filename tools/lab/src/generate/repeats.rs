//! Which records of a generated stream repeat which earlier ones, as a function of seed and
//! position.

use std::str::FromStr;

use echoless::{KeyHasher, SpecError};
use rand_xoshiro::rand_core::Rng;

use super::zipf::Zipf;
use super::{below, random, stream};

/// Which earlier record a duplicate repeats.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SourceRule {
    /// All are equally likely.
    Uniform,
    /// The earliest are most likely: the record at position `p` has weight `(p + 1)^-s`.
    Zipf(Zipf),
    /// The record exactly this many positions back, at least 1.
    Gap(u64),
}

impl FromStr for SourceRule {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, exponent) = text.split_once(':').unwrap_or((text, "1"));
        match (name, exponent.parse::<f64>()) {
            ("uniform", _) if text == "uniform" => Ok(Self::Uniform),
            ("zipf", Ok(exponent)) if exponent > 0.0 && exponent <= 10.0 => {
                Ok(Self::Zipf(Zipf::new(exponent)))
            }
            _ => Err(SpecError::new(
                "--distribution",
                text,
                "uniform, zipf or zipf:EXPONENT with an exponent above 0 and at most 10",
            )),
        }
    }
}

/// The pattern of duplicates in a stream.
#[derive(Debug, Clone)]
pub(crate) struct Repeats {
    hasher: KeyHasher,
    /// A position repeats an earlier one if its random bits are below this.
    threshold: u64,
    rule: SourceRule,
}

impl Repeats {
    /// A stream of which the fraction `share`, 0 to below 1, is duplicates.
    pub(crate) fn new(seed: u64, share: f64, rule: SourceRule) -> Self {
        Self {
            hasher: KeyHasher::seeded(seed),
            threshold: (share * 2f64.powi(64)) as u64,
            rule,
        }
    }

    /// The position at which the record at `position` first appears: itself, unless it is a
    /// duplicate.
    pub(crate) fn first_position(&self, position: u64) -> u64 {
        if self.is_new(position) {
            return position;
        }
        let mut random = random(&self.hasher, position, stream::SOURCE);
        let mut source = position;
        // Draws until the source is not a duplicate itself. The loop ends: position 0 never is one.
        loop {
            source = match &self.rule {
                SourceRule::Uniform => below(random.next_u64(), position),
                SourceRule::Zipf(zipf) => zipf.rank(position, &mut random) - 1,
                SourceRule::Gap(gap) => source - gap,
            };
            if self.is_new(source) {
                return source;
            }
        }
    }

    fn is_new(&self, position: u64) -> bool {
        let nothing_to_repeat = match self.rule {
            SourceRule::Uniform | SourceRule::Zipf(_) => position == 0,
            SourceRule::Gap(gap) => position < gap,
        };
        nothing_to_repeat
            || self.hasher.hash_u64(position).remix(stream::DUPLICATE) >= self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: u64 = 100_000;

    fn sources(share: f64, rule: SourceRule) -> Vec<u64> {
        let repeats = Repeats::new(1, share, rule);
        (0..RECORDS)
            .map(|position| repeats.first_position(position))
            .collect()
    }

    /// Positions of duplicates with their sources.
    fn duplicates(sources: &[u64]) -> Vec<(u64, u64)> {
        (0..)
            .zip(sources.iter().copied())
            .filter(|(position, source)| position != source)
            .collect()
    }

    #[test]
    fn the_share_of_duplicates_is_as_specified() {
        for rule in ["uniform", "zipf", "zipf:0.5", "zipf:2"] {
            for share in [0.0, 0.1, 0.5, 0.99] {
                let sources = sources(share, rule.parse().unwrap());
                let measured = duplicates(&sources).len() as f64 / RECORDS as f64;
                assert!(
                    (measured - share).abs() < 0.01,
                    "{rule} {share}: {measured}"
                );
            }
        }
    }

    #[test]
    fn a_source_is_an_earlier_record_that_is_new() {
        for rule in ["uniform", "zipf:1.2"] {
            let sources = sources(0.7, rule.parse().unwrap());
            for (position, source) in duplicates(&sources) {
                assert!(source < position);
                assert_eq!(sources[source as usize], source);
            }
        }
    }

    #[test]
    fn uniform_sources_lie_half_way_back_on_average() {
        let duplicates = duplicates(&sources(0.5, SourceRule::Uniform));
        let way_back = |(position, source)| source as f64 / position as f64;
        let mean = duplicates.iter().copied().map(way_back).sum::<f64>() / duplicates.len() as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_gap_is_kept_exactly() {
        let sources = sources(0.8, SourceRule::Gap(1000));
        let duplicates = duplicates(&sources);
        for (position, source) in &duplicates {
            assert_eq!(*source, sources[*position as usize - 1000]);
        }
        let share = duplicates.len() as f64 / (RECORDS - 1000) as f64;
        assert!((share - 0.8).abs() < 0.01, "{share}");
    }

    #[test]
    fn invalid_rules_are_rejected() {
        for text in " zip zipf: zipf:0 zipf:-1 zipf:11 zipf:x zipf:nan uniform:1".split(' ') {
            assert!(text.parse::<SourceRule>().is_err(), "{text}");
        }
    }
}
