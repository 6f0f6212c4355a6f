//! Runs every peer over the same stream: what it tells is compared with the truth, and its time is taken while it is half full to full.

use clap::Args;
use echoless::Kernel;

use super::candidate::Candidate;
use super::catalogue::catalogue;
use super::pages;
use super::workload::{Errors, PROBES, Workload};
use crate::clock::median;
use crate::table::{Failure, Outputs, Table};

/// The options of `peers`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The memory of each peer, in MiB.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,512")]
    sizes: Vec<u64>,
    /// Bits of memory for each distinct key of the stream. At 15 the best Bloom filter and a 16-bit line are about equally accurate.
    #[arg(long, default_value_t = 15)]
    bits_per_key: u64,
    /// Share of the stream that repeats an earlier key.
    #[arg(long, default_value_t = 0.25)]
    repeats: f64,
    /// How far back repeats reach: a share of the distinct keys of the stream.
    #[arg(long, default_value_t = 0.25)]
    window: f64,
    /// Keys that are timed in each round, in millions; small peers are filled as often as that takes.
    #[arg(long, default_value_t = 4)]
    keys: u64,
    /// Rounds, each over all peers; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Peers to measure, by name; all if not given.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Leave the allocator as it is; else it is told to ask for huge pages, as our filters do.
    #[arg(long)]
    plain_pages: bool,
    #[command(flatten)]
    outputs: Outputs,
}

/// What is known of a peer once a stream has gone through.
struct Outcome {
    /// Over the stream.
    errors: Errors,
    /// Of keys never seen, after the stream.
    fpr_full: f64,
    /// Of the first eighth of the stream's distinct keys, after the stream.
    fnr_oldest: f64,
    probes: u64,
    memory_bytes: Option<u64>,
    /// Of the whole process, which holds nothing else of size.
    huge_bytes: Option<u64>,
}

/// A candidate with its measurements.
struct Entry {
    candidate: Candidate,
    outcome: Option<Outcome>,
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
                    huge_bytes: pages::huge_bytes(),
                });
            }
        }
        self.rates.push(timed as f64 / seconds);
        Ok(())
    }

    /// Fails if the peer told what its own mathematics does not allow.
    fn check(&self, outcome: &Outcome) -> Result<(), Failure> {
        let allowed = |rate: f64, of: u64| {
            let expected = rate * of as f64;
            (expected * 1.1 + 6.0 * expected.sqrt()) / of.max(1) as f64
        };
        let Candidate { name, form, .. } = &self.candidate;
        let judge = |what: &str, measured: f64, allowed: f64| {
            (measured <= allowed).then_some(()).ok_or_else(|| {
                format!("{name}, {form}: {what} of {measured:.2e}, at most {allowed:.2e} expected")
            })
        };
        let Errors { fresh, repeats, .. } = outcome.errors;
        let (max_fpr, max_fnr) = (self.candidate.max_fpr, self.candidate.max_fnr);
        judge("an fpr", outcome.errors.fpr(), allowed(max_fpr, fresh))?;
        let allowed_full = allowed(max_fpr, outcome.probes);
        judge("a final fpr", outcome.fpr_full, allowed_full)?;
        judge("an fnr", outcome.errors.fnr(), allowed(max_fnr, repeats))?;
        Ok(())
    }

    fn rate(&self) -> f64 {
        median(self.rates.clone())
    }
}

/// Measures and prints the table, and what it says of echoless and fastbloom.
///
/// # Errors
/// If the options make no stream, a peer cannot be built or tells what it must not, or an output cannot be written.
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
    let shares = [arguments.repeats, arguments.window];
    if arguments.bits_per_key == 0 || shares.iter().any(|share| !(0.0..1.0).contains(share)) {
        return Err("bits per key must be above 0, repeats and window from 0 to below 1".into());
    }
    let mut table = Table::new(&[
        "name",
        "form",
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
        let is_asked = |name: &str| {
            arguments.only.is_empty() || arguments.only.iter().any(|only| only == name)
        };
        let mut entries: Vec<Entry> = catalogue(bytes, keys)
            .into_iter()
            .filter(|candidate| is_asked(candidate.name))
            .map(Entry::new)
            .collect();
        let is_there = |name: &&String| entries.iter().any(|entry| entry.candidate.name == **name);
        if let Some(unknown) = arguments.only.iter().find(|name| !is_there(name)) {
            return Err(format!("{unknown}: no peer of this name fits in {size} MiB").into());
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
    // Of the forms of fastbloom, the first is the one with its own best number of hashes.
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
            candidate.form.clone().into(),
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

/// What one of our forms is against the fastbloom with the most hashes that is not more accurate.
fn claim(mebibytes: u64, ours: &Entry, entries: &[Entry]) -> Option<String> {
    let fpr = |entry: &Entry| entry.outcome.as_ref().map(|outcome| outcome.fpr_full);
    if ours.candidate.name != "echoless" {
        return None;
    }
    let (our_fpr, our_form) = (fpr(ours)?, &ours.candidate.form);
    let fastbloom = entries.iter().find(|entry| {
        entry.candidate.name == "fastbloom" && fpr(entry).is_some_and(|theirs| theirs >= our_fpr)
    })?;
    Some(format!(
        "{mebibytes} MiB: {our_form} takes {:.1} times the keys of fastbloom with {}, at an fpr of {our_fpr:.2e} against {:.2e}; \
         it missed {:.1e} of the repeats",
        ours.rate() / fastbloom.rate(),
        fastbloom.candidate.form,
        fpr(fastbloom)?,
        ours.outcome.as_ref()?.errors.fnr(),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::candidate::Ages;
    use super::super::stream::CHUNK;
    use super::*;

    const COURSE: Workload = Workload {
        keys: 139_810,
        repeats: 0.25,
        window: 34_952,
        probes: 1 << 16,
    };

    fn measured() -> Vec<Entry> {
        let mut entries: Vec<Entry> = catalogue(1 << 18, COURSE.keys)
            .into_iter()
            .map(Entry::new)
            .collect();
        for entry in &mut entries {
            entry.measure(COURSE, 1).unwrap();
        }
        entries
    }

    #[test]
    fn every_peer_keeps_to_its_counts() {
        let entries = measured();
        let names: Vec<&str> = entries.iter().map(|entry| entry.candidate.name).collect();
        for name in [
            "echoless",
            "fastbloom",
            "sbbf-rs",
            "cuckoofilter",
            "qfilter",
            "growable-bloom-filter",
            "qht",
            "std",
            "ahash",
            "foldhash",
            "dashmap",
        ] {
            assert!(names.contains(&name), "{name}");
        }
        let mut table = Table::new(&[""; 16]);
        push_rows(&mut table, 0, COURSE.keys, &entries).unwrap();
        for entry in &entries {
            let outcome = entry.outcome.as_ref().unwrap();
            let judged = outcome.errors.fresh + outcome.errors.repeats;
            // The keys of whole chunks, a quarter of them repeats.
            assert_eq!(judged % CHUNK as u64, 0);
            assert!((outcome.errors.repeats as f64 / judged as f64 - 0.25).abs() < 0.01);
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
                assert!(bytes <= (1 << 18) + 64, "{}: {bytes}", entry.candidate.name);
            }
        }
        let claims: Vec<String> = entries
            .iter()
            .filter_map(|entry| claim(0, entry, &entries))
            .collect();
        assert_eq!(claims.len(), 4, "{claims:?}");
    }

    #[test]
    fn a_peer_that_exceeds_its_rates_is_a_failure() {
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
