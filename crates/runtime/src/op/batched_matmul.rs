//! `batched_matmul`

use gguf_graph::BatchedMatmul;

use super::Kernel;
use crate::matmul::batched_matmul;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for BatchedMatmul {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let matrix = run.executor.weights.matrix(self.weight);
        batched_matmul(run.matmul_context(), matrix, run.value(self.x), out);
    }
}
