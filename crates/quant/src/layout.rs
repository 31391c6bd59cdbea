//! Bit layouts of blocks as data, for tools that display blocks.
//!
//! Each layout is defined in the file of its codec, next to the drawing of the same bits. Tests
//! decode blocks by their layout and compare the weights with the decoder.

use crate::fp16;

/// Bit layout of a block.
pub struct BlockLayout {
    /// Formula of a weight in terms of the fields.
    pub formula: &'static str,
    /// Fields of the block: per block, per group, or per weight.
    pub fields: &'static [Field],
    pub(crate) weight: fn(WeightFields) -> f32,
}

/// A field: numbers of a block with the same meaning.
pub struct Field {
    /// Name in the drawing and in the formula.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Encoding of the numbers.
    pub kind: FieldKind,
    /// Number of items per block.
    pub count: usize,
    /// Bit positions, lowest first.
    pub(crate) bits: &'static [Place],
    /// Maps a weight to its item; `None` if weights do not depend on the field.
    pub(crate) of: Option<fn(usize) -> usize>,
}

/// Encoding of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// IEEE 754 half precision.
    F16,
    /// Upper half of an IEEE 754 single.
    BF16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// Unsigned integer.
    Unsigned,
    /// Signed integer in two's complement.
    Signed,
    /// Power of two with 8 exponent bits and bias 127.
    E8M0,
    /// 4 exponent bits and 3 mantissa bits, unsigned.
    E4M3,
    /// 4-bit float with 2 exponent bits and 1 mantissa bit.
    E2M1,
    /// Index into the value table of IQ4.
    Iq4,
    /// Index of a codebook entry.
    Point,
    /// Sign bits of an octet of weights, the first lowest.
    Signs,
    /// Packed ternary digits.
    Digits,
}

/// Bit positions of the items of a field.
pub(crate) enum Place {
    /// Item `i` has `len` bits starting at bit `first + i * step`.
    Every { first: usize, len: usize, step: usize },
    /// Packed as in `bits.rs`, starting at byte `at`.
    Packed { at: usize, len: usize, stride: usize },
    /// Several bit runs per item: first bit and length.
    Of(fn(usize) -> &'static [(usize, usize)]),
    /// One bit run per item: first bit and length.
    Run(fn(usize) -> (usize, usize)),
}

/// One item of a field in a block.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldItem {
    /// Bit runs (first bit and length), lowest first. Bit `b` is bit `b % 8` of byte `b / 8`.
    pub bits: Vec<(usize, usize)>,
    /// The bits as an unsigned integer.
    pub raw: u64,
    /// Decoded value; `None` if the bits do not encode a number.
    pub value: Option<f64>,
}

impl BlockLayout {
    /// Returns the items of each field of a block. Missing bytes count as 0.
    pub fn items(&self, block: &[u8]) -> Vec<Vec<FieldItem>> {
        let items = |field: &Field| (0..field.count).map(|i| field.item(block, i)).collect();
        self.fields.iter().map(items).collect()
    }

    /// Returns the decoded values of one field; `None` for items that are not numbers.
    pub fn numbers(&self, block: &[u8], field: usize) -> impl Iterator<Item = Option<f64>> {
        let field = self.fields.get(field);
        field
            .into_iter()
            .flat_map(move |field| (0..field.count).map(move |i| field.item(block, i).value))
    }

    /// Computes weight `w` of a block from its fields.
    pub fn weight(&self, block: &[u8], w: usize) -> f32 {
        (self.weight)(WeightFields { fields: self.fields, block, w })
    }

    /// Returns the items that weight `w` depends on, as (field index, item index).
    pub fn items_of_weight(&self, w: usize) -> Vec<(usize, usize)> {
        let fields = self.fields.iter().enumerate();
        fields.filter_map(|(n, field)| Some((n, field.of?(w)))).collect()
    }
}

impl Field {
    /// A field with one number per block.
    pub(crate) const fn one(
        name: &'static str,
        about: &'static str,
        kind: FieldKind,
        bits: &'static [Place],
    ) -> Self {
        Self { name, about, kind, count: 1, bits, of: Some(|_| 0) }
    }

    /// The FP16 scale of a block.
    pub(crate) const fn scale(bits: &'static [Place]) -> Self {
        Self::one("d", "scale of the block", FieldKind::F16, bits)
    }

    /// The levels of `count` weights.
    pub(crate) const fn levels(count: usize, bits: &'static [Place]) -> Self {
        let (name, about, kind) = ("q", "quantized value of a weight", FieldKind::Unsigned);
        Self { name, about, kind, count, bits, of: Some(|w| w) }
    }

    /// Returns the bit runs of item `i`.
    pub(crate) fn runs(&self, i: usize) -> Vec<(usize, usize)> {
        self.bits.iter().flat_map(|place| place.runs(i)).collect()
    }

    /// Decodes item `i` of a block.
    fn item(&self, block: &[u8], i: usize) -> FieldItem {
        let bits = self.runs(i);
        let raw = number(block, &bits);
        let len = bits.iter().map(|(_, len)| len).sum();
        FieldItem { value: self.kind.value(raw, len), bits, raw }
    }
}

/// Assembles the bits of the runs into a number.
fn number(block: &[u8], runs: &[(usize, usize)]) -> u64 {
    let bits = runs.iter().flat_map(|(first, len)| *first..first + len);
    let bit = |bit: usize| block.get(bit / 8).map_or(0, |byte| byte >> (bit % 8) & 1);
    bits.take(64).enumerate().fold(0, |sum, (i, at)| sum | u64::from(bit(at)) << i)
}

impl Place {
    fn runs(&self, i: usize) -> Vec<(usize, usize)> {
        match *self {
            Self::Every { first, len, step } => vec![(first + i * step, len)],
            Self::Packed { at, len, stride } => {
                let group = stride * (8 / len);
                let byte = at + i / group * stride + i % stride;
                vec![(8 * byte + i % group / stride * len, len)]
            }
            Self::Of(runs) => runs(i).to_vec(),
            Self::Run(run) => vec![run(i)],
        }
    }
}

impl FieldKind {
    /// Returns the name of the encoding.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Unsigned => "unsigned",
            Self::Signed => "signed",
            Self::E8M0 => "e8m0",
            Self::E4M3 => "e4m3",
            Self::E2M1 => "e2m1",
            Self::Iq4 => "iq4",
            Self::Point => "point",
            Self::Signs => "signs",
            Self::Digits => "digits",
        }
    }

    /// Whether the encoding is a float that is a weight or a scale.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64 | Self::E8M0 | Self::E4M3)
    }

    /// Decodes a number of `len` bits; `None` if the bits do not encode a number.
    fn value(self, raw: u64, len: usize) -> Option<f64> {
        let code = usize::try_from(raw & 15).unwrap_or(0);
        Some(match self {
            Self::F16 => fp16::to_f32(raw as u16).into(),
            Self::BF16 => f32::from_bits((raw as u32) << 16).into(),
            Self::F32 => f32::from_bits(raw as u32).into(),
            Self::F64 => f64::from_bits(raw),
            Self::Unsigned => raw as f64,
            Self::Signed => signed(raw, len) as f64,
            Self::E8M0 => 2.0 * f64::from(crate::value_tables::e8m0_half(raw as u8)),
            Self::E4M3 => 2.0 * f64::from(crate::value_tables::ue4m3_half(raw as u8)),
            Self::E2M1 => f64::from(crate::value_tables::E2M1_DOUBLED[code]) / 2.0,
            Self::Iq4 => crate::value_tables::IQ4[code].into(),
            Self::Point | Self::Signs | Self::Digits => return None,
        })
    }
}

fn signed(raw: u64, len: usize) -> i64 {
    let unused = 64 - len.clamp(1, 64);
    (raw << unused) as i64 >> unused
}

/// The fields of one weight of a block.
pub(crate) struct WeightFields<'b> {
    fields: &'static [Field],
    block: &'b [u8],
    /// Index of the weight.
    pub w: usize,
}

impl WeightFields<'_> {
    fn item(&self, field: usize) -> FieldItem {
        let field = &self.fields[field];
        field.item(self.block, field.of.map_or(0, |of| of(self.w)))
    }

    /// Returns the raw bits of the field's item for this weight.
    pub fn raw(&self, field: usize) -> usize {
        self.item(field).raw as usize
    }

    /// Returns the decoded value of the field's item for this weight; 0 if it is not a number.
    pub fn value(&self, field: usize) -> f32 {
        self.item(field).value.unwrap_or(0.0) as f32
    }
}
