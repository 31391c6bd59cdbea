//! Fuzz property of block decoders.

use gguf::TensorType;
use gguf_quant::codec;

/// No bytes make a decoder panic. Data without bad blocks decode to numbers: large scales may
/// overflow to infinity, but never give NaN.
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
