//! `softmax`

use gguf_graph::Softmax;

use super::Kernel;
use super::parallel::each_row;
use crate::portable::exp;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Softmax {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        let len = x.width / self.groups as usize;
        each_row(out, |row, out| {
            out.copy_from_slice(x.row(row));
            out.chunks_exact_mut(len).for_each(softmax);
        });
    }
}

/// Replaces logits by their softmax.
pub(super) fn softmax(x: &mut [f32]) {
    let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    x.iter_mut().for_each(|x| *x = exp(*x - max));
    let sum: f32 = x.iter().sum();
    x.iter_mut().for_each(|x| *x /= sum);
}
