//! The codec of a type, and what it does to one row.

use gguf::TensorType;

use crate::blocks::CODECS;
use crate::codec::{BadBlock, Codec, CodecError};

/// The codec of a type; `None` if the type has none.
pub fn codec(ty: TensorType) -> Option<&'static Codec> {
    CODECS.iter().find(|codec| codec.tensor_type() == ty)
}

fn require(ty: TensorType) -> Result<&'static Codec, CodecError> {
    codec(ty).ok_or(CodecError::NoCodec(ty))
}

/// Decodes one row. See [`Codec::decode_row`].
///
/// ```
/// use gguf::TensorType;
/// let mut out = [0.0; 2];
/// gguf_quant::decode_row(TensorType::BF16, &[0x80, 0x3f, 0x00, 0xc0], &mut out)?;
/// assert_eq!(out, [1.0, -2.0]);
/// # Ok::<(), gguf_quant::CodecError>(())
/// ```
///
/// # Errors
/// As [`Codec::decode_row`], and if the type has no codec.
pub fn decode_row(ty: TensorType, bytes: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
    require(ty)?.decode_row(bytes, out)
}

/// Encodes one row. See [`Codec::encode_row`].
///
/// ```
/// use gguf::TensorType;
/// let row = [1.0; 32];
/// let mut block = [0; 34];
/// gguf_quant::encode_row(TensorType::Q8_0, &row, None, &mut block)?;
/// assert_eq!(block[2..], [127; 32]);
/// # Ok::<(), gguf_quant::CodecError>(())
/// ```
///
/// # Errors
/// As [`Codec::encode_row`], and if the type has no codec.
pub fn encode_row(
    ty: TensorType,
    row: &[f32],
    importance: Option<&[f32]>,
    out: &mut [u8],
) -> Result<(), CodecError> {
    require(ty)?.encode_row(row, importance, out)
}

/// Finds the first NaN or infinity in encoded data. See [`Codec::find_bad_block`].
///
/// # Errors
/// As [`Codec::find_bad_block`], and if the type has no codec.
pub fn find_bad_block(ty: TensorType, bytes: &[u8]) -> Result<Option<BadBlock>, CodecError> {
    require(ty)?.find_bad_block(bytes)
}
