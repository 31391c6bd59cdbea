//! Byte-swapped view of a tensor in a big-endian file.

use std::path::Path;
use std::sync::Arc;

use gguf::endian::{cannot_swap, swap_blocks};
use gguf::{Error, TensorType};

use crate::source::Source;

/// A view of a big-endian file in which one tensor reads as little-endian, at the same positions.
/// Blocks are swapped while reading, so there is no slice.
pub(crate) struct LittleEndian {
    pub(crate) stored: Arc<dyn Source>,
    /// Start of the tensor's data in the file.
    pub(crate) start: u64,
    pub(crate) tensor_type: TensorType,
}

impl LittleEndian {
    fn swap(&self, blocks: &mut [u8]) -> Result<(), Error> {
        if swap_blocks(self.tensor_type, blocks) {
            return Ok(());
        }
        let fault = Error::from(cannot_swap(self.tensor_type).at(self.start));
        Err(match self.stored.file() {
            Some(file) => fault.in_file(file),
            None => fault,
        })
    }
}

impl Source for LittleEndian {
    fn byte_len(&self) -> u64 {
        self.stored.byte_len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let block = self.tensor_type.block().map_or(1, |(_, bytes)| bytes);
        // All reads lie within the tensor, so the offset is at least `start`.
        let skipped = (offset.saturating_sub(self.start) % block) as usize;
        let whole = (skipped + buffer.len()).next_multiple_of(block as usize);
        if whole == buffer.len() {
            self.stored.read_at(buffer, offset)?;
            return self.swap(buffer);
        }
        let mut blocks = vec![0; whole];
        self.stored.read_at(&mut blocks, offset - skipped as u64)?;
        self.swap(&mut blocks)?;
        buffer.copy_from_slice(&blocks[skipped..][..buffer.len()]);
        Ok(())
    }

    fn identity(&self) -> Option<String> {
        self.stored.identity()
    }

    fn file(&self) -> Option<&Path> {
        self.stored.file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every range reads as in the little-endian file.
    #[test]
    fn partial_blocks_are_swapped() {
        for ty in [TensorType::F32, TensorType::Q5_1, TensorType::I8, TensorType::IQ2_XXS] {
            let (_, block) = ty.block().unwrap();
            let little: Vec<u8> = (0..3 * block).map(|i| i as u8).collect();
            let mut big = little.clone();
            assert!(swap_blocks(ty, &mut big));
            let file = [&[0xff; 5][..], &big].concat();
            let tensor = LittleEndian { stored: Arc::new(file), start: 5, tensor_type: ty };
            for start in 0..little.len() {
                for end in start..=little.len() {
                    let mut out = vec![0; end - start];
                    tensor.read_at(&mut out, 5 + start as u64).unwrap();
                    assert!(out == little[start..end], "{ty} {start}..{end}");
                }
            }
            assert!(tensor.read_at(&mut [0], 5 + little.len() as u64).is_err());
        }
    }
}
