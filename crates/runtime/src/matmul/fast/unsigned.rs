//! Formats with signed levels as formats with unsigned levels.

use std::marker::PhantomData;

use gguf::TensorType;
use gguf_quant::integers::{ByteSimd, IntegerBlock, UnpackedBlock};

/// The format `F`, with `LEAST` added to signed levels, or their greatest magnitude if that is more: INT8 products take one
/// unsigned factor.
pub(super) struct Unsigned<F, const LEAST: u8>(PhantomData<fn() -> F>);

impl<F: IntegerBlock, const LEAST: u8> Unsigned<F, LEAST> {
    /// Added to signed levels.
    const SHIFT: u8 = if F::MAX_MAGNITUDE > LEAST { F::MAX_MAGNITUDE } else { LEAST };
    /// Greatest level of signed ones, shifted.
    const TOP: u8 = Self::SHIFT + if F::MAX_MAGNITUDE > 127 { 127 } else { F::MAX_MAGNITUDE };
}

impl<F: IntegerBlock, const LEAST: u8> IntegerBlock for Unsigned<F, LEAST> {
    type Block = F::Block;

    const TYPE: TensorType = F::TYPE;
    const LEN: usize = F::LEN;
    const GROUP: usize = F::GROUP;
    const MAX_LEVEL: Option<u8> =
        if F::MAX_LEVEL.is_some() { F::MAX_LEVEL } else { Some(Self::TOP) };
    const ZERO: u8 = if F::MAX_LEVEL.is_some() { F::ZERO } else { Self::SHIFT };
    const MINIMUMS: bool = F::MINIMUMS;
    const F16_OFFSET: Option<usize> = F::F16_OFFSET;
    const POWER_OF_TWO: bool = F::POWER_OF_TWO;
    const SCALED_LEVELS_FIT: bool = F::SCALED_LEVELS_FIT && F::MAX_LEVEL.is_some();
    const NEGATED_MIN: bool = F::NEGATED_MIN;

    #[inline(always)]
    fn unpack<L: ByteSimd>(lookup: L, block: &F::Block, out: &mut UnpackedBlock) {
        const {
            assert!(
                F::MAX_LEVEL.is_some() || !F::MINIMUMS,
                "the shift is taken off in place of minima"
            )
        }
        F::unpack(lookup, block, out);
        if F::MAX_LEVEL.is_none() {
            for level in &mut out.levels[..F::LEN] {
                *level = level.wrapping_add(Self::SHIFT);
            }
        }
    }
}
