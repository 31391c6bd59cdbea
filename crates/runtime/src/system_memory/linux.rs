//! Memory of the machine, as Linux tells it.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Returns the memory of the machine or of the container in bytes; `None` if the system does not tell it.
pub(crate) fn total() -> Option<u64> {
    let limits = groups().into_iter().filter_map(|group| group.limit());
    field("MemTotal:").into_iter().chain(limits).min()
}

/// Returns the available memory in bytes; `None` if the system does not tell it.
pub(crate) fn available() -> Option<u64> {
    let of_groups = groups().into_iter().filter_map(|group| group.available());
    field("MemAvailable:").into_iter().chain(of_groups).min()
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

/// Control group of this process, or one that contains it: a container, or a service of systemd.
#[derive(Debug, PartialEq)]
struct Group {
    folder: PathBuf,
    /// Files with the limit and the memory in use, and the field of `memory.stat` with the page cache in it.
    names: [&'static str; 3],
}

const VERSION_1: [&str; 3] = ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache"];
const VERSION_2: [&str; 3] = ["memory.max", "memory.current", "file"];

impl Group {
    fn limit(&self) -> Option<u64> {
        self.number(self.names[0])
    }

    /// Returns the memory that is left, with the page cache, which can be evicted.
    fn available(&self) -> Option<u64> {
        let used = self.number(self.names[1])?;
        let stat = read_to_string(self.folder.join("memory.stat")).unwrap_or_default();
        let mut fields = stat.lines().filter_map(|line| line.split_once(' '));
        let cache = fields.find(|(name, _)| *name == self.names[2]);
        let cache: u64 = cache.and_then(|(_, bytes)| bytes.parse().ok()).unwrap_or(0);
        Some(self.limit()?.saturating_sub(used.saturating_sub(cache)))
    }

    fn number(&self, name: &str) -> Option<u64> {
        read_to_string(self.folder.join(name)).ok()?.trim().parse().ok()
    }
}

fn groups() -> Vec<Group> {
    groups_of(&read_to_string("/proc/self/cgroup").unwrap_or_default())
}

/// Returns the groups that limit memory, given the text of `/proc/self/cgroup`.
fn groups_of(text: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for line in text.lines() {
        let mut words = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (words.next(), words.next()) else { continue };
        let (root, names) = match controllers {
            "" => ("/sys/fs/cgroup", VERSION_2),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", VERSION_1)
            }
            _ => continue,
        };
        // In a container the path may be that of the host, where only the root is mounted.
        for path in Path::new(path.trim_start_matches('/')).ancestors() {
            groups.push(Group { folder: Path::new(root).join(path), names });
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_and_their_parents_are_found() {
        let group = |folder: &str, names| Group { folder: folder.into(), names };
        let text = "5:cpu,cpuacct:/a\n4:memory:/docker/b\n0::/user.slice/c.scope\n";
        let expected = [
            group("/sys/fs/cgroup/memory/docker/b", VERSION_1),
            group("/sys/fs/cgroup/memory/docker", VERSION_1),
            group("/sys/fs/cgroup/memory/", VERSION_1),
            group("/sys/fs/cgroup/user.slice/c.scope", VERSION_2),
            group("/sys/fs/cgroup/user.slice", VERSION_2),
            group("/sys/fs/cgroup/", VERSION_2),
        ];
        assert_eq!(groups_of(text), expected);
        assert_eq!(groups_of("0::/\n"), [group("/sys/fs/cgroup/", VERSION_2)]);
    }

    #[test]
    fn page_cache_of_a_group_is_available() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let group = Group { folder: folder.path().to_owned(), names: VERSION_2 };
        assert_eq!((group.limit(), group.available()), (None, None));
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        write("memory.stat", "anon 100\nfile 550\nfile_mapped 20\n");
        assert_eq!((group.limit(), group.available()), (None, None));
        write("memory.max", "1000\n");
        assert_eq!((group.limit(), group.available()), (Some(1000), Some(850)));
    }
}
