//! Block formats of each quantization version, and the corresponding current types.
//!
//! A tensor type kept its number when its layout changed. The layout follows from the quantization
//! version of the file.
//!
//! ```text
//!            version 0            version 1            version 2
//!            GGML, GGMF, GGJT v1  GGJT v2              GGJT v3, GGCC, GGUF
//!  2  Q4_0   f32 d, adjacent      f32 d, halves        f16 d, halves
//!  3  Q4_1   f32 d m, adjacent    f32 d m, halves      f16 d m, halves
//!  4  Q4_2   f16 d, adjacent      -                    -
//!  5  Q4_3   f16 d m, adjacent    -                    -
//!  6  Q5_0   f16 d, adjacent      f16 d, halves        unchanged
//!  7  Q5_1   f16 d m, adjacent    f16 d m, halves      unchanged
//!  8  Q8_0   f32 d                f32 d                f16 d
//! 10-14 Q2_K to Q6_K                                   super-blocks of 256 or 64
//! ```
//!
//! Adjacent: byte `j` has elements `2j` (low nibble) and `2j + 1` (high nibble). Halves: elements
//! `j` and `j + 16`.

mod convert;
mod k_quants_64;
mod planar;
mod unpacked;

pub(super) use convert::{ConvertedBlocks, lossless_types, scales_fit_half};
use gguf::TensorType;
pub(super) use planar::{Planar, is_planar};
pub(super) use unpacked::UnpackedBlock;

/// Storage format of a tensor.
#[derive(Clone, Copy)]
pub(super) enum StorageType {
    /// A type that GGUF has.
    Current(TensorType),
    /// A block format that GGUF does not have.
    Legacy(&'static LegacyBlock),
}

/// A legacy block format.
pub(super) struct LegacyBlock {
    /// Name for users.
    pub name: &'static str,
    /// Elements per block.
    pub elements: u64,
    /// Bytes per block.
    pub bytes: u64,
    /// The decoder of a block.
    pub decoder: Decoder,
}

/// Decoder of a block format.
#[derive(Clone, Copy)]
pub(super) enum Decoder {
    /// One integer per element and a scale, which a current type may store too.
    Unpack {
        /// Unpacks a block.
        unpack: fn(&[u8]) -> UnpackedBlock,
        /// The type with the same quants and half precision scales.
        current: Option<TensorType>,
    },
    /// Decodes a block into its elements.
    Decode(fn(&[u8], &mut [f32])),
}

/// Versions of the block layouts (`GGML_QNT_VERSION`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QuantizationVersion {
    /// Single precision scales, adjacent elements share a byte.
    V0,
    /// Single precision scales, elements of both halves share a byte.
    V1,
    /// Half precision scales: the current layout.
    V2,
}

/// Size of a K-quant super-block, a build option of the tool that wrote the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SuperBlock {
    /// The current layout.
    Elements256,
    /// `GGML_QKK_64`.
    Elements64,
}

/// Resolves a type number; `None` if the version does not define it.
pub(super) fn storage_type(
    id: u32,
    version: QuantizationVersion,
    super_block: SuperBlock,
) -> Option<StorageType> {
    use QuantizationVersion::{V0, V1, V2};
    let block = match (id, version) {
        (2, V0) => &unpacked::Q4_0_V0,
        (2, V1) => &unpacked::Q4_0_V1,
        (3, V0) => &unpacked::Q4_1_V0,
        (3, V1) => &unpacked::Q4_1_V1,
        (4, V0) => &unpacked::Q4_2,
        (5, V0) => &unpacked::Q4_3,
        (6, V0) => &unpacked::Q5_0_V0,
        (7, V0) => &unpacked::Q5_1_V0,
        (8, V0 | V1) => &unpacked::Q8_0_V1,
        (10..=14, V2) if super_block == SuperBlock::Elements64 => {
            &k_quants_64::TYPES[id as usize - 10]
        }
        (0 | 1, _) | (6 | 7, V1) | (2 | 3 | 6 | 7 | 8 | 10..=14, V2) => {
            return Some(StorageType::Current(TensorType::from_id(id)));
        }
        _ => return None,
    };
    Some(StorageType::Legacy(block))
}

impl StorageType {
    /// Bytes of a tensor of this shape; `None` if a row is not a whole number of blocks.
    pub fn byte_len(self, dims: &[u64]) -> Option<u64> {
        match self {
            Self::Current(ty) => ty.byte_len(dims),
            Self::Legacy(block) => {
                let row = dims.first().copied().unwrap_or(1);
                let rows = dims.iter().skip(1).try_fold(1u64, |n, &dim| n.checked_mul(dim))?;
                let is_whole = row.is_multiple_of(block.elements);
                is_whole
                    .then_some(row / block.elements)?
                    .checked_mul(rows)?
                    .checked_mul(block.bytes)
            }
        }
    }

    /// Name for users.
    pub fn name(self) -> String {
        match self {
            Self::Current(ty) => ty.to_string(),
            Self::Legacy(block) => block.name.to_owned(),
        }
    }
}

impl LegacyBlock {
    /// Decodes a block into its elements.
    pub fn decode(&self, block: &[u8], out: &mut [f32]) {
        match self.decoder {
            Decoder::Unpack { unpack, .. } => unpack(block).decode(out),
            Decoder::Decode(decode) => decode(block, out),
        }
    }

    /// The current type with the same quants.
    pub fn current_type(&self) -> Option<TensorType> {
        match self.decoder {
            Decoder::Unpack { current, .. } => current,
            Decoder::Decode(_) => None,
        }
    }
}
