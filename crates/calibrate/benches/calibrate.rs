//! Throughput of calibration for matrices of one width: Hessian accumulation, Cholesky
//! factorization, and GPTQ encoding of each type.
//!
//! `cargo bench -p gguf-calibrate [-- COLUMNS [ROWS [TYPE]]]`, by default 1536, 576, and all types.

use std::time::Instant;

use gguf::TensorType;
use gguf_calibrate::{Encoder, Hessian, Objective};
use gguf_quant::has_quant_grid;

/// Number of tokens per chunk.
const TOKENS: usize = 1024;

/// Prints a throughput.
fn report(what: &str, amount: f64, unit: &str, begun: Instant) {
    let seconds = begun.elapsed().as_secs_f64();
    println!("{what:<10} {:>10.2} {unit}/s  {seconds:>8.3} s", amount / seconds);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let number = |at: usize, otherwise| arguments.get(at).map_or(otherwise, |a| a.parse().unwrap());
    let (n, rows): (usize, usize) = (number(0, 1536), number(1, 576));
    let wanted = arguments.get(2).map_or("", String::as_str);
    let mut state = 1u64;
    let mut normal = || {
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f32 / 16_777_216.0 - 0.5
        };
        (0..4).map(|_| uniform()).sum::<f32>()
    };
    let y: Vec<f32> = (0..TOKENS * n).map(|_| normal()).collect();
    let x: Vec<f32> = y.iter().map(|y| y + 0.01 * normal()).collect();
    let w: Vec<f32> = (0..rows * n).map(|_| normal()).collect();
    let mut hessian = Hessian::new(n, true);
    // Touches the pages of the sums first.
    hessian.add(&y[..n], Some(&x[..n]));
    let chunks = 2;
    let begun = Instant::now();
    (0..chunks).for_each(|_| hessian.add(&y, Some(&x)));
    // Half of the symmetric matrix and all of the drift matrix.
    let flops = 2.0 * 1.5 * (n * n * TOKENS * chunks) as f64;
    report("hessian", flops / 1e9, "Gflop", begun);
    hessian.symmetrize();
    let begun = Instant::now();
    let target = Objective::new(hessian, 0.1);
    report("factor", (n as f64).powi(3) / 3.0 * 2.0 / 1e9, "Gflop", begun);
    for ty in TensorType::all().filter(|ty| has_quant_grid(*ty) && ty.name().contains(wanted)) {
        let Ok(encoder) = Encoder::new(ty) else { continue };
        let Some(len) = ty.byte_len(&[n as u64, rows as u64]) else { continue };
        let mut out = vec![0; len as usize];
        let begun = Instant::now();
        if encoder.encode(&w, &target, &mut out).is_ok() {
            report(&ty.name(), w.len() as f64 / 1e6, "M weights", begun);
        }
    }
}
