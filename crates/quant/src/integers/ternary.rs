//! Unpacks TQ1_0 and TQ2_0, whose layouts are drawn in `blocks/`.

use gguf::TensorType;

use super::k_quants::format;
use super::{ByteSimd, IntegerBlock, UnpackedBlock, bits_at, part};
use crate::bits;

format!(TQ1_0: TQ1_0, 54 bytes, groups of 32, top Some(2), zero 1, minimums false, f16 Some(52), tq1_0, scaled levels fit true);
format!(TQ2_0: TQ2_0, 66 bytes, groups of 32, top Some(3), zero 1, minimums false, f16 Some(64), tq2_0, scaled levels fit true);

#[inline(always)]
fn tq1_0<L>(_: L, block: &[u8; 54], out: &mut UnpackedBlock) {
    let (first, rest) = out.levels.split_at_mut(160);
    let (second, last) = rest.split_at_mut(80);
    digits(part::<0, 32, _>(block), first);
    digits(part::<32, 16, _>(block), second);
    digits(part::<48, 4, _>(block), last);
    out.set_f16_scales([bits_at::<52, _>(block), 0]);
}

#[inline(always)]
fn digits<const M: usize>(bytes: &[u8; M], out: &mut [u8]) {
    let mut fractions = *bytes;
    for out in out.as_chunks_mut::<M>().0 {
        for (digit, fraction) in out.iter_mut().zip(&mut fractions) {
            let next = u16::from(*fraction) * 3;
            (*digit, *fraction) = ((next >> 8) as u8, next as u8);
        }
    }
}

#[inline(always)]
fn tq2_0<L>(_: L, block: &[u8; 66], out: &mut UnpackedBlock) {
    out.levels = bits::unpack::<2, 32, _, 256>(part::<0, 64, _>(block));
    out.set_f16_scales([bits_at::<64, _>(block), 0]);
}
