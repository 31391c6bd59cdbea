//! Element types of checkpoints.

use gguf::TensorType;
use half::{bf16, f16};

/// Element type of a checkpoint tensor. All are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    F64,
    F32,
    F16,
    BF16,
    /// OCP FP8 with 4 exponent bits: no infinity, NaN at 0x7f and 0xff.
    F8E4M3,
    /// OCP FP8 with 5 exponent bits: the upper half of an F16.
    F8E5M2,
    /// A power of two, `2^(x - 127)`; 0xff is NaN.
    F8E8M0,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    /// One byte, 0 or 1.
    Bool,
}

impl Dtype {
    /// Returns the size of an element in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::BF16 | Self::I16 | Self::U16 => 2,
            Self::F8E4M3 | Self::F8E5M2 | Self::F8E8M0 | Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// Returns the GGUF type with the same bytes, if there is one.
    pub fn stored_as(self) -> Option<TensorType> {
        Some(match self {
            Self::F64 => TensorType::F64,
            Self::F32 => TensorType::F32,
            Self::F16 => TensorType::F16,
            Self::BF16 => TensorType::BF16,
            Self::I64 => TensorType::I64,
            Self::I32 => TensorType::I32,
            Self::I16 => TensorType::I16,
            Self::I8 | Self::Bool => TensorType::I8,
            _ => return None,
        })
    }

    /// Returns the smallest GGUF type that has all values of this one; `None` for `U64`.
    pub fn widened(self) -> Option<TensorType> {
        Some(match self {
            Self::F8E4M3 | Self::F8E5M2 => TensorType::F16,
            Self::F8E8M0 => TensorType::F32,
            Self::U32 => TensorType::I64,
            Self::U16 => TensorType::I32,
            Self::U8 => TensorType::I16,
            other => return other.stored_as(),
        })
    }

    /// Converts one element to F32: exact for all types of up to 16 bits, rounded for others.
    pub fn to_f32(self, bytes: &[u8]) -> f32 {
        match self {
            Self::F64 => f64::from_le_bytes(first(bytes)) as f32,
            Self::F32 => f32::from_le_bytes(first(bytes)),
            Self::F16 => f16::from_le_bytes(first(bytes)).to_f32(),
            Self::BF16 => bf16::from_le_bytes(first(bytes)).to_f32(),
            Self::F8E4M3 => e4m3(first::<1>(bytes)[0]),
            Self::F8E5M2 => f16::from_bits(u16::from(first::<1>(bytes)[0]) << 8).to_f32(),
            Self::F8E8M0 => e8m0(first::<1>(bytes)[0]),
            integer => integer.to_i128(bytes) as f32,
        }
    }

    /// Converts one element of an integer type; returns 0 for other types.
    pub fn to_i128(self, bytes: &[u8]) -> i128 {
        match self {
            Self::I64 => i64::from_le_bytes(first(bytes)).into(),
            Self::I32 => i32::from_le_bytes(first(bytes)).into(),
            Self::I16 => i16::from_le_bytes(first(bytes)).into(),
            Self::I8 => i8::from_le_bytes(first(bytes)).into(),
            Self::U64 => u64::from_le_bytes(first(bytes)).into(),
            Self::U32 => u32::from_le_bytes(first(bytes)).into(),
            Self::U16 => u16::from_le_bytes(first(bytes)).into(),
            Self::U8 | Self::Bool => first::<1>(bytes)[0].into(),
            _ => 0,
        }
    }
}

/// Returns the first bytes; zeros if there are too few.
fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

/// Decodes E4M3 of the OCP 8-bit Floating Point Specification 1.0: bias 7, subnormals in steps of
/// 2^-9.
pub(crate) fn e4m3(byte: u8) -> f32 {
    let (exponent, mantissa) = (u32::from(byte >> 3 & 15), u32::from(byte & 7));
    let magnitude = match (exponent, mantissa) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa as f32 / 512.0,
        // Convert bias 7 to 127.
        _ => f32::from_bits((exponent + 120) << 23 | mantissa << 20),
    };
    if byte < 0x80 { magnitude } else { -magnitude }
}

/// Decodes E8M0 of OCP Microscaling Formats 1.0: exponent only, bias 127.
fn e8m0(byte: u8) -> f32 {
    match byte {
        0xff => f32::NAN,
        // 2^-127 is subnormal.
        0 => f32::from_bits(0x40_0000),
        _ => f32::from_bits(u32::from(byte) << 23),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fp8_values() {
        let cases = [
            (0x00, 0.0),
            (0x01, 1.0 / 512.0),
            (0x07, 7.0 / 512.0),
            (0x08, 1.0 / 64.0),
            (0x38, 1.0),
            (0x7e, 448.0),
            (0xb9, -1.125),
        ];
        for (byte, value) in cases {
            assert_eq!(e4m3(byte), value, "{byte:#x}");
        }
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
        assert_eq!(e4m3(0x80).to_bits(), (-0.0f32).to_bits());
        assert_eq!(Dtype::F8E5M2.to_f32(&[0x3d]), 1.25);
        assert_eq!(Dtype::F8E5M2.to_f32(&[0x7c]), f32::INFINITY);
        let powers = [0, 1, 127, 254].map(|byte| Dtype::F8E8M0.to_f32(&[byte]));
        assert_eq!(powers, [2f32.powi(-127), 2f32.powi(-126), 1.0, 2f32.powi(127)]);
    }
}
