//! Lossless casts of element types that GGUF does not have.

use std::sync::Arc;

use gguf::TensorType;
use half::f16;

use super::raw::Raw;
use super::rows::{ComputedSource, Rows, TileCache};

/// Casts elements; each row is one element.
struct Cast {
    from: Raw,
    to: TensorType,
}

/// Returns a source of `from`'s elements as type `to`, which [`Dtype::widened`] gives.
pub(super) fn source(
    from: Raw,
    to: TensorType,
    cache: &Arc<TileCache>,
) -> Arc<dyn gguf_store::Source> {
    ComputedSource::source(Box::new(Cast { from, to }), cache)
}

impl Rows for Cast {
    fn count(&self) -> u64 {
        self.from.elements()
    }

    fn row_bytes(&self) -> u64 {
        self.to.byte_len(&[1]).unwrap_or(1)
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        let width = self.row_bytes() as usize;
        let dtype = self.from.dtype;
        let bytes = self.from.bytes(first, (out.len() / width) as u64)?;
        let elements = bytes.chunks_exact(dtype.bytes() as usize);
        for (out, element) in out.chunks_exact_mut(width).zip(elements) {
            match self.to {
                TensorType::F16 => {
                    out.copy_from_slice(&f16::from_f32(dtype.to_f32(element)).to_le_bytes());
                }
                TensorType::F32 => out.copy_from_slice(&dtype.to_f32(element).to_le_bytes()),
                _ => out.copy_from_slice(&dtype.to_i128(element).to_le_bytes()[..width]),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype;

    fn cast(dtype: Dtype, bytes: &[u8]) -> Vec<u8> {
        let source = Arc::new(bytes.to_vec());
        let shape = vec![bytes.len() as u64 / dtype.bytes()];
        let from = Raw { name: "t".into(), shape, dtype, file: 0, source, offset: 0 };
        let source = source_of(from);
        let mut out = vec![0; source.byte_len() as usize];
        source.read_at(&mut out, 0).unwrap();
        out
    }

    fn source_of(from: Raw) -> Arc<dyn gguf_store::Source> {
        let to = from.dtype.widened().unwrap();
        source(from, to, &Arc::default())
    }

    #[test]
    fn casts_are_lossless() {
        assert_eq!(cast(Dtype::U8, &[0, 200]), [0, 0, 200, 0]);
        assert_eq!(cast(Dtype::U16, &[255, 255]), [255, 255, 0, 0]);
        assert_eq!(cast(Dtype::U32, &[0, 0, 0, 128]), [0, 0, 0, 128, 0, 0, 0, 0]);
        let floats = cast(Dtype::F8E4M3, &[0x38, 0x01, 0xfe]);
        let values = [1.0, 1.0 / 512.0, -448.0].map(|x| f16::from_f32(x).to_le_bytes());
        assert_eq!(floats, values.concat());
    }
}
