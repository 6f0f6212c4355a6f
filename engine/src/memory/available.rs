//! How much memory this process can have: what the system has left, or less if a limit of the
//! process or of its control group is lower.
//!
//! Linux grants more memory than it has and ends processes later, so a filter checks the available
//! memory before it allocates.

use std::fs;

use crate::error::MemoryError;

/// A version 1 group without a limit reports the largest multiple of a page, which is above this.
const UNLIMITED: u64 = 1 << 62;

/// Allocations of so many bytes are not checked: where they fail, nothing else works either, and
/// the check takes a good part of a short run.
const UNCHECKED: u64 = 1 << 20;

/// Rejects an allocation that exceeds the available memory, instead of being killed later.
///
/// # Errors
/// [`MemoryError`] if fewer than `bytes` bytes are available.
pub fn check_available(bytes: u64) -> Result<(), MemoryError> {
    if bytes <= UNCHECKED {
        return Ok(());
    }
    match available() {
        Some(available) if bytes > available => Err(MemoryError {
            bytes,
            reason: format!("{available} bytes are available"),
        }),
        _ => Ok(()),
    }
}

/// The memory in bytes that this process can still allocate: what the kernel can provide without
/// swapping, or less if a control group of the process, a parent of that group, or the limit of the
/// address space has less left. `None` if the system does not report it.
///
/// # Examples
/// ```
/// // Half of it, but at most 64 MiB.
/// let memory = echoless::memory::available().map_or(1 << 20, |bytes| bytes / 2);
/// assert!(memory.min(64 << 20) > 0);
/// ```
#[must_use]
pub fn available() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let of_system = kibibytes(&meminfo, "MemAvailable:")? * 1024;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = groups.lines().flat_map(left_in_groups);
    of_groups
        .chain(left_in_address_space())
        .chain([of_system])
        .min()
}

/// The address space that the process has left, in bytes, if it is limited.
fn left_in_address_space() -> Option<u64> {
    let limit = address_space_limit(&fs::read_to_string("/proc/self/limits").ok()?)?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(limit.saturating_sub(kibibytes(&status, "VmSize:")? * 1024))
}

/// The limit of the address space in bytes, from the text of `/proc/self/limits`.
fn address_space_limit(limits: &str) -> Option<u64> {
    let mut lines = limits.lines();
    let values = lines.find_map(|line| line.strip_prefix("Max address space"))?;
    values.split_whitespace().next()?.parse().ok()
}

/// The memory that a control group and its parents have left, in bytes, from the line of the group
/// in `/proc/self/cgroup`: a group of version 2 (`0::/path`) or the memory group of version 1.
fn left_in_groups(line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':');
    let (Some(number), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
    else {
        return Vec::new();
    };
    let (root, limit, used) = if number == "0" && controllers.is_empty() {
        ("/sys/fs/cgroup", "memory.max", "memory.current")
    } else if controllers.split(',').any(|name| name == "memory") {
        (
            "/sys/fs/cgroup/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        )
    } else {
        return Vec::new();
    };
    // In a container the path of the group may not be visible; the root is then the group itself.
    let left = |group: &str| {
        let text = |file: &str| fs::read_to_string(format!("{root}{group}/{file}")).ok();
        let number = |file: &str| -> Option<u64> { text(file)?.trim().parse().ok() };
        let limit = number(limit).filter(|limit| *limit < UNLIMITED)?;
        let cached = cached_files(&text("memory.stat").unwrap_or_default());
        Some(limit.saturating_sub(number(used)?.saturating_sub(cached)))
    };
    let groups = group_and_parents(path);
    groups.into_iter().filter_map(left).collect()
}

/// The path of a group and those of its parents, up to the root, which is empty.
fn group_and_parents(path: &str) -> Vec<&str> {
    let path = path.trim_end_matches('/');
    let parents = path.rmatch_indices('/').map(|(end, _)| &path[..end]);
    let mut groups = vec![path];
    groups.extend(parents);
    groups
}

/// The page cache of a control group in bytes, from its `memory.stat`. It counts as used, but the
/// kernel reclaims it when memory is needed.
fn cached_files(stat: &str) -> u64 {
    let value = |names: [&str; 2]| -> Option<u64> {
        stat.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            names.contains(&name).then(|| value.trim().parse().ok())?
        })
    };
    // The totals of version 1 include child groups, as the plain numbers of version 2 do.
    let active = value(["active_file", "total_active_file"]).unwrap_or(0);
    active + value(["inactive_file", "total_inactive_file"]).unwrap_or(0)
}

/// The number of KiB on the line of a `/proc` file that starts with `label`.
fn kibibytes(text: &str, label: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(label))?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_cache_counts_as_available() {
        let stat = "anon 7\nfile 50\nactive_file 20\ninactive_file 30\nslab 9\n";
        assert_eq!(cached_files(stat), 50);
        assert_eq!(cached_files("total_inactive_file 30\nrss 1\n"), 30);
        assert_eq!(cached_files(""), 0);
    }

    #[test]
    fn a_group_has_parents_up_to_the_root() {
        assert_eq!(group_and_parents("/a/b"), ["/a/b", "/a", ""]);
        assert_eq!(group_and_parents("/a"), ["/a", ""]);
        assert_eq!(group_and_parents("/"), [""]);
        assert_eq!(group_and_parents(""), [""]);
    }

    #[test]
    fn the_address_space_is_limited_by_a_number() {
        let limits = |soft: &str| {
            format!(
                "Max resident set          unlimited unlimited bytes\n\
                 Max address space         {soft} unlimited bytes\n"
            )
        };
        assert_eq!(address_space_limit(&limits("131072000")), Some(131_072_000));
        assert_eq!(address_space_limit(&limits("unlimited")), None);
        assert_eq!(address_space_limit(""), None);
    }
}
