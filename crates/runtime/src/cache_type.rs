//! Types of KV caches.

use gguf::TensorType;

use crate::matmul::Precision;

/// Type of the elements of a KV cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheType {
    /// Single precision: caches do not round.
    #[default]
    F32,
    /// Half precision, which rounds logits by about 2e-3 of their standard deviation.
    F16,
    /// 8 bits, with a scale per 32 elements of a rotated head.
    Q8_0,
    /// 5 bits, with a scale and a minimum per 32 elements of a rotated head.
    Q5_1,
    /// 5 bits, with a scale per 32 elements of a rotated head.
    Q5_0,
    /// 4 bits, with a scale and a minimum per 32 elements of a rotated head.
    Q4_1,
    /// 4 bits, with a scale per 32 elements of a rotated head.
    Q4_0,
}

impl CacheType {
    /// All types, in descending order of size.
    pub const ALL: [Self; 7] =
        [Self::F32, Self::F16, Self::Q8_0, Self::Q5_1, Self::Q5_0, Self::Q4_1, Self::Q4_0];

    /// Returns the default type: a cache of [`Precision::Exact`] does not round, one of [`Precision::Fast`] is small.
    pub fn for_precision(precision: Precision) -> Self {
        match precision {
            Precision::Exact => Self::F32,
            Precision::Fast => Self::F16,
        }
    }

    /// Returns the type of a name, such as `q8_0`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// Returns the name, such as `q8_0`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
            Self::Q5_1 => "q5_1",
            Self::Q5_0 => "q5_0",
            Self::Q4_1 => "q4_1",
            Self::Q4_0 => "q4_0",
        }
    }

    /// Returns the type of GGUF with the same layout.
    pub fn tensor_type(self) -> TensorType {
        match self {
            Self::F32 => TensorType::F32,
            Self::F16 => TensorType::F16,
            Self::Q8_0 => TensorType::Q8_0,
            Self::Q5_1 => TensorType::Q5_1,
            Self::Q5_0 => TensorType::Q5_0,
            Self::Q4_1 => TensorType::Q4_1,
            Self::Q4_0 => TensorType::Q4_0,
        }
    }

    /// Returns the type for keys that select rows: a few bits would select others. They are few.
    pub(crate) fn for_selection(self) -> Self {
        if self.has_blocks() { Self::F16 } else { self }
    }

    /// Returns the type for heads of a length: heads that are not divisible into blocks stay in half precision.
    pub(crate) fn for_heads(self, len: usize) -> Self {
        if self.has_blocks() && !len.is_multiple_of(32) { Self::F16 } else { self }
    }

    /// Returns the type for the output of an encoder, which every token reads whole: at least 16 bits.
    pub(crate) fn for_encoder(self) -> Self {
        if self.has_blocks() { Self::F16 } else { self }
    }

    /// Whether elements are stored in blocks of rotated heads ([`rotate`](crate::rotation::rotate)), so that single large
    /// elements do not determine the scale of their block.
    pub(crate) fn has_blocks(self) -> bool {
        !matches!(self, Self::F32 | Self::F16)
    }

    /// Returns the size in bytes of elements.
    pub(crate) fn byte_len(self, elements: u64) -> u64 {
        let (len, bytes) = self.tensor_type().block().unwrap_or((1, 4));
        elements.div_ceil(len).saturating_mul(bytes)
    }
}
