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
            return Err(gguf::Error::weights(&self.name, "ends before what is to be read of it"));
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::named::Named;
    use super::super::rows::{Computed, Rows, TileCache};
    use super::*;

    /// Twice as many elements as there are.
    struct Doubled(Raw);

    impl Rows for Doubled {
        fn count(&self) -> u64 {
            2
        }

        fn row_bytes(&self) -> u64 {
            self.0.elements() * self.0.dtype.bytes()
        }

        fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
            self.0.read(first * self.0.elements(), out)
        }
    }

    /// What is wrong with the data of a file is no wrong use of the program.
    #[test]
    fn a_tensor_that_ends_early_is_a_fault_of_its_file() {
        let source = Arc::new(vec![0; 12]);
        let dtype = Dtype::F32;
        let raw = Raw { name: "up".into(), shape: vec![3], dtype, file: 0, source, offset: 0 };
        let cache: Arc<TileCache> = Arc::default();
        let source = Computed::source(Box::new(Doubled(raw)), &cache);
        let source = Named::source(Path::new("w.safetensors"), source);
        source.read_at(&mut [0; 12], 0).unwrap();
        for offset in [12, 24] {
            let fault = source.read_at(&mut [0; 12], offset).unwrap_err();
            assert!(matches!(fault, gguf::Error::InFile { .. }), "{fault:?}");
            assert!(fault.to_string().starts_with("w.safetensors: "), "{fault}");
        }
        let fault = source.read_at(&mut [0; 12], 12).unwrap_err().to_string();
        assert!(fault.contains("tensor `up`: ends before what is to be read of it"), "{fault}");
    }
}
