//! Encoder of one matrix that minimizes the error of its outputs.

use gguf::TensorType;
use gguf_quant::{Codec, CodecError, QuantGrid, codec, quant_grid};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::codebook::Codebook;
use crate::gptq;
use crate::lanes::ROWS;
use crate::levels::Levels;
use crate::objective::Objective;
use crate::tile::Tile;

/// Number of coordinate-descent passes over all columns after GPTQ. More passes change little.
const PASSES: usize = 3;

/// GPTQ encoder of one tensor type.
pub struct Encoder {
    ty: TensorType,
    codec: &'static Codec,
    grid: QuantGrid,
    levels: Levels,
    codebook: Option<Codebook>,
}

impl Encoder {
    /// Creates the encoder of a type.
    ///
    /// # Errors
    /// Returns an error if the type has no quantization grid.
    pub fn new(ty: TensorType) -> Result<Self, CodecError> {
        let (Some(codec), Some(grid)) = (codec(ty), quant_grid(ty)) else {
            return Err(CodecError::NoCodec(ty));
        };
        let (levels, codebook) = (Levels::new(&grid), Codebook::new(&grid));
        Ok(Self { ty, codec, grid, levels, codebook })
    }

    /// Returns the number of weights and of bytes per block.
    pub(crate) fn block(&self) -> (usize, usize) {
        (self.grid.len, self.grid.bytes)
    }

    /// Encodes all rows of one matrix. The bytes do not depend on the number of threads.
    ///
    /// # Errors
    /// Returns an error if the rows are not a whole number of blocks, or a weight is NaN or
    /// infinite.
    pub fn encode(
        &self,
        rows: &[f32],
        objective: &Objective,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        let (n, grid, ty) = (objective.n(), &self.grid, self.ty);
        if n == 0 || !n.is_multiple_of(grid.len) {
            let block_len = grid.len as u64;
            return Err(CodecError::NotWholeBlocks { ty, elements: n, block_len });
        }
        let row_bytes = n / grid.len * grid.bytes;
        let (expected, found) = ((rows.len() / n * row_bytes) as u64, out.len());
        if expected != found as u64 {
            return Err(CodecError::WrongByteLength { ty, elements: rows.len(), expected, found });
        }
        if let Some(position) = rows.iter().position(|x| !x.is_finite()) {
            return Err(CodecError::NotFinite { ty, position, value: rows[position] });
        }
        let tiles = rows.par_chunks(n * ROWS).zip(out.par_chunks_mut(row_bytes * ROWS));
        tiles.try_for_each(|(rows, out)| {
            Arch::new().dispatch(Work { encoder: self, objective, rows, out })
        })
    }
}

/// Rows that one thread encodes.
struct Work<'w> {
    encoder: &'w Encoder,
    objective: &'w Objective,
    rows: &'w [f32],
    out: &'w mut [u8],
}

impl WithSimd for Work<'_> {
    type Output = Result<(), CodecError>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self { encoder, objective, rows, out } = self;
        let Encoder { codec, grid, levels, codebook, .. } = encoder;
        let mut tile = Tile::new(simd, grid, levels, codebook.as_ref(), objective, rows);
        let blocks = objective.n() / grid.len;
        for block in 0..blocks {
            gptq::round_block(&mut tile, codec, block)?;
        }
        for _ in 0..PASSES {
            for block in 0..blocks {
                gptq::refine_block(&mut tile, block);
            }
        }
        tile.write(out);
        Ok(())
    }
}
