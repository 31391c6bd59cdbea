//! A codec: rows of floats to bytes of one type, and back.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use gguf::TensorType;
use pulp::{Simd, WithSimd};

use crate::block::{Block, Row};
use crate::dispatch::InstructionSet;
use crate::finite::first_not_finite;
use crate::search;

/// The encoder, decoder and checker of one tensor type; from [`codec`](crate::codec).
pub struct Codec {
    ty: TensorType,
    requires_importance: bool,
    // All are called with lengths that fit each other and a whole number of blocks; `encode` after
    // `check`, and with importance if it is required.
    check: Check,
    decode: Decode,
    encode: Encode,
    find_bad: fn(&[u8]) -> Option<BadBlock>,
}

/// Says whether the type can hold these numbers.
pub(crate) type Check = fn(InstructionSet, &[f32]) -> Result<(), CodecError>;

/// Decodes whole blocks.
pub(crate) type Decode = fn(InstructionSet, &[u8], &mut [f32]);

/// Encodes rows of whole blocks; there is one importance for each element of a row.
pub(crate) type Encode = fn(InstructionSet, &[f32], Option<&[f32]>, &mut [u8]);

/// Why a row could not be encoded or decoded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CodecError {
    /// No codec for this type: it is unknown, removed, or not a type of weights.
    #[error("{0} cannot be encoded or decoded; convert the tensor to another type first")]
    NoCodec(TensorType),
    /// The row does not divide into blocks.
    #[error("a row of {elements} elements is not a whole number of {ty} blocks of {block_len}")]
    NotWholeBlocks {
        /// The type asked for.
        ty: TensorType,
        /// Elements of the row.
        elements: usize,
        /// Elements of one block.
        block_len: u64,
    },
    /// The bytes are not as many as the row's elements need.
    #[error("{elements} elements of {ty} are {expected} bytes, not {found}")]
    WrongByteLength {
        /// The type asked for.
        ty: TensorType,
        /// Elements of the row.
        elements: usize,
        /// Bytes they take.
        expected: u64,
        /// Bytes given.
        found: usize,
    },
    /// The bytes are not a whole number of blocks.
    #[error("{bytes} bytes are not a whole number of {ty} blocks of {block_bytes} bytes")]
    PartialBlock {
        /// The type asked for.
        ty: TensorType,
        /// Bytes given.
        bytes: usize,
        /// Bytes of one block.
        block_bytes: u64,
    },
    /// Not one importance weight per column.
    #[error("{found} importance weights for a row of {elements} elements")]
    WrongImportanceCount {
        /// Elements of the row.
        elements: usize,
        /// Importance weights given.
        found: usize,
    },
    /// A block type cannot store this value, and it would spoil its whole block.
    #[error("element {position} of the row is {value}, which no {ty} block can hold")]
    NotFinite {
        /// The type asked for.
        ty: TensorType,
        /// The first such element of the row.
        position: usize,
        /// NaN or an infinity.
        value: f32,
    },
    /// An integer type cannot store this value.
    #[error("element {position} of the row is {value}, which is no integer that {ty} can hold")]
    NotAnInteger {
        /// The type asked for.
        ty: TensorType,
        /// The first such element of the row.
        position: usize,
        /// A fraction, a number out of range, NaN or an infinity.
        value: f32,
    },
    /// The encoder of this type cannot do without importance weights.
    #[error(
        "encoding {0} needs importance weights; give it an importance matrix or choose another type"
    )]
    ImportanceRequired(TensorType),
    /// No block of the one type has the weights of every block of the other.
    #[error("{from} cannot become {to} without loss")]
    NotLossless {
        /// The type that there is.
        from: TensorType,
        /// The type asked for.
        to: TensorType,
    },
    /// An importance weight is NaN or infinite.
    #[error("the importance weight of column {position} is {value}")]
    ImportanceNotFinite {
        /// The first such column.
        position: usize,
        /// NaN or an infinity.
        value: f32,
    },
}

/// A NaN or an infinity in encoded data: a plain float, or a float that scales a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BadBlock {
    /// The first element that it spoils, counted from the start of the data.
    pub element: usize,
    /// How many elements it spoils: those of the block.
    pub len: usize,
    /// Which float of the block, by its name in llama.cpp (`d`, `dmin`, `m`, ...), or `value`.
    pub field: &'static str,
    /// What stands there: NaN or an infinity. F64 numbers beyond the range of f32 count as
    /// infinite.
    pub value: f32,
}

impl BadBlock {
    /// A bad value among plain numbers.
    pub(crate) fn value(element: usize, value: f32) -> Self {
        Self { element, len: 1, field: "value", value }
    }
}

impl fmt::Display for BadBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { element, len, field, value } = self;
        match len {
            1 => write!(f, "element {element} is {value}"),
            _ => write!(
                f,
                "{field} is {value} in the block of elements {element} to {}",
                element + len - 1
            ),
        }
    }
}

impl Codec {
    /// The type that this codec is for.
    pub fn tensor_type(&self) -> TensorType {
        self.ty
    }

    /// True if [`Codec::encode_row`] refuses a row without importance weights: the very small types,
    /// as `ggml_quantize_requires_imatrix` says.
    pub fn requires_importance(&self) -> bool {
        self.requires_importance
    }

    /// Decodes `bytes`, exactly `out.len()` elements, which may also be several rows.
    ///
    /// # Errors
    /// If the lengths do not fit each other or the block size.
    pub fn decode_row(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
        self.decode_row_with(InstructionSet::widest(), bytes, out)
    }

    /// [`Codec::decode_row`] by these instructions. The floats do not depend on them.
    ///
    /// # Errors
    /// As [`Codec::decode_row`].
    pub fn decode_row_with(
        &self,
        instructions: InstructionSet,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), CodecError> {
        self.check_lengths(out.len(), bytes.len())?;
        (self.decode)(instructions, bytes, out);
        Ok(())
    }

    /// Encodes one row into `out`, with the bytes that llama.cpp writes.
    ///
    /// `importance` has a number for each column (from an importance matrix): how much its errors
    /// count. Types whose encoder has no use for it ignore it, some
    /// [require](Self::requires_importance) it. With it some types also look at the mean square of the whole row, so then it must be a
    /// single row.
    ///
    /// Integer types take integers only, and F64 any float; llama.cpp does not encode to
    /// either. Q8_1 and Q8_K are made as llama.cpp's runtime makes them from activations.
    ///
    /// Finite input can still give an infinite scale, where half precision cannot hold it;
    /// [`Codec::find_bad_block`] finds that, as llama.cpp does after encoding.
    ///
    /// # Errors
    /// If the lengths do not fit each other or the block size, if an importance is not finite or
    /// is required and missing, or if the type cannot hold an element: a block type none that
    /// is not finite (plain floats keep NaN and infinities), an integer type only integers of its
    /// range.
    pub fn encode_row(
        &self,
        row: &[f32],
        importance: Option<&[f32]>,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        self.encode_row_with(InstructionSet::widest(), row, importance, out)
    }

    /// Encodes rows of equal length, one after the other, all with the same `importance` of their
    /// columns: several rows together fill vectors that one row may not.
    ///
    /// # Errors
    /// As [`Codec::encode_row`], and if `rows` is not a whole number of rows.
    pub fn encode_rows(
        &self,
        rows: &[f32],
        importance: Option<&[f32]>,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        self.encode_rows_with(InstructionSet::widest(), rows, importance, out)
    }

    /// [`Codec::encode_row`] by these instructions. The bytes do not depend on them.
    ///
    /// # Errors
    /// As [`Codec::encode_row`].
    pub fn encode_row_with(
        &self,
        instructions: InstructionSet,
        row: &[f32],
        importance: Option<&[f32]>,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        match importance {
            Some(importance) if importance.len() != row.len() => {
                self.check_lengths(row.len(), out.len())?;
                let (elements, found) = (row.len(), importance.len());
                Err(CodecError::WrongImportanceCount { elements, found })
            }
            _ => self.encode_rows_with(instructions, row, importance, out),
        }
    }

    /// [`Codec::encode_rows`] by these instructions. The bytes do not depend on them.
    ///
    /// # Errors
    /// As [`Codec::encode_rows`].
    pub fn encode_rows_with(
        &self,
        instructions: InstructionSet,
        rows: &[f32],
        importance: Option<&[f32]>,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        self.check_lengths(rows.len(), out.len())?;
        (self.check)(instructions, rows)?;
        if importance.is_none() && self.requires_importance {
            return Err(CodecError::ImportanceRequired(self.ty));
        }
        if let Some(importance) = importance {
            if !rows.len().is_multiple_of(importance.len()) {
                let (elements, found) = (rows.len(), importance.len());
                return Err(CodecError::WrongImportanceCount { elements, found });
            }
            let row_bytes = self.ty.byte_len(&[importance.len() as u64]).unwrap_or(0);
            self.check_lengths(importance.len(), row_bytes as usize)?;
            if let Some((position, value)) = first_not_finite(instructions, importance) {
                return Err(CodecError::ImportanceNotFinite { position, value });
            }
        }
        (self.encode)(instructions, rows, importance, out);
        Ok(())
    }

    /// Finds the first NaN or infinity in encoded data (any whole number of blocks): the floats
    /// themselves, or the scales of the blocks. It sees what `ggml_validate_row_data` sees, and the
    /// scales of NVFP4 that the standard calls NaN.
    ///
    /// # Errors
    /// If `bytes` is not a whole number of blocks.
    pub fn find_bad_block(&self, bytes: &[u8]) -> Result<Option<BadBlock>, CodecError> {
        let ty = self.ty;
        let (_, block_bytes) = ty.block().ok_or(CodecError::NoCodec(ty))?;
        if !(bytes.len() as u64).is_multiple_of(block_bytes) {
            return Err(CodecError::PartialBlock { ty, bytes: bytes.len(), block_bytes });
        }
        Ok((self.find_bad)(bytes))
    }

    fn check_lengths(&self, elements: usize, found: usize) -> Result<(), CodecError> {
        let ty = self.ty;
        let Some(expected) = ty.byte_len(&[elements as u64]) else {
            let block_len = ty.block().map_or(0, |(len, _)| len);
            return Err(CodecError::NotWholeBlocks { ty, elements, block_len });
        };
        if found as u64 != expected {
            return Err(CodecError::WrongByteLength { ty, elements, expected, found });
        }
        Ok(())
    }

    /// The codec of a type of plain floats, from functions over whole rows.
    pub(crate) const fn plain(
        ty: TensorType,
        decode: Decode,
        encode: Encode,
        find_bad: fn(&[u8]) -> Option<BadBlock>,
    ) -> Self {
        Self { ty, requires_importance: false, check: |_, _| Ok(()), decode, encode, find_bad }
    }

    /// The codec of a type of integers, from functions over whole rows; `check` says what rows it
    /// can hold.
    pub(crate) const fn integers(
        ty: TensorType,
        check: Check,
        decode: Decode,
        encode: Encode,
    ) -> Self {
        Self { ty, requires_importance: false, check, decode, encode, find_bad: |_| None }
    }

    /// The codec of a block type.
    pub(crate) const fn blocks<B: Block<LEN, BYTES>, const LEN: usize, const BYTES: usize>() -> Self
    {
        const {
            let (len, bytes) = B::TYPE.block().expect("a type with a codec has a block size");
            assert!(len == LEN as u64 && bytes == BYTES as u64);
        }
        Self {
            ty: B::TYPE,
            requires_importance: B::REQUIRES_IMPORTANCE,
            check: check_finite::<B, LEN, BYTES>,
            decode: decode_blocks::<B, LEN, BYTES>,
            encode: encode_blocks::<B, LEN, BYTES>,
            find_bad: find_bad_scale::<B, LEN, BYTES>,
        }
    }
}

fn check_finite<B: Block<LEN, BYTES>, const LEN: usize, const BYTES: usize>(
    instructions: InstructionSet,
    row: &[f32],
) -> Result<(), CodecError> {
    match first_not_finite(instructions, row) {
        Some((position, value)) => Err(CodecError::NotFinite { ty: B::TYPE, position, value }),
        None => Ok(()),
    }
}

fn decode_blocks<B: Block<LEN, BYTES>, const LEN: usize, const BYTES: usize>(
    instructions: InstructionSet,
    bytes: &[u8],
    out: &mut [f32],
) {
    let (blocks, out) = (bytes.as_chunks().0, out.as_chunks_mut().0);
    instructions.run(DecodeRow::<B, LEN, BYTES> { blocks, out, block: PhantomData });
}

/// [`Block::decode_row`] for any instruction set.
struct DecodeRow<'a, B, const LEN: usize, const BYTES: usize> {
    blocks: &'a [[u8; BYTES]],
    out: &'a mut [[f32; LEN]],
    block: PhantomData<B>,
}

impl<B: Block<LEN, BYTES>, const LEN: usize, const BYTES: usize> WithSimd
    for DecodeRow<'_, B, LEN, BYTES>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        B::decode_row(simd, self.blocks, self.out);
    }
}

fn encode_blocks<B: Block<LEN, BYTES>, const LEN: usize, const BYTES: usize>(
    instructions: InstructionSet,
    rows: &[f32],
    importance: Option<&[f32]>,
    out: &mut [u8],
) {
    let out = out.as_chunks_mut().0;
    let Some(importance) = importance.filter(|importance| !importance.is_empty()) else {
        let row = Row { x: rows.as_chunks().0, columns: None, mean_squares: &[] };
        return encode_at_once::<B, LEN, BYTES>(instructions, row, out);
    };
    let row_blocks = importance.len() / LEN;
    let mean_squares: Vec<f32> = match B::USES_ROW_MEAN_SQUARE {
        true => {
            let of_rows = mean_squares(instructions, rows, importance.len());
            of_rows.into_iter().flat_map(|mean| std::iter::repeat_n(mean, row_blocks)).collect()
        }
        false => Vec::new(),
    };
    let rows = rows.as_chunks().0;
    let at_once = row_blocks * AT_ONCE.div_ceil(importance.len());
    let repeated = match at_once.min(rows.len()) / row_blocks {
        1 => Cow::Borrowed(importance),
        times => Cow::Owned(importance.repeat(times)),
    };
    for (i, (x, out)) in rows.chunks(at_once).zip(out.chunks_mut(at_once)).enumerate() {
        let columns = Some(&repeated.as_chunks().0[..x.len()]);
        let mean_squares = mean_squares.get(i * at_once..).unwrap_or_default();
        let row = Row { x, columns, mean_squares };
        encode_at_once::<B, LEN, BYTES>(instructions, row, out);
    }
}

/// [`Block::encode_row`] by these instructions. Each place that ran it would compile the scalar
/// encoder once more, so there is one, and it is never inlined.
#[inline(never)]
fn encode_at_once<B: Block<LEN, BYTES>, const LEN: usize, const BYTES: usize>(
    instructions: InstructionSet,
    row: Row<LEN>,
    out: &mut [[u8; BYTES]],
) {
    instructions.run(EncodeRow::<B, LEN, BYTES> { row, out, block: PhantomData });
}

/// [`search::mean_squares`] by these instructions.
fn mean_squares(instructions: InstructionSet, rows: &[f32], row_len: usize) -> Vec<f32> {
    instructions.run(MeanSquares { rows, row_len })
}

/// Elements to encode at once, if that is several rows: many times what vectors hold, so that there
/// is little left over, and little enough to repeat the importance of the columns as often.
const AT_ONCE: usize = 16 * 1024;

/// [`search::mean_squares`] for any instruction set.
struct MeanSquares<'a> {
    rows: &'a [f32],
    row_len: usize,
}

impl WithSimd for MeanSquares<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        search::mean_squares(simd, self.rows, self.row_len)
    }
}

/// [`Block::encode_row`] for any instruction set.
struct EncodeRow<'a, B, const LEN: usize, const BYTES: usize> {
    row: Row<'a, LEN>,
    out: &'a mut [[u8; BYTES]],
    block: PhantomData<B>,
}

impl<B: Block<LEN, BYTES>, const LEN: usize, const BYTES: usize> WithSimd
    for EncodeRow<'_, B, LEN, BYTES>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        B::encode_row(simd, self.row, self.out);
    }
}

fn find_bad_scale<B: Block<LEN, BYTES>, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
) -> Option<BadBlock> {
    bytes.as_chunks().0.iter().enumerate().find_map(|(i, block)| {
        B::bad_scale(block).map(|(field, value)| BadBlock {
            element: i * LEN,
            len: LEN,
            field,
            value,
        })
    })
}
