//! Properties of every type with an encoder, for any row, with and without importance weights.
//!
//! A finite row encodes to the same bytes every time and with every instruction set; data that
//! find_bad_block accepts decodes to finite numbers; errors stay within the bounds stated here; NaN
//! and infinity are rejected with their position.

use gguf::TensorType;
use gguf_quant::{CodecError, InstructionSet, codec};
use proptest::collection::vec;
use proptest::num::f32::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
use proptest::prelude::*;

/// One super-block, or several small blocks.
const COLUMNS: usize = 256;

fn types() -> impl Iterator<Item = TensorType> {
    TensorType::all().filter(|&ty| codec(ty).is_some())
}

/// Range of an integer type, whose bounds are floats.
fn integers(ty: TensorType) -> Option<std::ops::Range<f32>> {
    let bits = match ty {
        TensorType::I8 => 8,
        TensorType::I16 => 16,
        TensorType::I32 => 32,
        TensorType::I64 => 64,
        _ => return None,
    };
    Some(-2f32.powi(bits - 1)..2f32.powi(bits - 1))
}

fn encode(
    ty: TensorType,
    set: InstructionSet,
    row: &[f32],
    weights: Option<&[f32]>,
) -> Result<Vec<u8>, CodecError> {
    let mut bytes = vec![0xa5; ty.byte_len(&[row.len() as u64]).unwrap() as usize];
    codec(ty).unwrap().encode_row_with(set, row, weights, &mut bytes)?;
    Ok(bytes)
}

/// Encodes and decodes with all instruction sets and checks the properties of finite rows. Returns
/// `None` if the type must reject the row or its scales overflow.
fn round_trip(ty: TensorType, row: &[f32], weights: Option<&[f32]>) -> Option<Vec<f32>> {
    let codec = codec(ty).unwrap();
    let bytes = encode(ty, InstructionSet::widest(), row, weights);
    if let Some(range) = integers(ty) {
        let refused = row.iter().position(|x| x.fract() != 0.0 || !range.contains(x));
        if refused.is_some() {
            let found = matches!(&bytes, Err(CodecError::NotAnInteger { position, .. })
                if Some(*position) == refused);
            assert!(found, "{ty}: {bytes:?}");
            return None;
        }
    }
    if codec.requires_importance() && weights.is_none() {
        assert_eq!(bytes, Err(CodecError::ImportanceRequired(ty)));
        return None;
    }
    let bytes = bytes.unwrap_or_else(|error| panic!("{ty}: {error}"));
    let mut floats = vec![f32::NAN; row.len()];
    codec.decode_row(&bytes, &mut floats).unwrap();
    for set in InstructionSet::available() {
        for _ in 0..2 {
            assert!(encode(ty, set, row, weights).unwrap() == bytes, "{ty} by {set}");
        }
        let mut again = vec![f32::NAN; row.len()];
        codec.decode_row_with(set, &bytes, &mut again).unwrap();
        let same = again.iter().zip(&floats).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{ty} by {set}");
    }
    if codec.find_bad_block(&bytes).unwrap().is_some() {
        return None;
    }
    // Q8_K has f32 scales: after rounding up, 127 times a scale can overflow. llama.cpp's check
    // accepts the largest exponent of MXFP4.
    if ![TensorType::Q8_K, TensorType::MXFP4].contains(&ty) {
        assert!(floats.iter().all(|x| x.is_finite()), "{ty}: {floats:?}");
    }
    Some(floats)
}

/// Max distance between neighbouring levels, relative to the largest magnitude of a block. A
/// constant row may be off by half of it, plus one percent for the rounding of scales and the
/// correction factors of some encoders.
const STEPS: &[(TensorType, f32)] = &[
    (TensorType::Q4_0, 1.0 / 8.0),
    (TensorType::Q4_1, 1.0 / 15.0),
    (TensorType::Q5_0, 1.0 / 16.0),
    (TensorType::Q5_1, 1.0 / 31.0),
    (TensorType::Q8_0, 1.0 / 127.0),
    (TensorType::Q8_1, 1.0 / 127.0),
    (TensorType::Q8_K, 1.0 / 127.0),
    (TensorType::Q2_K, 1.0 / 3.0),
    (TensorType::Q3_K, 1.0 / 4.0),
    (TensorType::Q4_K, 1.0 / 15.0),
    (TensorType::Q5_K, 1.0 / 31.0),
    (TensorType::Q6_K, 1.0 / 32.0),
    // Codebooks lack some octets or quartets: there a single number may be off by several levels,
    // but keeps its sign.
    (TensorType::IQ1_S, 2.0),
    (TensorType::IQ1_M, 2.0),
    (TensorType::IQ2_XXS, 2.0),
    (TensorType::IQ2_XS, 2.0),
    (TensorType::IQ2_S, 2.0),
    (TensorType::IQ3_XXS, 1.0),
    (TensorType::IQ3_S, 1.0),
    // 89 and 113, but 127 on the negative side.
    (TensorType::IQ4_NL, 24.0 / 113.0),
    (TensorType::IQ4_XS, 24.0 / 113.0),
    (TensorType::TQ1_0, 1.0),
    (TensorType::TQ2_0, 1.0),
    // 4 and 6.
    (TensorType::MXFP4, 2.0 / 4.0),
    (TensorType::NVFP4, 2.0 / 6.0),
    (TensorType::Q1_0, 2.0),
    (TensorType::Q2_0, 1.0),
    (TensorType::F16, 1.0 / 1024.0),
    (TensorType::BF16, 1.0 / 128.0),
    (TensorType::F32, 0.0),
    (TensorType::F64, 0.0),
    (TensorType::I8, 0.0),
    (TensorType::I16, 0.0),
    (TensorType::I32, 0.0),
    (TensorType::I64, 0.0),
];

fn rows() -> Vec<(&'static str, Vec<f32>)> {
    let row = |f: &dyn Fn(usize) -> f32| (0..COLUMNS).map(f).collect::<Vec<_>>();
    let sign = |i: usize| if i.is_multiple_of(3) { -1.0 } else { 1.0 };
    vec![
        ("zeros", row(&|_| 0.0)),
        ("negative zeros", row(&|_| -0.0)),
        ("constant 1", row(&|_| 1.0)),
        ("constant -1", row(&|_| -1.0)),
        ("constant 100", row(&|_| 100.0)),
        ("constant 0.37", row(&|_| 0.37)),
        ("constant -0.37", row(&|_| -0.37)),
        ("smallest subnormal", row(&|_| f32::from_bits(1))),
        ("subnormals", row(&|i| sign(i) * f32::from_bits(i as u32 * 32749))),
        ("outlier", row(&|i| if i == 77 { 3e4 } else { sign(i) * (i % 7) as f32 * 0.01 })),
        ("huge outlier", row(&|i| if i == 77 { f32::MAX } else { sign(i) })),
        ("huge", row(&|i| sign(i) * f32::MAX)),
        ("one value", row(&|i| if i == 200 { -2.5 } else { 0.0 })),
        ("integers", row(&|i| i as f32 - 128.0)),
        ("all exponents", row(&|i| sign(i) * f32::from_bits((i as u32 % 255) << 23 | 0x1234))),
    ]
}

fn weight_kinds() -> Vec<Option<Vec<f32>>> {
    let weights = |f: &dyn Fn(usize) -> f32| Some((0..COLUMNS).map(f).collect::<Vec<_>>());
    vec![
        None,
        weights(&|_| 1.0),
        weights(&|i| (i % 17) as f32 * 0.25 + 0.01),
        weights(&|_| 0.0),
        weights(&|i| if i % 5 == 0 { 1e20 } else { 1e-20 }),
    ]
}

#[test]
fn every_type_has_a_step() {
    assert!(types().all(|ty| STEPS.iter().any(|(known, _)| *known == ty)));
}

#[test]
fn every_type_encodes_every_kind_of_row() {
    for &(ty, step) in STEPS {
        for (name, row) in rows() {
            for (kind, weights) in weight_kinds().iter().enumerate() {
                let Some(floats) = round_trip(ty, &row, weights.as_deref()) else { continue };
                if name.ends_with("zeros") {
                    assert!(floats.iter().all(|&x| x == 0.0), "{ty} {name}, weights {kind}");
                }
                // Importance weights of zero leave every error uncounted.
                if name.starts_with("constant") && kind < 3 {
                    let bound = (step / 2.0 + if step > 0.0 { 0.01 } else { 0.0 }) * row[0].abs();
                    let off = floats.iter().map(|x| (x - row[0]).abs()).fold(0.0, f32::max);
                    assert!(off <= bound, "{ty} {name}, weights {kind}: {off} > {bound}");
                }
            }
        }
    }
}

/// Round-to-nearest encoders: maximum error of any number, relative to the largest magnitude of its
/// block, with 2^-10 for FP16 scales.
const ROUNDED: &[(TensorType, usize, f32)] = &[
    (TensorType::F32, 1, 0.0),
    (TensorType::F64, 1, 0.0),
    (TensorType::F16, 1, 1.0 / 2048.0),
    (TensorType::BF16, 1, 1.0 / 256.0),
    // The value of largest magnitude gets the end with one more level, so the other end lacks a
    // full step.
    (TensorType::Q4_0, 32, 1.0 / 8.0 + 1.0 / 1024.0),
    (TensorType::Q5_0, 32, 1.0 / 16.0 + 1.0 / 1024.0),
    // Levels span the range, at most twice the magnitude; the minimum is rounded too.
    (TensorType::Q4_1, 32, 1.0 / 15.0 + 3.0 / 1024.0),
    (TensorType::Q5_1, 32, 1.0 / 31.0 + 3.0 / 1024.0),
    (TensorType::Q8_0, 32, 0.5 / 127.0 + 1.0 / 1024.0),
    (TensorType::Q8_1, 32, 0.5 / 127.0 + 1.0 / 1024.0),
    // On the other side level 128 is clamped to 127.
    (TensorType::Q8_K, 256, 1.0 / 127.0 + 1.0 / 1024.0),
    (TensorType::TQ1_0, 256, 0.5 + 1.0 / 1024.0),
    (TensorType::TQ2_0, 256, 0.5 + 1.0 / 1024.0),
    // The largest magnitude is 4 to 8 times the power of two; codes end at 6 times, with steps of
    // 2.
    (TensorType::MXFP4, 32, 0.25),
];

/// Finite numbers of all magnitudes.
fn finite() -> impl Strategy<Value = f32> {
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO
}

/// BlockParams whose scales are normal FP16 numbers.
fn ordinary() -> impl Strategy<Value = f32> {
    prop_oneof![-100.0f32..100.0, -1.0f32..1.0, Just(0.0), Just(50.0)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn any_finite_row_encodes(row in vec(finite(), COLUMNS), weights in vec(0.0f32..1e4, COLUMNS)) {
        for ty in types() {
            round_trip(ty, &row, None);
            round_trip(ty, &row, Some(&weights));
        }
    }

    #[test]
    fn any_finite_importance_is_accepted(
        row in vec(ordinary(), COLUMNS), weights in vec(finite(), COLUMNS)
    ) {
        for ty in types() {
            round_trip(ty, &row, Some(&weights));
        }
    }

    #[test]
    fn rounding_error_is_at_most_one_step(
        mut row in vec(ordinary(), COLUMNS), top in 1.0f32..1000.0
    ) {
        // Every block gets a number of some magnitude.
        row.iter_mut().step_by(32).for_each(|x| *x = top);
        for &(ty, block, bound) in ROUNDED {
            let floats = round_trip(ty, &row, None).unwrap();
            for (i, (x, found)) in row.iter().zip(&floats).enumerate() {
                let block = &row[i / block * block..][..block];
                let largest = block.iter().fold(0.0f32, |m, x| m.max(x.abs()));
                // FP16 has steps of 2^-24 near zero.
                let bound = bound * largest + if bound > 0.0 { 6e-8 } else { 0.0 };
                prop_assert!((x - found).abs() <= bound, "{ty}: {x} became {found}");
            }
        }
    }

    #[test]
    fn integers_are_preserved(row in vec(-128i8..=127, COLUMNS)) {
        let row: Vec<f32> = row.into_iter().map(f32::from).collect();
        for ty in types().filter(|&ty| integers(ty).is_some()) {
            let floats = round_trip(ty, &row, None);
            prop_assert_eq!(floats, Some(row.clone()), "{}", ty);
        }
    }

    #[test]
    fn nan_and_infinity_are_rejected_by_position(
        mut row in vec(-8i8..=7, COLUMNS), at in 0..COLUMNS,
        bad in prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY)]
    ) {
        row[0] = 1;
        let mut row: Vec<f32> = row.into_iter().map(f32::from).collect();
        row[at] = bad;
        let ones = [1.0; COLUMNS];
        for ty in types().filter(|&ty| ty.is_quantized() || integers(ty).is_some()) {
            for set in InstructionSet::available() {
                let position = match encode(ty, set, &row, Some(&ones)) {
                    Err(CodecError::NotFinite { position, .. }) => position,
                    Err(CodecError::NotAnInteger { position, .. }) => position,
                    other => panic!("{ty}: {other:?}"),
                };
                prop_assert_eq!(position, at, "{}", ty);
            }
        }
    }
}
