//! `rms_norm`

use gguf_graph::RmsNorm;

use super::Kernel;
use super::norm::{norm, sum};
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for RmsNorm {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let statistics = |x: &[f32]| {
            (0.0, 1.0 / (sum(x, |x| x * x) / x.len() as f32 + self.epsilon).sqrt())
        };
        let weights = [self.weight, self.bias];
        norm(run, run.value(self.x), self.groups, weights, statistics, out);
    }

    fn overwrites(&self) -> bool {
        true
    }
}
