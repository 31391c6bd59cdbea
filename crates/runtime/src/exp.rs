//! The exponential function and functions derived from it, by operations that all instruction sets round alike:
//! no call, no branch and no fused operation, so that the compiler vectorizes loops and results stay bit-exact.

/// Returns e^x with an error of at most 2 units in the last place; 0 and infinity beyond the range.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding a number whose unit in the last place is 1 rounds to an integer.
    const SHIFT: f32 = 12_582_912.0;
    // ln 2 in two parts: products of the first with integers are exact.
    const HIGH: f32 = 0.693_359_4;
    const LOW: f32 = -2.121_944_4e-4;
    // The result does not change beyond these bounds; NaN stays NaN.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + SHIFT;
    let n = shifted - SHIFT;
    let r = x - n * HIGH - n * LOW;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let p = p * (r * r) + r + 1.0;
    // 2^n in two factors, so that subnormal results are rounded once.
    let n = (shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32);
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    p * power(half) * power(n.wrapping_sub(half))
}

/// Returns 1 / (1 + e^-x).
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Returns the hyperbolic tangent with an absolute error of at most 2e-7.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let e = exp(-2.0 * x.abs());
    ((1.0 - e) / (1.0 + e)).copysign(x)
}

/// Returns the error function with an absolute error of at most 2e-7. Both parts are minimax polynomials: of erf(x) / x in
/// x², and of -ln(1 - erf(x)).
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    let s = x * x;
    let p = 7.889_109e-5;
    let p = p * s - 8.020_838e-4;
    let p = p * s + 5.189_535e-3;
    let p = p * s - 2.685_444_4e-2;
    let p = p * s + 1.128_36e-1;
    let p = p * s - 3.761_262_6e-1;
    let p = p * s + std::f32::consts::FRAC_2_SQRT_PI;
    // Beyond 4 the function rounds to 1; NaN stays NaN.
    let t = x.abs();
    let t = if t > 4.0 { 4.0 } else { t };
    let q = 1.820_861_5e-5;
    let q = q * t - 3.954_734e-4;
    let q = q * t + 3.951_933e-3;
    let q = q * t - 2.445_480_2e-2;
    let q = q * t + 1.071_044_4e-1;
    let q = q * t + 6.345_607e-1;
    let q = q * t + 1.128_837;
    let q = q * t - 1.650_383_8e-5;
    let large = (1.0 - exp(-q)).copysign(x);
    if t < 1.0 { x * p } else { large }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_off_by_two_units_at_most() {
        let mut worst = 0.0f64;
        for i in -1_050_000..=890_000 {
            let x = i as f32 * 1e-4;
            let expected = f64::from(x).exp();
            // Unit in the last place, also of subnormal numbers.
            let unit = f64::from((expected as f32).max(f32::MIN_POSITIVE)) * 2f64.powi(-23);
            if expected < f64::from(f32::MAX) {
                worst = worst.max((f64::from(exp(x)) - expected).abs() / unit);
            }
        }
        assert!(worst <= 2.0, "{worst}");
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(88.9), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn the_error_function_is_off_by_little() {
        for i in -600_000..=600_000 {
            let x = i as f32 * 1e-5;
            let error = (f64::from(erf(x)) - libm::erf(f64::from(x))).abs();
            assert!(error <= 2e-7, "{x}: {error:e}");
        }
        assert_eq!((erf(f32::INFINITY), erf(f32::NEG_INFINITY)), (1.0, -1.0));
        assert!(erf(f32::NAN).is_nan());
        assert_eq!(erf(-0.0).to_bits(), (-0.0f32).to_bits());
    }

    #[test]
    fn the_tangent_is_off_by_little() {
        for i in -100_000..=100_000 {
            let x = i as f32 * 2e-4;
            assert!((f64::from(tanh(x)) - f64::from(x).tanh()).abs() <= 2e-7, "{x}");
        }
        assert_eq!((tanh(f32::INFINITY), tanh(f32::NEG_INFINITY)), (1.0, -1.0));
    }
}
