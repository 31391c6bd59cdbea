//! Block formats of every era, and today's type for each.
//!
//! A tensor's type number did not change when its layout did: what it means follows from the
//! generation of the file.
//!
//! ```text
//!            generation 0         generation 1         generation 2
//!            GGML, GGMF, GGJT v1  GGJT v2              GGJT v3, GGCC, GGUF
//!  2  Q4_0   f32 d, in pairs      f32 d, in halves     f16 d, in halves
//!  3  Q4_1   f32 d m, in pairs    f32 d m, in halves   f16 d m, in halves
//!  4  Q4_2   f16 d, in pairs      -                    -
//!  5  Q4_3   f16 d m, in pairs    -                    -
//!  6  Q5_0   f16 d, in pairs      f16 d, in halves     as before
//!  7  Q5_1   f16 d m, in pairs    f16 d m, in halves   as before
//!  8  Q8_0   f32 d                f32 d                f16 d
//! 10-14 Q2_K to Q6_K                                   blocks of 256, or of 64
//! ```
//!
//! In pairs: byte `j` has elements `2j` (low) and `2j + 1` (high). In halves: elements `j` and
//! `j + 16`.

mod levels;
mod planar;
mod small;
mod source;

use gguf::TensorType;
pub(super) use levels::Levels;
pub(super) use planar::{Planar, is_planar};
pub(super) use source::{Converted, exact, near};

/// How a file of some time stores the elements of a tensor.
#[derive(Clone, Copy)]
pub(super) enum StorageType {
    /// As a GGUF does today.
    Today(TensorType),
    /// In blocks that have no type any more.
    Old(&'static Old),
}

/// A block format that is no more.
pub(super) struct Old {
    /// What people call it.
    pub name: &'static str,
    /// Elements in a block.
    pub elements: u64,
    /// Bytes of a block.
    pub bytes: u64,
    /// What its blocks say.
    pub reading: Reading,
}

/// How a block is read.
#[derive(Clone, Copy)]
pub(super) enum Reading {
    /// One scale, and a level for every element: a grid that `today` has too, where there is one.
    Levels {
        /// Takes a whole block apart.
        read: fn(&[u8]) -> Levels,
        /// The type with the same levels under scales of half precision.
        today: Option<TensorType>,
    },
    /// Fills in the elements of a whole block.
    Weights(fn(&[u8], &mut [f32])),
}

/// The three times that layouts changed, as quantizers numbered them (`GGML_QNT_VERSION`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Generation {
    /// Scales of single precision, nibbles in pairs.
    Pairs,
    /// Scales of single precision, nibbles in halves.
    Halves,
    /// Scales of half precision: as today.
    Today,
}

/// Elements in a super-block of the K types: a choice when the program was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SuperBlock {
    /// As today.
    Of256,
    /// `GGML_QKK_64`.
    Of64,
}

/// What a type number means; `None` if it means nothing in this generation.
pub(super) fn form(
    id: u32,
    generation: Generation,
    super_block: SuperBlock,
) -> Option<StorageType> {
    use Generation::{Halves, Pairs, Today};
    let old = match (id, generation) {
        (2, Pairs) => &levels::Q4_0_PAIRS,
        (2, Halves) => &levels::Q4_0_HALVES,
        (3, Pairs) => &levels::Q4_1_PAIRS,
        (3, Halves) => &levels::Q4_1_HALVES,
        (4, Pairs) => &levels::Q4_2,
        (5, Pairs) => &levels::Q4_3,
        (6, Pairs) => &levels::Q5_0_PAIRS,
        (7, Pairs) => &levels::Q5_1_PAIRS,
        (8, Pairs | Halves) => &levels::Q8_0_WIDE,
        (10..=14, Today) if super_block == SuperBlock::Of64 => &small::TYPES[id as usize - 10],
        (0 | 1, _) | (6 | 7, Halves) | (2 | 3 | 6 | 7 | 8 | 10..=14, Today) => {
            return Some(StorageType::Today(TensorType::from_id(id)));
        }
        _ => return None,
    };
    Some(StorageType::Old(old))
}

impl StorageType {
    /// Bytes of this many elements; `None` if they are no whole number of blocks.
    pub fn byte_len(self, dims: &[u64]) -> Option<u64> {
        match self {
            Self::Today(ty) => ty.byte_len(dims),
            Self::Old(old) => {
                let row = dims.first().copied().unwrap_or(1);
                let rows = dims.iter().skip(1).try_fold(1u64, |n, &dim| n.checked_mul(dim))?;
                let whole = row.is_multiple_of(old.elements);
                whole.then_some(row / old.elements)?.checked_mul(rows)?.checked_mul(old.bytes)
            }
        }
    }

    /// What people call it.
    pub fn name(self) -> String {
        match self {
            Self::Today(ty) => ty.to_string(),
            Self::Old(old) => old.name.to_owned(),
        }
    }
}

impl Old {
    /// Fills in the elements of a whole block.
    pub fn weights(&self, block: &[u8], out: &mut [f32]) {
        match self.reading {
            Reading::Levels { read, .. } => read(block).weights(out),
            Reading::Weights(read) => read(block, out),
        }
    }

    /// The type that has the same levels today.
    pub fn today(&self) -> Option<TensorType> {
        match self.reading {
            Reading::Levels { today, .. } => today,
            Reading::Weights(_) => None,
        }
    }
}
