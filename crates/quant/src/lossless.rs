//! Lossless conversion between quantized types: possible where the levels of the source type are
//! also levels of the target type under the same scale.

use gguf::TensorType;
use half::f16;

use crate::codec::CodecError;
use crate::registry::decode_row;

/// A block of 32 weights `d * level + m`.
struct Levels {
    d: f16,
    m: Option<f16>,
    levels: [i8; 32],
}

/// Whether [`convert`] supports the pair of types.
///
/// ```
/// use gguf::TensorType;
/// assert!(gguf_quant::lossless::is_possible(TensorType::Q4_0, TensorType::Q8_0));
/// assert!(!gguf_quant::lossless::is_possible(TensorType::Q8_0, TensorType::Q4_0));
/// ```
pub fn is_possible(from: TensorType, to: TensorType) -> bool {
    use TensorType as T;
    match to {
        // Decoded weights are single-precision floats.
        T::F32 => from.is_quantized() && crate::codec(from).is_some(),
        T::Q8_0 => matches!(from, T::Q4_0 | T::Q5_0 | T::IQ4_NL),
        T::Q5_0 | T::Q4_1 => from == T::Q4_0,
        T::Q5_1 => matches!(from, T::Q4_0 | T::Q5_0 | T::Q4_1),
        _ => false,
    }
}

/// Converts the weights of `bytes` from type `from` to type `to` without changing their values.
///
/// # Errors
/// Returns an error if [`is_possible`] is false, if the lengths do not match, or in the rare case
/// that the minimum of a new block overflows FP16.
pub fn convert(
    from: TensorType,
    bytes: &[u8],
    to: TensorType,
    out: &mut [u8],
) -> Result<(), CodecError> {
    let none = CodecError::NotLossless { from, to };
    if !is_possible(from, to) {
        return Err(none);
    }
    let (Some((len, from_bytes)), Some((to_len, to_bytes))) = (from.block(), to.block()) else {
        return Err(none);
    };
    let elements = bytes.len() as u64 / from_bytes * len;
    let expected = elements / to_len * to_bytes;
    if !(bytes.len() as u64).is_multiple_of(from_bytes) || out.len() as u64 != expected {
        let (elements, found) = (elements as usize, out.len());
        return Err(CodecError::WrongByteLength { ty: to, elements, expected, found });
    }
    if to == TensorType::F32 {
        let mut floats = vec![0.0; elements as usize];
        decode_row(from, bytes, &mut floats)?;
        for (out, v) in out.as_chunks_mut().0.iter_mut().zip(floats) {
            *out = f32::to_le_bytes(v);
        }
        return Ok(());
    }
    let blocks = bytes.chunks_exact(from_bytes as usize);
    for (block, out) in blocks.zip(out.chunks_exact_mut(to_bytes as usize)) {
        read(from, block).and_then(|levels| write(&levels, to, out)).ok_or(none.clone())?;
    }
    Ok(())
}

/// Unpacks the levels of a block; those of types without a minimum are centred on 0.
fn read(from: TensorType, block: &[u8]) -> Option<Levels> {
    let half = |at: usize| Some(f16::from_le_bytes(*block.get(at..)?.first_chunk()?));
    let d = half(0)?;
    let nibbles =
        |at: usize| Some(crate::bits::unpack::<4, 16, 16, 32>(block.get(at..)?.first_chunk()?));
    let (m, levels) = match from {
        TensorType::Q4_0 => (None, nibbles(2)?.map(|q| q as i8 - 8)),
        TensorType::Q4_1 => (Some(half(2)?), nibbles(4)?.map(|q| q as i8)),
        TensorType::IQ4_NL => {
            (None, nibbles(2)?.map(|q| crate::value_tables::IQ4[usize::from(q & 15)]))
        }
        TensorType::Q5_0 => {
            let high = u32::from_le_bytes(*block.get(2..)?.first_chunk()?);
            let mut levels = nibbles(6)?.map(|q| q as i8);
            for (i, level) in levels.iter_mut().enumerate() {
                *level += (high >> i & 1) as i8 * 16 - 16;
            }
            (None, levels)
        }
        _ => return None,
    };
    Some(Levels { d, m, levels })
}

/// Packs a block; `None` if its minimum would not be finite.
fn write(Levels { d, m, levels }: &Levels, to: TensorType, out: &mut [u8]) -> Option<()> {
    // Offset from levels centred on 0 to levels that start at 0.
    let middle: i8 = match to {
        TensorType::Q4_1 => 8,
        TensorType::Q5_0 | TensorType::Q5_1 => 16,
        _ => 0,
    };
    let up = if m.is_some() { 0 } else { middle };
    let low = match m {
        Some(m) => *m,
        // Exact: the scale times a power of two.
        None => f16::from_f32(d.to_f32() * -f32::from(middle)),
    };
    let levels = levels.map(|level| level.wrapping_add(up) as u8);
    let nibbles = crate::bits::pack::<4, 16, 32, 16>(&levels.map(|q| q & 15), 0);
    let high = (0..32).fold(0u32, |bits, i| bits | u32::from(levels[i] >> 4 & 1) << i);
    let mut block = d.to_le_bytes().to_vec();
    if matches!(to, TensorType::Q4_1 | TensorType::Q5_1) {
        block.extend((m.is_some() || low.is_finite()).then(|| low.to_le_bytes())?);
    }
    match to {
        TensorType::Q8_0 => block.extend(levels),
        TensorType::Q5_0 | TensorType::Q5_1 => {
            block.extend(high.to_le_bytes());
            block.extend(nibbles);
        }
        _ => block.extend(nibbles),
    }
    out.copy_from_slice(block.get(..out.len())?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_preserves_weights() {
        let mut state = 1u64;
        let mut byte = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as u8
        };
        let mut pairs = 0;
        for from in TensorType::all() {
            for to in TensorType::all().filter(|&to| is_possible(from, to)) {
                let (len, block_bytes) = from.block().unwrap();
                let elements = len as usize * 64;
                let mut bytes: Vec<u8> = (0..block_bytes * 64).map(|_| byte()).collect();
                // Scales of all magnitudes and signs that leave room for the minimum.
                for block in bytes.chunks_exact_mut(block_bytes as usize) {
                    block[1] &= 0xbf;
                }
                let mut out = vec![0; to.byte_len(&[elements as u64]).unwrap() as usize];
                convert(from, &bytes, to, &mut out).unwrap();
                let (mut a, mut b) = (vec![0.0; elements], vec![0.0; elements]);
                decode_row(from, &bytes, &mut a).unwrap();
                decode_row(to, &out, &mut b).unwrap();
                // Equal as numbers: zeros may differ in sign, and NaN matches NaN.
                let same = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
                assert!(a.iter().zip(&b).all(same), "{from} to {to}");
                pairs += 1;
            }
        }
        assert!(pairs > 30, "{pairs}");
    }

    #[test]
    fn minimum_overflowing_fp16_is_rejected() {
        let mut block = [0x77; 18];
        block[..2].copy_from_slice(&f16::MAX.to_le_bytes());
        assert!(convert(TensorType::Q4_0, &block, TensorType::Q4_1, &mut [0; 20]).is_err());
        assert!(convert(TensorType::Q4_0, &block, TensorType::Q8_0, &mut [0; 34]).is_ok());
        assert!(convert(TensorType::Q4_0, &block, TensorType::Q8_0, &mut [0; 33]).is_err());
        assert!(convert(TensorType::Q8_0, &[0; 34], TensorType::Q4_0, &mut [0; 18]).is_err());
    }
}
