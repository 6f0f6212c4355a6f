//! The machine of a measurement, named by its hardware only.

use std::fs;
use std::ops::RangeInclusive;
use std::thread;

use echoless::LookAhead;
use serde::{Deserialize, Serialize};

/// Sizes in MiB whose bytes fit in 64 bits.
pub(crate) const SIZES_MIB: RangeInclusive<u64> = 1..=1 << 40;

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The model name of the CPU.
    pub cpu: String,
    /// The family and the model of the CPU as numbers: machines of one provider often have one
    /// model name for CPUs of several generations. Empty in records without it, and where the
    /// system does not report it.
    #[serde(default)]
    pub cpu_family: String,
    /// The cores that this process may use.
    pub cores: usize,
    /// The memory, in MiB.
    pub memory_mib: u64,
    /// The operating system and the version of its kernel.
    pub system: String,
    /// The look-ahead of all filters if it was fixed; empty if each filter measured it.
    #[serde(default)]
    pub look_ahead: String,
}

impl Machine {
    /// This machine. A property that the system does not report is `unknown` or 0.
    #[must_use]
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let release = read("/proc/sys/kernel/osrelease");
        Self::from_texts(
            &read("/proc/cpuinfo"),
            &read("/proc/meminfo"),
            release.trim(),
            thread::available_parallelism().map_or(1, usize::from),
        )
    }

    fn from_texts(cpuinfo: &str, meminfo: &str, release: &str, cores: usize) -> Self {
        let cpu = field(cpuinfo, "model name").unwrap_or("unknown");
        let cpu_family = match (field(cpuinfo, "cpu family"), field(cpuinfo, "model")) {
            (Some(family), Some(model)) => format!("family {family} model {model}"),
            _ => String::new(),
        };
        let kibibytes = field(meminfo, "MemTotal")
            .and_then(|value| value.trim_end_matches("kB").trim().parse().ok())
            .unwrap_or(0u64);
        // The rest names the builder of the kernel.
        let version = release.split('-').next().unwrap_or_default();
        Self {
            cpu: cpu.to_owned(),
            cpu_family,
            cores,
            memory_mib: kibibytes / 1024,
            system: format!("{} {version}", std::env::consts::OS)
                .trim_end()
                .to_owned(),
            look_ahead: LookAhead::fixed().map_or_else(String::new, |fixed| fixed.to_string()),
        }
    }

    /// The model name of the CPU, with its family if it is known.
    #[must_use]
    pub fn cpu_name(&self) -> String {
        match self.cpu_family.as_str() {
            "" => self.cpu.clone(),
            family => format!("{} ({family})", self.cpu),
        }
    }

    /// A folder name: the CPU and the number of cores.
    ///
    /// # Examples
    /// ```
    /// use echoless_bench::machine::Machine;
    /// let machine = Machine {
    ///     cpu: "Maker(R) CPU 9 @ 2.10GHz".into(),
    ///     cpu_family: "family 6 model 7".into(),
    ///     cores: 2,
    ///     memory_mib: 4096,
    ///     system: "linux 6.1.0".into(),
    ///     look_ahead: "3 blocks".into(),
    /// };
    /// assert_eq!(machine.slug(), "maker-r-cpu-9-2-10ghz-family-6-model-7-2-cores");
    /// ```
    #[must_use]
    pub fn slug(&self) -> String {
        let name = format!("{} {} cores", self.cpu_name(), self.cores).to_lowercase();
        let words: Vec<&str> = name
            .split(|character: char| !character.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        words.join("-")
    }
}

/// The value of the first line of the form `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_parsed_from_proc_files() {
        let cpuinfo = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\n\
            model name\t: Some CPU 7\nmodel name\t: other\n";
        let machine = Machine::from_texts(cpuinfo, "MemTotal:  4194304 kB\n", "6.1.0-made-by", 4);
        assert_eq!(machine.cpu, "Some CPU 7");
        assert_eq!(machine.memory_mib, 4096);
        assert_eq!(machine.system, format!("{} 6.1.0", std::env::consts::OS));
        assert_eq!(machine.cpu_name(), "Some CPU 7 (family 25 model 17)");
        assert_eq!(machine.slug(), "some-cpu-7-family-25-model-17-4-cores");
    }

    #[test]
    fn a_system_without_proc_files_is_unknown() {
        let machine = Machine::from_texts("", "", "", 1);
        assert_eq!((machine.cpu.as_str(), machine.memory_mib), ("unknown", 0));
        assert_eq!(machine.slug(), "unknown-1-cores");
    }
}
