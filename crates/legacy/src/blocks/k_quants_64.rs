//! K-quants with super-blocks of 64 elements, as tools built with `GGML_QKK_64` wrote them.
//!
//! ```text
//! Q2_K  s[4] | q[16] | d f16 | m f16            24 bytes
//!       element 16k+l: d * (s[k] & 15) * (q[l] >> 2k & 3) - m * (s[k] >> 4)
//! Q3_K  h[8] | q[16] | s[2] | d f16             28 bytes
//!       element 16k+l: d * (nibble k of s - 8) * ((q[l] >> 2k & 3) - (bit 2k+l/8 of h[l%8] ? 0 : 4))
//! Q4_K  d f16 | m f16 | s[2] | q[32]            38 bytes
//!       element 32k+l: d * (s[k] & 15) * (q[l] >> 4k & 15) - m * (s[k] >> 4)
//! Q5_K  d f16 | s[4] i8 | h[8] | q[32]          46 bytes
//!       element 16k+l: d * s[k] * ((q[16(k%2)+l] >> 4(k/2) & 15) - (bit 2k+l/8 of h[l%8] ? 0 : 16))
//! Q6_K  q[32] | h[16] | s[4] i8 | d f16         54 bytes
//!       element 16k+l: d * s[k] * ((q[16(k%2)+l] >> 4(k/2) & 15 | (h[l] >> 2k & 3) << 4) - 32)
//! ```
//!
//! Formulas: `k_quants.c` of llama.cpp, June 2023 to March 2024.

use super::unpacked::half;
use super::{Decoder, LegacyBlock};

const fn block(name: &'static str, bytes: u64, decode: fn(&[u8], &mut [f32])) -> LegacyBlock {
    LegacyBlock { name, elements: 64, bytes, decoder: Decoder::Decode(decode) }
}

/// Types 10 to 14.
pub(super) static TYPES: [LegacyBlock; 5] = [
    block("Q2_K (super-blocks of 64)", 24, q2_k),
    block("Q3_K (super-blocks of 64)", 28, q3_k),
    block("Q4_K (super-blocks of 64)", 38, q4_k),
    block("Q5_K (super-blocks of 64)", 46, q5_k),
    block("Q6_K (super-blocks of 64)", 54, q6_k),
];

fn q2_k(block: &[u8], out: &mut [f32]) {
    let (scales, q) = (&block[..4], &block[4..20]);
    let (d, m) = (half(block, 20), half(block, 22));
    fill(out, |k, l| {
        let (scale, low) = (d * f32::from(scales[k] & 15), m * f32::from(scales[k] >> 4));
        scale * f32::from(q[l] >> (2 * k) & 3) - low
    });
}

fn q3_k(block: &[u8], out: &mut [f32]) {
    let (high, q, scales, d) = (&block[..8], &block[8..24], &block[24..26], half(block, 26));
    fill(out, |k, l| {
        let scale = d * (f32::from(scales[k / 2] >> (4 * (k % 2)) & 15) - 8.0);
        let low = if high[l % 8] >> (2 * k + l / 8) & 1 == 1 { 0.0 } else { 4.0 };
        scale * (f32::from(q[l] >> (2 * k) & 3) - low)
    });
}

fn q4_k(block: &[u8], out: &mut [f32]) {
    let (d, m, scales, q) = (half(block, 0), half(block, 2), &block[4..6], &block[6..38]);
    fill(out, |k, l| {
        let scale = scales[k / 2];
        let nibble = q[16 * (k % 2) + l] >> (4 * (k / 2)) & 15;
        d * f32::from(scale & 15) * f32::from(nibble) - m * f32::from(scale >> 4)
    });
}

fn q5_k(block: &[u8], out: &mut [f32]) {
    let (d, scales, high, q) = (half(block, 0), &block[2..6], &block[6..14], &block[14..46]);
    fill(out, |k, l| {
        let nibble = q[16 * (k % 2) + l] >> (4 * (k / 2)) & 15;
        let low = if high[l % 8] >> (2 * k + l / 8) & 1 == 1 { 0.0 } else { 16.0 };
        d * f32::from(scales[k] as i8) * (f32::from(nibble) - low)
    });
}

fn q6_k(block: &[u8], out: &mut [f32]) {
    let (q, high, scales, d) = (&block[..32], &block[32..48], &block[48..52], half(block, 52));
    fill(out, |k, l| {
        let nibble = q[16 * (k % 2) + l] >> (4 * (k / 2)) & 15;
        let quant = nibble | (high[l] >> (2 * k) & 3) << 4;
        d * f32::from(scales[k] as i8) * (f32::from(quant) - 32.0)
    });
}

/// Computes element `16k + l` for all four `k` and sixteen `l`.
fn fill(out: &mut [f32], weight: impl Fn(usize, usize) -> f32) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = weight(i / 16, i % 16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(ty: usize, block: &[u8]) -> Vec<f32> {
        assert_eq!(block.len() as u64, TYPES[ty].bytes);
        let mut out = vec![0.0; 64];
        TYPES[ty].decode(block, &mut out);
        out
    }

    const ONE: [u8; 2] = [0x00, 0x3c];
    const TWO: [u8; 2] = [0x00, 0x40];

    #[test]
    fn each_sub_block_has_its_scale() {
        // 3 everywhere (binary 11 in all four places), scales 1 to 4, minima 4 to 1, twice.
        let block = [&[0x41, 0x32, 0x23, 0x14][..], &[0xff; 16], &ONE, &TWO].concat();
        let out = weights(0, &block);
        assert_eq!([out[0], out[16], out[32], out[63]], [-5.0, 0.0, 5.0, 10.0]);
    }

    #[test]
    fn q3_k_high_bits_belong_to_groups_of_eight() {
        // Element 8 of the first quarter has its high bit, which is bit 1 of byte 0.
        let mut block = [&[0; 8][..], &[0; 16], &[0xa9, 0xcb], &ONE].concat();
        block[0] = 0b10;
        let out = weights(1, &block);
        assert_eq!([out[0], out[8], out[16], out[32], out[48]], [-4.0, 0.0, -8.0, -12.0, -16.0]);
    }

    #[test]
    fn q4_k_nibbles_are_in_halves() {
        let mut block = [&ONE[..], &TWO, &[0x13, 0x21], &[0; 32]].concat();
        block[6 + 31] = 0x5a;
        let out = weights(2, &block);
        assert_eq!([out[0], out[31], out[32], out[63]], [-2.0, 28.0, -4.0, 1.0]);
    }

    #[test]
    fn q5_k_and_q6_k_scales_are_signed() {
        let mut block = [&ONE[..], &[1, 0xff, 2, 0xfe], &[0; 8], &[0; 32]].concat();
        block[6 + 7] = 0b1000_0000; // element 8 + 7 of the last quarter
        let out = weights(3, &block);
        assert_eq!([out[0], out[16], out[32], out[48], out[63]], [-16.0, 16.0, -32.0, 32.0, 0.0]);

        let mut block = [&[0; 32][..], &[0; 16], &[1, 0xff, 2, 0xfe], &ONE].concat();
        block[32 + 15] = 0b1100_0000; // the upper bits of the last element of the last quarter
        block[16 + 15] = 0xf0;
        let out = weights(4, &block);
        assert_eq!([out[0], out[16], out[32], out[48], out[63]], [-32.0, 32.0, -64.0, 64.0, -62.0]);
    }
}
