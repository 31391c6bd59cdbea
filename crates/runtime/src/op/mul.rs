//! `mul`

use gguf_graph::Mul;

use super::Kernel;
use super::elementwise::{scale_groups, zip};
use super::parallel::each_row;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Mul {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let (a, b) = (run.value(self.a), run.value(self.b));
        if b.width == a.width {
            return zip(a, b, out, |a, b| a * b);
        }
        each_row(out, |row, out| scale_groups(a.row(row), b.row(row), out));
    }
}
