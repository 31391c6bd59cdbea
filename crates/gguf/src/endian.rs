//! Byte swapping of tensor data.
//!
//! A block consists of bytes and of numbers of two, four or eight bytes. The decoder of llama.cpp
//! (`ggml-quants.c`) decides which: a field that it reads as a number in native byte order is
//! swapped, a field that it reads byte by byte is not, whatever its declared type. So a swapped
//! file decodes to the same weights on a machine with the other byte order. Swapping is an
//! involution.

use crate::finding::Finding;
use crate::tensor_type::TensorType;

/// Field of a block: first byte, bytes per number, count of numbers.
type Fields = &'static [(usize, usize, usize)];

/// Returns the multi-byte fields of a block of this type; `None` if its layout is unknown.
fn fields(ty: TensorType) -> Option<Fields> {
    Some(match ty {
        TensorType::I8 | TensorType::MXFP4 | TensorType::NVFP4 => &[],
        TensorType::F16 | TensorType::BF16 | TensorType::I16 => &[(0, 2, 1)],
        TensorType::F32 | TensorType::I32 => &[(0, 4, 1)],
        TensorType::F64 | TensorType::I64 => &[(0, 8, 1)],
        TensorType::Q4_0 | TensorType::Q8_0 | TensorType::IQ4_NL => &[(0, 2, 1)],
        TensorType::Q1_0 | TensorType::Q2_0 => &[(0, 2, 1)],
        TensorType::Q4_1 | TensorType::Q8_1 => &[(0, 2, 2)],
        // The fifth bits are one 32-bit number.
        TensorType::Q5_0 => &[(0, 2, 1), (2, 4, 1)],
        TensorType::Q5_1 => &[(0, 2, 2), (4, 4, 1)],
        TensorType::Q2_K => &[(80, 2, 2)],
        TensorType::Q3_K => &[(108, 2, 1)],
        TensorType::Q4_K | TensorType::Q5_K => &[(0, 2, 2)],
        TensorType::Q6_K => &[(208, 2, 1)],
        TensorType::Q8_K => &[(0, 4, 1), (260, 2, 16)],
        // Per 32 weights: four grid indices as bytes, then signs and scale as one number.
        TensorType::IQ2_XXS => &[
            (0, 2, 1),
            (6, 4, 1),
            (14, 4, 1),
            (22, 4, 1),
            (30, 4, 1),
            (38, 4, 1),
            (46, 4, 1),
            (54, 4, 1),
            (62, 4, 1),
        ],
        TensorType::IQ2_XS => &[(0, 2, 33)],
        TensorType::IQ2_S | TensorType::IQ3_S => &[(0, 2, 1)],
        TensorType::IQ3_XXS => &[(0, 2, 1), (66, 4, 8)],
        TensorType::IQ1_S => &[(0, 2, 1), (34, 2, 8)],
        TensorType::IQ1_M => &[(48, 2, 4)],
        TensorType::IQ4_XS => &[(0, 2, 2)],
        TensorType::TQ1_0 => &[(52, 2, 1)],
        TensorType::TQ2_0 => &[(64, 2, 1)],
        _ => return None,
    })
}

/// Returns true if data of this type can be byte-swapped.
pub fn can_swap(ty: TensorType) -> bool {
    fields(ty).is_some()
}

/// Returns the finding that data of this type cannot be byte-swapped, without a position.
pub fn cannot_swap(ty: TensorType) -> Finding {
    let message =
        format!("the layout of {ty} is unknown, so that its byte order cannot be changed");
    Finding::error("tensor-type-unknown", message)
}

/// Byte-swaps whole blocks in place. Returns false, and changes nothing, if the layout of the type
/// is unknown or `bytes` are not whole blocks.
pub fn swap_blocks(ty: TensorType, bytes: &mut [u8]) -> bool {
    let (Some(fields), Some((_, block_bytes))) = (fields(ty), ty.block()) else { return false };
    let block_bytes = block_bytes as usize;
    if !bytes.len().is_multiple_of(block_bytes) {
        return false;
    }
    for block in bytes.chunks_exact_mut(block_bytes) {
        for &(start, width, count) in fields {
            // A test proves that every field lies within its block.
            block[start..start + width * count].chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_type_round_trips() {
        for ty in TensorType::all() {
            let Some((_, block_bytes)) = ty.block() else {
                assert!(!can_swap(ty), "{ty}");
                continue;
            };
            let before: Vec<u8> = (0..3 * block_bytes).map(|i| i as u8).collect();
            let mut bytes = before.clone();
            assert!(swap_blocks(ty, &mut bytes), "{ty}");
            let has_numbers = !fields(ty).unwrap().is_empty();
            assert_eq!(bytes != before, has_numbers, "{ty}");
            assert!(swap_blocks(ty, &mut bytes));
            assert_eq!(bytes, before, "{ty}");
            assert!(block_bytes == 1 || !swap_blocks(ty, &mut bytes[1..]), "{ty}");
        }
    }

    #[test]
    fn fields_do_not_overlap() {
        for ty in TensorType::all().filter(|ty| can_swap(*ty)) {
            let mut end = 0;
            for &(start, width, count) in fields(ty).unwrap() {
                assert!(start >= end, "{ty}");
                end = start + width * count;
            }
            assert!(end as u64 <= ty.block().unwrap().1, "{ty}");
        }
    }
}
