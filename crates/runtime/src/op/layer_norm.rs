//! `layer_norm`

use gguf_graph::LayerNorm;

use super::Kernel;
use super::norm::{norm, sum};
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for LayerNorm {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let statistics = |x: &[f32]| {
            let len = x.len() as f32;
            let mean = sum(x, |x| x) / len;
            let variance = sum(x, |x| (x - mean) * (x - mean)) / len;
            (mean, 1.0 / (variance + self.epsilon).sqrt())
        };
        let weights = [self.weight, self.bias];
        norm(run, run.value(self.x), self.groups, weights, statistics, out);
    }

    fn overwrites(&self) -> bool {
        true
    }
}
