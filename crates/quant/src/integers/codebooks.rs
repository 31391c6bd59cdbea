//! Points of codebooks with signs or shifts, drawn in `blocks/`.

use gguf::TensorType;

use super::k::format;
use super::{Integers, Lookup, Unpacked, half, half_at, part, whole};
use crate::bits;
use crate::grids;

format!(IQ1S: IQ1_S, 50 bytes, groups of 32, top None, zero 0, minimums false, halves false, iq1_s);
format!(IQ1M: IQ1_M, 56 bytes, groups of 16, top None, zero 0, minimums false, halves false, iq1_m);
format!(IQ2XXS: IQ2_XXS, 66 bytes, groups of 32, top None, zero 0, minimums false, halves false, iq2_xxs);
format!(IQ2XS: IQ2_XS, 74 bytes, groups of 16, top None, zero 0, minimums false, halves false, iq2_xs);
format!(IQ2S: IQ2_S, 82 bytes, groups of 16, top None, zero 0, minimums false, halves false, iq2_s);
format!(IQ3XXS: IQ3_XXS, 98 bytes, groups of 32, top None, zero 0, minimums false, halves false, iq3_xxs);
format!(IQ3S: IQ3_S, 110 bytes, groups of 32, top None, zero 0, minimums false, halves false, iq3_s);

/// 1 in each byte of a word.
const EACH: u64 = 0x0101_0101_0101_0101;

/// The bytes of a word, each with its sign from a bit of `signs`.
#[inline(always)]
fn signed(values: u64, signs: u8) -> [u8; 8] {
    // A byte of ones for each bit: the bit alone in its byte, moved to the lowest place.
    let bits = u64::from(signs).wrapping_mul(EACH) & 0x8040_2010_0804_0201;
    let low = ((bits + (0x7f * EACH)) | bits) >> 7 & EACH;
    let mask = low.wrapping_mul(0xff);
    // Magnitudes are not 0: neither the complement of a byte nor the 1 carries over.
    ((values ^ mask) + low).to_le_bytes()
}

#[inline(always)]
fn octet(values: &[i8; 8]) -> u64 {
    u64::from_le_bytes(values.map(|value| value as u8))
}

#[inline(always)]
fn quartets(a: &[i8; 4], b: &[i8; 4]) -> u64 {
    let word = |values: &[i8; 4]| u64::from(u32::from_le_bytes(values.map(|value| value as u8)));
    word(a) | word(b) << 32
}

/// The eighth sign makes their number even.
#[inline(always)]
fn even(stored: u8) -> u8 {
    let folded = stored ^ stored >> 4;
    let folded = folded ^ folded >> 2;
    stored | (folded ^ folded >> 1) << 7
}

#[inline(always)]
fn iq2_xxs<L>(_: L, block: &[u8; 66], out: &mut Unpacked) {
    let groups = part::<2, 64, _>(block).as_chunks::<8>().0;
    let levels = out.levels.as_chunks_mut::<32>().0.iter_mut();
    for ((g, levels), &[a, b, c, e, v @ ..]) in levels.enumerate().zip(groups) {
        let v = u32::from_le_bytes(v);
        out.scales[g] = (2 * (v >> 28) + 1) as i16;
        for (i, (levels, point)) in
            levels.as_chunks_mut().0.iter_mut().zip([a, b, c, e]).enumerate()
        {
            let values = &grids::IQ2_XXS.values[usize::from(point)];
            *levels = signed(octet(values), even((v >> (7 * i)) as u8 & 127));
        }
    }
    out.d = half_at::<0, _>(block) * 0.125;
}

#[inline(always)]
fn iq2_xs<L>(_: L, block: &[u8; 74], out: &mut Unpacked) {
    let octets = part::<2, 64, _>(block).as_chunks().0.iter();
    for (levels, q) in out.levels.as_chunks_mut().0.iter_mut().zip(octets) {
        let q = u16::from_le_bytes(*q);
        let values = &grids::IQ2_XS.values[usize::from(q & 511)];
        *levels = signed(octet(values), even((q >> 9) as u8));
    }
    odd_scales(part::<66, 8, _>(block), &mut out.scales);
    out.d = half_at::<0, _>(block) * 0.125;
}

#[inline(always)]
fn iq2_s<L>(_: L, block: &[u8; 82], out: &mut Unpacked) {
    let high = bits::unpack::<2, 1, _, 32>(part::<66, 8, _>(block));
    let octets = part::<2, 32, _>(block).iter().zip(part::<34, 32, _>(block));
    let octets = octets.zip(high);
    for (levels, ((&low, &signs), high)) in out.levels.as_chunks_mut().0.iter_mut().zip(octets) {
        let point = usize::from(low) | usize::from(high & 3) << 8;
        *levels = signed(octet(&grids::IQ2_S.values[point]), signs);
    }
    odd_scales(part::<74, 8, _>(block), &mut out.scales);
    out.d = half_at::<0, _>(block) * 0.125;
}

/// `2 s + 1` of sixteen scales in 4 bits.
#[inline(always)]
fn odd_scales(bytes: &[u8; 8], out: &mut [i16; 16]) {
    let scales = bits::unpack::<4, 1, _, 16>(bytes);
    for (out, s) in out.iter_mut().zip(scales) {
        *out = 2 * i16::from(s) + 1;
    }
}

#[inline(always)]
fn iq3_xxs<L>(_: L, block: &[u8; 98], out: &mut Unpacked) {
    let groups = part::<2, 64, _>(block).as_chunks::<8>().0.iter();
    let groups = groups.zip(part::<66, 32, _>(block).as_chunks().0);
    let levels = out.levels.as_chunks_mut::<32>().0.iter_mut();
    for ((g, levels), (points, v)) in levels.enumerate().zip(groups) {
        let v = u32::from_le_bytes(*v);
        out.scales[g] = (2 * (v >> 28) + 1) as i16;
        let pairs = levels.as_chunks_mut().0.iter_mut().zip(points.as_chunks::<2>().0);
        for (i, (levels, points)) in pairs.enumerate() {
            let [a, b] = points.map(|point| &grids::IQ3_XXS.values[usize::from(point)]);
            *levels = signed(quartets(a, b), even((v >> (7 * i)) as u8 & 127));
        }
    }
    out.d = half_at::<0, _>(block) * 0.25;
}

#[inline(always)]
fn iq3_s<L>(_: L, block: &[u8; 110], out: &mut Unpacked) {
    let high = bits::unpack::<1, 1, _, 64>(part::<66, 8, _>(block));
    let points = part::<2, 64, _>(block).as_chunks::<2>().0.iter().zip(high.as_chunks::<2>().0);
    let octets = points.zip(part::<74, 32, _>(block));
    for (levels, ((low, high), signs)) in out.levels.as_chunks_mut().0.iter_mut().zip(octets) {
        let point = |i: usize| usize::from(low[i]) | usize::from(high[i] & 1) << 8;
        let [a, b] = [0, 1].map(|i| &grids::IQ3_S.values[point(i)]);
        *levels = signed(quartets(a, b), *signs);
    }
    let scales = bits::unpack::<4, 1, _, 8>(part::<106, 4, _>(block));
    for (out, s) in out.scales.iter_mut().zip(scales) {
        *out = 2 * i16::from(s) + 1;
    }
    out.d = half_at::<0, _>(block);
}

/// Eight times a point of the ternary codebook, shifted by an eighth down or up.
#[inline(always)]
fn shifted(point: u16, down: bool) -> [u8; 8] {
    // Of -1, 0 and 1, that is -9, -1 and 7, or -7, 1 and 9: no byte with another sign than its word
    // would have carries, once all are made positive.
    let levels = octet(&grids::IQ1_S.values[usize::from(point)].map(|value| value + 1));
    let shift = if down { 0x77 } else { 0x79 };
    let levels = (levels << 3) + shift * EACH;
    (levels ^ (0x80 * EACH)).to_le_bytes()
}

#[inline(always)]
fn iq1_s<L>(_: L, block: &[u8; 50], out: &mut Unpacked) {
    let groups = part::<2, 32, _>(block).as_chunks::<4>().0.iter();
    let groups = groups.zip(part::<34, 16, _>(block).as_chunks().0);
    let levels = out.levels.as_chunks_mut::<32>().0.iter_mut();
    for ((g, levels), (low, high)) in levels.enumerate().zip(groups) {
        let high = u16::from_le_bytes(*high);
        out.scales[g] = (2 * (high >> 12 & 7) + 1) as i16;
        for (i, (levels, &low)) in levels.as_chunks_mut().0.iter_mut().zip(low).enumerate() {
            *levels = shifted(u16::from(low) | (high >> (3 * i) & 7) << 8, high >> 15 == 1);
        }
    }
    out.d = half_at::<0, _>(block) * 0.125;
}

#[inline(always)]
fn iq1_m<L>(_: L, block: &[u8; 56], out: &mut Unpacked) {
    let high = bits::unpack::<4, 1, _, 32>(part::<32, 16, _>(block));
    let octets = part::<0, 32, _>(block).iter().zip(high);
    for (levels, (&low, high)) in out.levels.as_chunks_mut().0.iter_mut().zip(octets) {
        *levels = shifted(u16::from(low) | u16::from(high & 7) << 8, high >> 3 == 1);
    }
    let mut d = 0;
    for (j, word) in part::<48, 8, _>(block).as_chunks().0.iter().enumerate() {
        let word = u16::from_le_bytes(*word);
        d |= (word >> 12) << (4 * j);
        for i in 0..4 {
            out.scales[4 * j + i] = (2 * (word >> (3 * i) & 7) + 1) as i16;
        }
    }
    out.d = half(d) * 0.125;
}
