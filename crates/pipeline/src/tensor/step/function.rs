//! Functions of one element, and their inverses.

/// A function of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// `x + 1`: norm weights stored as the difference from 1 (Gemma).
    PlusOne,
    /// `-exp(x)`: decay stored as its logarithm (Mamba, RWKV).
    MinusExp,
    /// `x + c`: norm weights stored as the difference from `c` (PLaMo 2).
    Plus(f32),
    /// `exp(x)`: decay stored as its logarithm, without the sign (Ling).
    Exp,
    /// `x * c`.
    Times(f32),
    /// Rounds to `-c`, 0 or `c`, computed as `round(x / c)` divided by `1 / c`: ternary weights
    /// (BitNet).
    Ternary(f32),
    /// `ln(1 + exp(x))`: softplus of a scale (Gemma 4).
    Softplus,
    /// `x - 1`, the inverse of [`Function::PlusOne`].
    MinusOne,
    /// `ln(-x)`, the inverse of [`Function::MinusExp`].
    LnOfMinus,
    /// `x - c`, the inverse of [`Function::Plus`].
    Minus(f32),
    /// `ln(x)`, the inverse of [`Function::Exp`].
    Ln,
    /// `x / c`, the inverse of [`Function::Times`].
    Over(f32),
}

impl Function {
    /// Applies the function to `x`.
    ///
    /// For an inverse, applying the original function to the result restores `x` bit for bit,
    /// provided that `x` is one of its values.
    pub(super) fn of(self, x: f32) -> f32 {
        match self {
            Self::PlusOne => x + 1.0,
            // In double precision, since single-precision results differ between machines.
            Self::MinusExp => -(f64::from(x).exp() as f32),
            Self::Plus(c) => x + c,
            Self::Exp => f64::from(x).exp() as f32,
            Self::Times(c) => x * c,
            Self::Ternary(c) => {
                let inverse = 1.0 / c;
                (x * inverse).round_ties_even().clamp(-1.0, 1.0) / inverse
            }
            // In double precision for the same reason; beyond 20 the sum equals `exp(x)` in single
            // precision.
            Self::Softplus if x > 20.0 => x,
            Self::Softplus => f64::from(x).exp().ln_1p() as f32,
            // Exact if `x` is the result of adding 1.
            Self::MinusOne => x - 1.0,
            Self::LnOfMinus => before(Self::MinusExp, x, (-f64::from(x)).ln() as f32),
            Self::Minus(c) => before(Self::Plus(c), x, x - c),
            Self::Ln => before(Self::Exp, x, f64::from(x).ln() as f32),
            Self::Over(c) => before(Self::Times(c), x, x / c),
        }
    }

    /// Returns the inverse of the function; `None` if the function loses information.
    pub(super) fn inverse(self) -> Option<Self> {
        Some(match self {
            Self::PlusOne => Self::MinusOne,
            Self::MinusOne => Self::PlusOne,
            Self::MinusExp => Self::LnOfMinus,
            Self::LnOfMinus => Self::MinusExp,
            Self::Plus(c) => Self::Minus(c),
            Self::Minus(c) => Self::Plus(c),
            Self::Exp => Self::Ln,
            Self::Ln => Self::Exp,
            Self::Times(c) if c.is_normal() => Self::Over(c),
            Self::Over(c) if c.is_normal() => Self::Times(c),
            // Ternary values stay unchanged.
            Self::Ternary(c) => Self::Ternary(c),
            Self::Times(_) | Self::Over(_) | Self::Softplus => return None,
        })
    }
}

/// Returns the number that `function` maps to `y`: `near`, which may be off by rounding, or a
/// neighbour.
///
/// If `function` maps any number to `y`, one within two neighbours of `near` does. Rounding `y`
/// moves the exact inverse by at most an ulp of `x` (otherwise several numbers map to `y`),
/// rounding that inverse by half an ulp, and below a power of two ulps are half as large. If no
/// number maps to `y`, returns `near`.
fn before(function: Function, y: f32, near: f32) -> f32 {
    let leads_back = |x: &f32| function.of(*x).to_bits() == y.to_bits();
    let (up, down) = (near.next_up(), near.next_down());
    let neighbours = [near, up, down, up.next_up(), down.next_down()];
    neighbours.into_iter().find(leads_back).unwrap_or(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all magnitudes up to `2^most`, of both signs.
    fn numbers(most: i32) -> impl Iterator<Item = f32> {
        // Multiplier of Knuth's MMIX generator: mantissas without a pattern.
        let mut state = 1u64;
        (-30..most).flat_map(|power| (0..2000).map(move |i| (power, i))).map(move |(power, i)| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mantissa = 1.0 + (state >> 41) as f32 / 8_388_608.0;
            let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
            sign * mantissa * 2f32.powi(power)
        })
    }

    #[test]
    fn softplus_matches_its_definition() {
        assert_eq!(Function::Softplus.of(0.0), std::f32::consts::LN_2);
        assert_eq!(Function::Softplus.of(30.0), 30.0);
        assert_eq!(Function::Softplus.of(-200.0), 0.0);
        assert_eq!(Function::Softplus.inverse(), None);
    }

    #[test]
    fn ternary_rounds_to_three_values() {
        let round = |x| Function::Ternary(0.5).of(x);
        assert_eq!(
            [-3.0, -0.5, -0.2, 0.0, 0.25, 0.3, 7.0].map(round),
            [-0.5, -0.5, 0.0, 0.0, 0.0, 0.5, 0.5]
        );
        // Rounding is idempotent even if the factor has no exact inverse.
        let function = Function::Ternary(0.3);
        let once = [-1.0, 0.1, 0.2].map(|x| function.of(x));
        assert_eq!(once.map(|x| function.of(x)), once);
        assert_eq!(Function::Plus(-0.25).of(1.0), 0.75);
    }

    #[test]
    fn inverses_are_bit_exact() {
        let cases = [
            (Function::PlusOne, 20),
            // The exponential overflows beyond 88.
            (Function::MinusExp, 6),
            (Function::Plus(0.2), 20),
            (Function::Exp, 6),
            (Function::Times(0.7), 20),
            (Function::Times(-3.3e4), 20),
            (Function::Times(0.22), 20),
        ];
        for (function, most) in cases {
            let inverse = function.inverse().unwrap();
            for x in numbers(most) {
                let y = function.of(x);
                let back = function.of(inverse.of(y));
                assert_eq!(back.to_bits(), y.to_bits(), "{function:?} of {x:e}");
            }
        }
        assert_eq!(Function::Times(0.0).inverse(), None);
    }
}
