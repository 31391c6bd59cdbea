//! Block cache: serves small reads of a remote file from large ones.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gguf_store::Source;

/// Maximum number of bytes per request.
const BLOCK: u64 = 4 << 20;

/// Returns the block length for a file of this length: small files get small blocks, so that little
/// is read in vain.
fn block_len(file_len: u64) -> u64 {
    (file_len / 64).next_power_of_two().clamp(256 << 10, BLOCK)
}

/// Capacity in bytes: enough for the blocks that several threads and tensors read from, and for a
/// whole matrix that is stored across its rows.
const CAPACITY: u64 = 128 << 20;

/// Number of sequential reads that are tracked: more than there are threads.
const RUNS: usize = 256;

/// A block; empty while one thread fetches it and others wait.
type Slot = Arc<Mutex<Option<Arc<[u8]>>>>;

/// LRU cache of blocks, shared by all files of a model; holds 128 MiB.
#[derive(Default)]
pub struct BlockCache {
    entries: Mutex<LruEntries>,
    sources: AtomicU64,
}

impl BlockCache {
    /// Wraps a source so that all reads go through blocks.
    pub fn source(self: &Arc<Self>, source: Arc<dyn Source>) -> Arc<dyn Source> {
        Arc::new(self.blocks(source, None))
    }

    /// Wraps a source so that sequential reads, for example of a whole tensor, go through blocks,
    /// while scattered reads fetch the requested bytes only.
    pub fn read_ahead(self: &Arc<Self>, source: Arc<dyn Source>) -> Arc<dyn Source> {
        Arc::new(self.blocks(source, Some(Runs::default())))
    }

    fn blocks(self: &Arc<Self>, source: Arc<dyn Source>, runs: Option<Runs>) -> BlockSource {
        let number = self.sources.fetch_add(1, Ordering::Relaxed);
        let block_len = block_len(source.byte_len());
        BlockSource { source, number, block_len, runs, cache: self.clone() }
    }

    fn slot(&self, place: (u64, u64), len: u64) -> Slot {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).slot(place, len)
    }
}

/// Blocks in order of use, the most recently used last.
#[derive(Default)]
struct LruEntries {
    /// Source number and block number, length, and content.
    entries: Vec<((u64, u64), u64, Slot)>,
    bytes: u64,
}

impl LruEntries {
    fn slot(&mut self, place: (u64, u64), len: u64) -> Slot {
        let known = self.entries.iter().rposition(|(other, ..)| *other == place);
        let slot = match known {
            Some(at) => self.entries.remove(at).2,
            None => {
                self.bytes += len;
                Slot::default()
            }
        };
        self.entries.push((place, len, slot.clone()));
        while self.bytes > CAPACITY && self.entries.len() > 1 {
            self.bytes -= self.entries.remove(0).1;
        }
        slot
    }
}

/// Length after which adjacent reads count as sequential: more than two rows.
const RUN: u64 = 128 << 10;

/// Maximum gap between two sequential reads: the padding between two tensors.
const GAP: u64 = 4 << 10;

/// End positions of the last reads and the length read sequentially up to there.
#[derive(Default)]
struct Runs(Mutex<Vec<(u64, u64)>>);

impl Runs {
    /// Records a read and returns whether it continues a sequential run.
    fn continues(&self, offset: u64, len: u64) -> bool {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let follows = |&(end, _): &(u64, u64)| end <= offset && offset - end <= GAP;
        let before = runs.iter().position(follows).map_or(0, |at| runs.remove(at).1);
        if runs.len() >= RUNS {
            runs.remove(0);
        }
        runs.push((offset + len, before.saturating_add(len)));
        before >= RUN
    }
}

/// A source that reads through the block cache.
struct BlockSource {
    source: Arc<dyn Source>,
    number: u64,
    block_len: u64,
    /// Run detection; if `None`, all reads go through blocks.
    runs: Option<Runs>,
    cache: Arc<BlockCache>,
}

impl BlockSource {
    fn block(&self, number: u64) -> Result<Arc<[u8]>, gguf::Error> {
        let slot = self.cache.slot((self.number, number), self.block_len);
        let mut content = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = &*content {
            return Ok(bytes.clone());
        }
        let start = number * self.block_len;
        let mut bytes = vec![0; self.block_len.min(self.source.byte_len() - start) as usize];
        self.source.read_at(&mut bytes, start)?;
        let bytes: Arc<[u8]> = bytes.into();
        *content = Some(bytes.clone());
        Ok(bytes)
    }
}

impl Source for BlockSource {
    fn byte_len(&self) -> u64 {
        self.source.byte_len()
    }

    fn file(&self) -> Option<&Path> {
        self.source.file()
    }

    fn identity(&self) -> Option<String> {
        self.source.identity()
    }

    fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<(), gguf::Error> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.byte_len()) {
            // The source reports the error as it would without blocks.
            return self.source.read_at(buffer, offset);
        }
        if self.runs.as_ref().is_some_and(|runs| !runs.continues(offset, buffer.len() as u64)) {
            return self.source.read_at(buffer, offset);
        }
        while !buffer.is_empty() {
            let within = (offset % self.block_len) as usize;
            let block = self.block(offset / self.block_len)?;
            let len = (block.len() - within).min(buffer.len());
            let (part, rest) = buffer.split_at_mut(len);
            part.copy_from_slice(&block[within..within + len]);
            buffer = rest;
            offset += len as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A source whose bytes are their block number and that counts its reads.
    struct CountingSource(AtomicUsize);

    impl Source for CountingSource {
        fn byte_len(&self) -> u64 {
            BLOCK * 40 + 5
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
            self.0.fetch_add(1, Ordering::Relaxed);
            buffer.fill((offset / BLOCK) as u8);
            Ok(())
        }
    }

    /// A source that counts the bytes read.
    struct ByteCounter(AtomicU64);

    impl Source for ByteCounter {
        fn byte_len(&self) -> u64 {
            1 << 30
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
            self.0.fetch_add(buffer.len() as u64, Ordering::Relaxed);
            buffer.fill((offset >> 20) as u8);
            Ok(())
        }
    }

    #[test]
    fn scattered_reads_bypass_the_cache() {
        let source = Arc::new(ByteCounter(AtomicU64::new(0)));
        let ahead = Arc::new(BlockCache::default()).read_ahead(source.clone());
        let read = |offset: u64, len: usize| {
            let mut bytes = vec![0; len];
            ahead.read_at(&mut bytes, offset).unwrap();
            source.0.swap(0, Ordering::Relaxed)
        };
        // The first, a middle and the last row of a tensor, then the next tensor.
        for tensor in 1..10 {
            let start = tensor * (20 << 20);
            assert_eq!(read(start, 30_000), 30_000);
            assert_eq!(read(start + (10 << 20), 30_000), 30_000);
            assert_eq!(read(start + (20 << 20) - 30_000, 30_000), 30_000);
        }
        // A whole tensor: everything after the first chunk comes in blocks.
        let chunk = 256 << 10;
        let parts = (0..32u64).map(|i| read((600 << 20) + i * chunk, chunk as usize));
        let parts: Vec<u64> = parts.collect();
        assert_eq!((parts[0], parts[1], parts[2]), (chunk, BLOCK, 0));
        assert_eq!(parts.iter().sum::<u64>(), chunk + 2 * BLOCK);
    }

    #[test]
    fn cached_blocks_are_read_once() {
        let source = Arc::new(CountingSource(AtomicUsize::new(0)));
        let cache = Arc::new(BlockCache::default());
        let blocks = cache.source(source.clone());
        let other = cache.source(Arc::new(CountingSource(AtomicUsize::new(0))));
        let reads = |offset: u64, len: usize| {
            let mut bytes = vec![99; len];
            blocks.read_at(&mut bytes, offset).unwrap();
            (bytes, source.0.load(Ordering::Relaxed))
        };
        assert_eq!(reads(BLOCK - 2, 4), (vec![0, 0, 1, 1], 2));
        assert_eq!(reads(BLOCK + 7, 2), (vec![1, 1], 2));
        assert_eq!(reads(BLOCK * 40, 5), (vec![40; 5], 3));
        // BlockSource of another file use the same capacity.
        other.read_at(&mut [0], 0).unwrap();
        for number in 2..CAPACITY / BLOCK {
            reads(number * BLOCK, 1);
        }
        let before = source.0.load(Ordering::Relaxed);
        assert_eq!(reads(BLOCK * 20, 1).1, before);
        assert_eq!(reads(0, 1).1, before + 1);
    }
}
