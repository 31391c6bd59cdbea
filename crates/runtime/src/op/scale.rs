//! `scale`

use gguf_graph::Scale;

use super::Kernel;
use super::elementwise::map;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Scale {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        map(run.value(self.x), out, |x| x * self.factor);
    }
}
