//! Old blocks as a source of plain elements or of today's blocks.

use std::sync::Arc;

use gguf::TensorType;
use gguf_store::Source;
use half::f16;

use super::{Old, Reading};

/// A tensor in old blocks, as something that a GGUF can hold.
pub(crate) struct Converted {
    inner: Arc<dyn Source>,
    old: &'static Old,
    /// `None` for plain elements of single precision.
    today: Option<TensorType>,
    /// Bytes that a block becomes.
    block_bytes: u64,
}

impl Converted {
    /// Elements of single precision. `inner` holds the blocks of the tensor and nothing else.
    pub fn floats(inner: Arc<dyn Source>, old: &'static Old) -> Self {
        Self { inner, old, today: None, block_bytes: old.elements * size_of::<f32>() as u64 }
    }

    /// Today's blocks of the same levels, scales rounded to half precision; `None` if no type has
    /// these levels.
    pub fn today(inner: Arc<dyn Source>, old: &'static Old) -> Option<(TensorType, Self)> {
        let ty = old.today()?;
        let block_bytes = ty.byte_len(&[old.elements])?;
        Some((ty, Self { inner, old, today: Some(ty), block_bytes }))
    }

    fn convert(&self, block: &[u8], out: &mut [u8], floats: &mut [f32]) {
        if let (Some(ty), Reading::Levels { read, .. }) = (self.today, self.old.reading) {
            return read(block).write(ty, out);
        }
        self.old.weights(block, floats);
        for (out, weight) in out.as_chunks_mut().0.iter_mut().zip(floats) {
            *out = weight.to_le_bytes();
        }
    }
}

impl Source for Converted {
    fn byte_len(&self) -> u64 {
        self.inner.byte_len() / self.old.bytes * self.block_bytes
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
        let (first, within) = (offset / self.block_bytes, (offset % self.block_bytes) as usize);
        let blocks = (within + buffer.len()).div_ceil(self.block_bytes as usize);
        let mut stored = vec![0; blocks * self.old.bytes as usize];
        self.inner.read_at(&mut stored, first * self.old.bytes)?;
        let mut converted = vec![0; blocks * self.block_bytes as usize];
        let mut floats = vec![0.0; self.old.elements as usize];
        let pairs = stored
            .chunks_exact(self.old.bytes as usize)
            .zip(converted.chunks_exact_mut(self.block_bytes as usize));
        pairs.for_each(|(block, out)| self.convert(block, out, &mut floats));
        buffer.copy_from_slice(&converted[within..within + buffer.len()]);
        Ok(())
    }
}

/// Which types hold the very same weights as a tensor in old blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    /// Today's type of the same levels.
    pub today: bool,
    /// Half precision.
    pub half: bool,
}

/// Looks at the blocks, up to where all is lost.
pub(crate) fn exact(inner: &dyn Source, old: &Old) -> Result<Exact, gguf::Error> {
    let mut exact = Exact { today: old.today().is_some(), half: true };
    let mut weights = vec![0.0; old.elements as usize];
    each_block(inner, old, |block| {
        if let Reading::Levels { read, .. } = old.reading {
            exact.today &= read(block).fits_half();
        }
        if exact.half {
            old.weights(block, &mut weights);
            exact.half = weights.iter().all(|&x| f16::from_f32(x).to_f32() == x);
        }
        exact.today || exact.half
    })?;
    Ok(exact)
}

/// Whether rounding the scales to half precision keeps their 11 bits: none is too large or too
/// small for it.
pub(crate) fn near(inner: &dyn Source, old: &Old) -> Result<bool, gguf::Error> {
    let mut near = true;
    each_block(inner, old, |block| {
        near = matches!(old.reading, Reading::Levels { read, .. } if read(block).is_near_half());
        near
    })?;
    Ok(near)
}

/// Bytes that are looked at at a time.
const WINDOW: u64 = 1 << 20;

/// Shows all blocks to `look`, until it returns false.
fn each_block(
    inner: &dyn Source,
    old: &Old,
    mut look: impl FnMut(&[u8]) -> bool,
) -> Result<(), gguf::Error> {
    let window = WINDOW / old.bytes * old.bytes;
    let mut buffer = Vec::new();
    let mut at = 0;
    while at < inner.byte_len() {
        buffer.resize(window.min(inner.byte_len() - at) as usize, 0);
        inner.read_at(&mut buffer, at)?;
        if !buffer.chunks_exact(old.bytes as usize).all(&mut look) {
            break;
        }
        at += buffer.len() as u64;
    }
    Ok(())
}
