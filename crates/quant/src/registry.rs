//! Functions that look up the codec of a tensor type and apply it to one row.

use gguf::TensorType;

use crate::blocks::{CODECS, LAYOUTS};
use crate::codec::{BadBlock, Codec, CodecError};
use crate::layout::BlockLayout;

/// Returns the codec of a type; `None` if the type has none.
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

/// Returns the bit layout of a type; `None` for types without a codec.
///
/// ```
/// use gguf::TensorType;
/// let layout = gguf_quant::block_layout(TensorType::Q4_0).unwrap();
/// let mut block = [0; 18];
/// block[..3].copy_from_slice(&[0x00, 0x3c, 0xa5]);
/// let items = layout.items(&block);
/// assert_eq!((layout.fields[0].name, items[0][0].value), ("d", Some(1.0)));
/// assert_eq!((layout.fields[1].name, items[1][16].raw), ("q", 0xa));
/// // d * (q - 8)
/// assert_eq!((layout.weight(&block, 0), layout.weight(&block, 16)), (-3.0, 2.0));
/// assert_eq!(layout.items_of_weight(16), [(0, 0), (1, 16)]);
/// ```
pub fn block_layout(ty: TensorType) -> Option<&'static BlockLayout> {
    LAYOUTS.iter().find(|(other, _)| *other == ty).map(|(_, layout)| *layout)
}
