//! MXFP4: E2M1 floats (`e2m1.rs`) and one power of two for 32 weights, 4.25 bits per weight; OCP
//! Microscaling Formats 1.0.
//!
//! ```text
//! e  qs[16]             qs[j]: | x[j+16] | x[j] |
//!                               7       4 3    0
//!
//! x = 2^(e - 127) * q
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::{Block, Importance, e2m1, part, put};
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::value_tables::e8m0_half;
use crate::{bits, search};

pub(super) struct MXFP4;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = 2^(e - 127) * q",
    fields: &[
        Field::one(
            "e",
            "scale of the block",
            FieldKind::E8M0,
            &[Every { first: 0, len: 8, step: 0 }],
        ),
        Field {
            kind: FieldKind::E2M1,
            about: "weight before scaling",
            ..Field::levels(32, &[Packed { at: 1, len: 4, stride: 16 }])
        },
    ],
    weight: |of| e8m0_half(of.raw(0) as u8) * (2.0 * of.value(1)),
};

impl Block<32, 17> for MXFP4 {
    const TYPE: TensorType = TensorType::MXFP4;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 17], out: &mut [f32; 32]) {
        let half_scale = e8m0_half(block[0]);
        let q = bits::unpack::<4, 16, _, 32>(part::<1, 16, _>(block));
        for (x, q) in out.iter_mut().zip(q) {
            *x = e2m1::decode(q, half_scale);
        }
    }

    /// Like llama.cpp's encoder, ignores importance weights.
    #[inline(always)]
    fn encode<S: Simd>(simd: S, x: &[f32; 32], _: Option<Importance<32>>) -> [u8; 17] {
        let magnitude = search::magnitude(x);
        // The largest magnitude is 4 to 8 times the scale, and codes reach 6. Tiny numbers wrap to
        // a huge scale, as in the x86-64 conversion, under which all weights become 0.
        let e = if magnitude > 0.0 { (floor_log2(magnitude) - 2 + 127) as u8 } else { 0 };
        let mut block = [0; 17];
        block[0] = e;
        let q = e2m1::encode(simd, x, e8m0_half(e));
        put::<1, 16, _>(&mut block, bits::pack::<4, 16, _, _>(&q, 0));
        block
    }

    /// Only the exponent that the standard defines as NaN. Under the largest other exponents, the
    /// largest codes decode to infinity, which llama.cpp's check does not detect.
    fn bad_scale(block: &[u8; 17]) -> Option<(&'static str, f32)> {
        (block[0] == 0xff).then_some(("e", f32::NAN))
    }
}

/// `floor(log2(x))` as C's `floorf(log2f(x))` computes it, for positive x: 1 more than the exponent
/// of x if the logarithm is so close below an integer k that it rounds to k.
///
/// For x = 2^k * (1 - n * 2^-24) the logarithm is k - n * 2^-24 / ln 2. It rounds to k if that is
/// at most half the distance to the float before k, 2^(m - 23) for 2^m <= |k - tiny| < 2^(m + 1).
fn floor_log2(x: f32) -> i32 {
    let bits = x.to_bits();
    let (exponent, mantissa) = if bits >> 23 == 0 {
        let shift = bits.leading_zeros() - 8;
        (-126 - shift as i32, bits << shift)
    } else {
        ((bits >> 23) as i32 - 127, bits & 0x7f_ffff | 0x80_0000)
    };
    let above = exponent + 1;
    let reach = match if above > 0 { above - 1 } else { -above } {
        0 => 0,
        k => ((1 << k.ilog2()) as f32 * std::f32::consts::LN_2) as u32,
    };
    if (1 << 24) - mantissa <= reach { above } else { exponent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [0.0; 32];
        (x[0], x[1], x[17]) = (6.0, -0.5, 3.0);
        let mut expected = [0; 17];
        (expected[0], expected[1], expected[2]) = (127, 7, 0x59);
        assert_eq!(MXFP4::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 32];
        MXFP4::decode(pulp::Scalar, &expected, &mut out);
        assert_eq!(out, x);
    }

    #[test]
    fn logarithms_round_as_in_c() {
        let below = |k: i32, n: u32| f32::from_bits(2f32.powi(k).to_bits() - n);
        for (k, n) in [(1, 0), (2, 0), (3, 1), (-5, 2), (-126, 22), (120, 44), (-127, 0)] {
            let n = if k == -126 { 2 * n } else { n };
            assert_eq!(floor_log2(2f32.powi(k)), k);
            if k > -126 {
                assert_eq!(floor_log2(below(k, n)), k, "{k}");
                assert_eq!(floor_log2(below(k, n + 1)), k - 1, "{k}");
            }
        }
        assert_eq!(floor_log2(f32::MAX), 128);
        assert_eq!(floor_log2(f32::from_bits(1)), -149);
    }
}
