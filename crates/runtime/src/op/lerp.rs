//! `lerp`

use gguf_graph::Lerp;

use super::Kernel;
use super::parallel::each_row;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Lerp {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let (a, b) = (run.value(self.a), run.value(self.b));
        let weight = run.executor.weights.floats(self.weight);
        each_row(out, |row, out| {
            for (((out, a), b), w) in out.iter_mut().zip(a.row(row)).zip(b.row(row)).zip(weight) {
                *out = a * w + b * (1.0 - w);
            }
        });
    }
}
