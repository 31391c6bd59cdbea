//! Small reads of a far file, served from large ones.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use gguf_store::Source;

/// Bytes read at once.
const BLOCK: u64 = 4 << 20;

/// Blocks that are kept: those that several threads and several tensors are read from, and the
/// whole of a matrix that is stored across its rows.
const KEPT: usize = 32;

/// A block, empty while one thread reads it and others wait.
type Slot = Arc<Mutex<Option<Arc<[u8]>>>>;

/// A source that reads another by blocks and keeps the last of them, 128 MiB.
pub(crate) struct Blocks<S> {
    source: S,
    /// Number and content, the last used at the end.
    slots: Mutex<Vec<(u64, Slot)>>,
}

impl<S: Source> Blocks<S> {
    pub fn new(source: S) -> Self {
        Self { source, slots: Mutex::default() }
    }

    fn slot(&self, number: u64) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let known = slots.iter().position(|(n, _)| *n == number);
        let slot = match known {
            Some(at) => slots.remove(at).1,
            None => Slot::default(),
        };
        slots.push((number, slot.clone()));
        if slots.len() > KEPT {
            slots.remove(0);
        }
        slot
    }

    fn block(&self, number: u64) -> Result<Arc<[u8]>, gguf::Error> {
        let slot = self.slot(number);
        let mut content = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = &*content {
            return Ok(bytes.clone());
        }
        let start = number * BLOCK;
        let mut bytes = vec![0; BLOCK.min(self.source.byte_len() - start) as usize];
        self.source.read_at(&mut bytes, start)?;
        let bytes: Arc<[u8]> = bytes.into();
        *content = Some(bytes.clone());
        Ok(bytes)
    }
}

impl<S: Source> Source for Blocks<S> {
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
        while !buffer.is_empty() {
            let within = (offset % BLOCK) as usize;
            let block = self.block(offset / BLOCK)?;
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
    use std::sync::atomic::{AtomicUsize, Ordering};

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

    #[test]
    fn each_block_is_read_once_while_it_is_kept() {
        let blocks = Blocks::new(Counted(AtomicUsize::new(0)));
        let reads = |offset: u64, len: usize| {
            let mut bytes = vec![99; len];
            blocks.read_at(&mut bytes, offset).unwrap();
            (bytes, blocks.source.0.load(Ordering::Relaxed))
        };
        assert_eq!(reads(BLOCK - 2, 4), (vec![0, 0, 1, 1], 2));
        assert_eq!(reads(BLOCK + 7, 2), (vec![1, 1], 2));
        assert_eq!(reads(BLOCK * 40, 5), (vec![40; 5], 3));
        for number in 2..=KEPT as u64 {
            reads(number * BLOCK, 1);
        }
        let before = blocks.source.0.load(Ordering::Relaxed);
        assert_eq!(reads(BLOCK * 20, 1).1, before);
        assert_eq!(reads(0, 1).1, before + 1);
    }
}
