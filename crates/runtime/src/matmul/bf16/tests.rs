//! Kernels are bit-exact to the specification, which keeps its error bound.

use gguf::TensorType;
use pulp::cast;

use super::parts::{split, step};
use super::{STEP, matmul, scalar};
use crate::amx::SIDE;
use crate::amx::bf16::{AmxBf16, Step, Sums, Tile};
use crate::avx512::bf16::V4Bf16;
use crate::instructions::{InstructionSet, SimdToken};
use crate::matmul::{MatmulContext, Precision};
use crate::matrix::Matrix;
use crate::random::Random;
use crate::repack::RepackBudget;
use crate::value::Value;
use crate::watch::Watch;

impl Random {
    /// Returns a number of either sign with a magnitude from `2^-range` to `2^range`.
    fn with_magnitude(&mut self, range: u32) -> f32 {
        let exponent = 127 - range + self.next() % (2 * range);
        f32::from_bits(self.next() & 0x807f_ffff | exponent << 23)
    }

    /// Returns BF16 numbers whose products and sums are sometimes subnormal; with `any`, also infinity and NaN.
    fn bf16(&mut self, any: bool) -> u16 {
        let bits = (self.next() >> 16) as u16;
        match self.next() % 64 {
            0 => bits & 0x8000,
            1 => bits & 0x807f,
            2 if any => bits | 0x7f80,
            3 if any => bits & 0x8000 | 0x7f80,
            // From 2^-65 to 2^-61: products near the smallest normal number.
            _ if !any => bits & 0x807f | (62 + (self.next() % 5) as u16) << 7,
            _ => bits & 0x807f | (96 + (self.next() % 64) as u16) << 7,
        }
    }
}

fn same(found: f32, expected: f32) -> bool {
    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan()
}

#[test]
fn amx_tiles_are_bit_exact() {
    let Some(amx) = AmxBf16::try_new() else {
        eprintln!("SKIPPED: this processor or system has no AMX with BF16");
        return;
    };
    let tiles = amx.tiles().unwrap();
    assert!(amx.tiles().is_none(), "this thread has some");
    let random = &mut Random(1);
    for trial in 0..60 {
        let any = trial % 3 == 0;
        let mut tile = || -> Tile { [(); SIDE].map(|()| [(); STEP].map(|()| random.bf16(any))) };
        let count = 1 + trial % 4;
        let weights: Vec<[Tile; 2]> = (0..count).map(|_| [tile(), tile()]).collect();
        let x: Vec<[Tile; 2]> = (0..count).map(|_| [tile(), tile()]).collect();
        let scale = if any { 1.0 } else { f32::MIN_POSITIVE };
        let mut sum = || scale * random.with_magnitude(8);
        let before: [[Sums; 2]; 2] =
            [(); 2].map(|()| [(); 2].map(|()| [(); SIDE].map(|()| [(); SIDE].map(|()| sum()))));
        let steps = weights.iter().zip(&x);
        let two: Vec<_> =
            steps.clone().map(|(weights, [a, b])| Step { weights, x: [a, b] }).collect();
        let one: Vec<_> = steps.map(|(weights, [a, _])| Step { weights, x: [a] }).collect();
        let (mut found, mut first) = (before, before[0]);
        tiles.add_thirty_two(&two, &mut found);
        tiles.add_sixteen(&one, &mut first);
        assert!(
            first
                .as_flattened()
                .as_flattened()
                .iter()
                .zip(found[0].as_flattened().as_flattened())
                .all(|(a, b)| same(*a, *b))
        );
        for (row, token) in (0..2 * SIDE).flat_map(|row| (0..2 * SIDE).map(move |t| (row, t))) {
            let (half, r) = (row / SIDE, row % SIDE);
            let (group, t) = (token / SIDE, token % SIDE);
            let mut expected = before[group][half][r][t];
            for (weights, x) in weights.iter().zip(&x) {
                let mut of_token = [0; STEP];
                for (pair, column) in of_token.as_chunks_mut().0.iter_mut().zip(&x[group]) {
                    *pair = column.as_chunks::<2>().0[t];
                }
                expected = scalar::tile(expected, &weights[half][r], &of_token);
            }
            let found = found[group][half][r][t];
            assert!(same(found, expected), "{trial} {row} {token}: {found:e} {expected:e}");
        }
    }
}

#[test]
fn avx512_vectors_are_bit_exact() {
    let Some(simd) = V4Bf16::try_new() else {
        eprintln!("SKIPPED: this processor has no AVX-512 with BF16");
        return;
    };
    let random = &mut Random(2);
    for trial in 0..5000 {
        let any = trial % 3 == 0;
        let mut numbers = || [(); STEP].map(|()| random.bf16(any));
        let (a, b) = (numbers(), numbers());
        let scale = if any { 1.0 } else { f32::MIN_POSITIVE };
        let mut expected = [(); STEP / 2].map(|()| scale * random.with_magnitude(8));
        let found: [f32; STEP / 2] = cast(simd.add_pairs(cast(expected), cast(a), cast(b)));
        scalar::vector(&mut expected, &a, &b);
        for (found, expected) in found.iter().zip(expected) {
            assert!(same(*found, expected), "{trial}: {found:e} {expected:e}");
        }
    }
}

/// Returns rows of random floats, quantized to a type.
fn matrix(random: &mut Random, ty: TensorType, len: usize, rows: usize) -> Matrix {
    let shape = [len as u64, rows as u64];
    let mut bytes = vec![0; ty.byte_len(&shape).unwrap() as usize];
    let row_bytes = bytes.len() / rows;
    for bytes in bytes.chunks_exact_mut(row_bytes) {
        let row: Vec<f32> = (0..len).map(|_| random.with_magnitude(5)).collect();
        gguf_quant::encode_row(ty, &row, Some(&vec![1.0; len]), bytes).unwrap();
    }
    Matrix::from_bytes("weights", &shape, ty, bytes.into()).unwrap()
}

fn activations(random: &mut Random, tokens: usize, width: usize) -> Value {
    let mut x = Value::zeros(tokens, width, Vec::new());
    x.data.fill_with(|| random.with_magnitude(6));
    x
}

fn steps<const P: usize>(row: &[f32]) -> Vec<[[u16; STEP]; P]> {
    row.chunks(STEP).map(|columns| split(&step(columns))).collect()
}

/// Returns the product of a row and a token with AMX.
fn by_tiles(stored: bool, precision: Precision, row: &[f32], x: &[f32]) -> f32 {
    match (stored, precision) {
        (true, Precision::Fast) => scalar::tiles(&steps::<1>(row), &steps::<1>(x)),
        (true, Precision::Exact) => scalar::tiles(&steps::<1>(row), &steps::<2>(x)),
        (false, _) => scalar::tiles(&steps::<2>(row), &steps::<2>(x)),
    }
}

/// Returns the product of a row and a token with AVX-512.
fn by_vectors(row: &[f32], x: &[f32]) -> f32 {
    let [weights, x] = [row, x].map(|row| steps::<1>(row).into_iter().map(|[part]| part));
    scalar::vectors(&weights.collect::<Vec<_>>(), &x.collect::<Vec<_>>())
}

/// Types of every conversion and of every block length.
const TYPES: [TensorType; 8] = [
    TensorType::F32,
    TensorType::F16,
    TensorType::BF16,
    TensorType::Q8_0,
    TensorType::Q4_K,
    TensorType::Q6_K,
    TensorType::IQ4_XS,
    TensorType::NVFP4,
];

/// Compares products of several lengths and numbers of tokens with the specification, which knows no batches.
fn compare(
    set: InstructionSet,
    precision: Precision,
    types: &[TensorType],
    expected: impl Fn(bool, &[f32], &[f32]) -> f32,
) {
    let Ok(instructions @ SimdToken::Avx512(_, _, Some(_))) = set.require() else {
        eprintln!("SKIPPED: this processor or system has no {} with BF16", set.name());
        return;
    };
    let watch = Watch::new(&());
    let context = MatmulContext {
        precision,
        simd: instructions,
        repack_budget: &RepackBudget::new(0),
        watch: &watch,
    };
    let random = &mut Random(3);
    for ty in types {
        let (block, _) = ty.block().unwrap();
        let lens =
            if block == 1 { [1, 31, 97, 1100] } else { [1, 2, 3, 5].map(|n| n * block as usize) };
        for (len, rows) in lens.into_iter().zip([37, 3, 70, 18]) {
            let matrix = matrix(random, *ty, len, rows + 1);
            let mut decoded = vec![0.0; len * rows];
            matrix.decode(1, &mut decoded);
            let stored = *ty == TensorType::BF16;
            let x = activations(random, 35, len);
            let expected: Vec<f32> = (0..x.rows * rows)
                .map(|i| expected(stored, &decoded[i % rows * len..][..len], x.row(i / rows)))
                .collect();
            for tokens in [35, 33, 32, 16, 9, 2, 1] {
                let part = x.data[..tokens * len].to_vec();
                let x = Value { rows: tokens, width: len, data: part };
                let mut out = Value::zeros(tokens, rows, Vec::new());
                assert!(matmul(context, &matrix, 1, &x, &mut out));
                for (i, (found, expected)) in out.data.iter().zip(&expected).enumerate() {
                    assert!(same(*found, *expected), "{ty} {len} {tokens} {i}: {found} {expected}");
                }
            }
        }
    }
}

#[test]
fn amx_in_exact_precision_is_bit_exact() {
    let exact = Precision::Exact;
    compare(InstructionSet::Amx, exact, &TYPES, |stored, row, x| by_tiles(stored, exact, row, x));
}

#[test]
fn amx_in_fast_precision_is_bit_exact() {
    let (fast, types) = (Precision::Fast, [TensorType::BF16, TensorType::F16]);
    compare(InstructionSet::Amx, fast, &types, |stored, row, x| by_tiles(stored, fast, row, x));
}

#[test]
fn avx512_in_fast_precision_is_bit_exact() {
    let types = [TensorType::BF16];
    compare(InstructionSet::Avx512, Precision::Fast, &types, |_, row, x| by_vectors(row, x));
}

/// Checks the error bounds of the module documentation, and that they are tight.
#[test]
fn errors_stay_within_the_bound() {
    let random = &mut Random(4);
    let (exact, fast) = (Precision::Exact, Precision::Fast);
    let mut nearest = [0.0_f64; 5];
    for len in [1_usize, 32, 700, 4096] {
        let steps = len.div_ceil(STEP);
        for _ in 0..200 {
            let x: Vec<f32> = (0..len).map(|_| random.with_magnitude(4)).collect();
            let row: Vec<f32> = (0..len).map(|_| random.with_magnitude(4)).collect();
            let rounded: Vec<f32> = row.iter().map(|w| half::bf16::from_f32(*w).to_f32()).collect();
            let half: Vec<f32> = row.iter().map(|w| half::f16::from_f32(*w).to_f32()).collect();
            let ways = [
                (&row, by_tiles(false, exact, &row, &x), -15, 17 + 3 * steps),
                (&half, by_tiles(false, exact, &half, &x), -15, 17 + 3 * steps),
                (&rounded, by_tiles(true, exact, &rounded, &x), -17, 17 + 2 * steps),
                (&rounded, by_tiles(true, fast, &rounded, &x), -8, 17 + steps),
                (&rounded, by_vectors(&rounded, &x), -8, 4 + 2 * steps),
            ];
            for ((row, found, lost, additions), nearest) in ways.into_iter().zip(&mut nearest) {
                let products = row.iter().zip(&x).map(|(w, x)| f64::from(*w) * f64::from(*x));
                let (sum, size) = products.fold((0.0, 0.0), |(a, b), c| (a + c, b + c.abs()));
                let bound = 2.0_f64.powi(lost) + 1.01 * additions as f64 * 2.0_f64.powi(-24);
                let off = (f64::from(found) - sum).abs() / (bound * size);
                assert!(off <= 1.0, "{len}: {found} is not {sum}, by {off} of the bound");
                *nearest = nearest.max(off);
            }
        }
    }
    eprintln!("{nearest:?}");
    assert!(nearest.into_iter().all(|off| off > 0.3), "{nearest:?}");
}
