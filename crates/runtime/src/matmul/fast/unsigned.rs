//! Formats with signed levels as formats with unsigned levels.

use std::marker::PhantomData;

use gguf::TensorType;
use gguf_quant::integers::{ByteSimd, IntegerBlock, UnpackedBlock};

/// The format `F`, with 128 added to signed levels: INT8 products take one unsigned factor.
pub(super) struct Unsigned<F>(PhantomData<fn() -> F>);

impl<F: IntegerBlock> IntegerBlock for Unsigned<F> {
    type Block = F::Block;

    const TYPE: TensorType = F::TYPE;
    const LEN: usize = F::LEN;
    const GROUP: usize = F::GROUP;
    const MAX_LEVEL: Option<u8> = if F::MAX_LEVEL.is_some() { F::MAX_LEVEL } else { Some(255) };
    const ZERO: u8 = if F::MAX_LEVEL.is_some() { F::ZERO } else { 128 };
    const MINIMUMS: bool = F::MINIMUMS;
    const F16_OFFSET: Option<usize> = F::F16_OFFSET;
    const NEGATED_MIN: bool = F::NEGATED_MIN;

    #[inline(always)]
    fn unpack<L: ByteSimd>(lookup: L, block: &F::Block, out: &mut UnpackedBlock) {
        const { assert!(F::MAX_LEVEL.is_some() || !F::MINIMUMS, "128 is taken off in place of minima") }
        F::unpack(lookup, block, out);
        if F::MAX_LEVEL.is_none() {
            for level in &mut out.levels[..F::LEN] {
                *level ^= 0x80;
            }
        }
    }
}
