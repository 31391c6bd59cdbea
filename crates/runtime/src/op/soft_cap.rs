//! `soft_cap`

use gguf_graph::SoftCap;

use super::Kernel;
use super::elementwise::map;
use crate::portable::tanh;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for SoftCap {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        map(run.value(self.x), out, |x| self.cap * tanh(x / self.cap));
    }
}
