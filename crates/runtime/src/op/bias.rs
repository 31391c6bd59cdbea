//! `bias`

use gguf_graph::Bias;

use super::Kernel;
use super::elementwise::{add_to_rows, map};
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Bias {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        map(run.value(self.x), out, |x| x);
        add_to_rows(Some(run.executor.weights.floats(self.weight)), out);
    }
}
