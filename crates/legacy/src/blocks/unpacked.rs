//! Block formats with one integer per element and a scale.
//!
//! ```text
//! Q4_0  d f32 | 16 bytes               20 bytes, 32 elements   d * (q - 8)
//! Q4_1  d f32 | m f32 | 16 bytes       24 bytes, 32 elements   d * q + m
//! Q4_2  d f16 | 8 bytes                10 bytes, 16 elements   d * (q - 8)
//! Q4_3  d f16 | m f16 | 8 bytes        12 bytes, 16 elements   d * q + m
//! Q5_0  d f16 | h u32 | 16 bytes       22 bytes, 32 elements   d * (q - 16)
//! Q5_1  d f16 | m f16 | h u32 | 16 b.  24 bytes, 32 elements   d * q + m
//! Q8_0  d f32 | 32 x i8                36 bytes, 32 elements   d * q
//! ```
//!
//! Bit `i` of `h` is the fifth bit of element `i`. `d` can be negative.

use gguf::TensorType;
use half::f16;

use super::{Decoder, LegacyBlock};

/// An unpacked block: element `i` is `quants[i] * d`, plus `m` if present.
pub(crate) struct UnpackedBlock {
    d: f32,
    m: Option<f32>,
    /// Blocks with fewer elements use the first ones.
    quants: [i8; 32],
}

const fn block(
    name: &'static str,
    elements: u64,
    bytes: u64,
    current: Option<TensorType>,
    unpack: fn(&[u8]) -> UnpackedBlock,
) -> LegacyBlock {
    LegacyBlock { name, elements, bytes, decoder: Decoder::Unpack { unpack, current } }
}

pub(super) static Q4_0_V0: LegacyBlock =
    block("Q4_0 (version 0)", 32, 20, Some(TensorType::Q4_0), |block| UnpackedBlock {
        d: single(block, 0),
        m: None,
        quants: nibbles(block, 4, adjacent).map(|q| q - 8),
    });
pub(super) static Q4_0_V1: LegacyBlock =
    block("Q4_0 (version 1)", 32, 20, Some(TensorType::Q4_0), |block| UnpackedBlock {
        d: single(block, 0),
        m: None,
        quants: nibbles(block, 4, halves).map(|q| q - 8),
    });
pub(super) static Q4_1_V0: LegacyBlock =
    block("Q4_1 (version 0)", 32, 24, Some(TensorType::Q4_1), |block| UnpackedBlock {
        d: single(block, 0),
        m: Some(single(block, 4)),
        quants: nibbles(block, 8, adjacent),
    });
pub(super) static Q4_1_V1: LegacyBlock =
    block("Q4_1 (version 1)", 32, 24, Some(TensorType::Q4_1), |block| UnpackedBlock {
        d: single(block, 0),
        m: Some(single(block, 4)),
        quants: nibbles(block, 8, halves),
    });
pub(super) static Q4_2: LegacyBlock = block("Q4_2", 16, 10, None, |block| UnpackedBlock {
    d: half(block, 0),
    m: None,
    quants: nibbles(block, 2, adjacent).map(|q| q - 8),
});
pub(super) static Q4_3: LegacyBlock = block("Q4_3", 16, 12, None, |block| UnpackedBlock {
    d: half(block, 0),
    m: Some(half(block, 2)),
    quants: nibbles(block, 4, adjacent),
});
pub(super) static Q5_0_V0: LegacyBlock =
    block("Q5_0 (version 0)", 32, 22, Some(TensorType::Q5_0), |block| UnpackedBlock {
        d: half(block, 0),
        m: None,
        quants: fifth_bits(nibbles(block, 6, adjacent), block, 2).map(|q| q - 16),
    });
pub(super) static Q5_1_V0: LegacyBlock =
    block("Q5_1 (version 0)", 32, 24, Some(TensorType::Q5_1), |block| UnpackedBlock {
        d: half(block, 0),
        m: Some(half(block, 2)),
        quants: fifth_bits(nibbles(block, 8, adjacent), block, 4),
    });
pub(super) static Q8_0_V1: LegacyBlock =
    block("Q8_0 (version 1)", 32, 36, Some(TensorType::Q8_0), |block| {
        let mut quants = [0; 32];
        for (quant, &byte) in quants.iter_mut().zip(block.iter().skip(4)) {
            *quant = byte as i8;
        }
        UnpackedBlock { d: single(block, 0), m: None, quants }
    });

impl UnpackedBlock {
    /// Decodes as many elements as `out` holds.
    pub fn decode(&self, out: &mut [f32]) {
        for (out, &quant) in out.iter_mut().zip(&self.quants) {
            let scaled = f32::from(quant) * self.d;
            *out = self.m.map_or(scaled, |m| scaled + m);
        }
    }

    /// Whether scale and minimum are exactly representable in half precision.
    pub fn has_half_scales(&self) -> bool {
        let fits = |x: f32| f16::from_f32(x).to_f32() == x;
        fits(self.d) && self.m.is_none_or(fits)
    }

    /// Whether scale and minimum are within the range of half precision: finite, and large enough
    /// that rounding keeps 11 significant bits.
    pub fn scales_fit_half(&self) -> bool {
        let fits = |x: f32| {
            let rounded = f16::from_f32(x);
            rounded.is_finite() && (x == 0.0 || x.abs() >= f16::MIN_POSITIVE.to_f32())
        };
        // The minimum only needs to be finite: its error is relative to the scale.
        fits(self.d) && self.m.is_none_or(|m| f16::from_f32(m).is_finite())
    }

    /// Writes the block in the current type with the same quants, scales rounded to half precision.
    pub fn write(&self, ty: TensorType, out: &mut [u8]) {
        let mut block = f16::from_f32(self.d).to_le_bytes().to_vec();
        block.extend(self.m.into_iter().flat_map(|m| f16::from_f32(m).to_le_bytes()));
        // Types with few bits store unsigned quants.
        let lowest = match ty {
            TensorType::Q4_0 => -8,
            TensorType::Q5_0 => -16,
            _ => 0,
        };
        let q = self.quants.map(|quant| quant.wrapping_sub(lowest) as u8);
        if ty == TensorType::Q8_0 {
            block.extend(q);
        } else {
            if matches!(ty, TensorType::Q5_0 | TensorType::Q5_1) {
                let high = (0..32).fold(0u32, |bits, i| bits | u32::from(q[i] >> 4 & 1) << i);
                block.extend(high.to_le_bytes());
            }
            block.extend((0..16).map(|j| q[j] & 15 | (q[j + 16] & 15) << 4));
        }
        out.copy_from_slice(&block);
    }
}

/// Position of element `i` in the nibbles of a block: byte and shift.
type NibblePosition = fn(usize) -> (usize, u32);

fn adjacent(i: usize) -> (usize, u32) {
    (i / 2, (i % 2) as u32 * 4)
}

fn halves(i: usize) -> (usize, u32) {
    (i % 16, (i / 16) as u32 * 4)
}

fn nibbles(block: &[u8], at: usize, position: NibblePosition) -> [i8; 32] {
    std::array::from_fn(|i| {
        let (byte, shift) = position(i);
        // Blocks of 16 elements are shorter; the missing elements are not used.
        block.get(at + byte).map_or(0, |byte| (byte >> shift & 15) as i8)
    })
}

fn fifth_bits(mut quants: [i8; 32], block: &[u8], at: usize) -> [i8; 32] {
    let bits = block.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_le_bytes);
    for (i, quant) in quants.iter_mut().enumerate() {
        *quant |= (bits >> i & 1) as i8 * 16;
    }
    quants
}

/// Blocks are never truncated, so the default is not used.
fn single(block: &[u8], at: usize) -> f32 {
    block.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0.0, f32::from_le_bytes)
}

pub(super) fn half(block: &[u8], at: usize) -> f32 {
    let bytes = block.get(at..).and_then(<[u8]>::first_chunk).copied();
    bytes.map_or(0.0, |bytes| f16::from_le_bytes(bytes).to_f32())
}
