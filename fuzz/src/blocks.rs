//! What must hold for any bytes taken as blocks of any type.

use gguf::TensorType;
use gguf_quant::codec;

/// No bytes make a decoder panic; and data in which no bad block is found decode to numbers: large
/// scales may overflow to infinity, but there is no NaN.
pub fn decode(bytes: &[u8]) {
    for ty in TensorType::all() {
        let (Some(codec), Some((elements, block_bytes))) = (codec(ty), ty.block()) else {
            continue;
        };
        let blocks = bytes.len() / block_bytes as usize;
        let bytes = &bytes[..blocks * block_bytes as usize];
        let mut out = vec![0.0; blocks * elements as usize];
        codec.decode_row(bytes, &mut out).unwrap();
        if codec.find_bad_block(bytes).unwrap().is_none() {
            assert!(!out.iter().any(|value| value.is_nan()), "{ty}");
        }
    }
}
