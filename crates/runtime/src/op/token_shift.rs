//! `token_shift`

use gguf_graph::TokenShift;

use super::Kernel;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for TokenShift {
    fn compute(&self, run: &Run<'_>, sequences: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        let width = x.width;
        for (sequence, rows) in &run.groups {
            let last = sequences[*sequence].floats(self.state);
            for row in rows {
                out.data[row * width..(row + 1) * width].copy_from_slice(last);
                last.copy_from_slice(x.row(*row));
            }
        }
    }
}
