//! Q8_0: 8 bits each and one scale for 32 weights, 8.5 bits per weight.
//!
//! ```text
//! d[2]  qs[32]      qs[j]: x[j], signed
//!
//! x = d * q         d: f16
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::{Block, Row, first_bad, half_at, part, put};
use crate::{lanes, search};

pub(super) struct Q8_0;

impl Block<32, 34> for Q8_0 {
    const TYPE: TensorType = TensorType::Q8_0;

    #[inline(always)]
    fn decode_row<S: Simd>(simd: S, blocks: &[[u8; 34]], out: &mut [[f32; 32]]) {
        let ((groups, blocks), (out, last)) = (blocks.as_chunks(), out.as_chunks_mut());
        for (group, out) in groups.iter().zip(out) {
            decode_group(simd, group, out);
        }
        if !blocks.is_empty() {
            let (mut group, mut floats) = ([[0; 34]; GROUP], [[0.0; 32]; GROUP]);
            group[..blocks.len()].copy_from_slice(blocks);
            decode_group(simd, &group, &mut floats);
            last.copy_from_slice(&floats[..last.len()]);
        }
    }

    /// llama.cpp's encoder makes no use of importance weights.
    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<32>, out: &mut [[u8; 34]]) {
        for (x, out) in row.x.chunks(search::BATCH).zip(out.chunks_mut(search::BATCH)) {
            let found = search::signed_levels(simd, 127, x);
            for ((block, d), q) in out.iter_mut().zip(found.scale).zip(found.levels) {
                put::<0, 2, _>(block, d);
                put::<2, 32, _>(block, q);
            }
        }
    }

    fn bad_scale(block: &[u8; 34]) -> Option<(&'static str, f32)> {
        first_bad([("d", half_at::<0, _>(block))])
    }
}

/// Blocks to decode at once: their levels fill vectors.
const GROUP: usize = 8;

#[inline(always)]
fn decode_group<S: Simd>(simd: S, blocks: &[[u8; 34]; GROUP], out: &mut [[f32; 32]; GROUP]) {
    let mut q = [[0; 32]; GROUP];
    for (q, block) in q.iter_mut().zip(blocks) {
        *q = *part::<2, 32, _>(block);
    }
    let mut levels = [[0.0; 32]; GROUP];
    for (level, &q) in levels.as_flattened_mut().iter_mut().zip(q.as_flattened()) {
        *level = f32::from(q as i8);
    }
    for ((block, levels), out) in blocks.iter().zip(&levels).zip(out) {
        lanes::scale(simd, levels, half_at::<0, _>(block).to_f32(), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_drawing_says() {
        let mut x = [0.0; 32];
        (x[0], x[1], x[31]) = (-127.0, 1.0, 126.5);
        let mut expected = [0; 34];
        (expected[0], expected[1]) = (0x00, 0x3c);
        (expected[2], expected[3], expected[33]) = (0x81, 0x01, 0x7f);
        assert_eq!(Q8_0::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 32];
        Q8_0::decode(&expected, &mut out);
        x[31] = 127.0;
        assert_eq!(out, x);
    }
}
