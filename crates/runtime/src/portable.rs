//! Mathematical functions with equal results on all systems. Those of the standard library are functions of the C
//! library of the system, which differ in the last bit.

/// Returns e^x, rounded from F64.
pub(crate) fn exp(x: f32) -> f32 {
    libm::exp(f64::from(x)) as f32
}

/// Returns e^x - 1, rounded from F64.
pub(crate) fn exp_m1(x: f32) -> f32 {
    libm::expm1(f64::from(x)) as f32
}

/// Returns 2^x, rounded from F64.
pub(crate) fn exp2(x: f32) -> f32 {
    libm::exp2(f64::from(x)) as f32
}

/// Returns the natural logarithm of x, rounded from F64.
pub(crate) fn ln(x: f32) -> f32 {
    libm::log(f64::from(x)) as f32
}

/// Returns the natural logarithm of 1 + x, rounded from F64.
pub(crate) fn ln_1p(x: f32) -> f32 {
    libm::log1p(f64::from(x)) as f32
}

/// Returns the sine and the cosine of x.
pub(crate) fn sin_cos(x: f32) -> (f32, f32) {
    libm::sincosf(x)
}

/// Returns the hyperbolic tangent of x.
pub(crate) fn tanh(x: f32) -> f32 {
    libm::tanhf(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of the bits was computed on Linux.
    #[test]
    fn results_are_equal_on_all_systems() {
        let mut digest = 0u32;
        for i in 0..100_000u32 {
            let x = (i as f32 - 50_000.0) * 1e-3;
            let (sin, cos) = sin_cos(x);
            assert!((f64::from(sin) - f64::from(x).sin()).abs() < 6e-8, "{x}");
            assert!((f64::from(cos) - f64::from(x).cos()).abs() < 6e-8, "{x}");
            assert!((f64::from(tanh(x)) - f64::from(x).tanh()).abs() < 1.2e-7, "{x}");
            for value in
                [sin, cos, tanh(x), exp(x), exp_m1(x), exp2(x), ln(x.abs()), ln_1p(x.abs())]
            {
                digest = digest.rotate_left(5) ^ value.to_bits();
            }
        }
        assert_eq!(digest, DIGEST);
    }

    const DIGEST: u32 = 0xc0c2_d26b;
}
