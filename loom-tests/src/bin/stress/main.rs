//! Runs random engines and ordered filters under real threads against a sequential oracle, for a
//! given time.
//!
//! ```text
//! cargo run -p echoless-loom --bin stress -- SECONDS [SEED]
//! ```
//!
//! Every scenario is drawn from a seed of its own, which is printed if it fails or hangs; to run it
//! again, pass it as the seed. What the threads do then is the same, and their timing is not, so a
//! rare failure needs many runs.

mod engine;
mod filter;
mod ordered;
mod random;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use random::Random;

/// A scenario takes milliseconds. One that takes this long hangs.
const HANGS: Duration = Duration::from_secs(60);

/// Draws a scenario and runs it. Panics if a property does not hold.
type Scenario = fn(&mut Random);

/// The scenarios by name.
const SCENARIOS: [(&str, Scenario); 5] = [
    ("ordered filter", ordered::threads_take_turns),
    ("ordered filter, filters panic", ordered::filters_panic),
    ("engine, ports come and go", engine::ports_come_and_go),
    ("engine, filters panic", engine::filters_panic),
    ("engine, it ends early", engine::it_ends_early),
];

/// The seed of the scenario that runs, and when it began, in milliseconds of this process.
static SEED: AtomicU64 = AtomicU64::new(0);
static BEGAN: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Some(Ok(seconds)), seed @ (None | Some(Ok(_))), None) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("stress: expected SECONDS [SEED], both whole numbers");
        return ExitCode::from(2);
    };
    let first = seed.and_then(Result::ok).unwrap_or(1);
    let start = Instant::now();
    thread::spawn(move || watch(start));
    let mut counts = [0; SCENARIOS.len()];
    for seed in first.. {
        if start.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
        SEED.store(seed, Ordering::Relaxed);
        BEGAN.store(start.elapsed().as_millis() as u64, Ordering::Relaxed);
        let mut random = Random::seeded(seed);
        let index = random.below(SCENARIOS.len());
        counts[index] += 1;
        let (name, scenario) = SCENARIOS[index];
        let run = thread::spawn(move || scenario(&mut random));
        if run.join().is_err() {
            eprintln!("stress: seed {seed} failed ({name})");
            return ExitCode::FAILURE;
        }
    }
    for ((name, _), count) in SCENARIOS.iter().zip(counts) {
        println!("{count:>8} runs: {name}");
    }
    println!("seeds {first} to {}", SEED.load(Ordering::Relaxed));
    ExitCode::SUCCESS
}

/// Ends the process if a scenario hangs.
fn watch(start: Instant) {
    loop {
        thread::sleep(Duration::from_secs(1));
        let began = Duration::from_millis(BEGAN.load(Ordering::Relaxed));
        if start.elapsed().saturating_sub(began) > HANGS {
            eprintln!("stress: seed {} hangs", SEED.load(Ordering::Relaxed));
            std::process::exit(1);
        }
    }
}
