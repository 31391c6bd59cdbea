//! All kernels are bit-exact to the specification.

use gguf::TensorType;
use gguf_quant::integers;

use super::*;
use crate::instructions::InstructionSet;
use crate::random::Random;

/// 1 in FP16, twice.
const ONES: [u8; 4] = [0, 0x3c, 0, 0x3c];

/// Returns rows of blocks with random bytes, or with one byte repeated except in the first and last of each
/// block, so that block scales are finite.
fn weights(
    random: &mut Random,
    ty: TensorType,
    rows: usize,
    width: usize,
    same: Option<u8>,
) -> Vec<u8> {
    let bytes = ty.byte_len(&[width as u64, rows as u64]).unwrap() as usize;
    let mut made: Vec<u8> =
        (0..bytes).map(|_| same.unwrap_or_else(|| (random.next() >> 24) as u8)).collect();
    if same.is_some() {
        let (_, bytes) = ty.block().unwrap();
        for block in made.chunks_exact_mut(bytes as usize) {
            *block.first_chunk_mut().unwrap() = ONES;
            *block.last_chunk_mut().unwrap() = ONES;
        }
    }
    made
}

fn activations(random: &mut Random, rows: usize, width: usize, scale: f32) -> Value {
    let mut value = Value::zeros(rows, width, Vec::new());
    for (i, x) in value.data.iter_mut().enumerate() {
        *x = match i % 67 {
            0 => scale,
            1 => -scale,
            _ => scale * random.float(),
        };
    }
    value
}

fn same_bits(found: &[f32], expected: &[f32]) -> bool {
    found.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
}

/// Returns [`ROWS`] rows: those given, then the first one repeated.
fn whole(weights: &[u8], rows: usize) -> Vec<u8> {
    let row = &weights[..weights.len() / rows];
    [weights, &row.repeat(ROWS - rows)].concat()
}

fn compare(
    ty: TensorType,
    other: &dyn Kernels,
    rows: usize,
    tokens: usize,
    width: usize,
    same: Option<u8>,
) {
    let random = &mut Random(rows as u64 * 1000 + tokens as u64);
    let weights = weights(random, ty, rows, width, same);
    let scale = [1.0, 1e-30, 1e30][tokens % 3];
    let mut x = activations(random, tokens, width, scale);
    if same.is_some() {
        // Maximum sums.
        for (row, x) in x.data.chunks_exact_mut(width).enumerate() {
            x.fill(if row % 2 == 0 { scale } else { -scale });
        }
    }
    let scalar = integers::visit(ty, scalar::Find).unwrap();
    let quantize = |epilogue| Quantized::new(&x, scalar.len(), scalar.group(), epilogue);
    let (few, many) = (quantize(other.epilogue(1)), quantize(other.epilogue(FEW + 1)));
    let mut expected = vec![[0.0; ROWS]; tokens];
    scalar.tiles(&weights, &quantize(Epilogue::None), &mut expected);
    let mut found = vec![[0.0; ROWS]; tokens];
    other.tiles(&weights, &many, &mut found);
    for (expected, found) in expected.iter().zip(&found) {
        assert!(same_bits(&found[..rows], &expected[..rows]), "{ty}: {found:?} {expected:?}");
    }
    // Several tiles together; the last one has fewer rows.
    let together = other.together();
    let strips = match together {
        1 => weights.clone(),
        _ => [whole(&weights, rows), weights.clone()].concat(),
    };
    let mut found = vec![[0.0; ROWS]; together.min(2) * tokens];
    other.tiles(&strips, &many, &mut found);
    let last = &found[found.len() - tokens..];
    for (found, expected) in found.iter().zip(&expected).chain(last.iter().zip(&expected)) {
        assert!(
            same_bits(&found[..rows], &expected[..rows]),
            "{ty} together: {found:?} {expected:?}"
        );
    }
    if tokens <= FEW {
        let mut found = vec![0.0; rows * tokens];
        other.rows(&weights, &few, &mut found);
        for (r, found) in found.chunks_exact(tokens).enumerate() {
            let expected: Vec<f32> = expected.iter().map(|row| row[r]).collect();
            assert!(same_bits(found, &expected), "{ty} row {r}: {found:?} {expected:?}");
        }
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(packed) = other.pack(&weights, weights.len() / rows) {
        let mut found = vec![0.0; rows * tokens];
        let x = quantize(Epilogue::of_packed(tokens));
        other.packed(&packed.format, packed.strips(0, rows), &x, &mut found);
        for (r, found) in found.chunks_exact(tokens).enumerate() {
            let expected: Vec<f32> = expected.iter().map(|row| row[r]).collect();
            assert!(same_bits(found, &expected), "{ty} packed {r}: {found:?} {expected:?}");
        }
    }
}

/// Compares the kernels of all types.
fn compare_all(find: impl Fn(TensorType) -> Option<Box<dyn Kernels>>) {
    let mut types = 0;
    for ty in TensorType::all() {
        let Some(kernels) = find(ty) else { continue };
        types += 1;
        let widths = if kernels.len() == 32 { [32, 288, 544] } else { [256, 1024, 2560] };
        for (i, width) in widths.into_iter().enumerate() {
            for rows in [1, 5, 15, 16] {
                for tokens in [1, 2, 3, 4, 5, 9, 10, 11, 45] {
                    compare(ty, &*kernels, rows, tokens, width, None);
                }
            }
            for same in [0, 0x7f, 0x80, 0xff, 0x11, 0x3b] {
                compare(ty, &*kernels, 16, 4 + 9 * i, width, Some(same));
            }
        }
    }
    assert_eq!(types, 22);
}

/// Compares the kernels of all types, if the processor supports the instruction set.
fn compare_all_by(set: InstructionSet) {
    let Ok(proof) = set.require() else {
        eprintln!("SKIPPED: this processor or system has no {}", set.name());
        return;
    };
    compare_all(|ty| kernels(ty, proof));
}

#[test]
fn avx2_is_bit_exact() {
    compare_all_by(InstructionSet::Avx2);
}

#[test]
fn avx512_is_bit_exact() {
    compare_all_by(InstructionSet::Avx512);
}

#[test]
fn amx_is_bit_exact() {
    compare_all_by(InstructionSet::Amx);
}

#[test]
fn neon_is_bit_exact() {
    compare_all_by(InstructionSet::Neon);
}

#[test]
fn neon_with_i8mm_is_bit_exact() {
    compare_all_by(InstructionSet::NeonMatrix);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn sums_in_16_bits_do_not_overflow() {
    let Ok(by) = InstructionSet::Avx512.require() else {
        eprintln!("SKIPPED: this processor or operating system does not support AVX-512");
        return;
    };
    let scalar = integers::visit(TensorType::Q6_K, scalar::Find).unwrap();
    let kernels = kernels(TensorType::Q6_K, by).unwrap();
    // All levels are -32: 1,023 is the maximum sum of magnitudes whose product fits.
    let mut block = [0; 210];
    block[192..208].fill(127);
    block[208..].copy_from_slice(&ONES[..2]);
    let weights = block.repeat(ROWS);
    for sign in [1.0, -1.0] {
        for magnitude in 60..68 {
            let mut x = Value::zeros(8, 256, Vec::new());
            x.data.fill(sign * magnitude as f32);
            // The maximum is 127, in a group with a smaller sum.
            x.data.chunks_exact_mut(256).for_each(|x| x[..16].fill(sign));
            x.data.chunks_exact_mut(256).for_each(|x| x[0] = sign * 127.0);
            let quantize = |epilogue| Quantized::new(&x, 256, 16, epilogue);
            let many = quantize(kernels.epilogue(8));
            assert_eq!(many.piece(0).largest[3], 16 * magnitude);
            let (mut expected, mut found) = (vec![[0.0; ROWS]; 8], vec![[0.0; ROWS]; 8]);
            scalar.tiles(&weights, &quantize(Epilogue::None), &mut expected);
            kernels.tiles(&weights, &many, &mut found);
            assert!(same_bits(found.as_flattened(), expected.as_flattened()), "{magnitude}");
        }
    }
}

#[test]
fn quantized_activations_are_reused() {
    let x = activations(&mut Random(5), 3, 512, 1.0);
    let cache = QuantizedInput::default();
    let first = cache.get(&x, 32, 32, Epilogue::None);
    assert!(Arc::ptr_eq(&first, &cache.get(&x, 32, 32, Epilogue::None)));
    // Another weight type has other blocks.
    let other = cache.get(&x, 256, 16, Epilogue::None);
    assert_eq!([&first, &other].map(|quantized| quantized.scales(2, 256, 256).len()), [8, 1]);
}

/// Returns the product of dequantized weights and exact activations in F64.
#[test]
fn products_are_close_to_f64() {
    for ty in TensorType::all() {
        let Some(kernels) = integers::visit(ty, scalar::Find) else { continue };
        let random = &mut Random(7);
        let width = 512;
        let row: Vec<f32> = (0..width).map(|_| random.float()).collect();
        let mut bytes = vec![0; ty.byte_len(&[width as u64]).unwrap() as usize];
        gguf_quant::encode_row(ty, &row, Some(&vec![1.0; width]), &mut bytes).unwrap();
        let mut decoded = vec![0.0; width];
        gguf_quant::decode_row(ty, &bytes, &mut decoded).unwrap();
        let x = activations(random, 1, width, 1.0);
        let pairs = decoded.iter().zip(&x.data).map(|(a, b)| f64::from(*a) * f64::from(*b));
        let expected: f64 = pairs.sum();
        let quantized = Quantized::new(&x, kernels.len(), kernels.group(), Epilogue::None);
        let mut found = [0.0];
        kernels.rows(&bytes, &quantized, &mut found);
        // The error of each of 512 products is at most about half a 127th of 0.3, and the errors cancel.
        assert!((f64::from(found[0]) - expected).abs() < 0.05, "{ty}: {} {expected}", found[0]);
    }
}

#[test]
fn nan_and_infinity_propagate() {
    let kernels = integers::visit(TensorType::Q4_0, scalar::Find).unwrap();
    for wrong in [f32::NAN, f32::INFINITY, -f32::NAN] {
        let mut x = activations(&mut Random(1), 1, 64, 1.0);
        x.data[40] = wrong;
        let quantized = Quantized::new(&x, kernels.len(), kernels.group(), Epilogue::None);
        let mut found = [0.0];
        kernels.rows(
            &weights(&mut Random(1), TensorType::Q4_0, 1, 64, Some(0x11)),
            &quantized,
            &mut found,
        );
        assert!(found[0].is_nan());
    }
}

/// Returns the products of all matrices of a tensor in repeated runs with the same tokens, before and after runs with a
/// single one, and the bytes that were repacked.
#[cfg(target_arch = "x86_64")]
fn repeated_runs(by: SimdToken, shape: &[u64], tokens: usize, limit: u64) -> (Vec<Vec<f32>>, u64) {
    let random = &mut Random(3);
    let rows = shape[1..].iter().product::<u64>() as usize;
    let width = shape[0] as usize;
    let bytes = weights(random, TensorType::Q4_K, rows, width, None);
    let matrix = Matrix::from_bytes("m", shape, TensorType::Q4_K, bytes.into()).unwrap();
    let x = activations(random, tokens, width, 1.0);
    let budget = crate::repack::RepackBudget::new(limit);
    let watch = crate::watch::Watch::new(&());
    let precision = crate::matmul::Precision::Fast;
    let context = MatmulContext { precision, simd: by, repack_budget: &budget, watch: &watch };
    let one = shape[1] as usize;
    let run = |x: &Value| {
        let experts = (0..rows / one).flat_map(|expert| {
            let mut out = Value::zeros(x.rows, one, Vec::new());
            assert!(matmul(context, &matrix, expert * one, x.into(), &mut out));
            out.data
        });
        experts.collect()
    };
    // Only products with few tokens repack.
    let first = Value { rows: 1, width, data: x.row(0).to_vec() };
    let mut results: Vec<Vec<f32>> = (0..4).map(|_| run(&x)).collect();
    (0..8).for_each(|_| drop(run(&first)));
    results.extend((0..4).map(|_| run(&x)));
    (results, budget.used())
}

#[cfg(target_arch = "x86_64")]
#[test]
fn repacking_does_not_change_results() {
    let same = |results: &[Vec<f32>]| results.iter().all(|result| same_bits(result, &results[0]));
    for set in [InstructionSet::Avx2, InstructionSet::Avx512] {
        let Ok(by) = set.require() else {
            eprintln!(
                "SKIPPED: this processor or operating system does not support {}",
                set.name()
            );
            continue;
        };
        for (shape, packs) in [([512, 40, 1], true), ([512, 32, 3], true), ([512, 24, 3], false)] {
            for tokens in [1, 2, 3, 5, 8, 11, 24, 25] {
                let (plain, none) = repeated_runs(by, &shape, tokens, 0);
                let (packed, taken) = repeated_runs(by, &shape, tokens, 1 << 20);
                assert_eq!((none, taken > 0), (0, packs), "{shape:?}");
                assert!(same(&plain) && same(&packed) && same_bits(&plain[0], &packed[0]));
            }
        }
    }
}
