//! Several tokens in one row.

use std::iter::repeat_n;

use gguf_graph::BlockCompress;

use super::recurrent::kept;
use crate::exp::exp;
use crate::run::Run;
use crate::state::Sequence;
use crate::value::Value;

/// `out` is all zeros before.
pub(super) fn compress(
    run: &Run<'_>,
    compress: &BlockCompress,
    sequences: &mut [Sequence],
    out: &mut Value,
) {
    let (x, gate) = (run.value(compress.x), compress.gate.map(|gate| run.value(gate)));
    let place = run.executor.weights.optional(compress.position_bias);
    let (width, block) = (x.width, compress.block as usize);
    for (sequence, rows) in &run.groups {
        // The row of a position stands where those before and behind it by as many as there are stand too.
        let last = kept(&mut sequences[*sequence], compress.state);
        let count = last.len() / (2 * width);
        for row in rows {
            let position = run.positions[*row];
            let at = position % count * 2 * width;
            let (values, weights) = last[at..at + 2 * width].split_at_mut(width);
            values.copy_from_slice(x.row(*row));
            match gate {
                Some(gate) => weights.copy_from_slice(gate.row(*row)),
                None => weights.fill(0.0),
            }
            if let Some(place) = place {
                let place = &place[position % block * width..];
                weights.iter_mut().zip(place).for_each(|(weight, place)| *weight += place);
            }
            if (position + 1).is_multiple_of(block) {
                let rows = |end: usize, part: usize| {
                    let positions = end.saturating_sub(block)..end;
                    positions.zip(repeat_n(part, block))
                };
                let before = if compress.overlap { position + 1 - block } else { 0 };
                let part = usize::from(compress.overlap);
                let members: Vec<_> = rows(before, 0).chain(rows(position + 1, part)).collect();
                let out = &mut out.data[row * out.width..(row + 1) * out.width];
                mean(last, width, &members, out);
            }
        }
    }
}

/// The mean of rows, of each of which that part counts that is as long as `out`, weighted by the softmax of
/// what stands behind it.
fn mean(last: &[f32], width: usize, members: &[(usize, usize)], out: &mut [f32]) {
    let len = out.len();
    let count = last.len() / (2 * width);
    let member = |(position, part): &(usize, usize)| {
        let start = position % count * 2 * width + part * len;
        (&last[start..start + len], &last[start + width..start + width + len])
    };
    let mut greatest = vec![f32::NEG_INFINITY; len];
    for (_, weights) in members.iter().map(member) {
        greatest.iter_mut().zip(weights).for_each(|(most, weight)| *most = most.max(*weight));
    }
    let mut sums = vec![0.0; len];
    for (values, weights) in members.iter().map(member) {
        let columns = out.iter_mut().zip(&mut sums).zip(&greatest);
        for (((out, sum), most), (value, weight)) in columns.zip(values.iter().zip(weights)) {
            let share = exp(weight - most);
            *sum += share;
            *out += share * value;
        }
    }
    out.iter_mut().zip(sums).for_each(|(out, sum)| *out /= sum);
}
