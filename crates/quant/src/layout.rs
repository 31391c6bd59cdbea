//! What the bits of a block mean, as data: for those who show blocks.
//!
//! The layout of a type stands beside its codec, below the drawing that says the same to people. Tests decode blocks
//! by it and hold the weights against those of the decoder.

use gguf::TensorType;

use crate::blocks::LAYOUTS;
use crate::halves;

/// What the bits of a block mean.
pub struct Layout {
    /// A weight, in terms of the fields.
    pub formula: &'static str,
    /// What is stored, each for the whole block, for groups of its weights, or for each of them.
    pub fields: &'static [Field],
    pub(crate) weight: fn(Parts) -> f32,
}

/// Numbers of a block that mean the same.
pub struct Field {
    /// Its name in the drawing and in the formula.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// How its bits are a number.
    pub kind: Kind,
    /// How many of them a block has.
    pub count: usize,
    /// Where their bits are, the lowest first.
    pub(crate) bits: &'static [Place],
    /// Which of them a weight is made of; `None` if weights are made without.
    pub(crate) of: Option<fn(usize) -> usize>,
}

/// How bits are a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// IEEE 754, half precision.
    F16,
    /// The upper half of a single.
    BF16,
    /// IEEE 754, single precision.
    F32,
    /// IEEE 754, double precision.
    F64,
    /// 0 and more.
    Unsigned,
    /// Two's complement.
    Signed,
    /// An exponent of two, less 127.
    E8M0,
    /// 4 bits of exponent and 3 of mantissa, without a sign.
    E4M3,
    /// A float of 4 bits.
    E2M1,
    /// The number of an entry in the table of IQ4.
    Iq4,
    /// The number of a point in a codebook.
    Point,
    /// A sign for each weight of an octet, the first lowest.
    Signs,
    /// Digits to base 3.
    Digits,
}

/// Where the bits of an item are.
pub(crate) enum Place {
    /// Item `i` has `len` bits from bit `first + i * step` on.
    Every { first: usize, len: usize, step: usize },
    /// As `bits.rs` packs them, from byte `at` on.
    Packed { at: usize, len: usize, stride: usize },
    /// Runs of bits of an item: first bit, how many.
    Of(fn(usize) -> &'static [(usize, usize)]),
    /// A run of bits of an item.
    Run(fn(usize) -> (usize, usize)),
}

/// An item of a field, in a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Runs of bits, first bit and how many, the lowest first. Bit `b` is bit `b % 8` of byte `b / 8`.
    pub bits: Vec<(usize, usize)>,
    /// The number that these bits are.
    pub raw: u64,
    /// What it means; `None` if it is no number.
    pub value: Option<f64>,
}

/// What the bits of blocks of a type mean; `None` for types without a codec.
///
/// ```
/// use gguf::TensorType;
/// let layout = gguf_quant::layout(TensorType::Q4_0).unwrap();
/// let mut block = [0; 18];
/// block[..3].copy_from_slice(&[0x00, 0x3c, 0xa5]);
/// let items = layout.items(&block);
/// assert_eq!((layout.fields[0].name, items[0][0].value), ("d", Some(1.0)));
/// assert_eq!((layout.fields[1].name, items[1][16].raw), ("q", 0xa));
/// // d * (q - 8)
/// assert_eq!((layout.weight(&block, 0), layout.weight(&block, 16)), (-3.0, 2.0));
/// assert_eq!(layout.of_weight(16), [(0, 0), (1, 16)]);
/// ```
pub fn layout(ty: TensorType) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|(other, _)| *other == ty).map(|(_, layout)| *layout)
}

impl Layout {
    /// The items of each field of a block. Bytes that are missing count as 0.
    pub fn items(&self, block: &[u8]) -> Vec<Vec<Item>> {
        let items = |field: &Field| (0..field.count).map(|i| field.item(block, i)).collect();
        self.fields.iter().map(items).collect()
    }

    /// What the items of one field mean; `None` for those that are no numbers.
    pub fn numbers(&self, block: &[u8], field: usize) -> impl Iterator<Item = Option<f64>> {
        let field = self.fields.get(field);
        field
            .into_iter()
            .flat_map(move |field| (0..field.count).map(move |i| field.item(block, i).value))
    }

    /// Weight `w` of a block, by its fields.
    pub fn weight(&self, block: &[u8], w: usize) -> f32 {
        (self.weight)(Parts { fields: self.fields, block, w })
    }

    /// The items that weight `w` is made of: number of the field, number of the item.
    pub fn of_weight(&self, w: usize) -> Vec<(usize, usize)> {
        let fields = self.fields.iter().enumerate();
        fields.filter_map(|(n, field)| Some((n, field.of?(w)))).collect()
    }
}

impl Field {
    /// One number for the whole block.
    pub(crate) const fn one(
        name: &'static str,
        about: &'static str,
        kind: Kind,
        bits: &'static [Place],
    ) -> Self {
        Self { name, about, kind, count: 1, bits, of: Some(|_| 0) }
    }

    /// The scale of a block, in half precision.
    pub(crate) const fn scale(bits: &'static [Place]) -> Self {
        Self::one("d", "scale of the block", Kind::F16, bits)
    }

    /// The level of each of `count` weights.
    pub(crate) const fn levels(count: usize, bits: &'static [Place]) -> Self {
        let (name, about, kind) = ("q", "level of a weight", Kind::Unsigned);
        Self { name, about, kind, count, bits, of: Some(|w| w) }
    }

    /// Runs of bits of item `i`.
    pub(crate) fn runs(&self, i: usize) -> Vec<(usize, usize)> {
        self.bits.iter().flat_map(|place| place.runs(i)).collect()
    }

    /// What field item `i` is made of.
    fn item(&self, block: &[u8], i: usize) -> Item {
        let bits = self.runs(i);
        let raw = number(block, &bits);
        let len = bits.iter().map(|(_, len)| len).sum();
        Item { value: self.kind.value(raw, len), bits, raw }
    }
}

/// The number that runs of bits are.
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

impl Kind {
    /// Its name.
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

    /// Whether it is a float that weights are scaled by or made of.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64 | Self::E8M0 | Self::E4M3)
    }

    /// What a number of `len` bits means; `None` if it is no number.
    fn value(self, raw: u64, len: usize) -> Option<f64> {
        let code = usize::try_from(raw & 15).unwrap_or(0);
        Some(match self {
            Self::F16 => halves::to_f32(raw as u16).into(),
            Self::BF16 => f32::from_bits((raw as u32) << 16).into(),
            Self::F32 => f32::from_bits(raw as u32).into(),
            Self::F64 => f64::from_bits(raw),
            Self::Unsigned => raw as f64,
            Self::Signed => signed(raw, len) as f64,
            Self::E8M0 => 2.0 * f64::from(crate::blocks::tables::mxfp4_half_scale(raw as u8)),
            Self::E4M3 => 2.0 * f64::from(crate::blocks::tables::nvfp4_half_scale(raw as u8)),
            Self::E2M1 => f64::from(crate::blocks::tables::E2M1_DOUBLED[code]) / 2.0,
            Self::Iq4 => crate::blocks::tables::IQ4[code].into(),
            Self::Point | Self::Signs | Self::Digits => return None,
        })
    }
}

fn signed(raw: u64, len: usize) -> i64 {
    let unused = 64 - len.clamp(1, 64);
    (raw << unused) as i64 >> unused
}

/// The items that a weight is made of.
pub(crate) struct Parts<'b> {
    fields: &'static [Field],
    block: &'b [u8],
    /// The number of the weight.
    pub w: usize,
}

impl Parts<'_> {
    fn item(&self, field: usize) -> Item {
        let field = &self.fields[field];
        field.item(self.block, field.of.map_or(0, |of| of(self.w)))
    }

    /// The number of a field that the weight is made of.
    pub fn raw(&self, field: usize) -> usize {
        self.item(field).raw as usize
    }

    /// What it means, 0 if it is no number.
    pub fn value(&self, field: usize) -> f32 {
        self.item(field).value.unwrap_or(0.0) as f32
    }
}
