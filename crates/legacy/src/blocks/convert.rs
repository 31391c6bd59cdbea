//! Converts legacy blocks to single precision or to current blocks.

use std::sync::Arc;

use gguf::TensorType;
use gguf_store::Source;
use half::f16;

use super::{Decoder, LegacyBlock};

/// A tensor in legacy blocks, read in a type that GGUF has.
pub(crate) struct ConvertedBlocks {
    inner: Arc<dyn Source>,
    block: &'static LegacyBlock,
    /// `None` for single precision.
    current: Option<TensorType>,
    /// Bytes per converted block.
    block_bytes: u64,
}

impl ConvertedBlocks {
    /// Decodes to single precision. `inner` is the data of the tensor.
    pub fn decoded(inner: Arc<dyn Source>, block: &'static LegacyBlock) -> Self {
        let block_bytes = block.elements * size_of::<f32>() as u64;
        Self { inner, block, current: None, block_bytes }
    }

    /// Repacks to the current type with the same quants, scales rounded to half precision; `None`
    /// if there is no such type.
    pub fn repacked(
        inner: Arc<dyn Source>,
        block: &'static LegacyBlock,
    ) -> Option<(TensorType, Self)> {
        let ty = block.current_type()?;
        let block_bytes = ty.byte_len(&[block.elements])?;
        Some((ty, Self { inner, block, current: Some(ty), block_bytes }))
    }

    fn convert(&self, stored: &[u8], out: &mut [u8], floats: &mut [f32]) {
        if let (Some(ty), Decoder::Unpack { unpack, .. }) = (self.current, self.block.decoder) {
            return unpack(stored).write(ty, out);
        }
        self.block.decode(stored, floats);
        for (out, weight) in out.as_chunks_mut().0.iter_mut().zip(floats) {
            *out = weight.to_le_bytes();
        }
    }
}

impl Source for ConvertedBlocks {
    fn byte_len(&self) -> u64 {
        self.inner.byte_len() / self.block.bytes * self.block_bytes
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
        let (first, within) = (offset / self.block_bytes, (offset % self.block_bytes) as usize);
        let blocks = (within + buffer.len()).div_ceil(self.block_bytes as usize);
        let mut stored = vec![0; blocks * self.block.bytes as usize];
        self.inner.read_at(&mut stored, first * self.block.bytes)?;
        let mut converted = vec![0; blocks * self.block_bytes as usize];
        let mut floats = vec![0.0; self.block.elements as usize];
        let pairs = stored
            .chunks_exact(self.block.bytes as usize)
            .zip(converted.chunks_exact_mut(self.block_bytes as usize));
        pairs.for_each(|(block, out)| self.convert(block, out, &mut floats));
        buffer.copy_from_slice(&converted[within..within + buffer.len()]);
        Ok(())
    }
}

/// Which types store the weights of a tensor losslessly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LosslessTypes {
    /// The current type with the same quants.
    pub current: bool,
    /// Half precision.
    pub half: bool,
}

/// Checks the blocks until no lossless type is left.
pub(crate) fn lossless_types(
    inner: &dyn Source,
    block: &LegacyBlock,
) -> Result<LosslessTypes, gguf::Error> {
    let mut lossless = LosslessTypes { current: block.current_type().is_some(), half: true };
    let mut weights = vec![0.0; block.elements as usize];
    visit_blocks(inner, block, |stored| {
        if let Decoder::Unpack { unpack, .. } = block.decoder {
            lossless.current &= unpack(stored).has_half_scales();
        }
        if lossless.half {
            block.decode(stored, &mut weights);
            lossless.half = weights.iter().all(|&x| f16::from_f32(x).to_f32() == x);
        }
        lossless.current || lossless.half
    })?;
    Ok(lossless)
}

/// Whether all scales are in the range of half precision, so that rounding keeps 11 significant
/// bits.
pub(crate) fn scales_fit_half(
    inner: &dyn Source,
    block: &LegacyBlock,
) -> Result<bool, gguf::Error> {
    let mut fit = true;
    visit_blocks(inner, block, |stored| {
        fit = matches!(block.decoder, Decoder::Unpack { unpack, .. } if unpack(stored).scales_fit_half());
        fit
    })?;
    Ok(fit)
}

/// Bytes per read.
const CHUNK: u64 = 1 << 20;

/// Calls `visit` for each block until it returns false.
fn visit_blocks(
    inner: &dyn Source,
    block: &LegacyBlock,
    mut visit: impl FnMut(&[u8]) -> bool,
) -> Result<(), gguf::Error> {
    let chunk = CHUNK / block.bytes * block.bytes;
    let mut buffer = Vec::new();
    let mut at = 0;
    while at < inner.byte_len() {
        buffer.resize(chunk.min(inner.byte_len() - at) as usize, 0);
        inner.read_at(&mut buffer, at)?;
        if !buffer.chunks_exact(block.bytes as usize).all(&mut visit) {
            break;
        }
        at += buffer.len() as u64;
    }
    Ok(())
}
