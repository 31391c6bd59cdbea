//! What the instructions compute, number by number: the specification.
//!
//! Both round each operation to the nearest number in F32, of two the even one, and take for 0 what is
//! less than the least normal number in magnitude, be it given or made. They neither heed nor change the
//! modes of the processor's other floats.

use super::STEP;
use super::parts::float;

/// `sum` and the products of a step, as `tdpbf16ps` adds them: first those of even columns one after the
/// other, and those of odd columns, each with one rounding; then the two sums to one another; then that to
/// `sum`.
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

/// A whole row as AMX multiplies it: step by step the product of the first parts, that of the first of
/// the weights with the second of the activations, and the other way round.
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

/// 16 sums and the products of a step, as `vdpbf16ps` adds them: in each, that of the odd column, then
/// that of the even one.
pub(super) fn vector(sums: &mut [f32; STEP / 2], weights: &[u16; STEP], x: &[u16; STEP]) {
    let pairs = weights.as_chunks::<2>().0.iter().zip(x.as_chunks::<2>().0);
    for (sum, (weights, x)) in sums.iter_mut().zip(pairs) {
        *sum = multiply_add(float(weights[1]), float(x[1]), *sum);
        *sum = multiply_add(float(weights[0]), float(x[0]), *sum);
    }
}

/// A whole row as AVX-512 multiplies it: 16 sums, whose upper half is then added to the lower one until one
/// is left.
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

/// `a * b + c` with one rounding.
fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    let (a, b, c) = (normal(a), normal(b), normal(c));
    let made = a.mul_add(b, c);
    if made.abs() == f32::MIN_POSITIVE {
        // With more room below, it is seen whether it was less before it was rounded: as many bits are kept as of
        // any normal number.
        let scale = f32::from_bits((127 + 96) << 23);
        let of_c = c * scale;
        let wide = if a.abs() < b.abs() {
            (a * scale).mul_add(b, of_c)
        } else {
            a.mul_add(b * scale, of_c)
        };
        return if wide.abs() < f32::MIN_POSITIVE * scale { 0.0_f32.copysign(made) } else { made };
    }
    normal(made)
}

/// Zero of the same sign if it is less than the least normal number.
fn normal(x: f32) -> f32 {
    if x.is_subnormal() { 0.0_f32.copysign(x) } else { x }
}
