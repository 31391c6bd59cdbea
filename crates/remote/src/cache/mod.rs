//! Cache of remote file ranges, in memory and, up to a limit, on disk, also across runs.

mod disk;
mod memory;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use disk::Disk;
use gguf_store::Source;
use memory::Memory;
use sha2::{Digest, Sha256};

/// Length of a block: some rows of a matrix.
const BLOCK: u64 = 64 << 10;

/// Maximum number of blocks per request.
const MAX_BLOCKS_PER_REQUEST: u64 = 64;

/// Cache of remote file ranges.
///
/// The disk holds only blocks of files whose version the server states ([`Source::identity`]). A
/// block that cannot be written or read is fetched instead: cache errors are never fatal. Eviction
/// on disk is FIFO.
#[derive(Debug)]
pub struct Cache {
    memory: Mutex<Memory>,
    disk: Option<Disk>,
    sources: AtomicU64,
}

/// Size and location of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheUsage {
    /// Number of bytes in memory.
    pub memory_bytes: u64,
    /// Number of bytes on disk, of all remote files.
    pub disk_bytes: u64,
    /// Maximum number of bytes on disk; 0 without a disk cache.
    pub disk_limit: u64,
    /// Directory of the disk cache, if there is one.
    pub directory: Option<PathBuf>,
}

/// Returns the directory of this program among the caches of the user: `$XDG_CACHE_HOME/gguf-kit` or the equivalent of
/// the system; `None` if the user has no home directory.
pub(crate) fn user_directory() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = set("XDG_CACHE_HOME").or_else(|| match std::env::consts::OS {
        "windows" => set("LOCALAPPDATA"),
        "macos" => Some(std::env::home_dir()?.join("Library/Caches")),
        _ => Some(std::env::home_dir()?.join(".cache")),
    });
    Some(caches?.join("gguf-kit"))
}

impl Cache {
    /// Creates a cache of at most `disk_limit` bytes in `directory`, which is created on the first
    /// write; a memory cache only, if there is no directory or the limit is 0.
    pub fn new(directory: Option<PathBuf>, disk_limit: u64) -> Self {
        let disk = directory.filter(|_| disk_limit > 0);
        let disk = disk.map(|directory| Disk::new(directory, disk_limit));
        Self { memory: Mutex::default(), disk, sources: AtomicU64::new(0) }
    }

    /// Returns the default directory of the user: `$XDG_CACHE_HOME/gguf-kit/remote` or the equivalent
    /// of the system; `None` if the user has no home directory.
    pub fn directory() -> Option<PathBuf> {
        Some(user_directory()?.join("remote"))
    }

    /// Wraps a source so that it is read through this cache.
    pub fn source(self: &Arc<Self>, source: Arc<dyn Source>) -> Arc<dyn Source> {
        let identity = source.identity().filter(|_| self.disk.is_some());
        let name = identity.map(|identity| {
            let digest = Sha256::digest(identity.as_bytes());
            digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        let number = self.sources.fetch_add(1, Ordering::Relaxed);
        let cache = self.clone();
        Arc::new(CachedSource {
            cache,
            source,
            number,
            name,
            in_flight: Mutex::default(),
            fetched: Condvar::new(),
        })
    }

    /// Returns the present size and location.
    pub fn usage(&self) -> CacheUsage {
        let disk = self.disk.as_ref();
        CacheUsage {
            memory_bytes: lock(&self.memory).bytes,
            disk_bytes: disk.map_or(0, Disk::used),
            disk_limit: disk.map_or(0, |disk| disk.limit),
            directory: disk.map(|disk| disk.directory.clone()),
        }
    }
}

/// Locks a mutex; no thread leaves an inconsistent value behind, so a poisoned lock is harmless.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A source that is read through a cache.
struct CachedSource {
    cache: Arc<Cache>,
    source: Arc<dyn Source>,
    number: u64,
    /// Name of its directory on disk.
    name: Option<String>,
    /// Blocks that a thread is fetching.
    in_flight: Mutex<HashSet<u64>>,
    fetched: Condvar,
}

impl CachedSource {
    fn len(&self, block: u64) -> u64 {
        BLOCK.min(self.source.byte_len() - block * BLOCK)
    }

    fn in_memory(&self, block: u64) -> Option<Arc<[u8]>> {
        lock(&self.cache.memory).get((self.number, block))
    }

    /// Returns the block if it is cached.
    fn cached(&self, block: u64) -> Option<Arc<[u8]>> {
        if let Some(bytes) = self.in_memory(block) {
            return Some(bytes);
        }
        let (disk, name) = (self.cache.disk.as_ref()?, self.name.as_ref()?);
        let bytes = disk.read(name, block, self.len(block))?;
        lock(&self.cache.memory).put((self.number, block), bytes.clone());
        Some(bytes)
    }

    /// Fetches blocks with one request. The caller has marked them as in flight.
    fn fetch(&self, first: u64, end: u64) -> Result<Vec<Arc<[u8]>>, gguf::Error> {
        let len: u64 = (first..end).map(|block| self.len(block)).sum();
        let mut bytes = vec![0; len as usize];
        self.source.read_at(&mut bytes, first * BLOCK)?;
        let blocks = (first..end).zip(bytes.chunks(BLOCK as usize)).map(|(block, bytes)| {
            let usage: Arc<[u8]> = bytes.into();
            lock(&self.cache.memory).put((self.number, block), usage.clone());
            if let (Some(disk), Some(name)) = (&self.cache.disk, &self.name) {
                // If the write fails, the block will be fetched again.
                let _ = disk.write(name, block, bytes);
            }
            usage
        });
        Ok(blocks.collect())
    }

    /// Returns all blocks from `first` to `last`, fetching the missing ones.
    fn blocks(&self, first: u64, last: u64) -> Result<Vec<Arc<[u8]>>, gguf::Error> {
        let mut found: Vec<_> = (first..=last).map(|block| self.cached(block)).collect();
        loop {
            let missing = |found: &[Option<Arc<[u8]>>]| {
                let at = found.iter().position(Option::is_none)?;
                Some(first + at as u64)
            };
            let Some(start) = missing(&found) else {
                return Ok(found.into_iter().flatten().collect());
            };
            let mut in_flight = lock(&self.in_flight);
            while in_flight.contains(&start) {
                in_flight = self.fetched.wait(in_flight).unwrap_or_else(PoisonError::into_inner);
            }
            // Another thread may have fetched it meanwhile.
            if let Some(bytes) = self.in_memory(start) {
                found[(start - first) as usize] = Some(bytes);
                continue;
            }
            let is_missing = |block: &u64| {
                found[(block - first) as usize].is_none() && !in_flight.contains(block)
            };
            let end =
                (start..=last).take(MAX_BLOCKS_PER_REQUEST as usize).take_while(is_missing).count()
                    as u64
                    + start;
            in_flight.extend(start..end);
            drop(in_flight);
            let fetched = self.fetch(start, end);
            let mut in_flight = lock(&self.in_flight);
            in_flight.retain(|block| !(start..end).contains(block));
            drop(in_flight);
            self.fetched.notify_all();
            for (block, bytes) in (start..end).zip(fetched?) {
                found[(block - first) as usize] = Some(bytes);
            }
        }
    }
}

impl Source for CachedSource {
    fn byte_len(&self) -> u64 {
        self.source.byte_len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
        let end = offset.checked_add(buffer.len() as u64);
        let Some(end) = end.filter(|end| *end <= self.byte_len() && !buffer.is_empty()) else {
            // The source reports the error as it would without a cache.
            return self.source.read_at(buffer, offset);
        };
        let mut rest = buffer;
        // Split a long read, so that memory use stays within the size of the cache.
        let mut at = offset;
        while at < end {
            let last = ((end - 1) / BLOCK).min(at / BLOCK + MAX_BLOCKS_PER_REQUEST - 1);
            for (block, bytes) in (at / BLOCK..).zip(self.blocks(at / BLOCK, last)?) {
                let within = (at - block * BLOCK) as usize;
                let len = (bytes.len() - within).min(rest.len());
                let (part, others) = rest.split_at_mut(len);
                part.copy_from_slice(&bytes[within..within + len]);
                rest = others;
                at += len as u64;
            }
        }
        Ok(())
    }

    fn identity(&self) -> Option<String> {
        self.source.identity()
    }

    fn file(&self) -> Option<&Path> {
        self.source.file()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A source whose bytes follow from their position, that counts its reads and can be made to
    /// fail.
    struct CountingSource {
        len: u64,
        reads: AtomicUsize,
        identity: Option<&'static str>,
        fails: AtomicUsize,
    }

    impl CountingSource {
        fn new(identity: Option<&'static str>) -> Arc<Self> {
            let len = 40 * BLOCK + 5;
            Arc::new(Self { len, reads: AtomicUsize::new(0), identity, fails: AtomicUsize::new(0) })
        }

        fn reads(&self) -> usize {
            self.reads.load(Ordering::Relaxed)
        }
    }

    fn byte(at: u64) -> u8 {
        (at % 251) as u8
    }

    impl Source for CountingSource {
        fn byte_len(&self) -> u64 {
            self.len
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            if self.fails.load(Ordering::Relaxed) > 0 {
                return Err(gguf::Error::read(
                    "remote".as_ref(),
                    std::io::Error::other("connection reset"),
                ));
            }
            (offset..).zip(buffer).for_each(|(at, out)| *out = byte(at));
            Ok(())
        }

        fn identity(&self) -> Option<String> {
            self.identity.map(str::to_owned)
        }
    }

    fn read(source: &Arc<dyn Source>, offset: u64, len: usize) {
        let mut bytes = vec![0; len];
        source.read_at(&mut bytes, offset).unwrap();
        assert!((offset..).zip(&bytes).all(|(at, found)| *found == byte(at)), "{offset} {len}");
    }

    #[test]
    fn cached_blocks_are_not_fetched() {
        let (cache, remote) = (Arc::new(Cache::new(None, 0)), CountingSource::new(Some("a")));
        let source = cache.source(remote.clone());
        // Adjacent blocks come in one request.
        read(&source, BLOCK - 2, 2 * BLOCK as usize);
        assert_eq!(remote.reads(), 1);
        read(&source, 0, 3 * BLOCK as usize);
        assert_eq!(remote.reads(), 1);
        // The last block is short.
        read(&source, 40 * BLOCK + 1, 4);
        read(&source, 0, (40 * BLOCK + 5) as usize);
        assert_eq!(remote.reads(), 3);
        assert_eq!(cache.usage().memory_bytes, 40 * BLOCK + 5);
        // A read beyond the end goes to the source, which reports the error.
        source.read_at(&mut [0; 2], 40 * BLOCK + 4).unwrap();
        assert_eq!(remote.reads(), 4);
    }

    #[test]
    fn concurrent_readers_fetch_a_block_once() {
        let (cache, remote) = (Arc::new(Cache::new(None, 0)), CountingSource::new(None));
        let source = cache.source(remote.clone());
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let source = &source;
                scope.spawn(move || {
                    (0..40).for_each(|i| read(source, (i * 7 + thread) % 40 * BLOCK, 9))
                });
            }
        });
        assert_eq!(remote.reads(), 40);
    }

    #[test]
    fn disk_cache_outlives_a_run() {
        let directory = tempfile::tempdir().unwrap();
        let cache = || Arc::new(Cache::new(Some(directory.path().join("remote")), 10 << 20));
        let remote = CountingSource::new(Some("a"));
        read(&cache().source(remote.clone()), 5, 100);
        let (second, again) = (cache(), CountingSource::new(Some("a")));
        read(&second.source(again.clone()), 0, 200);
        assert_eq!((remote.reads(), again.reads()), (1, 0));
        assert_eq!(second.usage().disk_bytes, BLOCK + 4);
        // Another version is a different file; a file without identity is not cached on disk.
        for (identity, blocks) in [(Some("b"), 2), (None, 2)] {
            let other = CountingSource::new(identity);
            read(&cache().source(other.clone()), 0, 1);
            assert_eq!(other.reads(), 1);
            assert_eq!(cache().usage().disk_bytes, blocks * (BLOCK + 4));
        }
        // A corrupt block is fetched again.
        let folder = fs::read_dir(directory.path().join("remote")).unwrap().flatten();
        for block in folder.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten()) {
            let mut bytes = fs::read(block.path()).unwrap();
            bytes[17] ^= 1;
            fs::write(block.path(), bytes).unwrap();
        }
        let again = CountingSource::new(Some("a"));
        read(&cache().source(again.clone()), 0, 200);
        assert_eq!(again.reads(), 1);
    }

    #[test]
    fn disk_cache_stays_within_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let limit = 10 * BLOCK;
        let cache = Arc::new(Cache::new(Some(directory.path().to_owned()), limit));
        let source = cache.source(CountingSource::new(Some("a")));
        for block in 0..40 {
            read(&source, block * BLOCK, 1);
            assert!(cache.usage().disk_bytes <= limit);
        }
        let files = fs::read_dir(directory.path()).unwrap().flatten();
        let left = files.flat_map(|folder| fs::read_dir(folder.path()).unwrap()).count();
        assert!((5..=10).contains(&left), "{left}");
    }

    /// Without a writable directory the memory cache still works, and a failed fetch can be
    /// retried.
    #[test]
    fn failed_fetches_are_not_cached() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "not a directory").unwrap();
        let cache = Arc::new(Cache::new(Some(file), 1 << 20));
        let remote = CountingSource::new(Some("a"));
        let source = cache.source(remote.clone());
        remote.fails.store(1, Ordering::Relaxed);
        assert!(source.read_at(&mut [0; 9], 0).is_err());
        remote.fails.store(0, Ordering::Relaxed);
        read(&source, 0, 9);
        read(&source, 0, 9);
        assert_eq!(remote.reads(), 2);
    }
}
