//! `gated_activation`

use gguf_graph::{ActivationFunction, GatedActivation, GluFunction};

use super::Kernel;
use super::activation::activate;
use super::elementwise::zip;
use crate::exp::{exp, sigmoid, tanh};
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for GatedActivation {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        activate_gates(self.function, run.value(self.gate), run.value(self.up), out);
    }

    fn overwrites(&self) -> bool {
        true
    }
}

/// Writes the gated activations of all pairs of numbers.
pub(super) fn activate_gates(function: GluFunction, gate: &Value, up: &Value, out: &mut Value) {
    // The compiler vectorizes loops whose function is a constant.
    match function {
        GluFunction::Plain(ActivationFunction::Silu) => zip(
            gate,
            up,
            out,
            #[inline(always)]
            |gate, up| activate(ActivationFunction::Silu, gate) * up,
        ),
        GluFunction::Plain(ActivationFunction::GeluTanh) => zip(
            gate,
            up,
            out,
            #[inline(always)]
            |gate, up| activate(ActivationFunction::GeluTanh, gate) * up,
        ),
        GluFunction::Plain(ActivationFunction::Gelu) => zip(
            gate,
            up,
            out,
            #[inline(always)]
            |gate, up| activate(ActivationFunction::Gelu, gate) * up,
        ),
        function => zip(gate, up, out, |gate, up| activate_gate(function, gate, up)),
    }
}

/// Returns the gated activation of a pair of numbers.
#[inline(always)]
pub(super) fn activate_gate(function: GluFunction, gate: f32, up: f32) -> f32 {
    match function {
        GluFunction::Plain(function) => activate(function, gate) * up,
        GluFunction::SwigluOai { alpha, limit } => {
            let gate = gate.min(limit);
            let up = up.clamp(-limit, limit);
            gate / (1.0 + exp(-alpha * gate)) * (up + 1.0)
        }
        GluFunction::ClampBefore { function, limit } => {
            activate(function, gate.min(limit)) * up.clamp(-limit, limit)
        }
        GluFunction::ClampAfter { function, limit } => {
            activate(function, gate).min(limit) * up.clamp(-limit, limit)
        }
        GluFunction::Situ { beta, linear } => {
            let up = linear.map_or(up, |linear| linear * tanh(up / linear));
            beta * tanh(gate / beta) * sigmoid(gate) * up
        }
    }
}
