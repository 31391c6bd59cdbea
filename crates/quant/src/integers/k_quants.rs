//! Unpacks the K-quants and IQ4_XS, whose layouts are drawn in `blocks/`.

use gguf::TensorType;

use super::{ByteSimd, IntegerBlock, UnpackedBlock, bits_at, concat, part};
use crate::bits;
use crate::value_tables;

macro_rules! format {
    ($name:ident: $ty:ident, $bytes:literal bytes, groups of $group:literal, top $top:expr, zero $zero:literal, minimums $minimums:literal, f16 $f16:expr, $unpack:expr $(, magnitude $magnitude:literal)? $(, scaled levels fit $fit:literal)?) => {
        pub(super) struct $name;

        impl IntegerBlock for $name {
            type Block = [u8; $bytes];

            const TYPE: TensorType = TensorType::$ty;
            const LEN: usize = 256;
            const GROUP: usize = $group;
            const MAX_LEVEL: Option<u8> = $top;
            $(const MAX_MAGNITUDE: u8 = $magnitude;)?
            const ZERO: u8 = $zero;
            const MINIMUMS: bool = $minimums;
            const F16_OFFSET: Option<usize> = $f16;
            $(const SCALED_LEVELS_FIT: bool = $fit;)?

            #[inline(always)]
            fn unpack<L: ByteSimd>(simd: L, block: &Self::Block, out: &mut UnpackedBlock) {
                $unpack(simd, block, out);
            }
        }
    };
}
pub(super) use format;

format!(Q2K: Q2_K, 84 bytes, groups of 16, top Some(3), zero 0, minimums true, f16 Some(80), q2_k, scaled levels fit true);
format!(Q3K: Q3_K, 110 bytes, groups of 16, top Some(7), zero 4, minimums false, f16 Some(108), q3_k, scaled levels fit true);
format!(Q4K: Q4_K, 144 bytes, groups of 32, top Some(15), zero 0, minimums true, f16 Some(0), q4_k);
format!(Q5K: Q5_K, 176 bytes, groups of 32, top Some(31), zero 0, minimums true, f16 Some(0), q5_k);
format!(Q6K: Q6_K, 210 bytes, groups of 16, top Some(63), zero 32, minimums false, f16 Some(208), q6_k);

#[inline(always)]
fn q2_k<L: ByteSimd>(simd: L, block: &[u8; 84], out: &mut UnpackedBlock) {
    out.levels = bits::unpack::<2, 32, _, 256>(part::<16, 64, _>(block));
    let fields = part::<0, 16, _>(block);
    out.scales = simd.widen(fields.map(|field| field & 15));
    out.minimums = simd.widen(fields.map(|field| field >> 4));
    out.set_f16_scales([bits_at::<80, _>(block), bits_at::<82, _>(block)]);
}

#[inline(always)]
fn q3_k<L: ByteSimd>(simd: L, block: &[u8; 110], out: &mut UnpackedBlock) {
    let high = bits::unpack::<1, 32, _, 256>(part::<0, 32, _>(block));
    out.levels = bits::unpack::<2, 32, _, 256>(part::<32, 64, _>(block));
    simd.add_high_bits::<2>(&mut out.levels, &high);
    // Four 6-bit scales at a time: the lower 4 bits of each, then the upper 2.
    let fields = part::<96, 12, _>(block);
    let (a, b, high) = (word(fields, 0), word(fields, 4), word(fields, 8));
    let upper = |shift: u32| ((high >> shift) & 0x0303_0303) << 4;
    let words = [
        a & 0x0f0f_0f0f | upper(0),
        b & 0x0f0f_0f0f | upper(2),
        (a >> 4) & 0x0f0f_0f0f | upper(4),
        (b >> 4) & 0x0f0f_0f0f | upper(6),
    ];
    // Subtracts 32 from each byte without a carry between bytes.
    let scales = words.map(|word| ((word + 0x6060_6060) ^ 0x8080_8080).to_le());
    out.scales = simd.widen(pulp::cast(scales));
    out.set_f16_scales([bits_at::<108, _>(block), 0]);
}

#[inline(always)]
fn q4_k<L: ByteSimd>(simd: L, block: &[u8; 144], out: &mut UnpackedBlock) {
    out.levels = bits::unpack::<4, 32, _, 256>(part::<16, 128, _>(block));
    affine(simd, part::<4, 12, _>(block), out);
    out.set_f16_scales([bits_at::<0, _>(block), bits_at::<2, _>(block)]);
}

#[inline(always)]
fn q5_k<L: ByteSimd>(simd: L, block: &[u8; 176], out: &mut UnpackedBlock) {
    let high = bits::unpack::<1, 32, _, 256>(part::<16, 32, _>(block));
    out.levels = bits::unpack::<4, 32, _, 256>(part::<48, 128, _>(block));
    simd.add_high_bits::<4>(&mut out.levels, &high);
    affine(simd, part::<4, 12, _>(block), out);
    out.set_f16_scales([bits_at::<0, _>(block), bits_at::<2, _>(block)]);
}

/// Unpacks the scales and minimums of Q4_K and Q5_K, four bytes at a time (layout in
/// `blocks/k_affine.rs`).
#[inline(always)]
fn affine<L: ByteSimd>(simd: L, bytes: &[u8; 12], out: &mut UnpackedBlock) {
    let (s, m, both) = (word(bytes, 0), word(bytes, 4), word(bytes, 8));
    let words = [
        s & 0x3f3f_3f3f,
        both & 0x0f0f_0f0f | (s >> 2) & 0x3030_3030,
        m & 0x3f3f_3f3f,
        (both >> 4) & 0x0f0f_0f0f | (m >> 2) & 0x3030_3030,
    ];
    let fields = simd.widen(pulp::cast(words.map(u32::to_le)));
    out.scales[..8].copy_from_slice(&fields[..8]);
    out.minimums[..8].copy_from_slice(&fields[8..]);
}

/// Reads four bytes as a little-endian word.
#[inline(always)]
fn word(bytes: &[u8; 12], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[inline(always)]
fn q6_k<L: ByteSimd>(simd: L, block: &[u8; 210], out: &mut UnpackedBlock) {
    let high = bits::unpack::<2, 32, _, 256>(part::<128, 64, _>(block));
    out.levels = bits::unpack::<4, 64, _, 256>(part::<0, 128, _>(block));
    simd.add_high_bits::<4>(&mut out.levels, &high);
    out.scales = simd.widen(*part::<192, 16, _>(block));
    out.set_f16_scales([bits_at::<208, _>(block), 0]);
}

pub(super) struct IQ4XS;

impl IntegerBlock for IQ4XS {
    type Block = [u8; 136];

    const TYPE: TensorType = TensorType::IQ4_XS;
    const LEN: usize = 256;
    const GROUP: usize = 32;
    const MAX_LEVEL: Option<u8> = None;
    const MAX_MAGNITUDE: u8 = 127;
    const ZERO: u8 = 0;
    const MINIMUMS: bool = false;
    const F16_OFFSET: Option<usize> = Some(0);
    const HAS_PAIRED: bool = true;

    #[inline(always)]
    fn unpack<L: ByteSimd>(simd: L, block: &[u8; 136], out: &mut UnpackedBlock) {
        let q = bits::unpack::<4, 16, _, 256>(part::<8, 128, _>(block));
        let groups = out.levels.as_chunks_mut::<32>().0.iter_mut().zip(q.as_chunks::<32>().0);
        for (levels, q) in groups {
            *levels = simd.lookup(&value_tables::IQ4, q);
        }
        iq4_xs_scales(simd, block, out);
    }

    #[inline(always)]
    fn unpack_paired<L: ByteSimd>(simd: L, block: &[u8; 136], out: &mut UnpackedBlock) {
        let (groups, _) = part::<8, 128, _>(block).as_chunks::<16>();
        for (pair, levels) in out.levels.as_chunks_mut::<64>().0.iter_mut().enumerate() {
            let q = bits::unpack::<4, 32, _, 64>(&concat(&groups[pair], &groups[pair + 4]));
            let [low, high]: [[u8; 32]; 2] = pulp::cast(q);
            let (low, high) =
                (simd.lookup(&value_tables::IQ4, &low), simd.lookup(&value_tables::IQ4, &high));
            *levels = pulp::cast([low, high]);
        }
        iq4_xs_scales(simd, block, out);
    }
}

#[inline(always)]
fn iq4_xs_scales<L: ByteSimd>(simd: L, block: &[u8; 136], out: &mut UnpackedBlock) {
    let low = u32::from_le_bytes(*part::<4, 4, _>(block));
    let high = u32::from(bits_at::<2, _>(block));
    for (scale, s) in out.scales.iter_mut().zip(simd.join_sixes(low, high)) {
        *scale = s - 32;
    }
    out.set_f16_scales([bits_at::<0, _>(block), 0]);
}
