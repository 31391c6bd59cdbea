//! What MXFP4 and NVFP4 share: the 4-bit float E2M1.
//!
//! ```text
//! | sign | exponent | mantissa |       0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
//!  3      2        1          0
//! ```

use pulp::Simd;

use crate::lanes;

/// Twice the value of each code, so that all are integers; scales are halved in exchange.
pub(crate) const DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The weight of a code: `half_scale` is half the scale of the block.
#[inline(always)]
pub(super) fn decode(code: u8, half_scale: f32) -> f32 {
    f32::from(DOUBLED[usize::from(code & 15)]) * half_scale
}

/// The code with the smallest error for each weight; of equals the first, so the one nearest to 0,
/// and never -0.
#[inline(always)]
pub(super) fn encode<S: Simd, const N: usize>(simd: S, x: &[f32; N], half_scale: f32) -> [u8; N] {
    let mut codes = [0.0; N];
    lanes::transform(
        simd,
        x,
        &mut codes,
        #[inline(always)]
        |x| {
            // Of the other sign no value is nearer than 0.
            let magnitude = x.abs();
            let (mut best, mut error) = (x.constant(0.0), magnitude);
            for (code, value) in DOUBLED.into_iter().enumerate().take(8).skip(1) {
                let new = (x.constant(f32::from(value) * half_scale) - magnitude).abs();
                let better = new.less(error);
                best = better.select(x.constant(code as f32), best);
                error = better.select(new, error);
            }
            let negative = x.less(x.constant(0.0)) & best.more(x.constant(0.0));
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
