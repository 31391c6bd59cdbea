//! Memory of the machine, as Linux tells it.

use std::fs::read_to_string;

/// Files in which a control group of a container states its limit in bytes, by version.
const GROUP_LIMITS: [&str; 2] =
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/// Returns the memory of the machine or of the container in bytes; `None` if the system does not tell it.
pub(crate) fn total() -> Option<u64> {
    let limits =
        GROUP_LIMITS.iter().filter_map(|path| read_to_string(path).ok()?.trim().parse().ok());
    field("MemTotal:").into_iter().chain(limits).min()
}

/// Returns the available memory in bytes; `None` if the system does not tell it.
pub(crate) fn available() -> Option<u64> {
    field("MemAvailable:")
}

/// Returns the peak memory of this process in bytes; `None` if the system does not tell it.
pub(crate) fn peak() -> Option<u64> {
    let status = read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn field(name: &str) -> Option<u64> {
    let text = read_to_string("/proc/meminfo").ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes.saturating_mul(1024))
}
