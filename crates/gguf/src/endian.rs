//! Tensor data in the other byte order.
//!
//! A block is bytes and numbers of two, four or eight bytes. Which is which follows from how the
//! decoder of llama.cpp reads the block (`ggml-quants.c`): a field that it reads as a number in the
//! machine's own order is swapped, a field that it reads byte by byte is not, whatever the type it
//! was declared with. So a converted file decodes to the same weights on a machine of the other
//! order. Swapping twice gives back the first file.

use crate::finding::Finding;
use crate::tensor_type::TensorType;

/// Numbers in a block: first byte, bytes of each, how many follow one another.
type Fields = &'static [(usize, usize, usize)];

/// The numbers in a block of this type; `None` if its layout is not known.
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

/// True if the data of this type can be put in the other byte order.
pub fn can_swap(ty: TensorType) -> bool {
    fields(ty).is_some()
}

/// That the data of this type cannot be put in the other byte order, not yet placed.
pub fn cannot_swap(ty: TensorType) -> Finding {
    let message =
        format!("the layout of {ty} is unknown, so that its byte order cannot be changed");
    Finding::error("tensor-type-unknown", message)
}

/// Puts whole blocks in the other byte order, in place, and says whether it could: false, with
/// nothing changed, if the layout of the type is not known or the bytes are no whole blocks.
pub fn swap_blocks(ty: TensorType, bytes: &mut [u8]) -> bool {
    let (Some(fields), Some((_, block_bytes))) = (fields(ty), ty.block()) else { return false };
    let block_bytes = block_bytes as usize;
    if !bytes.len().is_multiple_of(block_bytes) {
        return false;
    }
    for block in bytes.chunks_exact_mut(block_bytes) {
        for &(start, width, count) in fields {
            // The test below proves that every field lies within its block.
            block[start..start + width * count].chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_with_blocks_swaps_and_swaps_back() {
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
    fn fields_keep_apart() {
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
