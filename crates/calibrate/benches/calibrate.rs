//! Where the time of calibrating goes, for matrices of one width: sums of moments, their factors, and the blocks of
//! each type.
//!
//! `cargo bench -p gguf-calibrate [-- COLUMNS [ROWS [TYPE]]]`, by default 1536, 576, and all types.

use std::time::Instant;

use gguf::TensorType;
use gguf_calibrate::{Encoder, Moments, Target};
use gguf_quant::has_form;

/// Tokens of a window.
const TOKENS: usize = 256;

/// Prints what was done in a second.
fn tell(what: &str, amount: f64, unit: &str, begun: Instant) {
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
    let mut moments = Moments::new(n, true);
    // The pages of its sums are touched first.
    moments.add(&y[..n], Some(&x[..n]));
    let windows = 8;
    let begun = Instant::now();
    (0..windows).for_each(|_| moments.add(&y, Some(&x)));
    // Half of the squares, and all of the drift.
    let flops = 2.0 * 1.5 * (n * n * TOKENS * windows) as f64;
    tell("moments", flops / 1e9, "Gflop", begun);
    moments.complete();
    let begun = Instant::now();
    let target = Target::new(moments, 0.1);
    tell("factor", (n as f64).powi(3) / 3.0 * 2.0 / 1e9, "Gflop", begun);
    for ty in TensorType::all().filter(|ty| has_form(*ty) && ty.name().contains(wanted)) {
        let Ok(encoder) = Encoder::new(ty) else { continue };
        let Some(len) = ty.byte_len(&[n as u64, rows as u64]) else { continue };
        let mut out = vec![0; len as usize];
        let begun = Instant::now();
        if encoder.encode(&w, &target, &mut out).is_ok() {
            tell(&ty.name(), w.len() as f64 / 1e6, "M weights", begun);
        }
    }
}
