//! The bounds of the audit on a log of a web server, if it is beside the repository.

use echoless::KeyHasher;

use crate::bounds::{holds, run};
use crate::window_bounds::log;

#[test]
fn bounds_hold_on_a_real_log() {
    let Some(log) = log() else { return };
    let hasher = KeyHasher::seeded(0);
    // The first field is the client, the seventh the page.
    for field in [0, 6] {
        let keys: Vec<u64> = (log.split(|byte| *byte == b'\n'))
            .filter_map(|line| line.split(|byte| *byte == b' ').nth(field))
            .map(|text| hasher.hash(text).get())
            .collect();
        assert!(keys.len() > 1000);
        let (mut held, mut runs) = (0, 0);
        for memory in [64, 128, 512, 2048, 8192] {
            for filter in [
                "rowlru:slots=16,bits=32",
                "qqht:slots=32,bits=16",
                "qqhtd:slots=64,bits=8",
            ] {
                let spec = format!("{filter},form=line,memory={memory}B");
                // Five times over, so that the log is long compared with the samples.
                let stream = keys.iter().cycle().take(5 * keys.len()).copied();
                let (errors, _, truth) = run(&spec, memory, stream);
                runs += 2;
                held += u64::from(holds(errors.missed_duplicates, truth.missed));
                held += u64::from(holds(errors.false_duplicates, truth.mistaken));
            }
        }
        assert!(held * 100 >= runs * 95, "{held} of {runs}");
    }
}
