//! Small reads of far files, served from large ones.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gguf_store::Source;

/// The most bytes that are read at once.
const BLOCK: u64 = 4 << 20;

/// Bytes that are read at once of a file of so many: small files are not read in a few pieces, of which
/// most would be read for nothing.
fn block_len(file_len: u64) -> u64 {
    (file_len / 64).next_power_of_two().clamp(256 << 10, BLOCK)
}

/// Bytes of blocks that are kept: those that several threads and several tensors are read from, and the
/// whole of a matrix that is stored across its rows.
const KEPT: u64 = 128 << 20;

/// Where runs end that are remembered: more than there are threads.
const RUNS: usize = 256;

/// A block, empty while one thread reads it and others wait.
type Slot = Arc<Mutex<Option<Arc<[u8]>>>>;

/// The last blocks of all files of a model, 128 MiB however many files it has.
#[derive(Default)]
pub struct LastBlocks {
    slots: Mutex<Slots>,
    sources: AtomicU64,
}

impl LastBlocks {
    /// A source that reads another one by blocks.
    pub fn source(self: &Arc<Self>, source: Arc<dyn Source>) -> Arc<dyn Source> {
        Arc::new(self.blocks(source, None))
    }

    /// A source that reads another one by blocks where one read follows another, as when a tensor is read to
    /// its end, and just what is asked for where somebody looks at a few rows here and there.
    pub fn ahead(self: &Arc<Self>, source: Arc<dyn Source>) -> Arc<dyn Source> {
        Arc::new(self.blocks(source, Some(Runs::default())))
    }

    fn blocks(self: &Arc<Self>, source: Arc<dyn Source>, runs: Option<Runs>) -> Blocks {
        let number = self.sources.fetch_add(1, Ordering::Relaxed);
        let block_len = block_len(source.byte_len());
        Blocks { source, number, block_len, runs, last: self.clone() }
    }

    fn slot(&self, place: (u64, u64), len: u64) -> Slot {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).slot(place, len)
    }
}

/// The last blocks, the last used at the end.
#[derive(Default)]
struct Slots {
    /// Number of the source and number in it, bytes, and content.
    slots: Vec<((u64, u64), u64, Slot)>,
    bytes: u64,
}

impl Slots {
    fn slot(&mut self, place: (u64, u64), len: u64) -> Slot {
        let known = self.slots.iter().rposition(|(other, ..)| *other == place);
        let slot = match known {
            Some(at) => self.slots.remove(at).2,
            None => {
                self.bytes += len;
                Slot::default()
            }
        };
        self.slots.push((place, len, slot.clone()));
        while self.bytes > KEPT && self.slots.len() > 1 {
            self.bytes -= self.slots.remove(0).1;
        }
        slot
    }
}

/// Bytes after which reads that follow each other are a run: more than two rows.
const RUN: u64 = 128 << 10;

/// What may lie between two reads of a run: bytes between two tensors.
const GAP: u64 = 4 << 10;

/// Where the last reads ended, and how much was read in a run up to there.
#[derive(Default)]
struct Runs(Mutex<Vec<(u64, u64)>>);

impl Runs {
    /// Takes down a read, and says whether it goes on with a run.
    fn goes_on(&self, offset: u64, len: u64) -> bool {
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

/// A source that reads another by blocks.
struct Blocks {
    source: Arc<dyn Source>,
    number: u64,
    block_len: u64,
    /// Without it, all reads are by blocks.
    runs: Option<Runs>,
    last: Arc<LastBlocks>,
}

impl Blocks {
    fn block(&self, number: u64) -> Result<Arc<[u8]>, gguf::Error> {
        let slot = self.last.slot((self.number, number), self.block_len);
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

impl Source for Blocks {
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
            // Says what is wrong as it would without blocks.
            return self.source.read_at(buffer, offset);
        }
        if self.runs.as_ref().is_some_and(|runs| !runs.goes_on(offset, buffer.len() as u64)) {
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

    /// Each byte is the number of its block; counts how often it is read.
    struct Counted(AtomicUsize);

    impl Source for Counted {
        fn byte_len(&self) -> u64 {
            BLOCK * 40 + 5
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
            self.0.fetch_add(1, Ordering::Relaxed);
            buffer.fill((offset / BLOCK) as u8);
            Ok(())
        }
    }

    /// Counts bytes.
    struct Bytes(AtomicU64);

    impl Source for Bytes {
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
    fn what_is_read_here_and_there_is_read_alone() {
        let source = Arc::new(Bytes(AtomicU64::new(0)));
        let ahead = Arc::new(LastBlocks::default()).ahead(source.clone());
        let read = |offset: u64, len: usize| {
            let mut bytes = vec![0; len];
            ahead.read_at(&mut bytes, offset).unwrap();
            source.0.swap(0, Ordering::Relaxed)
        };
        // The last row of a tensor, and the first of the next one.
        for tensor in 1..10 {
            let start = tensor * (20 << 20);
            assert_eq!(read(start, 30_000), 30_000);
            assert_eq!(read(start + (10 << 20), 30_000), 30_000);
            assert_eq!(read(start + (20 << 20) - 30_000, 30_000), 30_000);
        }
        // A tensor from its start to its end: what follows the first chunk comes by blocks.
        let chunk = 256 << 10;
        let parts = (0..32u64).map(|i| read((600 << 20) + i * chunk, chunk as usize));
        let parts: Vec<u64> = parts.collect();
        assert_eq!((parts[0], parts[1], parts[2]), (chunk, BLOCK, 0));
        assert_eq!(parts.iter().sum::<u64>(), chunk + 2 * BLOCK);
    }

    #[test]
    fn each_block_is_read_once_while_it_is_kept() {
        let source = Arc::new(Counted(AtomicUsize::new(0)));
        let last = Arc::new(LastBlocks::default());
        let blocks = last.source(source.clone());
        let other = last.source(Arc::new(Counted(AtomicUsize::new(0))));
        let reads = |offset: u64, len: usize| {
            let mut bytes = vec![99; len];
            blocks.read_at(&mut bytes, offset).unwrap();
            (bytes, source.0.load(Ordering::Relaxed))
        };
        assert_eq!(reads(BLOCK - 2, 4), (vec![0, 0, 1, 1], 2));
        assert_eq!(reads(BLOCK + 7, 2), (vec![1, 1], 2));
        assert_eq!(reads(BLOCK * 40, 5), (vec![40; 5], 3));
        // Those of another file take their room.
        other.read_at(&mut [0], 0).unwrap();
        for number in 2..KEPT / BLOCK {
            reads(number * BLOCK, 1);
        }
        let before = source.0.load(Ordering::Relaxed);
        assert_eq!(reads(BLOCK * 20, 1).1, before);
        assert_eq!(reads(0, 1).1, before + 1);
    }
}
