//! The codec of one tensor type: encodes rows of floats to bytes and decodes them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use gguf::TensorType;
use pulp::{Simd, WithSimd};

use crate::block::{Block, Row};
use crate::dispatch::InstructionSet;
use crate::finite::first_not_finite;
use crate::search;

/// Encoder, decoder and validator of one tensor type; [`codec`](crate::codec) returns it.
pub struct Codec {
    ty: TensorType,
    requires_importance: bool,
    // Callers pass lengths that match and a whole number of blocks. `check` runs before `encode`,
    // which gets importance weights if they are required.
    check: Check,
    decode: Decode,
    encode: Encode,
    find_bad: fn(&[u8]) -> Option<BadBlock>,
}

/// Checks whether the type can represent the numbers.
pub(crate) type Check = fn(InstructionSet, &[f32]) -> Result<(), CodecError>;

/// Decodes a whole number of blocks.
pub(crate) type Decode = fn(InstructionSet, &[u8], &mut [f32]);

/// Encodes rows of whole blocks, with one importance weight per column.
pub(crate) type Encode = fn(InstructionSet, &[f32], Option<&[f32]>, &mut [u8]);

/// Errors of encoding and decoding rows.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CodecError {
    /// The type has no codec: it is unknown, removed, or does not hold weights.
    #[error("{0} cannot be encoded or decoded; convert the tensor to another type first")]
    NoCodec(TensorType),
    /// The row length is not a multiple of the block length.
    #[error(
        "a row of {elements} elements is not a multiple of {block_len}, the block size of {ty}"
    )]
    NotWholeBlocks {
        /// Tensor type.
        ty: TensorType,
        /// Number of elements in the row.
        elements: usize,
        /// Number of elements in a block.
        block_len: u64,
    },
    /// The number of bytes does not match the number of elements.
    #[error("{elements} elements of {ty} take {expected} bytes; found {found}")]
    WrongByteLength {
        /// Tensor type.
        ty: TensorType,
        /// Number of elements in the row.
        elements: usize,
        /// Number of bytes that these elements take.
        expected: u64,
        /// Number of bytes in the buffer.
        found: usize,
    },
    /// The bytes are not a whole number of blocks.
    #[error("{bytes} bytes are not a multiple of {block_bytes}, the bytes of a {ty} block")]
    PartialBlock {
        /// Tensor type.
        ty: TensorType,
        /// Number of bytes in the buffer.
        bytes: usize,
        /// Number of bytes in a block.
        block_bytes: u64,
    },
    /// The number of importance weights differs from the number of columns.
    #[error(
        "{found} importance weights for a row of {elements} elements; expected one per element"
    )]
    WrongImportanceCount {
        /// Number of elements in the row.
        elements: usize,
        /// Number of importance weights.
        found: usize,
    },
    /// The row contains NaN or infinity, which would spoil a whole block.
    #[error("element {position} of the row is {value}; {ty} can represent only finite numbers")]
    NotFinite {
        /// Tensor type.
        ty: TensorType,
        /// Index of the first such element in the row.
        position: usize,
        /// NaN or infinity.
        value: f32,
    },
    /// The row contains a value that the integer type cannot represent.
    #[error(
        "element {position} of the row is {value}; {ty} can represent only integers in its range"
    )]
    NotAnInteger {
        /// Tensor type.
        ty: TensorType,
        /// Index of the first such element in the row.
        position: usize,
        /// A fraction, an out-of-range number, NaN or infinity.
        value: f32,
    },
    /// The encoder of this type requires importance weights.
    #[error(
        "encoding {0} requires importance weights; pass an importance matrix or choose another type"
    )]
    ImportanceRequired(TensorType),
    /// The target type cannot represent every block of the source type.
    #[error("{from} cannot be converted to {to} without loss")]
    NotLossless {
        /// Source type.
        from: TensorType,
        /// Target type.
        to: TensorType,
    },
    /// An importance weight is NaN or infinite.
    #[error("the importance weight of column {position} is {value}")]
    ImportanceNotFinite {
        /// Index of the first such column.
        position: usize,
        /// NaN or infinity.
        value: f32,
    },
}

/// NaN or infinity in encoded data: a float element, or a scale of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BadBlock {
    /// Index of the first affected element, from the start of the data.
    pub element: usize,
    /// Number of affected elements: the length of the block.
    pub len: usize,
    /// Name of the float within the block as in llama.cpp (`d`, `dmin`, `m`, ...), or `value`.
    pub field: &'static str,
    /// NaN or infinity. F64 numbers outside the range of f32 count as infinite.
    pub value: f32,
}

impl BadBlock {
    /// A non-finite value in a type of plain floats.
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
    /// Returns the tensor type of the codec.
    pub fn tensor_type(&self) -> TensorType {
        self.ty
    }

    /// Whether [`Codec::encode_row`] requires importance weights, as
    /// `ggml_quantize_requires_imatrix` reports for the smallest types.
    pub fn requires_importance(&self) -> bool {
        self.requires_importance
    }

    /// Decodes `bytes` into exactly `out.len()` elements, which may span several rows.
    ///
    /// # Errors
    /// Returns an error if the lengths do not match each other or the block size.
    pub fn decode_row(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
        self.decode_row_with(InstructionSet::widest(), bytes, out)
    }

    /// Decodes like [`Codec::decode_row`] with a given instruction set, which does not affect the
    /// result.
    ///
    /// # Errors
    /// See [`Codec::decode_row`].
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

    /// Encodes one row into `out`. The bytes are identical to llama.cpp's.
    ///
    /// `importance` holds one weight per column, from an importance matrix: the weight of that
    /// column's squared error. Types whose encoder does not use it ignore it; some
    /// [require](Self::requires_importance) it. With importance weights some encoders also use the
    /// mean square of the whole row, so `row` must then be a single row.
    ///
    /// Integer types accept only integers and F64 accepts any float; llama.cpp encodes neither.
    /// Q8_1 and Q8_K are encoded as llama.cpp's runtime quantizes activations.
    ///
    /// Finite input can still produce an infinite scale if FP16 overflows;
    /// [`Codec::find_bad_block`] detects that, as llama.cpp does after encoding.
    ///
    /// # Errors
    /// Returns an error if the lengths do not match each other or the block size, if an importance
    /// weight is not finite or is required but missing, or if the type cannot represent an element:
    /// block types reject NaN and infinity (plain floats keep them), integer types reject anything
    /// but integers of their range.
    pub fn encode_row(
        &self,
        row: &[f32],
        importance: Option<&[f32]>,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        self.encode_row_with(InstructionSet::widest(), row, importance, out)
    }

    /// Encodes consecutive rows of equal length that share the `importance` of their columns.
    /// Several rows together fill vectors that one row may not fill.
    ///
    /// # Errors
    /// See [`Codec::encode_row`]. Also returns an error if `rows` is not a whole number of rows.
    pub fn encode_rows(
        &self,
        rows: &[f32],
        importance: Option<&[f32]>,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        self.encode_rows_with(InstructionSet::widest(), rows, importance, out)
    }

    /// Encodes like [`Codec::encode_row`] with a given instruction set, which does not affect the
    /// bytes.
    ///
    /// # Errors
    /// See [`Codec::encode_row`].
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

    /// Encodes like [`Codec::encode_rows`] with a given instruction set, which does not affect the
    /// bytes.
    ///
    /// # Errors
    /// See [`Codec::encode_rows`].
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

    /// Finds the first NaN or infinity in a whole number of encoded blocks: a float element, or a
    /// scale of a block. Detects what `ggml_validate_row_data` detects, and the NVFP4 scales that
    /// the standard defines as NaN.
    ///
    /// # Errors
    /// Returns an error if `bytes` is not a whole number of blocks.
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

    /// Builds the codec of a float type from functions over whole rows.
    pub(crate) const fn plain(
        ty: TensorType,
        decode: Decode,
        encode: Encode,
        find_bad: fn(&[u8]) -> Option<BadBlock>,
    ) -> Self {
        Self { ty, requires_importance: false, check: |_, _| Ok(()), decode, encode, find_bad }
    }

    /// Builds the codec of an integer type from functions over whole rows; `check` rejects rows
    /// that the type cannot represent.
    pub(crate) const fn integers(
        ty: TensorType,
        check: Check,
        decode: Decode,
        encode: Encode,
    ) -> Self {
        Self { ty, requires_importance: false, check, decode, encode, find_bad: |_| None }
    }

    /// Builds the codec of a block type.
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

/// Runs [`Block::decode_row`] under any instruction set.
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
        return encode_batch::<B, LEN, BYTES>(instructions, row, out);
    };
    let row_blocks = importance.len() / LEN;
    let mean_squares: Vec<f32> = match B::USES_ROW_MEAN_SQUARE {
        true => {
            let means = mean_squares(instructions, rows, importance.len());
            means.into_iter().flat_map(|mean| std::iter::repeat_n(mean, row_blocks)).collect()
        }
        false => Vec::new(),
    };
    let rows = rows.as_chunks().0;
    let batch = row_blocks * BATCH_ELEMENTS.div_ceil(importance.len());
    let repeated = match batch.min(rows.len()) / row_blocks {
        1 => Cow::Borrowed(importance),
        times => Cow::Owned(importance.repeat(times)),
    };
    for (i, (x, out)) in rows.chunks(batch).zip(out.chunks_mut(batch)).enumerate() {
        let columns = Some(&repeated.as_chunks().0[..x.len()]);
        let mean_squares = mean_squares.get(i * batch..).unwrap_or_default();
        let row = Row { x, columns, mean_squares };
        encode_batch::<B, LEN, BYTES>(instructions, row, out);
    }
}

/// Runs [`Block::encode_row`] with a given instruction set. Never inlined: each call site would
/// compile the scalar encoder again.
#[inline(never)]
fn encode_batch<B: Block<LEN, BYTES>, const LEN: usize, const BYTES: usize>(
    instructions: InstructionSet,
    row: Row<LEN>,
    out: &mut [[u8; BYTES]],
) {
    instructions.run(EncodeRow::<B, LEN, BYTES> { row, out, block: PhantomData });
}

/// Runs [`search::mean_squares`] with a given instruction set.
fn mean_squares(instructions: InstructionSet, rows: &[f32], row_len: usize) -> Vec<f32> {
    instructions.run(MeanSquares { rows, row_len })
}

/// Number of elements to encode per batch of rows: many times the vector width, so that few lanes
/// stay idle, but small enough to repeat the importance weights for each row.
const BATCH_ELEMENTS: usize = 16 * 1024;

/// Runs [`search::mean_squares`] under any instruction set.
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

/// Runs [`Block::encode_row`] under any instruction set.
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
