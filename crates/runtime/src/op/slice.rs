//! `slice`

use gguf_graph::Slice;

use super::Kernel;
use super::parallel::each_row;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Slice {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        let (start, len) = (self.start as usize, self.len as usize);
        let group_len = x.width / self.groups as usize;
        each_row(out, |row, out| {
            for (out, x) in out.chunks_exact_mut(len).zip(x.row(row).chunks_exact(group_len)) {
                out.copy_from_slice(&x[start..start + len]);
            }
        });
    }
}
