//! Specification of the instructions in scalar arithmetic.
//!
//! Both round each operation to the nearest F32 number, ties to even, and flush subnormal inputs and results to
//! 0. They ignore and keep the floating-point modes of the processor.

use super::STEP;
use super::parts::float;

/// Returns `sum` plus the products of a step in the order of `tdpbf16ps`: first the sums of even and of odd
/// columns, with one rounding per product; then the sum of both; then that plus `sum`.
pub(super) fn tile(sum: f32, weights: &[u16; STEP], x: &[u16; STEP]) -> f32 {
    let mut sums = [0.0; 2];
    for (weights, x) in weights.as_chunks::<2>().0.iter().zip(x.as_chunks::<2>().0) {
        for i in 0..2 {
            sums[i] = multiply_add(float(weights[i]), float(x[i]), sums[i]);
        }
    }
    let [even, odd] = sums;
    multiply_add(sum, 1.0, multiply_add(even, 1.0, odd))
}

/// Returns the product of a row with AMX: per step the first parts, then the first parts of the weights with the
/// second parts of the activations, then vice versa.
pub(super) fn tiles<const W: usize, const X: usize>(
    weights: &[[[u16; STEP]; W]],
    x: &[[[u16; STEP]; X]],
) -> f32 {
    let mut sum = 0.0;
    for (weights, x) in weights.iter().zip(x) {
        sum = tile(sum, &weights[0], &x[0]);
        if let Some(x) = x.get(1) {
            sum = tile(sum, &weights[0], x);
        }
        if let Some(weights) = weights.get(1) {
            sum = tile(sum, weights, &x[0]);
        }
    }
    sum
}

/// Adds the products of a step to 16 sums in the order of `vdpbf16ps`: in each, the odd column, then the even
/// one.
pub(super) fn vector(sums: &mut [f32; STEP / 2], weights: &[u16; STEP], x: &[u16; STEP]) {
    let pairs = weights.as_chunks::<2>().0.iter().zip(x.as_chunks::<2>().0);
    for (sum, (weights, x)) in sums.iter_mut().zip(pairs) {
        *sum = multiply_add(float(weights[1]), float(x[1]), *sum);
        *sum = multiply_add(float(weights[0]), float(x[0]), *sum);
    }
}

/// Returns the product of a row with AVX-512: 16 sums, whose upper half is added to the lower one until one is
/// left.
pub(super) fn vectors(weights: &[[u16; STEP]], x: &[[u16; STEP]]) -> f32 {
    let mut sums = [0.0; STEP / 2];
    for (weights, x) in weights.iter().zip(x) {
        vector(&mut sums, weights, x);
    }
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            sums[i] += sums[half + i];
        }
    }
    sums[0]
}

/// Returns `a * b + c` with one rounding.
fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    let (a, b, c) = (normal(a), normal(b), normal(c));
    let result = a.mul_add(b, c);
    if result.abs() == f32::MIN_POSITIVE {
        // Scaling up avoids subnormal results, so that the sum is rounded to the full precision before it is
        // compared.
        let scale = f32::from_bits((127 + 96) << 23);
        let of_c = c * scale;
        let wide = if a.abs() < b.abs() {
            (a * scale).mul_add(b, of_c)
        } else {
            a.mul_add(b * scale, of_c)
        };
        return if wide.abs() < f32::MIN_POSITIVE * scale {
            0.0_f32.copysign(result)
        } else {
            result
        };
    }
    normal(result)
}

/// Flushes subnormal numbers to 0 with the same sign.
fn normal(x: f32) -> f32 {
    if x.is_subnormal() { 0.0_f32.copysign(x) } else { x }
}
