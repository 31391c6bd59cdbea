//! Error metrics between two encodings of the same weights.

use gguf::TensorType;

use crate::codec::CodecError;
use crate::registry::decode_row;

/// Error metrics of one or more tensors against a reference.
///
/// [`Difference::add`] accumulates the metrics of several parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Difference {
    /// Number of elements.
    pub elements: u64,
    /// Sum of squared differences.
    pub squared_error: f64,
    /// Sum of squares of the reference.
    pub squared_original: f64,
    /// Sum of squares of the second encoding.
    pub squared_other: f64,
    /// Dot product of the two encodings.
    pub product: f64,
    /// Max absolute difference.
    pub max: f64,
}

impl Difference {
    /// Adds the metrics of further elements.
    pub fn add(&mut self, more: &Self) {
        self.elements += more.elements;
        self.squared_error += more.squared_error;
        self.squared_original += more.squared_original;
        self.squared_other += more.squared_other;
        self.product += more.product;
        self.max = self.max.max(more.max);
    }

    /// Root mean square error (RMSE); 0 without elements.
    pub fn rmse(&self) -> f64 {
        (self.squared_error / self.elements.max(1) as f64).sqrt()
    }

    /// RMSE divided by the root mean square of the reference: 0 for equal encodings, 1 if the
    /// second is all zeros.
    pub fn relative(&self) -> f64 {
        if self.squared_error == 0.0 {
            0.0
        } else {
            (self.squared_error / self.squared_original).sqrt()
        }
    }

    /// Cosine similarity; 1 for equal encodings.
    pub fn cosine(&self) -> f64 {
        if self.squared_error == 0.0 {
            return 1.0;
        }
        self.product / (self.squared_original * self.squared_other).sqrt()
    }
}

/// Number of elements decoded at a time; a multiple of every block length.
const CHUNK: usize = 8192;

/// Compares `elements` weights in two encodings, both whole blocks.
///
/// # Errors
/// Returns the error of [`decode_row`] for either encoding.
pub fn difference(
    elements: u64,
    original: (TensorType, &[u8]),
    other: (TensorType, &[u8]),
) -> Result<Difference, CodecError> {
    let mut sum = Difference::default();
    let (mut a, mut b) = (vec![0.0; CHUNK], vec![0.0; CHUNK]);
    let mut done = 0;
    while done < elements {
        let n = (elements - done).min(CHUNK as u64) as usize;
        decode_part(original, done, &mut a[..n])?;
        decode_part(other, done, &mut b[..n])?;
        for (&x, &y) in a[..n].iter().zip(&b[..n]) {
            let (x, y) = (f64::from(x), f64::from(y));
            sum.squared_error += (x - y) * (x - y);
            sum.squared_original += x * x;
            sum.squared_other += y * y;
            sum.product += x * y;
            sum.max = sum.max.max((x - y).abs());
        }
        done += n as u64;
    }
    sum.elements = elements;
    Ok(sum)
}

/// Decodes elements starting at `first`; the codec reports a length that does not match.
fn decode_part(
    (ty, bytes): (TensorType, &[u8]),
    first: u64,
    out: &mut [f32],
) -> Result<(), CodecError> {
    let start = ty.byte_len(&[first]).ok_or(CodecError::NoCodec(ty))? as usize;
    let len = ty.byte_len(&[out.len() as u64]).unwrap_or(0) as usize;
    decode_row(ty, bytes.get(start..start + len).unwrap_or_default(), out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_a_known_pair() {
        let bytes =
            |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
        let (a, b) = (bytes(&[3.0, 4.0]), bytes(&[3.0, 3.0]));
        let figures = difference(2, (TensorType::F32, &a), (TensorType::F32, &b)).unwrap();
        assert_eq!(figures.rmse(), 0.5f64.sqrt());
        assert_eq!(figures.relative(), 0.2);
        assert_eq!(figures.max, 1.0);
        assert_eq!(figures.cosine(), 21.0 / (25.0 * 18.0f64).sqrt());
        let same = difference(2, (TensorType::F32, &a), (TensorType::F32, &a)).unwrap();
        assert_eq!((same.relative(), same.cosine()), (0.0, 1.0));
        assert!(difference(2, (TensorType::F32, &a), (TensorType::F32, &b[..4])).is_err());
    }
}
