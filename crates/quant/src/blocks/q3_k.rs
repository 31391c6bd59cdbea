//! Q3_K: 3 bits each, super-blocks of 256 in 16 groups of 16, 3.4375 bits per weight.
//!
//! ```text
//! hmask[32]  qs[64]  scales[12]  d[2]
//!
//! hmask[l]:     bit k is the high bit of x[32*k + l]
//! qs[32*h + l]: | x[128*h + 96 + l] | .. 64 + l | .. 32 + l | x[128*h + l] |   low 2 bits of each
//!                7                 6 5         4 3         2 1            0    h 0, 1; l in 0..32
//! scales[j]:    | s[j+8] low 4 | s[j] low 4 |                                  j in 0..8
//!                7            4 3          0
//! scales[8+j]:  | s[j+12] | s[j+8] | s[j+4] | s[j] |     upper 2 bits of each, j in 0..4
//!                7       6 5      4 3      2 1    0
//!
//! x = d * (s[g] - 32) * (q - 4)         d: f16; g: group of x, its index / 16
//! ```

use gguf::TensorType;
use half::f16;

use super::{Block, Weights, first_bad, half_at, part, put};
use crate::{bits, search};

pub(super) struct Q3K;

impl Block<256, 110> for Q3K {
    const TYPE: TensorType = TensorType::Q3_K;

    fn decode(block: &[u8; 110], out: &mut [f32; 256]) {
        let d = half_at::<108, _>(block).to_f32();
        let high = bits::unpack::<1, 32, _, 256>(part::<0, 32, _>(block));
        let low = bits::unpack::<2, 32, _, 256>(part::<32, 64, _>(block));
        let q = low.as_chunks::<16>().0.iter().zip(high.as_chunks::<16>().0);
        let groups = out.as_chunks_mut::<16>().0.iter_mut().zip(q);
        for ((out, (low, high)), s) in groups.zip(unpack(part::<96, 12, _>(block))) {
            let d = d * (i32::from(s) - 32) as f32;
            for ((x, &low), &high) in out.iter_mut().zip(low).zip(high) {
                *x = d * (i32::from(low | high << 2) - 4) as f32;
            }
        }
    }

    fn encode(x: &[f32; 256], weights: Option<Weights<256>>) -> [u8; 110] {
        let mut q = [0; 256];
        let (d, s) = match weights {
            None => fit(x, &mut q),
            Some(w) => fit_weighted(x, w.columns, &mut q),
        };
        let d = f16::from_f32(d);
        // The groups were fitted with exact scales; the levels must suit the rounded ones.
        for ((x, q), s) in x.chunks_exact(16).zip(q.chunks_exact_mut(16)).zip(s) {
            search::round_symmetric(4, x, d.to_f32() * (i32::from(s) - 32) as f32, q);
        }
        let mut block = [0; 110];
        put::<0, 32, _>(&mut block, bits::pack::<1, 32, _, _>(&q, 2));
        put::<32, 64, _>(&mut block, bits::pack::<2, 32, _, _>(&q, 0));
        put::<96, 12, _>(&mut block, pack(&s));
        put::<108, 2, _>(&mut block, d.to_le_bytes());
        block
    }

    fn bad_scale(block: &[u8; 110]) -> Option<(&'static str, f32)> {
        first_bad([("d", half_at::<108, _>(block))])
    }
}

/// Fits each group by itself; the scale of largest magnitude becomes s = 0.
fn fit(x: &[f32; 256], q: &mut [u8; 256]) -> (f32, [u8; 16]) {
    let mut scales = [0.0; 16];
    let groups = x.as_chunks::<16>().0.iter().zip(q.as_chunks_mut().0);
    for ((x, q), scale) in groups.zip(&mut scales) {
        *scale = search::symmetric_by_moves(4, x, q);
    }
    let extreme = search::extreme(&scales);
    if extreme == 0.0 {
        return (0.0, [0; 16]);
    }
    let inverse = -32.0 / extreme;
    // Through i8, as in C: shows when `inverse` overflowed.
    let s = scales.map(|v| ((search::nearest(inverse * v) as i8).clamp(-32, 31) + 32) as u8);
    (1.0 / inverse, s)
}

/// Fits each group with importance weights, then searches the scale of the scales too, each group
/// counting by the sum of its weights.
fn fit_weighted(x: &[f32; 256], importance: &[f32; 256], q: &mut [u8; 256]) -> (f32, [u8; 16]) {
    let energy = 2.0 * search::sum_squares(x) / 256.0;
    let (mut scales, mut sums) = ([0.0; 16], [0.0; 16]);
    let groups = x.as_chunks::<16>().0.iter().zip(importance.as_chunks().0);
    for (g, ((x, importance), q)) in groups.zip(q.as_chunks_mut().0).enumerate() {
        let weights = search::emphasize(importance, x, energy);
        sums[g] = search::sum(&weights);
        scales[g] = search::symmetric(4, x, &weights, q);
    }
    let mut s = [0; 16];
    (search::symmetric(32, &scales, &sums, &mut s), s)
}

/// The low 4 bits of the 16 scales are packed like Q4_0 with stride 8, the upper 2 with stride 4.
fn pack(s: &[u8; 16]) -> [u8; 12] {
    let mut bytes = [0; 12];
    put::<0, 8, _>(&mut bytes, bits::pack::<4, 8, _, _>(s, 0));
    put::<8, 4, _>(&mut bytes, bits::pack::<2, 4, _, _>(s, 4));
    bytes
}

#[inline]
fn unpack(bytes: &[u8; 12]) -> [u8; 16] {
    let low = bits::unpack::<4, 8, _, 16>(part::<0, 8, _>(bytes));
    let high = bits::unpack::<2, 4, _, 16>(part::<8, 4, _>(bytes));
    std::array::from_fn(|g| low[g] | high[g] << 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_drawing_says() {
        let mut block = [0; 110];
        // d = 1; all scales 32 (times 0) but s[0] = 0x21 (times 1) and s[13] = 0x1e (times -2).
        let mut s = [32; 16];
        (s[0], s[13]) = (0x21, 0x1e);
        block[96..108].copy_from_slice(&[1, 0, 0, 0, 0, 0xe0, 0, 0, 0xaa, 0x6a, 0xaa, 0xaa]);
        assert_eq!(block[96..108], pack(&s));
        (block[108], block[109]) = (0x00, 0x3c);
        // x[1]: q = 0b110; x[208 = 128 + 64 + 16]: q = 0b001.
        (block[1], block[32 + 1], block[32 + 32 + 16]) = (1 << 0, 0b10, 0b01 << 4);
        let mut out = [0.0; 256];
        Q3K::decode(&block, &mut out);
        assert_eq!((out[0], out[1]), (-4.0, 2.0));
        assert_eq!((out[100], out[208], out[209]), (0.0, 6.0, 8.0));
    }
}
