//! The CPU: its maker and its caches, on which the look-ahead depends.

/// What the choice depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cpu {
    /// The size of the L1 data cache in bytes; 0 if it is unknown.
    pub(super) l1_bytes: u64,
    /// The size of the L3 cache in bytes; 0 if it is unknown.
    pub(super) l3_bytes: u64,
    pub(super) is_amd: bool,
}

impl Cpu {
    pub(super) fn detect() -> Self {
        Self {
            l1_bytes: cache_bytes("1"),
            l3_bytes: cache_bytes("3"),
            is_amd: is_amd(),
        }
    }
}

/// Whether AMD made this CPU.
fn is_amd() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        // Every CPU of x86-64 has the instruction.
        let leaf = std::arch::x86_64::__cpuid(0);
        [leaf.ebx, leaf.edx, leaf.ecx]
            .map(u32::to_le_bytes)
            .concat()
            == b"AuthenticAMD"
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The size of the data cache of a level in bytes; 0 if the system does not report it. Read from a
/// file of the system: the instruction of the CPU that reports it costs more in a virtual machine,
/// and differs from maker to maker.
fn cache_bytes(level: &str) -> u64 {
    let caches = "/sys/devices/system/cpu/cpu0/cache";
    (0..4)
        .find_map(|index| {
            let read = |name: &str| {
                let text = std::fs::read_to_string(format!("{caches}/index{index}/{name}"));
                Some(text.ok()?.trim().to_owned())
            };
            if read("level")? != level || read("type")? == "Instruction" {
                return None;
            }
            let kibibytes: u64 = read("size")?.strip_suffix('K')?.parse().ok()?;
            Some(kibibytes << 10)
        })
        .unwrap_or(0)
}
