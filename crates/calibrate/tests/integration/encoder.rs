//! Compares calibrated matrices with those of the standard encoders.

use gguf::TensorType;
use gguf_calibrate::{Encoder, Hessian, Objective};
use gguf_quant::{CodecError, codec, decode_row, encode_row, quant_grid};

const N: usize = 512;
const ROWS: usize = 16;

/// All block types of weights.
const TYPES: [TensorType; 25] = [
    TensorType::Q1_0,
    TensorType::Q2_0,
    TensorType::Q4_0,
    TensorType::Q4_1,
    TensorType::Q5_0,
    TensorType::Q5_1,
    TensorType::Q8_0,
    TensorType::Q2_K,
    TensorType::Q3_K,
    TensorType::Q4_K,
    TensorType::Q5_K,
    TensorType::Q6_K,
    TensorType::IQ1_S,
    TensorType::IQ1_M,
    TensorType::IQ2_XXS,
    TensorType::IQ2_XS,
    TensorType::IQ2_S,
    TensorType::IQ3_XXS,
    TensorType::IQ3_S,
    TensorType::IQ4_NL,
    TensorType::IQ4_XS,
    TensorType::TQ1_0,
    TensorType::TQ2_0,
    TensorType::MXFP4,
    TensorType::NVFP4,
];

/// Pseudo-random, approximately normal numbers.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u32 << 24) as f32 - 0.5
    };
    // The sum of four uniform numbers is nearly normal.
    (0..count).map(|_| next() + next() + next() + next()).collect()
}

/// Correlated inputs: each column contains part of the one before.
fn inputs(tokens: usize) -> Vec<f32> {
    let mut x = numbers(1, tokens * N);
    for token in x.chunks_mut(N) {
        for i in 1..N {
            token[i] += 0.9 * token[i - 1];
        }
    }
    x
}

fn hessian(x: &[f32]) -> Hessian {
    let mut hessian = Hessian::new(N, false);
    hessian.add(x, None);
    hessian.symmetrize();
    hessian
}

/// Squared error of the outputs.
fn error(ty: TensorType, bytes: &[u8], w: &[f32], hessian: &Hessian) -> f64 {
    let mut decoded = vec![0.0; w.len()];
    decode_row(ty, bytes, &mut decoded).unwrap();
    let mut sum = 0.0;
    for (made, w) in decoded.chunks(N).zip(w.chunks(N)) {
        let e: Vec<f64> = made.iter().zip(w).map(|(a, b)| f64::from(a - b)).collect();
        for (i, row) in hessian.matrix.chunks(N).enumerate() {
            let inner: f64 = row.iter().zip(&e).map(|(square, e)| f64::from(*square) * e).sum();
            sum += e[i] * inner;
        }
    }
    sum
}

fn byte_len(ty: TensorType) -> usize {
    ROWS * ty.byte_len(&[N as u64]).unwrap() as usize
}

fn encode(ty: TensorType, w: &[f32], target: &Objective, out: &mut [u8]) -> Result<(), CodecError> {
    Encoder::new(ty)?.encode(w, target, out)
}

/// Every type has a smaller output error than its standard encoder with an importance matrix.
#[test]
fn output_error_is_smaller_for_every_type() {
    let hessian = hessian(&inputs(2000));
    let diagonal: Vec<f32> = (0..N).map(|i| hessian.matrix[i * N + i]).collect();
    let target = Objective::new(hessian.clone(), 0.01);
    let w = numbers(2, ROWS * N);
    for ty in TYPES {
        let mut standard = vec![0; byte_len(ty)];
        let row_bytes = standard.len() / ROWS;
        for (w, out) in w.chunks(N).zip(standard.chunks_mut(row_bytes)) {
            encode_row(ty, w, Some(&diagonal), out).unwrap();
        }
        let mut calibrated = vec![0; standard.len()];
        encode(ty, &w, &target, &mut calibrated).unwrap();
        let (standard, calibrated) =
            (error(ty, &standard, &w, &hessian), error(ty, &calibrated, &w, &hessian));
        println!("{ty}: {:.3}", calibrated / standard);
        // Correlated neighbours can compensate most of the error.
        assert!(calibrated < 0.5 * standard, "{ty}: {calibrated} of {standard}");
    }
}

#[test]
fn bytes_do_not_depend_on_the_number_of_threads() {
    let target = Objective::new(hessian(&inputs(700)), 0.01);
    let w = numbers(3, ROWS * N);
    for ty in [TensorType::Q4_K, TensorType::IQ2_S] {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut out = vec![0; byte_len(ty)];
            pool.install(|| encode(ty, &w, &target, &mut out)).unwrap();
            out
        };
        assert_eq!(on(1), on(3), "{ty}");
    }
}

/// Few tokens, unreached columns, inputs that are all 0, and weights that are all 0.
#[test]
fn unreached_columns_and_zero_inputs_encode() {
    let mut few = inputs(10);
    few.chunks_mut(N).for_each(|token| token[100..140].fill(0.0));
    let nothing = vec![0.0; 4 * N];
    let mut w = numbers(4, ROWS * N);
    w[..N].fill(0.0);
    for x in [few, nothing] {
        let target = Objective::new(hessian(&x), 0.01);
        for ty in TYPES {
            let mut out = vec![0; byte_len(ty)];
            encode(ty, &w, &target, &mut out).unwrap();
            assert_eq!(codec(ty).unwrap().find_bad_block(&out), Ok(None), "{ty}");
            let mut decoded = vec![0.0; w.len()];
            decode_row(ty, &out, &mut decoded).unwrap();
            let largest = decoded.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
            // Weights are at most 2, and the correction stays bounded.
            assert!(largest < 20.0, "{ty}: {largest}");
        }
    }
}

#[test]
fn invalid_input_is_rejected() {
    let target = Objective::new(hessian(&inputs(10)), 0.01);
    let w = numbers(5, N);
    let refused = |ty, w: &[f32], len: usize| encode(ty, w, &target, &mut vec![0; len]).is_err();
    let len = byte_len(TensorType::Q4_K) / ROWS;
    assert!(!refused(TensorType::Q4_K, &w, len));
    assert!(refused(TensorType::Q4_K, &w, len - 1));
    assert!(refused(TensorType::F16, &w, 2 * N));
    let mut nan = w.clone();
    nan[7] = f32::NAN;
    assert!(refused(TensorType::Q4_K, &nan, len));
    let narrow = Objective::new(Hessian::new(100, false), 0.01);
    assert!(encode(TensorType::Q4_K, &w[..100], &narrow, &mut [0; 144]).is_err());
    assert!(quant_grid(TensorType::F16).is_none());
}
