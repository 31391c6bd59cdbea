//! `attention_temperature`

use gguf_graph::AttentionTemperature;

use super::Kernel;
use super::parallel::each_row;
use crate::portable::ln;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for AttentionTemperature {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        each_row(out, |row, out| {
            let position = run.positions[row] + self.offset as usize;
            let steps = (position / self.length as usize) as f32;
            let factor = ln(steps + 1.0) * self.scale + 1.0;
            out.iter_mut().zip(x.row(row)).for_each(|(out, x)| *out = x * factor);
        });
    }
}
