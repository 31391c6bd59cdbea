//! Input at the edges: nothing panics, what has finite scales decodes to finite numbers, errors
//! name what is wrong.

use gguf::TensorType;
use gguf_quant::{CodecError, codec, decode_row, encode_row, find_bad_block};

const COLUMNS: usize = 512;

fn types() -> impl Iterator<Item = TensorType> {
    TensorType::all().filter(|&ty| codec(ty).is_some())
}

fn encode(ty: TensorType, row: &[f32], weights: Option<&[f32]>) -> Vec<u8> {
    let mut bytes = vec![0; ty.byte_len(&[row.len() as u64]).unwrap() as usize];
    encode_row(ty, row, weights, &mut bytes).unwrap();
    bytes
}

fn decode(ty: TensorType, bytes: &[u8]) -> Vec<f32> {
    let mut out = vec![f32::NAN; COLUMNS];
    decode_row(ty, bytes, &mut out).unwrap();
    out
}

fn row(f: impl Fn(usize) -> f32) -> Vec<f32> {
    (0..COLUMNS).map(f).collect()
}

/// Rows that every type can hold: their scales fit half precision.
fn storable() -> Vec<(&'static str, Vec<f32>)> {
    let sign = |i: usize| if i.is_multiple_of(3) { -1.0 } else { 1.0 };
    vec![
        ("zeros", row(|_| 0.0)),
        ("negative zeros", row(|_| -0.0)),
        ("constant", row(|_| 0.37)),
        ("negative constant", row(|_| -0.37)),
        ("smallest subnormal", row(|_| f32::from_bits(1))),
        ("subnormals", row(|i| sign(i) * f32::from_bits(i as u32 * 4099))),
        ("scale without reciprocal", row(|i| sign(i) * 1e-38 / (i + 1) as f32)),
        ("below the zero group", row(|i| sign(i) * 9e-16)),
        ("one outlier", row(|i| if i == 77 { 3e4 } else { sign(i) * i as f32 * 1e-4 })),
        ("one value", row(|i| if i == 300 { -2.5 } else { 0.0 })),
    ]
}

/// Rows whose scales overflow half precision in most types.
fn huge() -> Vec<(&'static str, Vec<f32>)> {
    vec![
        ("largest", row(|_| f32::MAX)),
        ("largest of both signs", row(|i| if i % 2 == 0 { f32::MAX } else { f32::MIN })),
        ("largest outlier", row(|i| if i == 77 { f32::MAX } else { i as f32 })),
        ("all exponents", row(|i| f32::from_bits((i as u32 % 255) << 23 | 0x1234))),
    ]
}

fn weight_kinds() -> Vec<Option<Vec<f32>>> {
    vec![
        None,
        Some(row(|_| 1.0)),
        Some(row(|_| 0.0)),
        Some(row(|i| if i % 5 == 0 { 1e20 } else { 1e-20 })),
        Some(row(|_| f32::MAX)),
    ]
}

#[test]
fn storable_rows_decode_to_finite_numbers() {
    for ty in types() {
        for (name, row) in storable() {
            // Weights that overflow sums spoil scales, so they are left to the next test.
            for weights in weight_kinds().iter().take(3) {
                let bytes = encode(ty, &row, weights.as_deref());
                assert_eq!(find_bad_block(ty, &bytes).unwrap(), None, "{ty} {name}");
                let out = decode(ty, &bytes);
                assert!(out.iter().all(|x| x.is_finite()), "{ty} {name}");
                if name.ends_with("zeros") {
                    assert!(out.iter().all(|&x| x == 0.0), "{ty} {name}");
                }
            }
        }
    }
}

#[test]
fn finite_scales_decode_to_finite_numbers() {
    for ty in types() {
        for (name, row) in storable().into_iter().chain(huge()) {
            for weights in weight_kinds() {
                let bytes = encode(ty, &row, weights.as_deref());
                let out = decode(ty, &bytes);
                let bad = out.iter().position(|x| !x.is_finite());
                match find_bad_block(ty, &bytes).unwrap() {
                    None => assert_eq!(bad, None, "{ty} {name}"),
                    Some(found) => {
                        // A spoiled scale that all groups multiply by 0 may decode to numbers.
                        let spoiled = bad.unwrap_or(found.element);
                        let block = found.element..found.element + found.len;
                        assert!(block.contains(&spoiled), "{ty} {name}: {found}, {spoiled}");
                    }
                }
            }
        }
    }
}

#[test]
fn any_bytes_decode() {
    for ty in types() {
        let len = ty.byte_len(&[COLUMNS as u64]).unwrap() as usize;
        for fill in [0x00, 0x7c, 0x80, 0xa5, 0xff] {
            decode(ty, &vec![fill; len]);
        }
    }
}

#[test]
fn not_finite_input_is_refused_by_position() {
    for ty in types() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let row = row(|i| if i >= 41 { value } else { 1.0 });
            let mut bytes = vec![0; ty.byte_len(&[COLUMNS as u64]).unwrap() as usize];
            let result = encode_row(ty, &row, None, &mut bytes);
            if ty.is_quantized() {
                assert!(
                    matches!(result, Err(CodecError::NotFinite { position: 41, .. })),
                    "{ty} {result:?}"
                );
            } else {
                assert_eq!(result, Ok(()), "{ty}");
                let found = find_bad_block(ty, &bytes).unwrap().unwrap();
                assert_eq!((found.element, found.len), (41, 1), "{ty}");
            }
        }
    }
}

#[test]
fn bad_scales_are_found_in_their_block() {
    // Type, and each f16 of its block: offset and name.
    let scales: &[(TensorType, &[(usize, &str)])] = &[
        (TensorType::Q4_0, &[(0, "d")]),
        (TensorType::Q4_1, &[(0, "d"), (2, "m")]),
        (TensorType::Q5_0, &[(0, "d")]),
        (TensorType::Q5_1, &[(0, "d"), (2, "m")]),
        (TensorType::Q8_0, &[(0, "d")]),
        (TensorType::Q2_K, &[(80, "d"), (82, "dmin")]),
        (TensorType::Q3_K, &[(108, "d")]),
        (TensorType::Q4_K, &[(0, "d"), (2, "dmin")]),
        (TensorType::Q5_K, &[(0, "d"), (2, "dmin")]),
        (TensorType::Q6_K, &[(208, "d")]),
    ];
    for &(ty, fields) in scales {
        let (len, block_bytes) = ty.block().unwrap();
        for &(offset, name) in fields {
            for half in [0x7c00u16, 0xfc00, 0x7e00] {
                let mut bytes = vec![0; 3 * block_bytes as usize];
                let at = block_bytes as usize + offset;
                bytes[at..at + 2].copy_from_slice(&half.to_le_bytes());
                let found = find_bad_block(ty, &bytes).unwrap().unwrap();
                assert_eq!((found.element, found.len), (len as usize, len as usize), "{ty}");
                assert_eq!(found.field, name, "{ty}");
                assert_eq!(found.value.is_nan(), half == 0x7e00, "{ty}");
            }
        }
    }
}

#[test]
fn lengths_must_fit() {
    let ty = TensorType::Q4_K;
    let (row, mut bytes) = ([0.0; 256], [0; 144]);
    let partial = CodecError::NotWholeBlocks { ty, elements: 255, block_len: 256 };
    assert_eq!(encode_row(ty, &row[1..], None, &mut bytes), Err(partial.clone()));
    assert_eq!(decode_row(ty, &bytes, &mut [0.0; 255]), Err(partial));
    let wrong = CodecError::WrongByteLength { ty, elements: 256, expected: 144, found: 143 };
    assert_eq!(encode_row(ty, &row, None, &mut bytes[1..]), Err(wrong.clone()));
    assert_eq!(decode_row(ty, &bytes[1..], &mut [0.0; 256]), Err(wrong));
    let weights = CodecError::WrongWeightCount { elements: 256, found: 255 };
    assert_eq!(encode_row(ty, &row, Some(&row[1..]), &mut bytes), Err(weights));
    let partial = CodecError::PartialBlock { ty, bytes: 143, block_bytes: 144 };
    assert_eq!(find_bad_block(ty, &bytes[1..]), Err(partial));
    let mut weights = [1.0; 256];
    weights[9] = f32::INFINITY;
    let infinite = CodecError::WeightNotFinite { position: 9, value: f32::INFINITY };
    assert_eq!(encode_row(ty, &row, Some(&weights), &mut bytes), Err(infinite));
    assert_eq!(encode_row(ty, &[], Some(&[]), &mut []), Ok(()));
    assert_eq!(find_bad_block(ty, &[]), Ok(None));
}

#[test]
fn types_without_codec_are_refused() {
    for ty in [TensorType::I32, TensorType::Q4_2, TensorType::from_id(9999)] {
        assert!(codec(ty).is_none());
        assert_eq!(decode_row(ty, &[], &mut []), Err(CodecError::NoCodec(ty)));
        assert_eq!(encode_row(ty, &[], None, &mut []), Err(CodecError::NoCodec(ty)));
        assert_eq!(find_bad_block(ty, &[]), Err(CodecError::NoCodec(ty)));
    }
}
