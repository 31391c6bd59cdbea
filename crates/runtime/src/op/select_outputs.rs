//! `select_outputs`

use gguf_graph::SelectOutputs;

use super::Kernel;
use super::parallel::each_row;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for SelectOutputs {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        each_row(out, |row, out| out.copy_from_slice(x.row(run.outputs[row])));
    }
}
