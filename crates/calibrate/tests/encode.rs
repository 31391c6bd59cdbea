//! Matrices encoded beside what the official encoders make of them.

use gguf::TensorType;
use gguf_calibrate::{Encoder, Moments, Target};
use gguf_quant::{CodecError, codec, decode_row, encode_row, form};

const N: usize = 512;
const ROWS: usize = 16;

/// The types of weights in blocks.
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

/// Numbers that look like chance, the same every time.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u32 << 24) as f32 - 0.5
    };
    // Sums of four are nearly normal.
    (0..count).map(|_| next() + next() + next() + next()).collect()
}

/// Inputs that go together: each column has part of the one before.
fn inputs(tokens: usize) -> Vec<f32> {
    let mut x = numbers(1, tokens * N);
    for token in x.chunks_mut(N) {
        for i in 1..N {
            token[i] += 0.9 * token[i - 1];
        }
    }
    x
}

fn moments(x: &[f32]) -> Moments {
    let mut moments = Moments::new(N, false);
    moments.add(x, None);
    moments.complete();
    moments
}

/// How far products are from those of the weights, in the sum of squares.
fn error(ty: TensorType, bytes: &[u8], w: &[f32], moments: &Moments) -> f64 {
    let mut decoded = vec![0.0; w.len()];
    decode_row(ty, bytes, &mut decoded).unwrap();
    let mut sum = 0.0;
    for (made, w) in decoded.chunks(N).zip(w.chunks(N)) {
        let e: Vec<f64> = made.iter().zip(w).map(|(a, b)| f64::from(a - b)).collect();
        for (i, row) in moments.squares.chunks(N).enumerate() {
            let inner: f64 = row.iter().zip(&e).map(|(square, e)| f64::from(*square) * e).sum();
            sum += e[i] * inner;
        }
    }
    sum
}

fn byte_len(ty: TensorType) -> usize {
    ROWS * ty.byte_len(&[N as u64]).unwrap() as usize
}

fn encode(ty: TensorType, w: &[f32], target: &Target, out: &mut [u8]) -> Result<(), CodecError> {
    Encoder::new(ty)?.encode(w, target, out)
}

/// Every type loses less than by its own encoder, to which the mean squares of columns are told.
#[test]
fn products_are_closer_in_every_type() {
    let moments = moments(&inputs(2000));
    let diagonal: Vec<f32> = (0..N).map(|i| moments.squares[i * N + i]).collect();
    let target = Target::new(moments.clone(), 0.01);
    let w = numbers(2, ROWS * N);
    for ty in TYPES {
        let mut official = vec![0; byte_len(ty)];
        let row_bytes = official.len() / ROWS;
        for (w, out) in w.chunks(N).zip(official.chunks_mut(row_bytes)) {
            encode_row(ty, w, Some(&diagonal), out).unwrap();
        }
        let mut ours = vec![0; official.len()];
        encode(ty, &w, &target, &mut ours).unwrap();
        let (official, ours) = (error(ty, &official, &w, &moments), error(ty, &ours, &w, &moments));
        println!("{ty}: {:.3}", ours / official);
        // Neighbours that go together let most be made up for.
        assert!(ours < 0.5 * official, "{ty}: {ours} of {official}");
    }
}

#[test]
fn bytes_do_not_depend_on_the_number_of_threads() {
    let target = Target::new(moments(&inputs(700)), 0.01);
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

/// Few tokens, columns that nothing reaches, inputs that are all 0, and weights that are.
#[test]
fn what_a_text_does_not_show_is_no_failure() {
    let mut few = inputs(10);
    few.chunks_mut(N).for_each(|token| token[100..140].fill(0.0));
    let nothing = vec![0.0; 4 * N];
    let mut w = numbers(4, ROWS * N);
    w[..N].fill(0.0);
    for x in [few, nothing] {
        let target = Target::new(moments(&x), 0.01);
        for ty in TYPES {
            let mut out = vec![0; byte_len(ty)];
            encode(ty, &w, &target, &mut out).unwrap();
            assert_eq!(codec(ty).unwrap().find_bad_block(&out), Ok(None), "{ty}");
            let mut decoded = vec![0.0; w.len()];
            decode_row(ty, &out, &mut decoded).unwrap();
            let largest = decoded.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
            // Weights are up to 2, and none is made up for without bounds.
            assert!(largest < 20.0, "{ty}: {largest}");
        }
    }
}

#[test]
fn what_cannot_be_encoded_is_refused() {
    let target = Target::new(moments(&inputs(10)), 0.01);
    let w = numbers(5, N);
    let refused = |ty, w: &[f32], len: usize| encode(ty, w, &target, &mut vec![0; len]).is_err();
    let len = byte_len(TensorType::Q4_K) / ROWS;
    assert!(!refused(TensorType::Q4_K, &w, len));
    assert!(refused(TensorType::Q4_K, &w, len - 1));
    assert!(refused(TensorType::F16, &w, 2 * N));
    let mut nan = w.clone();
    nan[7] = f32::NAN;
    assert!(refused(TensorType::Q4_K, &nan, len));
    let narrow = Target::new(Moments::new(100, false), 0.01);
    assert!(encode(TensorType::Q4_K, &w[..100], &narrow, &mut [0; 144]).is_err());
    assert!(form(TensorType::F16).is_none());
}
