//! Blocks with a scale and a level for every element.
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

use super::{Old, Reading};

/// A block taken apart: element `i` is `levels[i] * d`, and `m` more where there is one.
pub(crate) struct Levels {
    d: f32,
    m: Option<f32>,
    /// The first ones count where a block has fewer elements.
    levels: [i8; 32],
}

const fn old(
    name: &'static str,
    elements: u64,
    bytes: u64,
    today: Option<TensorType>,
    read: fn(&[u8]) -> Levels,
) -> Old {
    Old { name, elements, bytes, reading: Reading::Levels { read, today } }
}

pub(super) static Q4_0_PAIRS: Old =
    old("Q4_0 of generation 0", 32, 20, Some(TensorType::Q4_0), |block| Levels {
        d: single(block, 0),
        m: None,
        levels: nibbles(block, 4, pair).map(|q| q - 8),
    });
pub(super) static Q4_0_HALVES: Old =
    old("Q4_0 of generation 1", 32, 20, Some(TensorType::Q4_0), |block| Levels {
        d: single(block, 0),
        m: None,
        levels: nibbles(block, 4, halves).map(|q| q - 8),
    });
pub(super) static Q4_1_PAIRS: Old =
    old("Q4_1 of generation 0", 32, 24, Some(TensorType::Q4_1), |block| Levels {
        d: single(block, 0),
        m: Some(single(block, 4)),
        levels: nibbles(block, 8, pair),
    });
pub(super) static Q4_1_HALVES: Old =
    old("Q4_1 of generation 1", 32, 24, Some(TensorType::Q4_1), |block| Levels {
        d: single(block, 0),
        m: Some(single(block, 4)),
        levels: nibbles(block, 8, halves),
    });
pub(super) static Q4_2: Old = old("Q4_2", 16, 10, None, |block| Levels {
    d: half(block, 0),
    m: None,
    levels: nibbles(block, 2, pair).map(|q| q - 8),
});
pub(super) static Q4_3: Old = old("Q4_3", 16, 12, None, |block| Levels {
    d: half(block, 0),
    m: Some(half(block, 2)),
    levels: nibbles(block, 4, pair),
});
pub(super) static Q5_0_PAIRS: Old =
    old("Q5_0 of generation 0", 32, 22, Some(TensorType::Q5_0), |block| Levels {
        d: half(block, 0),
        m: None,
        levels: fifth_bits(nibbles(block, 6, pair), block, 2).map(|q| q - 16),
    });
pub(super) static Q5_1_PAIRS: Old =
    old("Q5_1 of generation 0", 32, 24, Some(TensorType::Q5_1), |block| Levels {
        d: half(block, 0),
        m: Some(half(block, 2)),
        levels: fifth_bits(nibbles(block, 8, pair), block, 4),
    });
pub(super) static Q8_0_WIDE: Old =
    old("Q8_0 of generations 0 and 1", 32, 36, Some(TensorType::Q8_0), |block| {
        let mut levels = [0; 32];
        for (level, &byte) in levels.iter_mut().zip(block.iter().skip(4)) {
            *level = byte as i8;
        }
        Levels { d: single(block, 0), m: None, levels }
    });

impl Levels {
    /// The elements, as many as `out` takes.
    pub fn weights(&self, out: &mut [f32]) {
        for (out, &level) in out.iter_mut().zip(&self.levels) {
            let scaled = f32::from(level) * self.d;
            *out = self.m.map_or(scaled, |m| scaled + m);
        }
    }

    /// Whether scale and minimum are the same numbers in half precision.
    pub fn fits_half(&self) -> bool {
        let fits = |x: f32| f16::from_f32(x).to_f32() == x;
        fits(self.d) && self.m.is_none_or(fits)
    }

    /// Whether scale and minimum are within the range of half precision: finite, and not so small
    /// that rounding costs more than the 11 bits it should.
    pub fn is_near_half(&self) -> bool {
        let near = |x: f32| {
            let rounded = f16::from_f32(x);
            rounded.is_finite() && (x == 0.0 || x.abs() >= f16::MIN_POSITIVE.to_f32())
        };
        // A minimum counts by its size beside the scale.
        near(self.d) && self.m.is_none_or(|m| f16::from_f32(m).is_finite())
    }

    /// Writes the block as today's type of the same levels has it, scales rounded to half
    /// precision.
    pub fn write(&self, ty: TensorType, out: &mut [u8]) {
        let mut block = f16::from_f32(self.d).to_le_bytes().to_vec();
        block.extend(self.m.into_iter().flat_map(|m| f16::from_f32(m).to_le_bytes()));
        // Levels count from the lowest in the types of few bits.
        let lowest = match ty {
            TensorType::Q4_0 => -8,
            TensorType::Q5_0 => -16,
            _ => 0,
        };
        let q = self.levels.map(|level| level.wrapping_sub(lowest) as u8);
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

/// Where element `i` of a block of nibbles is: its byte, and how far its bits are up.
type Place = fn(usize) -> (usize, u32);

fn pair(i: usize) -> (usize, u32) {
    (i / 2, (i % 2) as u32 * 4)
}

fn halves(i: usize) -> (usize, u32) {
    (i % 16, (i / 16) as u32 * 4)
}

fn nibbles(block: &[u8], at: usize, place: Place) -> [i8; 32] {
    std::array::from_fn(|i| {
        let (byte, shift) = place(i);
        // A block of 16 elements ends before; what lies beyond is not looked at.
        block.get(at + byte).map_or(0, |byte| (byte >> shift & 15) as i8)
    })
}

fn fifth_bits(mut levels: [i8; 32], block: &[u8], at: usize) -> [i8; 32] {
    let bits = block.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_le_bytes);
    for (i, level) in levels.iter_mut().enumerate() {
        *level |= (bits >> i & 1) as i8 * 16;
    }
    levels
}

/// Blocks are whole: the zero is never used.
fn single(block: &[u8], at: usize) -> f32 {
    block.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0.0, f32::from_le_bytes)
}

pub(super) fn half(block: &[u8], at: usize) -> f32 {
    let bytes = block.get(at..).and_then(<[u8]>::first_chunk).copied();
    bytes.map_or(0.0, |bytes| f16::from_le_bytes(bytes).to_f32())
}
