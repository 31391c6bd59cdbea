//! TQ1_0: ternary digits, five to a byte, and one scale for 256 weights, 1.6875 bits per weight.
//!
//! ```text
//! qs[48]  qh[4]  d[2]
//!
//! qs[m]:      digits of x[32*n + m]        n in 0..5, m in 0..32: the first 160 weights
//! qs[32 + m]: digits of x[160 + 16*n + m]  n in 0..5, m in 0..16: the next 80
//! qh[m]:      digits of x[240 + 4*n + m]   n in 0..4, m in 0..4: the last 16; a fifth digit is 0
//!
//! byte: b with  b / 256  just above  0.q0 q1 q2 q3 q4  in base 3, so that each digit is the
//!       integer part after multiplying the fraction by 3
//!
//! x = d * (q - 1)                          d: f16
//! ```

use gguf::TensorType;
use half::f16;
use pulp::Simd;

use super::{Block, Importance, f16_at, first_bad, part, put};
use crate::layout::Place::Every;
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::search;

pub(super) struct TQ1_0;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (digit of q - 1)",
    fields: &[
        Field {
            name: "q",
            about: "digits of five weights, of four in the last bytes",
            kind: FieldKind::Digits,
            count: 52,
            bits: &[Every { first: 0, len: 8, step: 8 }],
            of: Some(|w| place(w).0),
        },
        Field::scale(&[Every { first: 416, len: 16, step: 0 }]),
    ],
    weight: |of| (digit(of.raw(0), place(of.w).1) - 1.0) * of.value(1),
};

/// Returns the byte that contains the digit of weight `w`, and the digit's position there.
const fn place(w: usize) -> (usize, u32) {
    let (before, first, bytes) = match w {
        0..160 => (0, 0, 32),
        160..240 => (160, 32, 16),
        _ => (240, 48, 4),
    };
    (first + (w - before) % bytes, ((w - before) / bytes) as u32)
}

/// Extracts digit `n` of a byte, counted from the first.
fn digit(byte: usize, n: u32) -> f32 {
    let fraction = byte * 3usize.pow(n) % 256;
    (fraction * 3 / 256) as f32
}

impl Block<256, 54> for TQ1_0 {
    const TYPE: TensorType = TensorType::TQ1_0;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 54], out: &mut [f32; 256]) {
        let d = f16_at::<52, _>(block);
        let (first, rest) = out.split_at_mut(160);
        let (second, last) = rest.split_at_mut(80);
        unpack::<32>(part::<0, 32, _>(block), d, first);
        unpack::<16>(part::<32, 16, _>(block), d, second);
        unpack::<4>(part::<48, 4, _>(block), d, last);
    }

    /// Like llama.cpp's encoder, ignores importance weights.
    #[inline(always)]
    fn encode<S: Simd>(simd: S, x: &[f32; 256], _: Option<Importance<256>>) -> [u8; 54] {
        let d = search::magnitude(x);
        let q = search::ternary_levels(simd, x, search::inverse(d));
        let mut block = [0; 54];
        put::<0, 32, _>(&mut block, pack(&q[..160]));
        put::<32, 16, _>(&mut block, pack(&q[160..240]));
        put::<48, 4, _>(&mut block, pack(&q[240..]));
        put::<52, 2, _>(&mut block, f16::from_f32(d).to_le_bytes());
        block
    }

    fn bad_scale(block: &[u8; 54]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<52, _>(block))])
    }
}

/// Packs five digits into each of `M` bytes, from weights that are `M` apart; digits beyond the end
/// are 0.
#[inline(always)]
fn pack<const M: usize>(q: &[u8]) -> [u8; M] {
    let digits = q.as_chunks::<M>().0;
    let mut numbers = [0; M];
    for n in 0..5 {
        let digits = digits.get(n).unwrap_or(&[0; M]);
        for (number, &digit) in numbers.iter_mut().zip(digits) {
            *number = 3 * *number + u16::from(digit);
        }
    }
    let mut bytes = [0; M];
    for (byte, number) in bytes.iter_mut().zip(numbers) {
        // 243 = 3^5; rounded up so that the digits do not come out too small.
        *byte = (number * 256).div_ceil(243) as u8;
    }
    bytes
}

#[inline(always)]
fn unpack<const M: usize>(bytes: &[u8; M], d: f32, out: &mut [f32]) {
    let mut fractions = *bytes;
    for out in out.as_chunks_mut::<M>().0 {
        for (x, fraction) in out.iter_mut().zip(&mut fractions) {
            let next = u16::from(*fraction) * 3;
            *x = (i32::from(next >> 8) - 1) as f32 * d;
            *fraction = next as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [0.0; 256];
        // Digits 2 0 1 1 1 in byte 3, 1 1 1 1 2 in byte 32 + 15, 0 1 1 1 (0) in byte 48 + 1.
        (x[3], x[32 + 3], x[160 + 64 + 15], x[240 + 1]) = (2.0, -2.0, 2.0, -2.0);
        // 11111 in base 3 is 121, 1111 with a fifth 0 is 120.
        let mut expected = [128; 54];
        expected[48..52].fill(127);
        (expected[3], expected[32 + 15], expected[48 + 1]) = (185, 129, 42);
        (expected[52], expected[53]) = (0x00, 0x40);
        assert_eq!(TQ1_0::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 256];
        TQ1_0::decode(pulp::Scalar, &expected, &mut out);
        assert_eq!(out, x);
    }
}
