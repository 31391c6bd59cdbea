//! I8, I16, I32, I64: signed integers in two's complement, `x[i]` at byte N*i for N bytes each.
//!
//! Decoding rounds to the nearest float, ties to even: exact up to 2^24 in magnitude. Encoding
//! accepts only integers in the range of the type, since rounding would hide a mistake.

use gguf::TensorType;

use crate::codec::{Codec, CodecError};
use crate::dispatch::InstructionSet;

macro_rules! integers {
    ($codec:ident, $int:ty) => {
        pub(super) const $codec: Codec = {
            fn check(_: InstructionSet, row: &[f32]) -> Result<(), CodecError> {
                // The first float above the range; the conversion would saturate.
                let beyond = -(<$int>::MIN as f32);
                let holds = |x: f32| (x as $int) as f32 == x && x < beyond;
                match row.iter().position(|&x| !holds(x)) {
                    Some(position) => {
                        let (ty, value) = (TensorType::$codec, row[position]);
                        Err(CodecError::NotAnInteger { ty, position, value })
                    }
                    None => Ok(()),
                }
            }
            fn decode(_: InstructionSet, bytes: &[u8], out: &mut [f32]) {
                for (bytes, x) in bytes.as_chunks().0.iter().zip(out) {
                    *x = <$int>::from_le_bytes(*bytes) as f32;
                }
            }
            fn encode(_: InstructionSet, row: &[f32], _: Option<&[f32]>, out: &mut [u8]) {
                for (x, bytes) in row.iter().zip(out.as_chunks_mut().0) {
                    *bytes = (*x as $int).to_le_bytes();
                }
            }
            Codec::integers(TensorType::$codec, check, decode, encode)
        };
    };
}

integers!(I8, i8);
integers!(I16, i16);
integers!(I32, i32);
integers!(I64, i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_ranges_match_the_type() {
        let cases: [(&Codec, f32, f32); 4] = [
            (&I8, -128.0, 127.0),
            (&I16, -32768.0, 32767.0),
            (&I32, -2_147_483_648.0, 2_147_483_520.0),
            (&I64, -9_223_372_036_854_775_808.0, 9_223_371_487_098_961_920.0),
        ];
        for (codec, low, high) in cases {
            let ty = codec.tensor_type();
            let mut bytes = vec![0; ty.byte_len(&[3]).unwrap() as usize];
            codec.encode_row(&[low, high, -0.0], None, &mut bytes).unwrap();
            let mut out = [1.0; 3];
            codec.decode_row(&bytes, &mut out).unwrap();
            assert_eq!(out, [low, high, 0.0]);
            for value in [low.next_down(), high.next_up().ceil(), 0.5, f32::INFINITY] {
                // At these magnitudes the neighbours of a float are integers, except in I8 and I16.
                let refused = CodecError::NotAnInteger { ty, position: 1, value };
                assert_eq!(codec.encode_row(&[1.0, value, 0.5], None, &mut bytes), Err(refused));
            }
            assert!(codec.encode_row(&[f32::NAN, 0.0, 0.0], None, &mut bytes).is_err());
        }
    }

    #[test]
    fn decoding_rounds_to_nearest() {
        let mut out = [0.0; 2];
        let numbers = [(1i32 << 24) + 1, -(1 << 24) - 3];
        I32.decode_row(numbers.map(i32::to_le_bytes).as_flattened(), &mut out).unwrap();
        assert_eq!(out, [16_777_216.0, -16_777_220.0]);
    }
}
