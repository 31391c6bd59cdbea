//! Rows that store all scales before the nibbles, without a mark in the header.
//!
//! ```text
//! Q4_0 of 10 March 2023   d f32 of every block | nibbles of every block
//! Q4_1 of bloomz.cpp      m f32 of every block | d f32 of every block | nibbles of every block
//! ```
//!
//! Such a row has the same length as a row in blocks.

use std::sync::Arc;

use gguf_store::Source;

/// Converts rows stored in planes to blocks.
pub(crate) struct Planar {
    inner: Arc<dyn Source>,
    row_bytes: u64,
    /// Number of scales and minima per block: 1 for Q4_0, 2 for Q4_1.
    scales: usize,
}

const NIBBLES: usize = 16;
const SCALE: usize = size_of::<f32>();

impl Planar {
    /// `inner` is the data of one tensor, with rows of `row_bytes` bytes.
    pub fn new(inner: Arc<dyn Source>, row_bytes: u64, scales: usize) -> Self {
        Self { inner, row_bytes, scales }
    }
}

impl Source for Planar {
    fn byte_len(&self) -> u64 {
        self.inner.byte_len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
        let (first, within) = (offset / self.row_bytes, (offset % self.row_bytes) as usize);
        let rows = (within + buffer.len()).div_ceil(self.row_bytes as usize);
        let mut planes = vec![0; rows * self.row_bytes as usize];
        self.inner.read_at(&mut planes, first * self.row_bytes)?;
        let mut blocks = Vec::with_capacity(planes.len());
        for row in planes.chunks_exact(self.row_bytes as usize) {
            interleave(row, self.scales, &mut blocks);
        }
        buffer.copy_from_slice(&blocks[within..within + buffer.len()]);
        Ok(())
    }
}

/// Appends a row in blocks. The planes are in the reverse order of the block fields.
fn interleave(row: &[u8], scales: usize, out: &mut Vec<u8>) {
    let blocks = row.len() / (scales * SCALE + NIBBLES);
    for i in 0..blocks {
        for plane in (0..scales).rev() {
            let start = (plane * blocks + i) * SCALE;
            out.extend(&row[start..start + SCALE]);
        }
        let start = scales * blocks * SCALE + i * NIBBLES;
        out.extend(&row[start..start + NIBBLES]);
    }
}

/// Whether a row is stored in planes: the values at the position of the scales are plausible
/// scales, and those at the position of the block scales are not.
pub(crate) fn is_planar(row: &[u8], scales: usize) -> bool {
    let in_blocks = row.chunks_exact(scales * SCALE + NIBBLES).map(|block| &block[..SCALE]);
    let blocks = in_blocks.len();
    let in_planes = row.chunks_exact(SCALE).skip((scales - 1) * blocks).take(blocks);
    plausible(in_planes) && !plausible(in_blocks)
}

/// Whether at least 95% are zero or in the range of the scales of known models.
fn plausible<'b>(scales: impl Iterator<Item = &'b [u8]>) -> bool {
    let (mut good, mut all) = (0, 0);
    for bytes in scales {
        let scale = bytes.first_chunk().copied().map_or(f32::NAN, f32::from_le_bytes).abs();
        good += usize::from(scale == 0.0 || (1e-7..1e3).contains(&scale));
        all += 1;
    }
    good * 20 >= all * 19
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of four blocks: scales, then nibbles.
    fn planes(scales: usize) -> (Vec<u8>, Vec<u8>) {
        let (mut planes, mut blocks) = (Vec::new(), Vec::new());
        for row in 0..2u8 {
            let scale = |plane: usize, i: u8| {
                (0.01 + f32::from(row * 8 + i) / 64.0 + plane as f32).to_le_bytes()
            };
            let nibbles = |i: u8| [0xa5 ^ (row * 4 + i); NIBBLES];
            (0..scales).for_each(|plane| (0..4).for_each(|i| planes.extend(scale(plane, i))));
            (0..4).for_each(|i| planes.extend(nibbles(i)));
            for i in 0..4 {
                (0..scales).rev().for_each(|plane| blocks.extend(scale(plane, i)));
                blocks.extend(nibbles(i));
            }
        }
        (planes, blocks)
    }

    #[test]
    fn planes_are_converted_to_blocks_at_any_offset() {
        for scales in [1, 2] {
            let (planes, blocks) = planes(scales);
            let row_bytes = planes.len() / 2;
            assert!(is_planar(&planes[..row_bytes], scales));
            assert!(!is_planar(&blocks[..row_bytes], scales));
            let source = Planar::new(Arc::new(planes), row_bytes as u64, scales);
            for start in 0..blocks.len() {
                for end in [start, (start + 7).min(blocks.len()), blocks.len()] {
                    let mut out = vec![0; end - start];
                    source.read_at(&mut out, start as u64).unwrap();
                    assert_eq!(out, blocks[start..end]);
                }
            }
        }
    }
}
