//! Dequantization to F32, for transformations that blocks do not allow, such as a transpose.

use std::sync::Arc;

use gguf::TensorType;
use gguf_store::Source;

use super::rows::Rows;

/// Rows of a tensor of blocks, dequantized to F32.
pub(super) struct Floats {
    pub name: String,
    pub blocks: Arc<dyn Source>,
    pub tensor_type: TensorType,
    /// Elements per row: a whole number of blocks.
    pub columns: u64,
}

impl Floats {
    /// Returns the length of a row of blocks in bytes.
    fn block_bytes(&self) -> u64 {
        self.tensor_type.byte_len(&[self.columns]).unwrap_or(1).max(1)
    }
}

/// Elements per tile: such a tensor is read across its rows.
const TILE: u64 = 128 * 1024;

impl Rows for Floats {
    fn count(&self) -> u64 {
        self.blocks.byte_len() / self.block_bytes()
    }

    fn row_bytes(&self) -> u64 {
        self.columns * 4
    }

    fn tile(&self) -> u64 {
        (TILE / self.columns.max(1)).max(1)
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        let rows = out.len() as u64 / self.row_bytes().max(1);
        let mut blocks = vec![0; (rows * self.block_bytes()) as usize];
        self.blocks.read_at(&mut blocks, first * self.block_bytes())?;
        let mut values = vec![0.0; out.len() / 4];
        gguf_quant::decode_row(self.tensor_type, &blocks, &mut values)
            .map_err(|fault| gguf::Error::weights(&self.name, fault.to_string()))?;
        for (out, value) in out.as_chunks_mut().0.iter_mut().zip(values) {
            *out = f32::to_le_bytes(value);
        }
        Ok(())
    }
}
