//! Runs every peer over the same stream. Its verdicts are compared with the labels of the stream,
//! and it is timed while it is half full to full.

use clap::Args;
use echoless::Kernel;
use echoless::memory::huge_page_bytes;

use super::candidate::{Budget, Candidate};
use super::catalogue::catalogue;
use super::pages;
use super::workload::{Errors, PROBES, Workload};
use crate::clock::median;
use crate::failure::Failure;
use crate::table::{Outputs, Table};

/// The options of `peers`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The memory of each peer, in MiB.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,512")]
    sizes: Vec<u64>,
    /// Bits of memory for each distinct key of the stream. At 15 the best Bloom filter and a line
    /// of 16-bit slots are about equally accurate.
    #[arg(long, default_value_t = 15)]
    bits_per_key: u64,
    /// Fraction of the stream that repeats an earlier key.
    #[arg(long, default_value_t = 0.25)]
    repeats: f64,
    /// How far back repeats reach, as a fraction of the distinct keys of the stream.
    #[arg(long, default_value_t = 0.25)]
    window: f64,
    /// Keys timed in each round, in millions. Small peers are filled several times to reach it.
    #[arg(long, default_value_t = 4)]
    keys: u64,
    /// Rounds, each over all peers; the table has the median.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Names of the peers to measure. Default: all.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Leave the allocator as it is. By default it is set to request huge pages, as our filters do.
    #[arg(long)]
    plain_pages: bool,
    #[command(flatten)]
    outputs: Outputs,
}

impl Arguments {
    fn check(&self) -> Result<(), Failure> {
        if self.bits_per_key == 0 {
            return Err("invalid --bits-per-key 0: expected at least 1".into());
        }
        for (option, fraction) in [("repeats", self.repeats), ("window", self.window)] {
            if !(0.0..1.0).contains(&fraction) {
                let range = "expected at least 0 and below 1";
                return Err(format!("invalid --{option} {fraction}: {range}").into());
            }
        }
        Ok(())
    }
}

/// What is known about a peer after a stream.
struct Outcome {
    /// During the stream.
    errors: Errors,
    /// The false positive rate after the stream.
    fpr_full: f64,
    /// The false negative rate of the oldest eighth of the keys, after the stream.
    fnr_oldest: f64,
    probes: u64,
    memory_bytes: Option<u64>,
    /// Bytes on huge pages. The whole process is counted; it has no other large blocks.
    huge_bytes: Option<u64>,
}

/// A candidate with its measurements.
struct Entry {
    candidate: Candidate,
    /// Of the first pass; later ones repeat it.
    outcome: Option<Outcome>,
    /// Keys per second of each round.
    rates: Vec<f64>,
}

impl Entry {
    fn new(candidate: Candidate) -> Self {
        Self {
            candidate,
            outcome: None,
            rates: Vec::new(),
        }
    }

    fn measure(&mut self, workload: Workload, keys: u64) -> Result<(), Failure> {
        let (mut seconds, mut timed) = (0.0, 0);
        while timed < keys {
            let mut peer = (self.candidate.build)()?;
            let (pass_seconds, pass_keys, errors) = workload.run(&mut *peer);
            if pass_keys == 0 {
                return Err("the memory is too small to measure with".into());
            }
            seconds += pass_seconds;
            timed += pass_keys;
            if self.outcome.is_none() {
                let (fpr_full, fnr_oldest) = workload.probe(&*peer);
                self.outcome = Some(Outcome {
                    errors,
                    fpr_full,
                    fnr_oldest,
                    probes: workload.probes,
                    memory_bytes: peer.memory_bytes(),
                    huge_bytes: huge_page_bytes(),
                });
            }
        }
        self.rates.push(timed as f64 / seconds);
        Ok(())
    }

    /// Fails if the peer has higher error rates than its own mathematics allows.
    fn check(&self, outcome: &Outcome) -> Result<(), Failure> {
        // A tenth for approximate formulas, and six standard deviations of a Poisson count.
        let allowed = |rate: f64, keys: u64| {
            let expected = rate * keys as f64;
            (expected * 1.1 + 6.0 * expected.sqrt()) / keys.max(1) as f64
        };
        let Candidate { name, variant, .. } = &self.candidate;
        let check = |what: &str, measured: f64, allowed: f64| {
            (measured <= allowed).then_some(()).ok_or_else(|| {
                format!(
                    "{name}, {variant}: {what} of {measured:.2e}, at most {allowed:.2e} expected"
                )
            })
        };
        let Errors { fresh, repeats, .. } = outcome.errors;
        let (max_fpr, max_fnr) = (self.candidate.max_fpr, self.candidate.max_fnr);
        check("an fpr", outcome.errors.fpr(), allowed(max_fpr, fresh))?;
        let allowed_full = allowed(max_fpr, outcome.probes);
        check("a final fpr", outcome.fpr_full, allowed_full)?;
        check("an fnr", outcome.errors.fnr(), allowed(max_fnr, repeats))?;
        Ok(())
    }

    fn rate(&self) -> f64 {
        median(self.rates.clone())
    }
}

/// Measures, prints the table, and compares echoless with fastbloom in a sentence for each size.
///
/// # Errors
/// If the options are invalid, a peer cannot be built or exceeds its error rates, or an output
/// cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.plain_pages {
        pages::make_huge()?;
    }
    let (table, claims) = measure(arguments)?;
    table.publish(&arguments.outputs)?;
    for claim in claims {
        println!("{claim}");
    }
    Ok(())
}

fn measure(arguments: &Arguments) -> Result<(Table, Vec<String>), Failure> {
    arguments.check()?;
    let mut table = Table::new(&[
        "name",
        "variant",
        "kernel",
        "threads",
        "memory_mib",
        "measured_mib",
        "huge_pages",
        "bits_per_key",
        "keys_per_second",
        "ratio_to_fastbloom",
        "fpr",
        "fpr_full",
        "fnr",
        "fnr_oldest",
        "ages",
        "hashing",
    ]);
    let mut claims = Vec::new();
    for size in &arguments.sizes {
        let bytes = size << 20;
        let keys = bytes * 8 / arguments.bits_per_key;
        let workload = Workload {
            keys,
            repeats: arguments.repeats,
            window: ((keys as f64 * arguments.window) as u64).max(1),
            probes: PROBES,
        };
        let is_selected = |name: &str| {
            arguments.only.is_empty() || arguments.only.iter().any(|only| only == name)
        };
        let mut entries: Vec<Entry> = catalogue(Budget { bytes, keys })
            .into_iter()
            .filter(|candidate| is_selected(candidate.name))
            .map(Entry::new)
            .collect();
        let is_present =
            |name: &&String| entries.iter().any(|entry| entry.candidate.name == **name);
        if let Some(unknown) = arguments.only.iter().find(|name| !is_present(name)) {
            let expected = format!("expected the name of a peer that fits in {size} MiB");
            return Err(format!("invalid --only {unknown}: {expected}").into());
        }
        for _ in 0..arguments.rounds.max(1) {
            for entry in &mut entries {
                entry.measure(workload, arguments.keys.max(1) * 1_000_000)?;
            }
        }
        push_rows(&mut table, *size, keys, &entries)?;
        claims.extend(
            entries
                .iter()
                .filter_map(|entry| claim(*size, entry, &entries)),
        );
    }
    Ok((table, claims))
}

fn push_rows(
    table: &mut Table,
    mebibytes: u64,
    keys: u64,
    entries: &[Entry],
) -> Result<(), Failure> {
    // The first variant of fastbloom is the one with its own best number of hashes.
    let fastbloom = entries
        .iter()
        .find(|entry| entry.candidate.name == "fastbloom");
    for entry in entries {
        let outcome = entry.outcome.as_ref().ok_or("nothing was measured")?;
        entry.check(outcome)?;
        let candidate = &entry.candidate;
        let [bytes, huge] =
            [outcome.memory_bytes, outcome.huge_bytes].map(|bytes| bytes.map(|bytes| bytes as f64));
        table.push(vec![
            candidate.name.into(),
            candidate.variant.clone().into(),
            candidate.kernel.map(Kernel::name).into(),
            1u64.into(),
            mebibytes.into(),
            bytes.map(|bytes| bytes / 2f64.powi(20)).into(),
            bytes
                .zip(huge)
                .map(|(bytes, huge)| (huge / bytes).min(1.0))
                .into(),
            bytes.map(|bytes| bytes * 8.0 / keys as f64).into(),
            entry.rate().into(),
            fastbloom
                .map(|fastbloom| entry.rate() / fastbloom.rate())
                .into(),
            outcome.errors.fpr().into(),
            outcome.fpr_full.into(),
            outcome.errors.fnr().into(),
            outcome.fnr_oldest.into(),
            candidate.ages.to_string().into(),
            candidate.hashing.into(),
        ]);
    }
    Ok(())
}

/// Compares one of our filters with the fastbloom that has the most hashes and is not more
/// accurate.
fn claim(mebibytes: u64, ours: &Entry, entries: &[Entry]) -> Option<String> {
    let fpr = |entry: &Entry| entry.outcome.as_ref().map(|outcome| outcome.fpr_full);
    if ours.candidate.name != "echoless" {
        return None;
    }
    let (our_fpr, our_variant) = (fpr(ours)?, &ours.candidate.variant);
    let fastbloom = entries.iter().find(|entry| {
        entry.candidate.name == "fastbloom" && fpr(entry).is_some_and(|theirs| theirs >= our_fpr)
    })?;
    Some(format!(
        "{mebibytes} MiB: {our_variant} handles {:.1} times the keys of fastbloom with {}, at an fpr \
         of {our_fpr:.2e} against {:.2e}; it missed {:.1e} of the repeats",
        ours.rate() / fastbloom.rate(),
        fastbloom.candidate.variant,
        fpr(fastbloom)?,
        ours.outcome.as_ref()?.errors.fnr(),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::candidate::Ages;
    use super::super::stream::CHUNK;
    use super::*;

    const WORKLOAD: Workload = Workload {
        keys: 139_810,
        repeats: 0.25,
        window: 34_952,
        probes: 1 << 16,
    };

    const BUDGET: Budget = Budget {
        bytes: 1 << 18,
        keys: WORKLOAD.keys,
    };

    fn measured() -> Vec<Entry> {
        let mut entries: Vec<Entry> = catalogue(BUDGET).into_iter().map(Entry::new).collect();
        for entry in &mut entries {
            entry.measure(WORKLOAD, 1).unwrap();
        }
        entries
    }

    #[test]
    fn every_peer_stays_within_its_error_rates() {
        let entries = measured();
        let mut table = Table::new(&[""; 16]);
        push_rows(&mut table, 0, WORKLOAD.keys, &entries).unwrap();
        for entry in &entries {
            let outcome = entry.outcome.as_ref().unwrap();
            let observed = outcome.errors.fresh + outcome.errors.repeats;
            // Whole chunks, with a quarter of repeats.
            assert_eq!(observed % CHUNK as u64, 0);
            assert!((outcome.errors.repeats as f64 / observed as f64 - 0.25).abs() < 0.01);
            match entry.candidate.ages {
                Ages::Forgets => assert!(outcome.fnr_oldest > 0.0),
                Ages::FillsUp | Ages::Grows => assert_eq!(outcome.fnr_oldest, 0.0),
            }
            let is_exact = entry.candidate.max_fpr == 0.0;
            assert_eq!(
                is_exact,
                outcome.fpr_full == 0.0,
                "{}",
                entry.candidate.name
            );
            if entry.candidate.ages == Ages::FillsUp {
                let bytes = outcome.memory_bytes.unwrap();
                assert!(
                    bytes <= BUDGET.bytes + 64,
                    "{}: {bytes}",
                    entry.candidate.name
                );
            }
        }
        let claims: Vec<String> = entries
            .iter()
            .filter_map(|entry| claim(0, entry, &entries))
            .collect();
        assert_eq!(claims.len(), 4, "{claims:?}");
    }

    #[test]
    fn a_peer_that_exceeds_its_rates_is_rejected() {
        let mut entry = measured().swap_remove(0);
        entry.candidate.max_fpr = 1e-6;
        let error = entry.check(entry.outcome.as_ref().unwrap()).unwrap_err();
        assert!(error.to_string().contains(" fpr of "), "{error}");
        entry.candidate.max_fpr = 1.0;
        entry.outcome.as_mut().unwrap().errors.missed = 1000;
        let error = entry.check(entry.outcome.as_ref().unwrap()).unwrap_err();
        assert!(error.to_string().contains("an fnr of "), "{error}");
    }
}
