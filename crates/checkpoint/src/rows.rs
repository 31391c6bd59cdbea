//! Tensors computed row by row, as a random-access source.

use std::sync::{Arc, Mutex, PoisonError};

use gguf::Finding;
use gguf_store::Source;

/// Computes the rows of a tensor.
pub(crate) trait Rows: Send + Sync {
    /// Returns the number of rows.
    fn count(&self) -> u64;

    /// Returns the length of a row in bytes.
    fn row_bytes(&self) -> u64;

    /// Returns the minimum number of rows to compute at once, if one costs nearly as much as
    /// several.
    fn tile(&self) -> u64 {
        1
    }

    /// Computes the rows from `first` on that fill `out`: a whole number of existing rows.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error>;
}

/// Capacity of the tile cache of a checkpoint: one tile of typical size for each of many threads.
const CACHE_BYTES: usize = 64 << 20;

/// LRU cache of computed tiles, shared by the tensors of a checkpoint. A conversion may read rows
/// one at a time and out of order, for example to permute the rows of heads.
#[derive(Default)]
pub(crate) struct TileCache {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tensors: u64,
    /// Tensor, first row, bytes; the most recently used last.
    tiles: Vec<(u64, u64, Arc<[u8]>)>,
}

impl TileCache {
    fn new_tensor(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tensors += 1;
        state.tensors
    }

    fn get(&self, tensor: u64, first: u64) -> Option<Arc<[u8]>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let at = state.tiles.iter().position(|(t, f, _)| (*t, *f) == (tensor, first))?;
        let tile = state.tiles.remove(at);
        let bytes = tile.2.clone();
        state.tiles.push(tile);
        Some(bytes)
    }

    fn put(&self, tensor: u64, first: u64, bytes: Arc<[u8]>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut total = bytes.len();
        let recent = state.tiles.iter().rev().take_while(|(_, _, tile)| {
            total += tile.len();
            total <= CACHE_BYTES
        });
        let dropped = state.tiles.len() - recent.count();
        state.tiles.drain(..dropped);
        state.tiles.push((tensor, first, bytes));
    }
}

/// A source computed by rows.
pub(crate) struct ComputedSource {
    rows: Box<dyn Rows>,
    cache: Arc<TileCache>,
    tensor: u64,
}

impl ComputedSource {
    /// Wraps `rows` as a source.
    pub fn source(rows: Box<dyn Rows>, cache: &Arc<TileCache>) -> Arc<dyn Source> {
        Arc::new(Self { rows, cache: cache.clone(), tensor: cache.new_tensor() })
    }

    /// Returns the tile that begins with row `first`.
    fn tile(&self, first: u64) -> Result<Arc<[u8]>, gguf::Error> {
        if let Some(tile) = self.cache.get(self.tensor, first) {
            return Ok(tile);
        }
        let n = self.rows.tile().min(self.rows.count() - first);
        let mut bytes = vec![0; (n * self.rows.row_bytes()) as usize];
        self.rows.read(first, &mut bytes)?;
        let bytes: Arc<[u8]> = bytes.into();
        self.cache.put(self.tensor, first, bytes.clone());
        Ok(bytes)
    }
}

impl Source for ComputedSource {
    fn byte_len(&self) -> u64 {
        self.rows.count() * self.rows.row_bytes()
    }

    fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<(), gguf::Error> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.byte_len()) {
            let what = "a computed tensor ends before the requested bytes";
            return Err(Finding::error("weights-cut", what).into());
        }
        let row_bytes = self.rows.row_bytes();
        let tile_bytes = self.rows.tile() * row_bytes;
        while !buffer.is_empty() {
            let (row, within) = (offset / row_bytes, offset % row_bytes);
            let whole = buffer.len() as u64 / row_bytes;
            let len = if within == 0 && whole >= self.rows.tile() {
                let len = whole * row_bytes;
                self.rows.read(row, &mut buffer[..len as usize])?;
                len
            } else {
                let first = row - row % self.rows.tile();
                let tile = self.tile(first)?;
                let start = offset - first * row_bytes;
                let len = (tile_bytes - start).min(buffer.len() as u64);
                let bytes = &tile[start as usize..(start + len) as usize];
                buffer[..len as usize].copy_from_slice(bytes);
                len
            };
            buffer = &mut buffer[len as usize..];
            offset += len;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row `r` has the bytes `3 * r ..`.
    struct Count(u64);

    impl Rows for Count {
        fn count(&self) -> u64 {
            11
        }

        fn row_bytes(&self) -> u64 {
            3
        }

        fn tile(&self) -> u64 {
            self.0
        }

        fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
            assert!(out.len().is_multiple_of(3) && first * 3 + out.len() as u64 <= 33);
            out.iter_mut().zip(first as u8 * 3..).for_each(|(out, byte)| *out = byte);
            Ok(())
        }
    }

    #[test]
    fn all_ranges_can_be_read() {
        let cache = Arc::default();
        for tile in [1, 4, 20] {
            let source = ComputedSource::source(Box::new(Count(tile)), &cache);
            assert_eq!(source.byte_len(), 33);
            for start in 0..33 {
                for end in start..=33 {
                    let mut bytes = vec![0; end - start];
                    source.read_at(&mut bytes, start as u64).unwrap();
                    assert_eq!(bytes, (start as u8..end as u8).collect::<Vec<_>>());
                }
            }
            let error = source.read_at(&mut [0; 2], 32).unwrap_err();
            assert_eq!((error.fault(), error.code()), (gguf::Fault::Input, "weights-cut"));
        }
    }

    #[test]
    fn cache_stays_within_its_capacity() {
        let cache = TileCache::default();
        let tile: Arc<[u8]> = vec![0; CACHE_BYTES / 3].into();
        for first in 0..5 {
            cache.put(1, first, tile.clone());
        }
        let recent = |first| cache.get(1, first).is_some();
        assert_eq!([0, 1, 2, 3, 4].map(recent), [false, false, true, true, true]);
    }
}
