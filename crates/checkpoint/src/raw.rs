//! A tensor as a checkpoint stores it, before it is known what its bytes mean.

use std::sync::Arc;

use gguf_store::Source;

use super::dtype::Dtype;

/// A contiguous tensor in a file.
#[derive(Clone)]
pub(crate) struct Raw {
    pub name: String,
    /// Elements per dimension, slowest first.
    pub shape: Vec<u64>,
    pub dtype: Dtype,
    /// Which file holds it, for messages: an index into the checkpoint's files.
    pub file: usize,
    /// Where its bytes are.
    pub source: Arc<dyn Source>,
    /// First byte in the source.
    pub offset: u64,
}

impl Raw {
    /// The number of elements; whoever made the tensor has checked that it fits its file.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Fills `bytes` with the elements from `first` on.
    pub fn read(&self, first: u64, bytes: &mut [u8]) -> Result<(), gguf::Error> {
        let len = bytes.len() as u64;
        if first.saturating_mul(self.dtype.bytes()).saturating_add(len)
            > self.elements() * self.dtype.bytes()
        {
            let what = format!("tensor `{}` ends before what is to be read of it", self.name);
            return Err(gguf::Finding::error("weights-cut", what).into());
        }
        self.source.read_at(bytes, self.offset + first * self.dtype.bytes())
    }

    /// `n` elements from `first` on as they are stored.
    pub fn bytes(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let mut bytes = vec![0; (n.min(self.elements()) * self.dtype.bytes()) as usize];
        self.read(first, &mut bytes)?;
        Ok(bytes)
    }

    /// `n` elements from `first` on as floats.
    pub fn floats(&self, first: u64, n: u64) -> Result<Vec<f32>, gguf::Error> {
        let bytes = self.bytes(first, n)?;
        let elements = bytes.chunks_exact(self.dtype.bytes() as usize);
        Ok(elements.map(|element| self.dtype.to_f32(element)).collect())
    }

    /// `n` elements from `first` on as integers.
    pub fn integers(&self, first: u64, n: u64) -> Result<Vec<i128>, gguf::Error> {
        let bytes = self.bytes(first, n)?;
        let elements = bytes.chunks_exact(self.dtype.bytes() as usize);
        Ok(elements.map(|element| self.dtype.to_i128(element)).collect())
    }

    /// `n` elements from `first` on as words of 32 bits, signed or not.
    pub fn words(&self, first: u64, n: u64) -> Result<Vec<u32>, gguf::Error> {
        let bytes = self.bytes(first, n)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }
}
