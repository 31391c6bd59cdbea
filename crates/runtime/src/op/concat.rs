//! `concat`

use gguf_graph::Concat;

use super::Kernel;
use super::parallel::each_row;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Concat {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let (a, b) = (run.value(self.a), run.value(self.b));
        let groups = self.groups as usize;
        let first = a.width / groups;
        let second = if self.broadcast { b.width } else { b.width / groups };
        each_row(out, |row, out| {
            let (a, b) = (a.row(row), b.row(row));
            for (group, out) in out.chunks_exact_mut(first + second).enumerate() {
                let b = if self.broadcast { b } else { &b[group * second..(group + 1) * second] };
                out[..first].copy_from_slice(&a[group * first..(group + 1) * first]);
                out[first..].copy_from_slice(b);
            }
        });
    }
}
