//! The 4-bit float E2M1, which MXFP4 and NVFP4 share.
//!
//! ```text
//! | sign | exponent | mantissa |       0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
//!  3      2        1          0
//! ```

use pulp::Simd;

use crate::lanes;
use crate::value_tables::E2M1_DOUBLED;

/// Decodes a code; `half_scale` is half the scale of the block.
#[inline(always)]
pub(super) fn decode(code: u8, half_scale: f32) -> f32 {
    f32::from(E2M1_DOUBLED[usize::from(code & 15)]) * half_scale
}

/// Finds the code with the smallest error for each weight. The first of equals wins, so the result
/// is the code closest to 0 and never -0.
#[inline(always)]
pub(super) fn encode<S: Simd, const N: usize>(simd: S, x: &[f32; N], half_scale: f32) -> [u8; N] {
    let mut codes = [0.0; N];
    lanes::transform(
        simd,
        x,
        &mut codes,
        #[inline(always)]
        |x| {
            // For the opposite sign, 0 is the nearest value.
            let magnitude = x.abs();
            let (mut best, mut error) = (x.constant(0.0), magnitude);
            for (code, value) in E2M1_DOUBLED.into_iter().enumerate().take(8).skip(1) {
                let new = (x.constant(f32::from(value) * half_scale) - magnitude).abs();
                let better = new.less(error);
                best = better.select(x.constant(code as f32), best);
                error = better.select(new, error);
            }
            let negative = x.less(x.constant(0.0)) & best.greater(x.constant(0.0));
            negative.select(best + x.constant(8.0), best)
        },
    );
    lanes::bytes(&codes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_towards_zero() {
        let x = [0.0, -0.0, 0.25, -0.25, 0.26, -0.75, 5.0, -5.1, 100.0];
        assert_eq!(encode(pulp::Scalar, &x, 0.5), [0, 0, 0, 0, 1, 9, 6, 15, 7]);
        assert_eq!(
            encode(pulp::Scalar, &x, 0.5).map(|q| decode(q, 0.5)),
            [0.0, 0.0, 0.0, 0.0, 0.5, -0.5, 4.0, -6.0, 6.0]
        );
    }
}
