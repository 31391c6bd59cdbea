//! A stored tensor of a checkpoint, before its quantization is resolved.

use std::sync::Arc;

use gguf_store::Source;

use super::dtype::Dtype;

/// A contiguous tensor in a file.
#[derive(Clone)]
pub(crate) struct Raw {
    pub name: String,
    /// Dimensions, slowest first.
    pub shape: Vec<u64>,
    pub dtype: Dtype,
    /// Index of its file in the checkpoint, for messages.
    pub file: usize,
    /// Source of its bytes.
    pub source: Arc<dyn Source>,
    /// Start in the source.
    pub offset: u64,
}

impl Raw {
    /// Returns the number of elements; the constructor has checked that it fits the file.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Fills `bytes` with the elements from `first` on.
    pub fn read(&self, first: u64, bytes: &mut [u8]) -> Result<(), gguf::Error> {
        let len = bytes.len() as u64;
        if first.saturating_mul(self.dtype.bytes()).saturating_add(len)
            > self.elements() * self.dtype.bytes()
        {
            return Err(gguf::Error::weights(&self.name, "ends before the requested elements"));
        }
        self.source.read_at(bytes, self.offset + first * self.dtype.bytes())
    }

    /// Reads `n` elements from `first` on as stored.
    pub fn bytes(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let mut bytes = vec![0; (n.min(self.elements()) * self.dtype.bytes()) as usize];
        self.read(first, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads `n` elements from `first` on as floats.
    pub fn floats(&self, first: u64, n: u64) -> Result<Vec<f32>, gguf::Error> {
        let bytes = self.bytes(first, n)?;
        let elements = bytes.chunks_exact(self.dtype.bytes() as usize);
        Ok(elements.map(|element| self.dtype.to_f32(element)).collect())
    }

    /// Reads `n` elements from `first` on as integers.
    pub fn integers(&self, first: u64, n: u64) -> Result<Vec<i128>, gguf::Error> {
        let bytes = self.bytes(first, n)?;
        let elements = bytes.chunks_exact(self.dtype.bytes() as usize);
        Ok(elements.map(|element| self.dtype.to_i128(element)).collect())
    }

    /// Reads `n` elements from `first` on as 32-bit words, signed or not.
    pub fn words(&self, first: u64, n: u64) -> Result<Vec<u32>, gguf::Error> {
        let bytes = self.bytes(first, n)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::rows::{ComputedSource, Rows, TileCache};
    use super::super::with_path::WithPath;
    use super::*;

    /// Claims twice as many elements as exist.
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

    /// A fault in the data is an input error, not a caller error.
    #[test]
    fn truncated_tensors_are_input_errors() {
        let source = Arc::new(vec![0; 12]);
        let dtype = Dtype::F32;
        let raw = Raw { name: "up".into(), shape: vec![3], dtype, file: 0, source, offset: 0 };
        let cache: Arc<TileCache> = Arc::default();
        let source = ComputedSource::source(Box::new(Doubled(raw)), &cache);
        let source = WithPath::source(Path::new("w.safetensors"), source);
        source.read_at(&mut [0; 12], 0).unwrap();
        for offset in [12, 24] {
            let fault = source.read_at(&mut [0; 12], offset).unwrap_err();
            assert!(matches!(fault, gguf::Error::InFile { .. }), "{fault:?}");
            assert!(fault.to_string().starts_with("w.safetensors: "), "{fault}");
        }
        let fault = source.read_at(&mut [0; 12], 12).unwrap_err().to_string();
        assert!(fault.contains("tensor `up`: ends before the requested elements"), "{fault}");
    }
}
