//! Edge cases: nothing panics, blocks with finite scales decode to finite numbers, and errors name
//! the offending element.

use gguf::TensorType;
use gguf_quant::{CodecError, codec, decode_row, encode_row, find_bad_block};

const COLUMNS: usize = 512;

/// Non-integer types.
fn types() -> impl Iterator<Item = TensorType> {
    const INTEGERS: [TensorType; 4] =
        [TensorType::I8, TensorType::I16, TensorType::I32, TensorType::I64];
    TensorType::all().filter(|ty| codec(*ty).is_some() && !INTEGERS.contains(ty))
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

/// Rows that every type can represent: their scales fit in FP16.
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

/// Rows whose scales overflow FP16 in most types.
fn huge() -> Vec<(&'static str, Vec<f32>)> {
    vec![
        ("largest", row(|_| f32::MAX)),
        ("largest of both signs", row(|i| if i % 2 == 0 { f32::MAX } else { f32::MIN })),
        ("largest outlier", row(|i| if i == 77 { f32::MAX } else { i as f32 })),
        ("all exponents", row(|i| f32::from_bits((i as u32 % 255) << 23 | 0x1234))),
    ]
}

/// The last two overflow sums and therefore spoil scales.
fn weight_kinds(ty: TensorType) -> Vec<Option<Vec<f32>>> {
    let kinds = [
        None,
        Some(row(|_| 1.0)),
        Some(row(|_| 0.0)),
        Some(row(|i| if i % 5 == 0 { 1e20 } else { 1e-20 })),
        Some(row(|_| f32::MAX)),
    ];
    let skipped = codec(ty).unwrap().requires_importance() as usize;
    kinds.into_iter().skip(skipped).collect()
}

#[test]
fn storable_rows_decode_to_finite_numbers() {
    for ty in types() {
        for (name, row) in storable() {
            let kinds = weight_kinds(ty);
            for weights in &kinds[..kinds.len() - 2] {
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
    // Q8_K scales are f32: after rounding up, 127 times a scale can overflow.
    for ty in types().filter(|&ty| ty != TensorType::Q8_K) {
        for (name, row) in storable().into_iter().chain(huge()) {
            for weights in weight_kinds(ty) {
                let bytes = encode(ty, &row, weights.as_deref());
                let out = decode(ty, &bytes);
                let bad = out.iter().position(|x| !x.is_finite());
                match find_bad_block(ty, &bytes).unwrap() {
                    None => assert_eq!(bad, None, "{ty} {name}"),
                    Some(found) => {
                        // A non-finite scale that all groups multiply by 0 may decode to finite
                        // numbers.
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
fn non_finite_input_is_rejected_by_position() {
    for ty in types() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let row = row(|i| if i >= 41 { value } else { 1.0 });
            let mut bytes = vec![0; ty.byte_len(&[COLUMNS as u64]).unwrap() as usize];
            let ones = [1.0; COLUMNS];
            let result = encode_row(ty, &row, Some(&ones), &mut bytes);
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

/// Each type with the offset and the name of every f16 in its block.
const SCALES: &[(TensorType, &[(usize, &str)])] = &[
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
    (TensorType::Q8_1, &[(0, "d"), (2, "s")]),
    (TensorType::IQ1_S, &[(0, "d")]),
    (TensorType::IQ2_XXS, &[(0, "d")]),
    (TensorType::IQ2_XS, &[(0, "d")]),
    (TensorType::IQ2_S, &[(0, "d")]),
    (TensorType::IQ3_XXS, &[(0, "d")]),
    (TensorType::IQ3_S, &[(0, "d")]),
    (TensorType::IQ4_NL, &[(0, "d")]),
    (TensorType::IQ4_XS, &[(0, "d")]),
    (TensorType::TQ1_0, &[(52, "d")]),
    (TensorType::TQ2_0, &[(64, "d")]),
    (TensorType::Q1_0, &[(0, "d")]),
    (TensorType::Q2_0, &[(0, "d")]),
];
/// Types whose scales are not f16.
const OTHER_SCALES: [TensorType; 4] =
    [TensorType::IQ1_M, TensorType::Q8_K, TensorType::MXFP4, TensorType::NVFP4];

#[test]
fn every_type_with_scales_is_covered() {
    let with_scales = types().filter(|ty| ty.is_quantized()).collect::<Vec<_>>();
    let mut named: Vec<_> = SCALES.iter().map(|(ty, _)| *ty).chain(OTHER_SCALES).collect();
    named.sort();
    assert_eq!(with_scales, named);
}

#[test]
fn bad_scales_are_found_in_their_block() {
    for &(ty, fields) in SCALES {
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

/// Checks that `set` makes the last block of three bad.
fn bad_in_last(ty: TensorType, set: impl Fn(&mut [u8])) -> Option<(usize, usize, &'static str)> {
    let (len, block_bytes) = ty.block().unwrap();
    let mut bytes = vec![0; 3 * block_bytes as usize];
    assert_eq!(find_bad_block(ty, &bytes).unwrap(), None, "{ty}");
    set(&mut bytes[2 * block_bytes as usize..]);
    let found = find_bad_block(ty, &bytes).unwrap()?;
    assert_eq!(found.element, 2 * len as usize, "{ty}");
    Some((found.element, found.len, found.field))
}

#[test]
fn other_bad_scales_are_found() {
    let mxfp4 = |e: u8| bad_in_last(TensorType::MXFP4, |block| block[0] = e);
    assert_eq!((mxfp4(0xff), mxfp4(0xfe)), (Some((64, 32, "e")), None));
    // The FP16 scale is spread over the upper 4 bits of four 16-bit words.
    let iq1_m = |bits: [u8; 4]| {
        bad_in_last(TensorType::IQ1_M, |block| {
            bits.iter().enumerate().for_each(|(i, b)| block[49 + 2 * i] = b << 4 | 0xf);
        })
    };
    assert_eq!(iq1_m([0, 0, 0xc, 0x7]), Some((512, 256, "d")));
    assert_eq!(iq1_m([1, 0, 0xc, 0xf]), Some((512, 256, "d")));
    assert_eq!(iq1_m([0xf, 0xf, 0xb, 0x7]), None);
    let q8_k = |d: f32| {
        bad_in_last(TensorType::Q8_K, |block| block[..4].copy_from_slice(&d.to_le_bytes()))
    };
    assert_eq!((q8_k(f32::NEG_INFINITY), q8_k(f32::MAX)), (Some((512, 256, "d")), None));
    let f64 =
        |x: f64| bad_in_last(TensorType::F64, |block| block.copy_from_slice(&x.to_le_bytes()));
    assert_eq!((f64(f64::NAN), f64(1e39)), (Some((2, 1, "value")), Some((2, 1, "value"))));
    assert_eq!(f64(1e38), None);
    // The last of four scales.
    let nvfp4 = |d: u8| bad_in_last(TensorType::NVFP4, |block| block[3] = d);
    assert_eq!((nvfp4(0x7f), nvfp4(0xff)), (Some((128, 64, "d")), Some((128, 64, "d"))));
    assert_eq!((nvfp4(0x7e), nvfp4(0xfe)), (None, None));
    // Every byte pattern of these types is a number.
    for ty in [TensorType::I8, TensorType::I64] {
        assert_eq!(bad_in_last(ty, |block| block.fill(0xff)), None);
        assert_eq!(bad_in_last(ty, |block| block.fill(0x7f)), None);
    }
}

#[test]
fn some_types_require_importance() {
    let required: Vec<_> = TensorType::all()
        .filter(|&ty| codec(ty).is_some_and(|c| c.requires_importance()))
        .collect();
    assert_eq!(required, [TensorType::IQ2_XXS, TensorType::IQ2_XS, TensorType::IQ1_S]);
    for ty in required {
        let mut bytes = vec![0; ty.byte_len(&[COLUMNS as u64]).unwrap() as usize];
        let result = encode_row(ty, &row(|i| i as f32), None, &mut bytes);
        assert_eq!(result, Err(CodecError::ImportanceRequired(ty)));
    }
}

#[test]
fn lengths_must_match() {
    let ty = TensorType::Q4_K;
    let (row, mut bytes) = ([0.0; 256], [0; 144]);
    let partial = CodecError::NotWholeBlocks { ty, elements: 255, block_len: 256 };
    assert_eq!(encode_row(ty, &row[1..], None, &mut bytes), Err(partial.clone()));
    assert_eq!(decode_row(ty, &bytes, &mut [0.0; 255]), Err(partial));
    let wrong = CodecError::WrongByteLength { ty, elements: 256, expected: 144, found: 143 };
    assert_eq!(encode_row(ty, &row, None, &mut bytes[1..]), Err(wrong.clone()));
    assert_eq!(decode_row(ty, &bytes[1..], &mut [0.0; 256]), Err(wrong));
    let weights = CodecError::WrongImportanceCount { elements: 256, found: 255 };
    assert_eq!(encode_row(ty, &row, Some(&row[1..]), &mut bytes), Err(weights));
    let partial = CodecError::PartialBlock { ty, bytes: 143, block_bytes: 144 };
    assert_eq!(find_bad_block(ty, &bytes[1..]), Err(partial));
    let mut weights = [1.0; 256];
    weights[9] = f32::INFINITY;
    let infinite = CodecError::ImportanceNotFinite { position: 9, value: f32::INFINITY };
    assert_eq!(encode_row(ty, &row, Some(&weights), &mut bytes), Err(infinite));
    assert_eq!(encode_row(ty, &[], Some(&[]), &mut []), Ok(()));
    assert_eq!(find_bad_block(ty, &[]), Ok(None));
}

#[test]
fn types_without_codec_are_rejected() {
    for ty in [TensorType::Q4_0_4_4, TensorType::Q4_2, TensorType::from_id(9999)] {
        assert!(codec(ty).is_none());
        assert_eq!(decode_row(ty, &[], &mut []), Err(CodecError::NoCodec(ty)));
        assert_eq!(encode_row(ty, &[], None, &mut []), Err(CodecError::NoCodec(ty)));
        assert_eq!(find_bad_block(ty, &[]), Err(CodecError::NoCodec(ty)));
    }
}
