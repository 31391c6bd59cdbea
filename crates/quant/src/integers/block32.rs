//! Unpacks the 32-weight formats, whose layouts are drawn in `blocks/`.

use gguf::TensorType;

use super::{ByteSimd, IntegerBlock, UnpackedBlock, bits_at, concat, part};
use crate::bits;
use crate::value_tables;

/// Implements [`IntegerBlock`] for formats whose first 16 weights are the low nibbles of 16 bytes
/// and whose last 16 are the high nibbles. `$levels` computes levels from 32 nibbles and one extra
/// bit each.
macro_rules! nibbles {
    ($name:ident: $ty:ident, $bytes:literal bytes, nibbles at $at:literal, bits $bits:expr, top $top:expr, zero $zero:literal, minimums $minimums:literal, $levels:expr, $scales:expr $(, magnitude $magnitude:literal)?) => {
        pub(super) struct $name;

        impl IntegerBlock for $name {
            type Block = [u8; $bytes];

            const TYPE: TensorType = TensorType::$ty;
            const LEN: usize = 32;
            const GROUP: usize = 32;
            const MAX_LEVEL: Option<u8> = $top;
            $(const MAX_MAGNITUDE: u8 = $magnitude;)?
            const ZERO: u8 = $zero;
            const MINIMUMS: bool = $minimums;
            const F16_OFFSET: Option<usize> = if $bytes % 2 == 0 { Some(0) } else { None };
            const POWER_OF_TWO: bool = Self::F16_OFFSET.is_none();
            const NEGATED_MIN: bool = $minimums;

            #[inline(always)]
            fn unpack<L: ByteSimd>(simd: L, block: &Self::Block, out: &mut UnpackedBlock) {
                let q = bits::unpack::<4, 16, _, 32>(part::<$at, 16, _>(block));
                let levels = out.levels.first_chunk_mut().expect("32 is less than 256");
                *levels = $levels(simd, q, $bits(block));
                $scales(block, out);
            }

            #[inline(always)]
            fn unpack_two<L: ByteSimd>(simd: L, two: [&Self::Block; 2]) -> [[u8; 32]; 2] {
                let [a, b] = two.map(part::<$at, 16, _>);
                let q = bits::unpack::<4, 32, _, 64>(&concat(a, b));
                let [low, high]: [[u8; 32]; 2] = pulp::cast(q);
                let [a, b]: [u32; 2] = two.map($bits);
                [
                    $levels(simd, low, a & 0xffff | b << 16),
                    $levels(simd, high, a >> 16 | b & 0xffff_0000),
                ]
            }
        }
    };
}

nibbles!(Q4_0: Q4_0, 18 bytes, nibbles at 2, bits none, top Some(15), zero 8, minimums false, as_they_are, scale);
nibbles!(Q4_1: Q4_1, 20 bytes, nibbles at 4, bits none, top Some(15), zero 0, minimums true, as_they_are, two_scales);
nibbles!(Q5_0: Q5_0, 22 bytes, nibbles at 6, bits bits_of::<2, _>, top Some(31), zero 16, minimums false, five, scale);
nibbles!(Q5_1: Q5_1, 24 bytes, nibbles at 8, bits bits_of::<4, _>, top Some(31), zero 0, minimums true, five, two_scales);
nibbles!(IQ4NL: IQ4_NL, 18 bytes, nibbles at 2, bits none, top None, zero 0, minimums false, iq4_nl, scale, magnitude 127);
nibbles!(MXFP4: MXFP4, 17 bytes, nibbles at 1, bits none, top None, zero 0, minimums false, e2m1, exponent, magnitude 12);

#[inline(always)]
fn none<const BYTES: usize>(_: &[u8; BYTES]) -> u32 {
    0
}

#[inline(always)]
fn bits_of<const AT: usize, const BYTES: usize>(block: &[u8; BYTES]) -> u32 {
    u32::from_le_bytes(*part::<AT, 4, _>(block))
}

type Levels = [u8; 32];

#[inline(always)]
fn as_they_are<L>(_: L, levels: Levels, _: u32) -> Levels {
    levels
}

#[inline(always)]
fn five<L: ByteSimd>(simd: L, mut levels: Levels, high: u32) -> Levels {
    for (level, high) in levels.iter_mut().zip(simd.spread(high)) {
        *level |= high & 16;
    }
    levels
}

#[inline(always)]
fn iq4_nl<L: ByteSimd>(simd: L, levels: Levels, _: u32) -> Levels {
    simd.lookup(&value_tables::IQ4, &levels)
}

#[inline(always)]
fn e2m1<L: ByteSimd>(simd: L, levels: Levels, _: u32) -> Levels {
    simd.lookup(&value_tables::E2M1_DOUBLED, &levels)
}

#[inline(always)]
fn scale<const BYTES: usize>(block: &[u8; BYTES], out: &mut UnpackedBlock) {
    out.set_f16_scales([bits_at::<0, _>(block), 0]);
}

#[inline(always)]
fn two_scales<const BYTES: usize>(block: &[u8; BYTES], out: &mut UnpackedBlock) {
    out.set_f16_scales([bits_at::<0, _>(block), bits_at::<2, _>(block) ^ 0x8000]);
}

#[inline(always)]
fn exponent(block: &[u8; 17], out: &mut UnpackedBlock) {
    out.d = value_tables::e8m0_half(block[0]);
}

pub(super) struct Q8_0;

impl IntegerBlock for Q8_0 {
    type Block = [u8; 34];

    const TYPE: TensorType = TensorType::Q8_0;
    const LEN: usize = 32;
    const GROUP: usize = 32;
    const MAX_LEVEL: Option<u8> = None;
    const ZERO: u8 = 0;
    const MINIMUMS: bool = false;
    const F16_OFFSET: Option<usize> = Some(0);

    #[inline(always)]
    fn unpack<L: ByteSimd>(_: L, block: &[u8; 34], out: &mut UnpackedBlock) {
        let levels = out.levels.first_chunk_mut().expect("32 is less than 256");
        *levels = *part::<2, 32, _>(block);
        scale(block, out);
    }

    #[inline(always)]
    fn unpack_two<L: ByteSimd>(_: L, [a, b]: [&[u8; 34]; 2]) -> [[u8; 32]; 2] {
        [
            concat(part::<2, 16, _>(a), part::<2, 16, _>(b)),
            concat(part::<18, 16, _>(a), part::<18, 16, _>(b)),
        ]
    }
}
