//! Parts of far files that are kept: in memory and, within a limit, on disk, so that what was looked at once is not
//! fetched again, also in another run.

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

/// Bytes that are kept together: some rows of a matrix.
const BLOCK: u64 = 64 << 10;

/// Blocks of one request at most.
const AT_ONCE: u64 = 64;

/// Parts of far files, kept.
///
/// On disk are only parts of files whose version a server tells ([`Source::identity`]). Whatever cannot be
/// written or read there is fetched: a cache is no reason to fail. When there is too much, what was written
/// first goes first.
#[derive(Debug)]
pub struct Cache {
    memory: Mutex<Memory>,
    disk: Option<Disk>,
    sources: AtomicU64,
}

/// What a cache holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Bytes in memory.
    pub memory_bytes: u64,
    /// Bytes on disk, of all far files.
    pub disk_bytes: u64,
    /// Bytes on disk at most; 0 if nothing is kept there.
    pub disk_limit: u64,
    /// Where; `None` if nothing is kept there.
    pub directory: Option<PathBuf>,
}

impl Cache {
    /// A cache that keeps at most `disk_limit` bytes in `directory`, which is made when something is to be kept;
    /// in memory only if there is none or the limit is 0.
    pub fn new(directory: Option<PathBuf>, disk_limit: u64) -> Self {
        let disk = directory.filter(|_| disk_limit > 0);
        let disk = disk.map(|directory| Disk::new(directory, disk_limit));
        Self { memory: Mutex::default(), disk, sources: AtomicU64::new(0) }
    }

    /// Where programs of this user keep what can be had again: `$XDG_CACHE_HOME/gguf-kit/far`, or what the system has in
    /// its place. `None` if the user has no home.
    pub fn directory() -> Option<PathBuf> {
        let set =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let caches = set("XDG_CACHE_HOME").or_else(|| match std::env::consts::OS {
            "windows" => set("LOCALAPPDATA"),
            "macos" => Some(std::env::home_dir()?.join("Library/Caches")),
            _ => Some(std::env::home_dir()?.join(".cache")),
        });
        Some(caches?.join("gguf-kit").join("far"))
    }

    /// A source that reads another one through this cache.
    pub fn source(self: &Arc<Self>, source: Arc<dyn Source>) -> Arc<dyn Source> {
        let identity = source.identity().filter(|_| self.disk.is_some());
        let name = identity.map(|identity| {
            let digest = Sha256::digest(identity.as_bytes());
            digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        let number = self.sources.fetch_add(1, Ordering::Relaxed);
        let cache = self.clone();
        Arc::new(Cached {
            cache,
            source,
            number,
            name,
            coming: Mutex::default(),
            came: Condvar::new(),
        })
    }

    /// What it holds now.
    pub fn kept(&self) -> Kept {
        let disk = self.disk.as_ref();
        Kept {
            memory_bytes: lock(&self.memory).bytes,
            disk_bytes: disk.map_or(0, Disk::used),
            disk_limit: disk.map_or(0, |disk| disk.limit),
            directory: disk.map(|disk| disk.directory.clone()),
        }
    }
}

/// No thread leaves half a change behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A source that is read through a cache.
struct Cached {
    cache: Arc<Cache>,
    source: Arc<dyn Source>,
    number: u64,
    /// Its folder on disk.
    name: Option<String>,
    /// Blocks that some thread is fetching.
    coming: Mutex<HashSet<u64>>,
    came: Condvar,
}

impl Cached {
    fn len(&self, block: u64) -> u64 {
        BLOCK.min(self.source.byte_len() - block * BLOCK)
    }

    fn in_memory(&self, block: u64) -> Option<Arc<[u8]>> {
        lock(&self.cache.memory).get((self.number, block))
    }

    /// The block if it is here.
    fn known(&self, block: u64) -> Option<Arc<[u8]>> {
        if let Some(bytes) = self.in_memory(block) {
            return Some(bytes);
        }
        let (disk, name) = (self.cache.disk.as_ref()?, self.name.as_ref()?);
        let bytes = disk.read(name, block, self.len(block))?;
        lock(&self.cache.memory).put((self.number, block), bytes.clone());
        Some(bytes)
    }

    /// Fetches blocks that nobody else fetches, in one request.
    fn fetch(&self, first: u64, end: u64) -> Result<Vec<Arc<[u8]>>, gguf::Error> {
        let len: u64 = (first..end).map(|block| self.len(block)).sum();
        let mut bytes = vec![0; len as usize];
        self.source.read_at(&mut bytes, first * BLOCK)?;
        let blocks = (first..end).zip(bytes.chunks(BLOCK as usize)).map(|(block, bytes)| {
            let kept: Arc<[u8]> = bytes.into();
            lock(&self.cache.memory).put((self.number, block), kept.clone());
            if let (Some(disk), Some(name)) = (&self.cache.disk, &self.name) {
                // Then it is fetched again another time.
                let _ = disk.write(name, block, bytes);
            }
            kept
        });
        Ok(blocks.collect())
    }

    /// All blocks from `first` to `last`.
    fn blocks(&self, first: u64, last: u64) -> Result<Vec<Arc<[u8]>>, gguf::Error> {
        let mut found: Vec<_> = (first..=last).map(|block| self.known(block)).collect();
        loop {
            let missing = |found: &[Option<Arc<[u8]>>]| {
                let at = found.iter().position(Option::is_none)?;
                Some(first + at as u64)
            };
            let Some(start) = missing(&found) else {
                return Ok(found.into_iter().flatten().collect());
            };
            let mut coming = lock(&self.coming);
            while coming.contains(&start) {
                coming = self.came.wait(coming).unwrap_or_else(PoisonError::into_inner);
            }
            // It may have come meanwhile.
            if let Some(bytes) = self.in_memory(start) {
                found[(start - first) as usize] = Some(bytes);
                continue;
            }
            let is_wanted =
                |block: &u64| found[(block - first) as usize].is_none() && !coming.contains(block);
            let end =
                (start..=last).take(AT_ONCE as usize).take_while(is_wanted).count() as u64 + start;
            coming.extend(start..end);
            drop(coming);
            let fetched = self.fetch(start, end);
            let mut coming = lock(&self.coming);
            coming.retain(|block| !(start..end).contains(block));
            drop(coming);
            self.came.notify_all();
            for (block, bytes) in (start..end).zip(fetched?) {
                found[(block - first) as usize] = Some(bytes);
            }
        }
    }
}

impl Source for Cached {
    fn byte_len(&self) -> u64 {
        self.source.byte_len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
        let end = offset.checked_add(buffer.len() as u64);
        let Some(end) = end.filter(|end| *end <= self.byte_len() && !buffer.is_empty()) else {
            // Says what is wrong as it would without a cache.
            return self.source.read_at(buffer, offset);
        };
        let mut rest = buffer;
        // A long read is done in parts: no more of it than is kept has to be in memory.
        let mut at = offset;
        while at < end {
            let last = ((end - 1) / BLOCK).min(at / BLOCK + AT_ONCE - 1);
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

    /// Each byte is a number of its place; counts how often it is read, and fails if it is told to.
    struct Counted {
        len: u64,
        reads: AtomicUsize,
        identity: Option<&'static str>,
        fails: AtomicUsize,
    }

    impl Counted {
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

    impl Source for Counted {
        fn byte_len(&self) -> u64 {
            self.len
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            if self.fails.load(Ordering::Relaxed) > 0 {
                return Err(gguf::Error::read(
                    "far".as_ref(),
                    std::io::Error::other("the line is cut"),
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
    fn what_is_here_is_not_fetched() {
        let (cache, far) = (Arc::new(Cache::new(None, 0)), Counted::new(Some("a")));
        let source = cache.source(far.clone());
        // Neighbours come in one request.
        read(&source, BLOCK - 2, 2 * BLOCK as usize);
        assert_eq!(far.reads(), 1);
        read(&source, 0, 3 * BLOCK as usize);
        assert_eq!(far.reads(), 1);
        // The last one is short.
        read(&source, 40 * BLOCK + 1, 4);
        read(&source, 0, (40 * BLOCK + 5) as usize);
        assert_eq!(far.reads(), 3);
        assert_eq!(cache.kept().memory_bytes, 40 * BLOCK + 5);
        // Beyond the end, the source says what is wrong.
        source.read_at(&mut [0; 2], 40 * BLOCK + 4).unwrap();
        assert_eq!(far.reads(), 4);
    }

    #[test]
    fn many_threads_fetch_a_block_once() {
        let (cache, far) = (Arc::new(Cache::new(None, 0)), Counted::new(None));
        let source = cache.source(far.clone());
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let source = &source;
                scope.spawn(move || {
                    (0..40).for_each(|i| read(source, (i * 7 + thread) % 40 * BLOCK, 9))
                });
            }
        });
        assert_eq!(far.reads(), 40);
    }

    #[test]
    fn another_run_finds_it_on_disk() {
        let directory = tempfile::tempdir().unwrap();
        let cache = || Arc::new(Cache::new(Some(directory.path().join("far")), 10 << 20));
        let far = Counted::new(Some("a"));
        read(&cache().source(far.clone()), 5, 100);
        let (second, again) = (cache(), Counted::new(Some("a")));
        read(&second.source(again.clone()), 0, 200);
        assert_eq!((far.reads(), again.reads()), (1, 0));
        assert_eq!(second.kept().disk_bytes, BLOCK + 4);
        // Another version is another file, and one that cannot be told is not kept.
        for (identity, kept) in [(Some("b"), 2), (None, 2)] {
            let other = Counted::new(identity);
            read(&cache().source(other.clone()), 0, 1);
            assert_eq!(other.reads(), 1);
            assert_eq!(cache().kept().disk_bytes, kept * (BLOCK + 4));
        }
        // A block that was damaged is fetched.
        let folder = fs::read_dir(directory.path().join("far")).unwrap().flatten();
        for block in folder.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten()) {
            let mut bytes = fs::read(block.path()).unwrap();
            bytes[17] ^= 1;
            fs::write(block.path(), bytes).unwrap();
        }
        let again = Counted::new(Some("a"));
        read(&cache().source(again.clone()), 0, 200);
        assert_eq!(again.reads(), 1);
    }

    #[test]
    fn the_disk_has_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let limit = 10 * BLOCK;
        let cache = Arc::new(Cache::new(Some(directory.path().to_owned()), limit));
        let source = cache.source(Counted::new(Some("a")));
        for block in 0..40 {
            read(&source, block * BLOCK, 1);
            assert!(cache.kept().disk_bytes <= limit);
        }
        let files = fs::read_dir(directory.path()).unwrap().flatten();
        let left = files.flat_map(|folder| fs::read_dir(folder.path()).unwrap()).count();
        assert!((5..=10).contains(&left), "{left}");
    }

    /// Who cannot write keeps in memory, and who fails lets others try.
    #[test]
    fn faults_do_not_stay() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "in the way").unwrap();
        let cache = Arc::new(Cache::new(Some(file), 1 << 20));
        let far = Counted::new(Some("a"));
        let source = cache.source(far.clone());
        far.fails.store(1, Ordering::Relaxed);
        assert!(source.read_at(&mut [0; 9], 0).is_err());
        far.fails.store(0, Ordering::Relaxed);
        read(&source, 0, 9);
        read(&source, 0, 9);
        assert_eq!(far.reads(), 2);
    }
}
