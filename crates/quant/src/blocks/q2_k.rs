//! Q2_K: 2 bits each, super-blocks of 256 in 16 groups of 16, 2.625 bits per weight.
//!
//! ```text
//! scales[16]  qs[64]  d[2]  dmin[2]
//!
//! scales[g]:    | m[g] | s[g] |                                  g: group of x, its index / 16
//!                7    4 3    0
//! qs[32*h + l]: | x[128*h + 96 + l] | .. 64 + l | .. 32 + l | x[128*h + l] |     h 0, 1; l in 0..32
//!                7                 6 5         4 3         2 1            0
//!
//! x = d * s[g] * q - dmin * m[g]        d, dmin: f16
//! ```

use gguf::TensorType;
use half::f16;

use super::{Block, Weights, first_bad, half_at, part, put};
use crate::{
    bits,
    search::{self, Trials},
};

pub(super) struct Q2K;

const TRIALS: Trials = Trials { first: -0.5, step: 0.1, count: 15, absolute: true };

impl Block<256, 84> for Q2K {
    const TYPE: TensorType = TensorType::Q2_K;

    fn decode(block: &[u8; 84], out: &mut [f32; 256]) {
        let d = half_at::<80, _>(block).to_f32();
        let dmin = half_at::<82, _>(block).to_f32();
        let q = bits::unpack::<2, 32, _, 256>(part::<16, 64, _>(block));
        let groups = out.as_chunks_mut::<16>().0.iter_mut().zip(q.as_chunks::<16>().0);
        for ((out, q), sm) in groups.zip(part::<0, 16, _>(block)) {
            let (d, m) = (d * f32::from(sm & 15), dmin * f32::from(sm >> 4));
            for (x, &q) in out.iter_mut().zip(q) {
                *x = d * f32::from(q) - m;
            }
        }
    }

    fn encode(x: &[f32; 256], weights: Option<Weights<256>>) -> [u8; 84] {
        let mut q = [0; 256];
        let (d, dmin, scales) = match weights {
            None => fit(x, &mut q),
            Some(w) => fit_weighted(x, w.columns, &mut q),
        };
        let (d, dmin) = (f16::from_f32(d), f16::from_f32(dmin));
        // The groups were fitted with exact scales; the levels must suit the rounded ones.
        let groups = x.as_chunks::<16>().0.iter().zip(q.as_chunks_mut::<16>().0);
        for ((x, q), sm) in groups.zip(scales) {
            let (s, m) = (f32::from(sm & 15), f32::from(sm >> 4));
            search::round_affine(3, x, d.to_f32() * s, dmin.to_f32() * m, q);
        }
        let mut block = [0; 84];
        put::<0, 16, _>(&mut block, scales);
        put::<16, 64, _>(&mut block, bits::pack::<2, 32, _, _>(&q, 0));
        put::<80, 2, _>(&mut block, d.to_le_bytes());
        put::<82, 2, _>(&mut block, dmin.to_le_bytes());
        block
    }

    fn bad_scale(block: &[u8; 84]) -> Option<(&'static str, f32)> {
        first_bad([("d", half_at::<80, _>(block)), ("dmin", half_at::<82, _>(block))])
    }
}

/// Fits each group by itself, then rounds scales and minima to 15ths of the largest.
fn fit(x: &[f32; 256], q: &mut [u8; 256]) -> (f32, f32, [u8; 16]) {
    let (mut scales, mut mins) = ([0.0; 16], [0.0; 16]);
    let groups = x.as_chunks::<16>().0.iter().zip(q.as_chunks_mut().0);
    for ((x, q), (scale, min)) in groups.zip(scales.iter_mut().zip(&mut mins)) {
        (*scale, *min) = search::affine(3, x, &x.map(f32::abs), &TRIALS, q);
    }
    let largest = |v: &[f32]| v.iter().fold(0.0, |max, &v| if v > max { v } else { max });
    let (max_scale, max_min): (f32, f32) = (largest(&scales), largest(&mins));
    let round = |v: [f32; 16], max: f32| {
        if max > 0.0 { v.map(|v| search::nearest(15.0 / max * v) as u8) } else { [0; 16] }
    };
    let (s, m) = (round(scales, max_scale), round(mins, max_min));
    (max_scale / 15.0, max_min / 15.0, pack(s, m))
}

/// Fits each group with importance weights, then searches the scale of the scales (and of the
/// minima) too, each group counting by the sum of its weights.
fn fit_weighted(
    x: &[f32; 256],
    importance: &[f32; 256],
    q: &mut [u8; 256],
) -> (f32, f32, [u8; 16]) {
    let energy = search::sum_squares(x) / 256.0;
    let (mut scales, mut mins, mut sums) = ([0.0; 16], [0.0; 16], [0.0; 16]);
    let groups = x.as_chunks::<16>().0.iter().zip(importance.as_chunks().0);
    for (g, ((x, importance), q)) in groups.zip(q.as_chunks_mut().0).enumerate() {
        let weights = search::emphasize(importance, x, energy);
        sums[g] = search::sum(&weights);
        (scales[g], mins[g]) = search::affine(3, x, &weights, &search::WEIGHTED, q);
    }
    let (mut s, mut m) = ([0; 16], [0; 16]);
    let d = search::unsigned(15, &scales, &sums, &mut s);
    let dmin = search::unsigned(15, &mins, &sums, &mut m);
    (d, dmin, pack(s, m))
}

fn pack(s: [u8; 16], m: [u8; 16]) -> [u8; 16] {
    std::array::from_fn(|g| s[g] | m[g] << 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_drawing_says() {
        let mut block = [0; 84];
        // d = 1, dmin = 2; group 0: scale 5, minimum 1; group 15: scale 2, minimum 0.
        (block[0], block[15]) = (0x15, 0x02);
        block[80..].copy_from_slice(&[0x00, 0x3c, 0x00, 0x40]);
        (block[16], block[16 + 63]) = (0b01_00_11_10, 0b11_00_00_00);
        let mut out = [0.0; 256];
        Q2K::decode(&block, &mut out);
        assert_eq!((out[0], out[1], out[32]), (10.0 - 2.0, -2.0, 0.0));
        assert_eq!((out[254], out[255]), (0.0, 6.0));
    }
}
