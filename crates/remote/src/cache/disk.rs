//! Blocks on disk: a folder for each far file, a file for each block of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::lock;

/// Bytes of a checksum, behind those of a block.
const CHECKSUM: usize = 4;

/// Blocks on disk: a folder for each far file, a file for each block of it.
#[derive(Debug)]
pub(super) struct Disk {
    pub directory: PathBuf,
    pub limit: u64,
    /// Bytes of all blocks, once they were counted.
    used: Mutex<Option<u64>>,
}

/// A block on disk.
struct Stored {
    path: PathBuf,
    bytes: u64,
    written: SystemTime,
}

impl Disk {
    /// Nothing is made before something is to be kept.
    pub fn new(directory: PathBuf, limit: u64) -> Self {
        Self { directory, limit, used: Mutex::new(None) }
    }

    fn path(&self, name: &str, block: u64) -> PathBuf {
        self.directory.join(name).join(block.to_string())
    }

    pub fn read(&self, name: &str, block: u64, len: u64) -> Option<Arc<[u8]>> {
        let mut bytes = fs::read(self.path(name, block)).ok()?;
        if bytes.len() as u64 != len + CHECKSUM as u64 {
            return None;
        }
        let stated = bytes.split_off(bytes.len() - CHECKSUM);
        (crc32fast::hash(&bytes).to_le_bytes()[..] == stated[..]).then(|| bytes.into())
    }

    /// Writes a block under another name first, so that nobody reads half of it.
    pub fn write(&self, name: &str, block: u64, bytes: &[u8]) -> std::io::Result<()> {
        let path = self.path(name, block);
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        let unfinished = path.with_extension(format!("{}", std::process::id()));
        let all = [bytes, &crc32fast::hash(bytes).to_le_bytes()].concat();
        fs::write(&unfinished, &all).and_then(|()| fs::rename(&unfinished, &path)).inspect_err(
            |_| {
                // It is only in the way.
                let _ = fs::remove_file(&unfinished);
            },
        )?;
        let mut used = lock(&self.used);
        let sum = used.map_or_else(
            || self.stored().iter().map(|one| one.bytes).sum(),
            |used| used + all.len() as u64,
        );
        *used = Some(if sum > self.limit { self.make_room() } else { sum });
        Ok(())
    }

    pub fn used(&self) -> u64 {
        let mut used = lock(&self.used);
        *used.get_or_insert_with(|| self.stored().iter().map(|one| one.bytes).sum())
    }

    /// Removes the oldest blocks, a tenth more than needed; gives what is left.
    fn make_room(&self) -> u64 {
        let mut stored = self.stored();
        stored.sort_by_key(|one| one.written);
        let mut sum = stored.iter().map(|one| one.bytes).sum();
        let target = self.limit - self.limit / 10;
        for one in stored {
            if sum <= target {
                break;
            }
            if fs::remove_file(&one.path).is_ok() {
                sum -= one.bytes;
                // Goes if it is empty.
                let _ = one.path.parent().map(fs::remove_dir);
            }
        }
        sum
    }

    fn stored(&self) -> Vec<Stored> {
        let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
        let blocks = entries(&self.directory).flat_map(|folder| entries(&folder.path()));
        let stored = blocks.filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            let written = metadata.modified().ok()?;
            Some(Stored { path: entry.path(), bytes: metadata.len(), written })
        });
        stored.collect()
    }
}

/// What is kept may be of models that are not for everybody.
fn private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
