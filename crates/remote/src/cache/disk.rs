//! Disk cache: one directory per remote file, one file per block.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::lock;

/// Length of the checksum after a block.
const CHECKSUM: usize = 4;

/// Disk cache: one directory per remote file, one file per block.
#[derive(Debug)]
pub(super) struct Disk {
    pub directory: PathBuf,
    pub limit: u64,
    /// Total length of all blocks, computed on first use.
    used: Mutex<Option<u64>>,
}

/// A cached block on disk.
struct DiskBlock {
    path: PathBuf,
    bytes: u64,
    written: SystemTime,
}

impl Disk {
    /// Creates nothing on disk before the first write.
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

    /// Writes a block to a temporary file and renames it, so that readers never see a partial
    /// block.
    pub fn write(&self, name: &str, block: u64, bytes: &[u8]) -> std::io::Result<()> {
        let path = self.path(name, block);
        if let Some(folder) = path.parent() {
            create_private_dir(folder)?;
        }
        let temporary = path.with_extension(format!("{}", std::process::id()));
        let all = [bytes, &crc32fast::hash(bytes).to_le_bytes()].concat();
        fs::write(&temporary, &all).and_then(|()| fs::rename(&temporary, &path)).inspect_err(
            |_| {
                // A partial file is useless.
                let _ = fs::remove_file(&temporary);
            },
        )?;
        let mut used = lock(&self.used);
        let sum = used.map_or_else(
            || self.blocks().iter().map(|block| block.bytes).sum(),
            |used| used + all.len() as u64,
        );
        *used = Some(if sum > self.limit { self.evict() } else { sum });
        Ok(())
    }

    pub fn used(&self) -> u64 {
        let mut used = lock(&self.used);
        *used.get_or_insert_with(|| self.blocks().iter().map(|block| block.bytes).sum())
    }

    /// Evicts the oldest blocks until the cache is a tenth below its limit; returns the remaining
    /// length.
    fn evict(&self) -> u64 {
        let mut blocks = self.blocks();
        blocks.sort_by_key(|block| block.written);
        let mut sum = blocks.iter().map(|block| block.bytes).sum();
        let target = self.limit - self.limit / 10;
        for block in blocks {
            if sum <= target {
                break;
            }
            if fs::remove_file(&block.path).is_ok() {
                sum -= block.bytes;
                // Removes the directory only if it is empty.
                let _ = block.path.parent().map(fs::remove_dir);
            }
        }
        sum
    }

    fn blocks(&self) -> Vec<DiskBlock> {
        let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
        let blocks = entries(&self.directory).flat_map(|folder| entries(&folder.path()));
        let blocks = blocks.filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            let written = metadata.modified().ok()?;
            Some(DiskBlock { path: entry.path(), bytes: metadata.len(), written })
        });
        blocks.collect()
    }
}

/// Creates a directory that other users cannot read: the cache may hold blocks of private models.
fn create_private_dir(path: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
