//! IQ4_NL: 4-bit indices into a value table (`iq4.rs`) and one scale for 32 weights, 4.5 bits per
//! weight.
//!
//! ```text
//! d[2]  qs[16]        qs[j]: | x[j+16] | x[j] |
//!                             7       4 3    0
//!
//! x = d * VALUES[q]   d: f16, of either sign
//! ```

use gguf::TensorType;
use half::f16;
use pulp::Simd;

use super::{Block, Row, f16_at, first_bad, iq4, part, put};
use crate::lanes::{self, Lanes};
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::value_tables::IQ4;
use crate::{bits, search};

pub(super) struct IQ4NL;

/// Number of blocks per batch: at least the lanes of the widest vectors.
const CHUNK: usize = 16;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * table[q]",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field {
            kind: FieldKind::Iq4,
            about: "index into the IQ4 value table",
            ..Field::levels(32, &[Packed { at: 2, len: 4, stride: 16 }])
        },
    ],
    weight: |of| of.value(0) * of.value(1),
};

impl Block<32, 18> for IQ4NL {
    const TYPE: TensorType = TensorType::IQ4_NL;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 18], out: &mut [f32; 32]) {
        let d = f16_at::<0, _>(block);
        let q = bits::unpack::<4, 16, _, 32>(part::<2, 16, _>(block));
        for (x, q) in out.iter_mut().zip(q) {
            *x = d * f32::from(IQ4[usize::from(q & 15)]);
        }
    }

    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<32>, out: &mut [[u8; 18]]) {
        for (row, out) in row.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            let mut scales = [0.0; CHUNK];
            iq4::fit(
                simd,
                row.x,
                #[inline(always)]
                |at, x| match row.columns {
                    None => lanes::map(
                        x,
                        #[inline(always)]
                        |x| x * x,
                    ),
                    Some(columns) => {
                        let energy = lanes::sum_squares(x) * Lanes::splat(simd, 2.0 / 32.0);
                        let energy = |lane: usize| energy.as_slice()[lane];
                        search::emphasize_lanes(simd, &columns[at..], x, energy)
                    }
                },
                &mut scales,
            );
            for ((x, block), d) in row.x.iter().zip(out).zip(scales) {
                let levels = iq4::levels(simd, x, d);
                put::<0, 2, _>(block, f16::from_f32(d).to_le_bytes());
                put::<2, 16, _>(block, bits::pack::<4, 16, _, _>(&levels, 0));
            }
        }
    }

    fn bad_scale(block: &[u8; 18]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [1.0; 32];
        (x[0], x[1], x[17]) = (-127.0, 113.0, 25.0);
        let mut expected = [0x88; 18];
        (expected[0], expected[1]) = (0x00, 0x3c);
        (expected[2], expected[3]) = (0x80, 0xaf);
        assert_eq!(IQ4NL::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 32];
        IQ4NL::decode(pulp::Scalar, &expected, &mut out);
        assert_eq!(out, x);
    }
}
