//! Q4_0: 4 bits each and one scale for 32 weights, 4.5 bits per weight.
//!
//! ```text
//! d[2]  qs[16]        qs[j]: | x[j+16] | x[j] |
//!                             7       4 3    0
//!
//! x = d * (q - 8)     d: f16, of either sign: the weight of largest magnitude gets q = 0
//! ```

use gguf::TensorType;
use half::f16;

use super::{Block, Weights, first_bad, half_at, part, put};
use crate::{bits, search};

pub(super) struct Q4_0;

impl Block<32, 18> for Q4_0 {
    const TYPE: TensorType = TensorType::Q4_0;
    const USES_ROW_MEAN_SQUARE: bool = true;

    fn decode(block: &[u8; 18], out: &mut [f32; 32]) {
        let d = half_at::<0, _>(block).to_f32();
        let q = bits::unpack::<4, 16, _, 32>(part::<2, 16, _>(block));
        for (x, q) in out.iter_mut().zip(q) {
            *x = (i32::from(q) - 8) as f32 * d;
        }
    }

    fn encode(x: &[f32; 32], weights: Option<Weights<32>>) -> [u8; 18] {
        let mut q = [0; 32];
        let d = match weights {
            None => search::offset_levels(8, x, &mut q),
            Some(w) => {
                let weights = search::emphasize(w.columns, x, w.row_mean_square);
                search::symmetric(8, x, &weights, &mut q)
            }
        };
        let mut block = [0; 18];
        put::<0, 2, _>(&mut block, f16::from_f32(d).to_le_bytes());
        put::<2, 16, _>(&mut block, bits::pack::<4, 16, _, _>(&q, 0));
        block
    }

    fn bad_scale(block: &[u8; 18]) -> Option<(&'static str, f32)> {
        first_bad([("d", half_at::<0, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_drawing_says() {
        let mut x = [0.0; 32];
        (x[0], x[1], x[17]) = (-8.0, 7.0, 3.0);
        let mut expected = [0x88; 18];
        (expected[0], expected[1]) = (0x00, 0x3c);
        (expected[2], expected[3]) = (0x80, 0xbf);
        assert_eq!(Q4_0::encode(&x, None), expected);
        let mut out = [0.0; 32];
        Q4_0::decode(&expected, &mut out);
        assert_eq!(out, x);
    }
}
