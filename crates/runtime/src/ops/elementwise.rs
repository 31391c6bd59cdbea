//! Operations on numbers one by one.

use gguf_graph::{ActivationFunction, GluFunction};
use pulp::{Arch, Simd, WithSimd};

use super::each_row;
use crate::exp::{exp, sigmoid, tanh};
use crate::value::Value;

pub(super) fn map(x: &Value, out: &mut Value, function: impl Fn(f32) -> f32 + Sync) {
    let arch = Arch::new();
    each_row(out, |row, out| arch.dispatch(Each { x: x.row(row), function: &function, out }));
}

pub(super) fn pairs(
    a: &Value,
    b: &Value,
    out: &mut Value,
    function: impl Fn(f32, f32) -> f32 + Sync,
) {
    let arch = Arch::new();
    each_row(out, |row, out| {
        arch.dispatch(Pairs { a: a.row(row), b: b.row(row), function: &function, out });
    });
}

struct Each<'r, F> {
    x: &'r [f32],
    function: &'r F,
    out: &'r mut [f32],
}

impl<F: Fn(f32) -> f32> WithSimd for Each<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (out, x) in self.out.iter_mut().zip(self.x) {
            *out = (self.function)(*x);
        }
    }
}

struct Pairs<'r, F> {
    a: &'r [f32],
    b: &'r [f32],
    function: &'r F,
    out: &'r mut [f32],
}

impl<F: Fn(f32, f32) -> f32> WithSimd for Pairs<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for ((out, a), b) in self.out.iter_mut().zip(self.a).zip(self.b) {
            *out = (self.function)(*a, *b);
        }
    }
}

pub(super) fn multiply(a: &Value, b: &Value, out: &mut Value) {
    if b.width == a.width {
        return pairs(a, b, out, |a, b| a * b);
    }
    let len = a.width / b.width;
    each_row(out, |row, out| multiply_parts(a.row(row), b.row(row), len, out));
}

/// Multiplies parts of a row, so long, by a factor each.
fn multiply_parts(x: &[f32], factors: &[f32], len: usize, out: &mut [f32]) {
    let parts = out.chunks_exact_mut(len).zip(x.chunks_exact(len));
    for ((out, x), factor) in parts.zip(factors) {
        out.iter_mut().zip(x).for_each(|(out, x)| *out = x * factor);
    }
}

/// Adds the same to each row.
pub(super) fn add_row(added: Option<&[f32]>, out: &mut Value) {
    let Some(added) = added else { return };
    each_row(out, |_, out| out.iter_mut().zip(added).for_each(|(out, added)| *out += added));
}

/// Multiplies each row by the same, as many times as there are factors for; of fewer factors than numbers
/// each multiplies one of as many parts.
pub(super) fn with_row(x: &Value, factors: &[f32], out: &mut Value) {
    if factors.len() < x.width {
        let len = x.width / factors.len().max(1);
        return each_row(out, |row, out| multiply_parts(x.row(row), factors, len, out));
    }
    each_row(out, |row, out| {
        for (out, factors) in out.chunks_exact_mut(x.width).zip(factors.chunks_exact(x.width)) {
            for ((out, x), factor) in out.iter_mut().zip(x.row(row)).zip(factors) {
                *out = x * factor;
            }
        }
    });
}

pub(super) fn mix(a: &Value, b: &Value, shares: &[f32], out: &mut Value) {
    each_row(out, |row, out| {
        for (((out, a), b), share) in out.iter_mut().zip(a.row(row)).zip(b.row(row)).zip(shares) {
            *out = a * share + b * (1.0 - share);
        }
    });
}

/// Makes shares of the numbers of each part of a row.
pub(super) fn softmax_parts(x: &Value, groups: u32, out: &mut Value) {
    let len = x.width / groups as usize;
    each_row(out, |row, out| {
        out.copy_from_slice(x.row(row));
        out.chunks_exact_mut(len).for_each(softmax);
    });
}

/// Makes shares of numbers.
pub(super) fn softmax(x: &mut [f32]) {
    let greatest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    x.iter_mut().for_each(|x| *x = (*x - greatest).exp());
    let sum: f32 = x.iter().sum();
    x.iter_mut().for_each(|x| *x /= sum);
}

pub(super) fn activate(x: &Value, function: ActivationFunction, out: &mut Value) {
    map(x, out, |x| apply(function, x));
}

pub(super) fn gate(gate: &Value, up: &Value, function: GluFunction, out: &mut Value) {
    // Where the function is known when this is compiled, loops become vectors.
    match function {
        GluFunction::Plain(ActivationFunction::Silu) => pairs(
            gate,
            up,
            out,
            #[inline(always)]
            |gate, up| apply(ActivationFunction::Silu, gate) * up,
        ),
        GluFunction::Plain(ActivationFunction::GeluTanh) => pairs(
            gate,
            up,
            out,
            #[inline(always)]
            |gate, up| apply(ActivationFunction::GeluTanh, gate) * up,
        ),
        _ => pairs(gate, up, out, |gate, up| gated(function, gate, up)),
    }
}

/// What a gate makes of a pair.
#[inline(always)]
pub(super) fn gated(function: GluFunction, gate: f32, up: f32) -> f32 {
    match function {
        GluFunction::Plain(function) => apply(function, gate) * up,
        GluFunction::SwigluOai { alpha, limit } => {
            let gate = gate.min(limit);
            let up = up.clamp(-limit, limit);
            gate / (1.0 + exp(-alpha * gate)) * (up + 1.0)
        }
        GluFunction::ClampBefore { function, limit } => {
            apply(function, gate.min(limit)) * up.clamp(-limit, limit)
        }
        GluFunction::ClampAfter { function, limit } => {
            apply(function, gate).min(limit) * up.clamp(-limit, limit)
        }
        GluFunction::Situ { beta, linear } => {
            let up = linear.map_or(up, |linear| linear * tanh(up / linear));
            beta * tanh(gate / beta) * sigmoid(gate) * up
        }
    }
}

/// A function of a number.
#[inline(always)]
pub(super) fn apply(function: ActivationFunction, x: f32) -> f32 {
    /// sqrt(2 / pi).
    const ROOT: f32 = 0.797_884_6;
    match function {
        ActivationFunction::Silu => x / (1.0 + exp(-x)),
        ActivationFunction::Gelu => {
            0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
        }
        ActivationFunction::GeluTanh => 0.5 * x * (1.0 + tanh(ROOT * (x + 0.044_715 * x * x * x))),
        ActivationFunction::GeluQuick => x / (1.0 + exp(-1.702 * x)),
        ActivationFunction::Relu => x.max(0.0),
        ActivationFunction::ReluSquared => x.max(0.0) * x.max(0.0),
        ActivationFunction::Sigmoid => sigmoid(x),
        ActivationFunction::Tanh => tanh(x),
        // Beyond 20 the difference is less than a rounding.
        ActivationFunction::Softplus => {
            if x > 20.0 {
                x
            } else {
                x.exp().ln_1p()
            }
        }
        ActivationFunction::Exp => exp(x),
        ActivationFunction::ExpNegExp => exp(-exp(x)),
        ActivationFunction::SignedSqrt if x == 0.0 => 0.0,
        ActivationFunction::SignedSqrt => x.abs().max(1e-6).sqrt() * x.signum(),
        ActivationFunction::Elu => {
            if x < 0.0 {
                x.exp_m1()
            } else {
                x
            }
        }
    }
}
