//! `activation`

use gguf_graph::{Activation, ActivationFunction};

use super::Kernel;
use super::elementwise::map;
use crate::exp::{erf, exp, sigmoid, tanh};
use crate::portable::{exp_m1, ln_1p};
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Activation {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        // The compiler vectorizes loops whose function is a constant.
        match self.function {
            ActivationFunction::Gelu => map(
                x,
                out,
                #[inline(always)]
                |x| activate(ActivationFunction::Gelu, x),
            ),
            ActivationFunction::GeluTanh => map(
                x,
                out,
                #[inline(always)]
                |x| activate(ActivationFunction::GeluTanh, x),
            ),
            function => map(x, out, |x| activate(function, x)),
        }
    }
}

/// Returns the activation of a number.
#[inline(always)]
pub(super) fn activate(function: ActivationFunction, x: f32) -> f32 {
    const SQRT_2_BY_PI: f32 = 0.797_884_6;
    match function {
        ActivationFunction::Silu => x / (1.0 + exp(-x)),
        ActivationFunction::Gelu => 0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2)),
        ActivationFunction::GeluTanh => 0.5 * x * (1.0 + tanh(SQRT_2_BY_PI * (x + 0.044_715 * x * x * x))),
        ActivationFunction::GeluQuick => x / (1.0 + exp(-1.702 * x)),
        ActivationFunction::Relu => x.max(0.0),
        ActivationFunction::ReluSquared => x.max(0.0) * x.max(0.0),
        ActivationFunction::Sigmoid => sigmoid(x),
        ActivationFunction::Tanh => tanh(x),
        // Above 20 the difference is less than the rounding error.
        ActivationFunction::Softplus => {
            if x > 20.0 {
                x
            } else {
                ln_1p(crate::portable::exp(x))
            }
        }
        ActivationFunction::Exp => exp(x),
        ActivationFunction::ExpNegExp => exp(-exp(x)),
        ActivationFunction::SignedSqrt if x == 0.0 => 0.0,
        ActivationFunction::SignedSqrt => x.abs().max(1e-6).sqrt() * x.signum(),
        ActivationFunction::Elu => {
            if x < 0.0 {
                exp_m1(x)
            } else {
                x
            }
        }
    }
}
