//! Unpacks the codebook formats (IQ1, IQ2, IQ3), whose layouts are drawn in `blocks/`.

use gguf::TensorType;

use super::k_quants::format;
use super::{ByteSimd, IntegerBlock, UnpackedBlock, f16_at, f16_to_f32, part};
use crate::bits;
use crate::grids;

format!(IQ1S: IQ1_S, 50 bytes, groups of 32, top None, zero 0, minimums false, f16 None, iq1_s, magnitude 9);
format!(IQ1M: IQ1_M, 56 bytes, groups of 16, top None, zero 0, minimums false, f16 None, iq1_m, magnitude 9);
format!(IQ2XXS: IQ2_XXS, 66 bytes, groups of 32, top None, zero 0, minimums false, f16 None, iq2_xxs, magnitude 43);
format!(IQ2XS: IQ2_XS, 74 bytes, groups of 16, top None, zero 0, minimums false, f16 None, iq2_xs, magnitude 43);
format!(IQ2S: IQ2_S, 82 bytes, groups of 16, top None, zero 0, minimums false, f16 None, iq2_s, magnitude 43);
format!(IQ3XXS: IQ3_XXS, 98 bytes, groups of 32, top None, zero 0, minimums false, f16 None, iq3_xxs, magnitude 62);
format!(IQ3S: IQ3_S, 110 bytes, groups of 32, top None, zero 0, minimums false, f16 None, iq3_s, magnitude 15);

/// Adds to each of four 7-bit sign fields the eighth sign that makes the number of negative signs
/// even.
#[inline(always)]
fn even(signs: u32) -> u32 {
    let folded = signs ^ (signs >> 4 & 0x0707_0707);
    let folded = folded ^ folded >> 2;
    signs | ((folded ^ folded >> 1) & 0x0101_0101) << 7
}

/// Spreads four 7-bit fields to one byte each.
#[inline(always)]
fn apart(bits: u32) -> u32 {
    bits & 0x7f | bits << 1 & 0x7f00 | bits << 2 & 0x7f_0000 | bits << 3 & 0x7f00_0000
}

/// Joins the low byte of an index with its high bits: `bits` of `high`, from bit `at` on.
#[inline(always)]
fn joined(low: u8, high: impl Into<u32>, at: usize, bits: usize) -> usize {
    // Shifted first: masked first, each index would take two more instructions.
    let high = high.into() << 8 >> at & ((1 << bits) - 1) << 8;
    usize::from(low) | high as usize
}

#[inline(always)]
fn iq2_xxs<L: ByteSimd>(simd: L, block: &[u8; 66], out: &mut UnpackedBlock) {
    let groups = part::<2, 64, _>(block).as_chunks::<8>().0;
    let levels = out.levels.as_chunks_mut::<32>().0.iter_mut();
    for ((g, levels), &[a, b, c, e, v @ ..]) in levels.enumerate().zip(groups) {
        let v = u32::from_le_bytes(v);
        out.scales[g] = (2 * (v >> 28) + 1) as i16;
        let points = [a, b, c, e].map(|point| grids::IQ2_XXS.values[usize::from(point)]);
        *levels = simd.negate(pulp::cast(points), even(apart(v)));
    }
    out.d = f16_at::<0, _>(block) * 0.125;
}

#[inline(always)]
fn iq2_xs<L: ByteSimd>(simd: L, block: &[u8; 74], out: &mut UnpackedBlock) {
    let groups = part::<2, 64, _>(block).as_chunks().0.as_chunks::<4>().0.iter();
    for (levels, q) in out.levels.as_chunks_mut().0.iter_mut().zip(groups) {
        let q = q.map(u16::from_le_bytes);
        let points = q.map(|q| grids::IQ2_XS.values[usize::from(q & 511)]);
        let signs = u32::from_le_bytes(q.map(|q| (q >> 9) as u8));
        *levels = simd.negate(pulp::cast(points), even(signs));
    }
    odd_scales(part::<66, 8, _>(block), &mut out.scales);
    out.d = f16_at::<0, _>(block) * 0.125;
}

#[inline(always)]
fn iq2_s<L: ByteSimd>(simd: L, block: &[u8; 82], out: &mut UnpackedBlock) {
    let groups = part::<2, 32, _>(block).as_chunks::<4>().0.iter().zip(part::<66, 8, _>(block));
    let groups = groups.zip(part::<34, 32, _>(block).as_chunks().0);
    for (levels, ((low, high), signs)) in out.levels.as_chunks_mut().0.iter_mut().zip(groups) {
        let point = |i: usize| joined(low[i], *high, 2 * i, 2);
        let points = [0, 1, 2, 3].map(|i| grids::IQ2_S.values[point(i)]);
        *levels = simd.negate(pulp::cast(points), u32::from_le_bytes(*signs));
    }
    odd_scales(part::<74, 8, _>(block), &mut out.scales);
    out.d = f16_at::<0, _>(block) * 0.125;
}

/// Unpacks sixteen 4-bit scales `s` and returns `2 s + 1`.
#[inline(always)]
fn odd_scales(bytes: &[u8; 8], out: &mut [i16; 16]) {
    let scales = bits::unpack::<4, 1, _, 16>(bytes);
    for (out, s) in out.iter_mut().zip(scales) {
        *out = 2 * i16::from(s) + 1;
    }
}

#[inline(always)]
fn iq3_xxs<L: ByteSimd>(simd: L, block: &[u8; 98], out: &mut UnpackedBlock) {
    let groups = part::<2, 64, _>(block).as_chunks::<8>().0.iter();
    let groups = groups.zip(part::<66, 32, _>(block).as_chunks().0);
    let levels = out.levels.as_chunks_mut::<32>().0.iter_mut();
    for ((g, levels), (points, v)) in levels.enumerate().zip(groups) {
        let v = u32::from_le_bytes(*v);
        out.scales[g] = (2 * (v >> 28) + 1) as i16;
        let points = points.map(|point| grids::IQ3_XXS.values[usize::from(point)]);
        *levels = simd.negate(pulp::cast(points), even(apart(v)));
    }
    out.d = f16_at::<0, _>(block) * 0.25;
}

#[inline(always)]
fn iq3_s<L: ByteSimd>(simd: L, block: &[u8; 110], out: &mut UnpackedBlock) {
    let groups = part::<2, 64, _>(block).as_chunks::<8>().0.iter().zip(part::<66, 8, _>(block));
    let groups = groups.zip(part::<74, 32, _>(block).as_chunks().0);
    for (levels, ((low, high), signs)) in out.levels.as_chunks_mut().0.iter_mut().zip(groups) {
        let point = |i: usize| joined(low[i], *high, i, 1);
        let points = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| grids::IQ3_S.values[point(i)]);
        *levels = simd.negate(pulp::cast(points), u32::from_le_bytes(*signs));
    }
    let scales = bits::unpack::<4, 1, _, 8>(part::<106, 4, _>(block));
    for (out, s) in out.scales.iter_mut().zip(scales) {
        *out = 2 * i16::from(s) + 1;
    }
    out.d = f16_at::<0, _>(block);
}

/// 1 in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;

/// `8 * value + 1` for each point of the ternary codebook, with 128 added to each byte.
static SHIFTED: [u64; 2048] = {
    let mut words = [0; 2048];
    let mut i = 0;
    while i < 2048 {
        let mut bytes = [0; 8];
        let mut j = 0;
        while j < 8 {
            bytes[j] = (8 * grids::IQ1_S.values[i][j] + 1) as u8 ^ 0x80;
            j += 1;
        }
        words[i] = u64::from_le_bytes(bytes);
        i += 1;
    }
    words
};

/// Returns eight times a point of the ternary codebook, shifted up or down by 1/8.
#[inline(always)]
fn shifted(point: usize, down: bool) -> u64 {
    // Every byte is at least 2, so no byte borrows from the next.
    let less = if down { 2 * EACH } else { 0 };
    ((SHIFTED[point] - less) ^ (0x80 * EACH)).to_le()
}

#[inline(always)]
fn iq1_s<L>(_: L, block: &[u8; 50], out: &mut UnpackedBlock) {
    let groups = part::<2, 32, _>(block).as_chunks::<4>().0.iter();
    let groups = groups.zip(part::<34, 16, _>(block).as_chunks().0);
    let levels = out.levels.as_chunks_mut::<32>().0.iter_mut();
    for ((g, levels), (low, high)) in levels.enumerate().zip(groups) {
        let high = u16::from_le_bytes(*high);
        out.scales[g] = (2 * (high >> 12 & 7) + 1) as i16;
        let point = |i: usize| joined(low[i], high, 3 * i, 3);
        *levels = pulp::cast([0, 1, 2, 3].map(|i| shifted(point(i), high >> 15 == 1)));
    }
    out.d = f16_at::<0, _>(block) * 0.125;
}

#[inline(always)]
fn iq1_m<L>(_: L, block: &[u8; 56], out: &mut UnpackedBlock) {
    let groups = part::<0, 32, _>(block).as_chunks::<4>().0.iter();
    let groups = groups.zip(part::<32, 16, _>(block).as_chunks().0);
    for (levels, (low, high)) in out.levels.as_chunks_mut::<32>().0.iter_mut().zip(groups) {
        let high = u16::from_le_bytes(*high);
        let point = |i: usize| joined(low[i], high, 4 * i, 3);
        let down = |i: usize| high >> (4 * i + 3) & 1 == 1;
        *levels = pulp::cast([0, 1, 2, 3].map(|i| shifted(point(i), down(i))));
    }
    let mut d = 0;
    for (j, word) in part::<48, 8, _>(block).as_chunks().0.iter().enumerate() {
        let word = u16::from_le_bytes(*word);
        d |= (word >> 12) << (4 * j);
        for i in 0..4 {
            out.scales[4 * j + i] = (2 * (word >> (3 * i) & 7) + 1) as i16;
        }
    }
    out.d = f16_to_f32(d) * 0.125;
}
