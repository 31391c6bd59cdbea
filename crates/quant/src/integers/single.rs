//! Blocks of 32 weights with one scale, drawn in `blocks/`.

use gguf::TensorType;

use super::{Integers, Lookup, Unpacked, bits_at, part};
use crate::bits;
use crate::blocks::tables;

macro_rules! format {
    ($name:ident: $ty:ident, $bytes:literal bytes, top $top:expr, zero $zero:literal, minimums $minimums:literal, $unpack:expr) => {
        pub(super) struct $name;

        impl Integers for $name {
            type Block = [u8; $bytes];

            const TYPE: TensorType = TensorType::$ty;
            const LEN: usize = 32;
            const GROUP: usize = 32;
            const TOP: Option<u8> = $top;
            const ZERO: u8 = $zero;
            const MINIMUMS: bool = $minimums;
            const HALVES: bool = true;

            #[inline(always)]
            fn unpack<L: Lookup>(lookup: L, block: &Self::Block, out: &mut Unpacked) {
                let levels = out.levels.first_chunk_mut().expect("32 are fewer than 256");
                let halves = $unpack(lookup, block, levels);
                out.put_halves(halves);
            }
        }
    };
}

format!(Q4_0: Q4_0, 18 bytes, top Some(15), zero 8, minimums false, q4_0);
format!(Q4_1: Q4_1, 20 bytes, top Some(15), zero 0, minimums true, q4_1);
format!(Q5_0: Q5_0, 22 bytes, top Some(31), zero 16, minimums false, q5_0);
format!(Q5_1: Q5_1, 24 bytes, top Some(31), zero 0, minimums true, q5_1);
format!(Q8_0: Q8_0, 34 bytes, top None, zero 0, minimums false, q8_0);
format!(IQ4NL: IQ4_NL, 18 bytes, top None, zero 0, minimums false, iq4_nl);

pub(super) struct MXFP4;

impl Integers for MXFP4 {
    type Block = [u8; 17];

    const TYPE: TensorType = TensorType::MXFP4;
    const LEN: usize = 32;
    const GROUP: usize = 32;
    const TOP: Option<u8> = None;
    const ZERO: u8 = 0;
    const MINIMUMS: bool = false;

    #[inline(always)]
    fn unpack<L: Lookup>(lookup: L, block: &[u8; 17], out: &mut Unpacked) {
        let q = bits::unpack::<4, 16, _, 32>(part::<1, 16, _>(block));
        let levels = out.levels.first_chunk_mut().expect("32 are fewer than 256");
        *levels = lookup.lookup(&tables::E2M1_DOUBLED, &q);
        out.d = tables::mxfp4_half_scale(block[0]);
    }
}

type Levels = [u8; 32];

#[inline(always)]
fn q4_0<L>(_: L, block: &[u8; 18], levels: &mut Levels) -> [u16; 2] {
    *levels = bits::unpack::<4, 16, _, 32>(part::<2, 16, _>(block));
    [bits_at::<0, _>(block), 0]
}

#[inline(always)]
fn q4_1<L>(_: L, block: &[u8; 20], levels: &mut Levels) -> [u16; 2] {
    *levels = bits::unpack::<4, 16, _, 32>(part::<4, 16, _>(block));
    [bits_at::<0, _>(block), bits_at::<2, _>(block) ^ 0x8000]
}

#[inline(always)]
fn q5_0<L: Lookup>(lookup: L, block: &[u8; 22], levels: &mut Levels) -> [u16; 2] {
    *levels = five(lookup, part::<2, 4, _>(block), part::<6, 16, _>(block));
    [bits_at::<0, _>(block), 0]
}

#[inline(always)]
fn q5_1<L: Lookup>(lookup: L, block: &[u8; 24], levels: &mut Levels) -> [u16; 2] {
    *levels = five(lookup, part::<4, 4, _>(block), part::<8, 16, _>(block));
    [bits_at::<0, _>(block), bits_at::<2, _>(block) ^ 0x8000]
}

#[inline(always)]
fn five<L: Lookup>(lookup: L, high: &[u8; 4], low: &[u8; 16]) -> Levels {
    let mut levels = bits::unpack::<4, 16, _, 32>(low);
    let high = lookup.spread(u32::from_le_bytes(*high));
    for (level, high) in levels.iter_mut().zip(high) {
        *level |= high & 16;
    }
    levels
}

#[inline(always)]
fn q8_0<L>(_: L, block: &[u8; 34], levels: &mut Levels) -> [u16; 2] {
    *levels = *part::<2, 32, _>(block);
    [bits_at::<0, _>(block), 0]
}

#[inline(always)]
fn iq4_nl<L: Lookup>(lookup: L, block: &[u8; 18], levels: &mut Levels) -> [u16; 2] {
    let q = bits::unpack::<4, 16, _, 32>(part::<2, 16, _>(block));
    *levels = lookup.lookup(&tables::IQ4, &q);
    [bits_at::<0, _>(block), 0]
}
