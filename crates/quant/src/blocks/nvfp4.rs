//! NVFP4: E2M1 floats (`e2m1.rs`) with an 8-bit float scale for each 16 of 64 weights, 4.5 bits per
//! weight.
//!
//! ```text
//! d[4]  qs[32]          qs[8*s + j]: | x[16*s + 8 + j] | x[16*s + j] |      s in 0..4, j in 0..8
//!                                     7               4 3           0
//! d[s]: | - | exponent, bias 7 | mantissa |      unsigned E4M3; 0x7f is NaN in the standard and 0
//!        7   6                3 2        0       here, bit 7 has no meaning otherwise
//!
//! x = d[s] * q
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::{Block, Importance, e2m1, part, put};
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::value_tables::ue4m3_half;
use crate::{bits, search};

pub(super) struct NVFP4;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * q",
    fields: &[
        Field {
            name: "d",
            about: "scale of 16 weights",
            kind: FieldKind::E4M3,
            count: 4,
            bits: &[Every { first: 0, len: 8, step: 8 }],
            of: Some(|w| w / 16),
        },
        Field {
            kind: FieldKind::E2M1,
            about: "weight before scaling",
            ..Field::levels(64, &[Packed { at: 4, len: 4, stride: 8 }])
        },
    ],
    weight: |of| ue4m3_half(of.raw(0) as u8) * (2.0 * of.value(1)),
};

impl Block<64, 36> for NVFP4 {
    const TYPE: TensorType = TensorType::NVFP4;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 36], out: &mut [f32; 64]) {
        let q = bits::unpack::<4, 8, _, 64>(part::<4, 32, _>(block));
        let groups = out.as_chunks_mut::<16>().0.iter_mut().zip(q.as_chunks::<16>().0);
        for ((out, q), &d) in groups.zip(part::<0, 4, _>(block)) {
            let ue4m3_half = ue4m3_half(d);
            for (x, &q) in out.iter_mut().zip(q) {
                *x = e2m1::decode(q, ue4m3_half);
            }
        }
    }

    /// Like llama.cpp's encoder, ignores importance weights.
    #[inline(always)]
    fn encode<S: Simd>(simd: S, x: &[f32; 64], _: Option<Importance<64>>) -> [u8; 36] {
        let (mut d, mut q) = ([0; 4], [0; 64]);
        let groups = x.as_chunks::<16>().0.iter().zip(q.as_chunks_mut().0);
        for ((x, q), d) in groups.zip(&mut d) {
            *d = nearest_scale(search::magnitude(x) / 6.0);
            *q = e2m1::encode(simd, x, ue4m3_half(*d));
        }
        let mut block = [0; 36];
        put::<0, 4, _>(&mut block, d);
        put::<4, 32, _>(&mut block, bits::pack::<4, 8, _, _>(&q, 0));
        block
    }

    /// The two codes that the standard defines as NaN. llama.cpp decodes one sign to 0 and the
    /// other to 480, and its check accepts both; no encoder writes either.
    fn bad_scale(block: &[u8; 36]) -> Option<(&'static str, f32)> {
        let nan = part::<0, 4, _>(block).iter().any(|d| d & 0x7f == 0x7f);
        nan.then_some(("d", f32::NAN))
    }
}

/// Encodes a scale (`ggml_fp32_to_ue4m3`): rounds to nearest, ties up, but everything that reaches
/// the last exponent (256 and more) becomes the largest scale, 448.
#[inline]
fn nearest_scale(v: f32) -> u8 {
    let bits = v.to_bits();
    let exponent = (bits >> 23) as i32 - 127 + 7;
    match exponent {
        // Multiples of 2^-9; the largest do not round up to the first exponent.
        ..=0 => ((v * 512.0 + 0.5) as u8).min(7),
        1..15 => {
            // Mantissa and exponent in one number, so that a carry propagates to the exponent.
            let rounded = ((exponent as u32) << 3 | bits >> 20 & 7) + (bits >> 19 & 1);
            if rounded < 15 << 3 { rounded as u8 } else { LARGEST }
        }
        _ => LARGEST,
    }
}

/// Code of the largest scale, 448.
const LARGEST: u8 = 0x7e;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [0.0; 64];
        (x[0], x[1], x[16 + 8 + 2]) = (6.0, -0.5, 0.75);
        let mut expected = [0; 36];
        (expected[0], expected[1]) = (7 << 3, 4 << 3);
        (expected[4], expected[5], expected[4 + 8 + 2]) = (7, 9, 7 << 4);
        assert_eq!(NVFP4::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 64];
        NVFP4::decode(pulp::Scalar, &expected, &mut out);
        assert_eq!(out, x);
    }

    #[test]
    fn scales_round_and_saturate() {
        let cases = [
            (0.0, 0),
            (0.0009, 0),
            (0.001, 1),
            (0.0156, 7),
            (1.0, 0x38),
            (1.0625, 0x39),
            (1.99, 0x40),
            (255.0, 0x7e),
            (247.0, 0x77),
            (1e9, 0x7e),
        ];
        for (v, byte) in cases {
            assert_eq!(nearest_scale(v), byte, "{v}");
        }
        assert_eq!(
            [1, 8, 0x38, 0x7e, 0x7f].map(ue4m3_half),
            [1.0 / 1024.0, 1.0 / 128.0, 0.5, 224.0, 0.0]
        );
    }
}
