//! `clamp`

use gguf_graph::Clamp;

use super::Kernel;
use super::elementwise::map;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Clamp {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        map(run.value(self.x), out, |x| x.clamp(-self.bound, self.bound));
    }
}
