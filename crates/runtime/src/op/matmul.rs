//! `matmul`

use gguf_graph::Matmul;

use super::Kernel;
use super::elementwise::add_to_rows;
use crate::matmul::matmul;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Matmul {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let weights = &run.executor.weights;
        matmul(run.matmul_context(), weights.matrix(self.weight), run.input(self.x), out);
        let x = run.value(self.x);
        run.executor.adapters.add(run.watch, self.weight, 0, x, out);
        add_to_rows(weights.optional(self.bias), out);
    }

    fn overwrites(&self) -> bool {
        true
    }
}
