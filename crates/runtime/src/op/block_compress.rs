//! `block_compress`

use std::iter::repeat_n;

use gguf_graph::BlockCompress;

use super::Kernel;
use crate::exp::exp;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for BlockCompress {
    fn compute(&self, run: &Run<'_>, sequences: &mut [Sequence], out: &mut Value) {
        let (x, gate) = (run.value(self.x), self.gate.map(|gate| run.value(gate)));
        let position_bias = run.executor.weights.optional(self.position_bias);
        let (width, block) = (x.width, self.block as usize);
        for (sequence, rows) in &run.groups {
            // A ring buffer: the row of a position is its remainder.
            let state = sequences[*sequence].floats(self.state);
            let count = state.len() / (2 * width);
            for row in rows {
                let position = run.positions[*row];
                let start = position % count * 2 * width;
                let (values, gates) = state[start..start + 2 * width].split_at_mut(width);
                values.copy_from_slice(x.row(*row));
                match gate {
                    Some(gate) => gates.copy_from_slice(gate.row(*row)),
                    None => gates.fill(0.0),
                }
                if let Some(bias) = position_bias {
                    let bias = &bias[position % block * width..];
                    gates.iter_mut().zip(bias).for_each(|(gate, bias)| *gate += bias);
                }
                if (position + 1).is_multiple_of(block) {
                    let members = |end: usize, part: usize| {
                        let positions = end.saturating_sub(block)..end;
                        positions.zip(repeat_n(part, block))
                    };
                    let overlap_end = if self.overlap { position + 1 - block } else { 0 };
                    let own = members(position + 1, usize::from(self.overlap));
                    let members: Vec<_> = members(overlap_end, 0).chain(own).collect();
                    let out = &mut out.data[row * out.width..(row + 1) * out.width];
                    weighted_mean(state, width, &members, out);
                }
            }
        }
    }
}

/// Writes the mean of parts of rows of the state, weighted by the softmax of their gates. A member is a position and
/// the number of its part, as long as `out`.
fn weighted_mean(state: &[f32], width: usize, members: &[(usize, usize)], out: &mut [f32]) {
    let len = out.len();
    let count = state.len() / (2 * width);
    let member = |(position, part): &(usize, usize)| {
        let start = position % count * 2 * width + part * len;
        (&state[start..start + len], &state[start + width..start + width + len])
    };
    let mut max = vec![f32::NEG_INFINITY; len];
    for (_, gates) in members.iter().map(member) {
        max.iter_mut().zip(gates).for_each(|(max, gate)| *max = max.max(*gate));
    }
    let mut sums = vec![0.0; len];
    for (values, gates) in members.iter().map(member) {
        let columns = out.iter_mut().zip(&mut sums).zip(&max);
        for (((out, sum), max), (value, gate)) in columns.zip(values.iter().zip(gates)) {
            let weight = exp(gate - max);
            *sum += weight;
            *out += weight * value;
        }
    }
    out.iter_mut().zip(sums).for_each(|(out, sum)| *out /= sum);
}
