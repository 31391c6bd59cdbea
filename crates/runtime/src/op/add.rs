//! `add`

use gguf_graph::Add;

use super::Kernel;
use super::elementwise::zip;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Add {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        zip(run.value(self.a), run.value(self.b), out, |a, b| a + b);
    }

    fn overwrites(&self) -> bool {
        true
    }
}
