//! Formats whose levels have a sign, as formats whose levels have none.

use std::marker::PhantomData;

use gguf::TensorType;
use gguf_quant::integers::{Integers, Lookup, Unpacked};

/// The format `F`, with levels greater by 128 if `F` has bytes with a sign: products of bytes want one
/// factor without.
pub(super) struct Unsigned<F>(PhantomData<fn() -> F>);

impl<F: Integers> Integers for Unsigned<F> {
    type Block = F::Block;

    const TYPE: TensorType = F::TYPE;
    const LEN: usize = F::LEN;
    const GROUP: usize = F::GROUP;
    const TOP: Option<u8> = if F::TOP.is_some() { F::TOP } else { Some(255) };
    const ZERO: u8 = if F::TOP.is_some() { F::ZERO } else { 128 };
    const MINIMUMS: bool = F::MINIMUMS;
    const HALVES: Option<usize> = F::HALVES;
    const ADDED: bool = F::ADDED;

    #[inline(always)]
    fn unpack<L: Lookup>(lookup: L, block: &F::Block, out: &mut Unpacked) {
        const { assert!(F::TOP.is_some() || !F::MINIMUMS, "128 is taken off in place of minima") }
        F::unpack(lookup, block, out);
        if F::TOP.is_none() {
            for level in &mut out.levels[..F::LEN] {
                *level ^= 0x80;
            }
        }
    }
}
