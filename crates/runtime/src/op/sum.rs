//! `sum`

use gguf_graph::Sum;

use super::Kernel;
use super::parallel::each_row;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Sum {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        let len = x.width / out.width;
        each_row(out, |row, out| {
            for (out, group) in out.iter_mut().zip(x.row(row).chunks_exact(len)) {
                *out = group.iter().sum();
            }
        });
    }
}
