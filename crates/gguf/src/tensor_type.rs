//! Table of tensor types: id, name, elements and bytes per block, status. All sizes and names in
//! the workspace come from it.
//!
//! Ids and sizes are those of `enum ggml_type` and the block structures of ggml (`ggml.h`,
//! `ggml-common.h`). Removed types stay in the table, so that messages can name them.

use std::borrow::Cow;
use std::fmt;

use crate::suggest::{did_you_mean, nearest};

/// Current version of the block formats, for `general.quantization_version`: ggml's
/// `GGML_QNT_VERSION`.
pub const QUANTIZATION_VERSION: u32 = 2;

/// Status of a tensor type in the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Current.
    Current,
    /// Used in memory by llama.cpp, never written to files.
    Internal,
    /// Removed from the format; old files may still have it. Its block size is unknown.
    Removed,
}

/// Row of the table of tensor types.
#[derive(Debug, PartialEq, Eq)]
pub struct TypeTraits {
    /// Id in files.
    pub id: u32,
    /// Name in llama.cpp's tools, such as `Q4_K`.
    pub name: &'static str,
    /// Elements per block; 1 for plain numbers, 0 for removed types.
    pub block_len: u64,
    /// Bytes per block; 0 for removed types.
    pub block_bytes: u64,
    /// Status in the format.
    pub status: Status,
}

/// Tensor type of a file: any 32-bit id, known or unknown.
///
/// Known types are constants (`TensorType::Q4_K`). An id without a table row is a valid value, so
/// that a file with it can be listed and copied.
///
/// ```
/// use gguf::TensorType;
/// assert_eq!(TensorType::Q4_K.byte_len(&[4096, 2]), Some(2 * 16 * 144));
/// assert_eq!("q4_k".parse(), Ok(TensorType::Q4_K));
/// assert_eq!(TensorType::from_id(9999).to_string(), "type 9999");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorType(u32);

macro_rules! tensor_types {
    ($($konst:ident $id:literal $len:literal $bytes:literal $status:ident $doc:literal,)*) => {
        impl TensorType {
            $(#[doc = $doc] pub const $konst: Self = Self($id);)*
        }
        /// All rows in order of id: row `i` describes id `i`.
        const TABLE: &[TypeTraits] = &[$(TypeTraits {
            id: $id,
            name: stringify!($konst),
            block_len: $len,
            block_bytes: $bytes,
            status: Status::$status,
        },)*];
    };
}

tensor_types! {
    F32          0   1   4 Current  "IEEE 754 single precision.",
    F16          1   1   2 Current  "IEEE 754 half precision.",
    Q4_0         2  32  18 Current  "4 bits, one f16 scale per 32.",
    Q4_1         3  32  20 Current  "4 bits, f16 scale and minimum per 32.",
    Q4_2         4   0   0 Removed  "Removed in 2023: 4 bits, one f16 scale per 16.",
    Q4_3         5   0   0 Removed  "Removed in 2023: 4 bits, f16 scale and minimum per 16.",
    Q5_0         6  32  22 Current  "5 bits, one f16 scale per 32.",
    Q5_1         7  32  24 Current  "5 bits, f16 scale and minimum per 32.",
    Q8_0         8  32  34 Current  "8 bits, one f16 scale per 32.",
    Q8_1         9  32  36 Internal "8 bits, f16 scale and scaled sum per 32: activations.",
    Q2_K        10 256  84 Current  "2 bits, 4-bit scales and minima per 16, super-blocks of 256.",
    Q3_K        11 256 110 Current  "3 bits, 6-bit scales per 16, super-blocks of 256.",
    Q4_K        12 256 144 Current  "4 bits, 6-bit scales and minima per 32, super-blocks of 256.",
    Q5_K        13 256 176 Current  "5 bits, 6-bit scales and minima per 32, super-blocks of 256.",
    Q6_K        14 256 210 Current  "6 bits, 8-bit scales per 16, super-blocks of 256.",
    Q8_K        15 256 292 Internal "8 bits, f32 scale and sums per 256: activations.",
    IQ2_XXS     16 256  66 Current  "2.06 bits: signed codebook of 256 octets.",
    IQ2_XS      17 256  74 Current  "2.31 bits: signed codebook of 512 octets, scales per 16.",
    IQ3_XXS     18 256  98 Current  "3.06 bits: signed codebook of 256 quartets.",
    IQ1_S       19 256  50 Current  "1.56 bits: ternary codebook of 2048 octets.",
    IQ4_NL      20  32  18 Current  "4 bits into a non-linear table, one f16 scale per 32.",
    IQ3_S       21 256 110 Current  "3.44 bits: codebook of 512 quartets, free signs.",
    IQ2_S       22 256  82 Current  "2.56 bits: codebook of 1024 octets, free signs.",
    IQ4_XS      23 256 136 Current  "4 bits into a non-linear table, 6-bit scales per 32.",
    I8          24   1   1 Current  "Signed 8-bit integers.",
    I16         25   1   2 Current  "Signed 16-bit integers.",
    I32         26   1   4 Current  "Signed 32-bit integers.",
    I64         27   1   8 Current  "Signed 64-bit integers.",
    F64         28   1   8 Current  "IEEE 754 double precision.",
    IQ1_M       29 256  56 Current  "1.75 bits: ternary codebook, scales per 16.",
    BF16        30   1   2 Current  "The upper half of an IEEE 754 single.",
    Q4_0_4_4    31   0   0 Removed  "Removed in 2024: Q4_0 interleaved for NEON.",
    Q4_0_4_8    32   0   0 Removed  "Removed in 2024: Q4_0 interleaved for NEON with i8mm.",
    Q4_0_8_8    33   0   0 Removed  "Removed in 2024: Q4_0 interleaved for SVE and AVX.",
    TQ1_0       34 256  54 Current  "Ternary, five digits to a byte, one f16 scale per 256.",
    TQ2_0       35 256  66 Current  "Ternary, two bits each, one f16 scale per 256.",
    IQ4_NL_4_4  36   0   0 Removed  "Removed in 2024: IQ4_NL interleaved.",
    IQ4_NL_4_8  37   0   0 Removed  "Removed in 2024: IQ4_NL interleaved.",
    IQ4_NL_8_8  38   0   0 Removed  "Removed in 2024: IQ4_NL interleaved.",
    MXFP4       39  32  17 Current  "OCP MX: E2M1 with a power-of-two scale per 32.",
    NVFP4       40  64  36 Current  "E2M1 with an unsigned E4M3 scale per 16.",
    Q1_0        41 128  18 Current  "Signs only, one f16 scale per 128.",
    Q2_0        42  64  18 Current  "2 bits, one f16 scale per 64.",
}

impl TensorType {
    /// Returns the type with this id, known or unknown.
    pub const fn from_id(id: u32) -> Self {
        Self(id)
    }

    /// Returns the id in files.
    pub const fn id(self) -> u32 {
        self.0
    }

    /// Returns every type of the table, in order of id, including removed ones.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| Self(row.id))
    }

    /// Returns the table row of this type; `None` for an unknown id.
    pub const fn traits(self) -> Option<&'static TypeTraits> {
        let row = self.0 as usize;
        if row < TABLE.len() { Some(&TABLE[row]) } else { None }
    }

    /// Returns the name in ggml, or `type N` for an unknown id.
    pub fn name(self) -> Cow<'static, str> {
        match self.traits() {
            Some(row) => Cow::Borrowed(row.name),
            None => Cow::Owned(format!("type {}", self.0)),
        }
    }

    /// Returns elements and bytes per block; `None` for unknown and removed types.
    pub const fn block(self) -> Option<(u64, u64)> {
        match self.traits() {
            Some(t) if t.block_len > 0 => Some((t.block_len, t.block_bytes)),
            _ => None,
        }
    }

    /// Returns true for integers of 8 to 64 bits: tables and masks use them, weights do not.
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns true if a block has several elements, so that reading one element requires a codec.
    pub fn is_quantized(self) -> bool {
        self.traits().is_some_and(|t| t.block_len > 1)
    }

    /// Returns the size in bytes of a tensor of this type: `shape` in elements, fastest dimension
    /// first.
    ///
    /// `None` if the block size is unknown, if a row is not a multiple of the block size, or on
    /// overflow of 64 bits. The empty shape has one element.
    pub fn byte_len(self, shape: &[u64]) -> Option<u64> {
        let (block_len, block_bytes) = self.block()?;
        let row = shape.first().copied().unwrap_or(1);
        if !row.is_multiple_of(block_len) {
            return None;
        }
        let rows = shape.iter().skip(1).try_fold(1u64, |n, &d| n.checked_mul(d))?;
        // The number of elements must fit too, because every reader computes it.
        row.checked_mul(rows)?;
        (row / block_len).checked_mul(block_bytes)?.checked_mul(rows)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Error: a word is not the name of a tensor type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tensor type; {hint}", hint = hint(.0))]
pub struct UnknownTypeName(pub String);

/// Suggests similar names, or lists all names.
fn hint(word: &str) -> String {
    let names = || TABLE.iter().filter(|t| t.status == Status::Current).map(|t| t.name);
    match &nearest(word, names())[..] {
        [] => format!("known are {}", names().collect::<Vec<_>>().join(" ")),
        near => did_you_mean(near),
    }
}

impl std::str::FromStr for TensorType {
    type Err = UnknownTypeName;

    /// Parses a name of ggml, ignoring case. Rejects removed types.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        TABLE
            .iter()
            .find(|t| t.status != Status::Removed && t.name.eq_ignore_ascii_case(s))
            .map(|t| Self(t.id))
            .ok_or_else(|| UnknownTypeName(s.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_index_is_the_id() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.id as usize, i, "{}", row.name);
            assert_eq!(row.block_len == 0, row.status == Status::Removed, "{}", row.name);
        }
    }

    #[test]
    fn names_round_trip() {
        for ty in TensorType::all().filter(|t| t.block().is_some()) {
            assert_eq!(ty.name().to_lowercase().parse(), Ok(ty));
        }
        assert!("Q4_2".parse::<TensorType>().is_err());
    }

    #[test]
    fn sizes_of_invalid_shapes_are_none() {
        assert_eq!(TensorType::F32.byte_len(&[]), Some(4));
        assert_eq!(TensorType::Q8_0.byte_len(&[64, 3]), Some(2 * 34 * 3));
        assert_eq!(TensorType::Q8_0.byte_len(&[33]), None);
        assert_eq!(TensorType::F32.byte_len(&[1 << 32, 1 << 32]), None);
        assert_eq!(TensorType::F64.byte_len(&[1 << 62]), None);
        assert_eq!(TensorType::Q4_2.byte_len(&[32]), None);
        assert_eq!(TensorType::F32.byte_len(&[0, 7]), Some(0));
    }
}
