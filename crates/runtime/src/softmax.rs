//! Log-softmax of logits.

use pulp::{Arch, Simd, WithSimd};

use crate::exp::exp;

/// Returns the maximum, and the logarithm of the sum of `exp(x - maximum)`. The log-probability of a logit is
/// the logit minus both. The result is NaN or infinite if a logit is NaN or infinite, or if all are negative
/// infinity. The order of the sum depends only on the length. Each term has an error of at most two units of F32
/// in the last place, and terms are added in F64.
pub fn log_sum_exp(x: &[f32]) -> (f32, f64) {
    Arch::new().dispatch(LogSumExp(x))
}

struct LogSumExp<'x>(&'x [f32]);

impl WithSimd for LogSumExp<'_> {
    type Output = (f32, f64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> (f32, f64) {
        let (whole, rest) = self.0.as_chunks::<16>();
        let mut most = [f32::NEG_INFINITY; 16];
        for x in whole {
            for (most, x) in most.iter_mut().zip(x) {
                *most = if *x > *most { *x } else { *most };
            }
        }
        let greatest = most.iter().chain(rest).fold(f32::NEG_INFINITY, |most, x| most.max(*x));
        let mut sums = [0.0f64; 16];
        for x in whole {
            for (sum, x) in sums.iter_mut().zip(x) {
                *sum += f64::from(exp(*x - greatest));
            }
        }
        let sum: f64 = rest.iter().map(|x| f64::from(exp(*x - greatest))).sum();
        (greatest, libm::log(sums.iter().sum::<f64>() + sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_match_f64() {
        for len in [1, 15, 16, 49_153] {
            let x: Vec<f32> = (0..len).map(|i| (i * 7919 % 1013) as f32 * 0.03 - 21.0).collect();
            let greatest = x.iter().copied().fold(f32::MIN, f32::max);
            let terms = x.iter().map(|x| (f64::from(*x) - f64::from(greatest)).exp());
            let (found, log) = log_sum_exp(&x);
            assert_eq!(found, greatest);
            assert!((log - terms.sum::<f64>().ln()).abs() < 2e-7, "{len}");
        }
    }

    #[test]
    fn nan_and_infinity_propagate() {
        for x in [&[0.0, f32::NAN][..], &[f32::NAN, 0.0], &[f32::INFINITY], &[f32::NEG_INFINITY]] {
            for len in [x.len(), 40] {
                let mut all = x.to_vec();
                all.resize(len, x[x.len() - 1]);
                let (greatest, log) = log_sum_exp(&all);
                assert!(!(greatest.is_finite() && log.is_finite()), "{x:?}");
            }
        }
        assert_eq!(log_sum_exp(&[0.0, f32::NEG_INFINITY]), (0.0, 0.0));
    }
}
