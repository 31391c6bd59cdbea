//! `mul_weight`

use gguf_graph::MulWeight;

use super::Kernel;
use super::elementwise::scale_groups;
use super::parallel::each_row;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for MulWeight {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        let factors = run.executor.weights.floats(self.weight);
        if factors.len() < x.width {
            return each_row(out, |row, out| scale_groups(x.row(row), factors, out));
        }
        each_row(out, |row, out| {
            for (out, factors) in out.chunks_exact_mut(x.width).zip(factors.chunks_exact(x.width)) {
                for ((out, x), factor) in out.iter_mut().zip(x.row(row)).zip(factors) {
                    *out = x * factor;
                }
            }
        });
    }
}
