//! Operations that remember the tokens before.

use gguf_graph::{SelectiveScan, StateId};
use rayon::prelude::*;

use crate::run::Run;
use crate::state::{Kept, Sequence};
use crate::value::Value;

/// The numbers that an operation keeps of a sequence.
pub(super) fn kept(sequence: &mut Sequence, state: StateId) -> &mut [f32] {
    match &mut sequence.kept[state.0 as usize] {
        Kept::Floats(numbers) => numbers,
        _ => unreachable!("the graph's states have been checked"),
    }
}

pub(super) fn shift(
    run: &Run<'_>,
    x: &Value,
    state: StateId,
    sequences: &mut [Sequence],
    out: &mut Value,
) {
    let width = x.width;
    for (sequence, rows) in &run.groups {
        let last = kept(&mut sequences[*sequence], state);
        for row in rows {
            out.data[row * width..(row + 1) * width].copy_from_slice(last);
            last.copy_from_slice(x.row(*row));
        }
    }
}

/// Puts a row behind the last ones in place of the oldest, if any are kept.
fn remember(last: &mut [f32], row: &[f32]) {
    if let Some(start) = last.len().checked_sub(row.len()) {
        last.copy_within(row.len().., 0);
        last[start..].copy_from_slice(row);
    }
}

/// The kernels are `[kernel, width]`; the state has the last `(kernel - 1) dilation` rows, the oldest first.
pub(super) fn convolution(
    run: &Run<'_>,
    x: &Value,
    (weight, bias): (&[f32], Option<&[f32]>),
    dilation: u32,
    state: StateId,
    sequences: &mut [Sequence],
    out: &mut Value,
) {
    let width = x.width;
    let kernel = weight.len() / width;
    let step = width * dilation as usize;
    for (sequence, rows) in &run.groups {
        let last = kept(&mut sequences[*sequence], state);
        for row in rows {
            let x = x.row(*row);
            let out = &mut out.data[row * width..(row + 1) * width];
            for (column, out) in out.iter_mut().enumerate() {
                let weight = &weight[column * kernel..(column + 1) * kernel];
                let before = last.iter().skip(column).step_by(step).chain([&x[column]]);
                let sum: f32 = before.zip(weight).map(|(x, weight)| x * weight).sum();
                *out = sum + bias.map_or(0.0, |bias| bias[column]);
            }
            remember(last, x);
        }
    }
}

pub(super) fn scan(
    run: &Run<'_>,
    scan: &SelectiveScan,
    sequences: &mut [Sequence],
    out: &mut Value,
) {
    let weights = &run.executor.weights;
    let (x, dt) = (run.value(scan.x), run.value(scan.dt));
    let (b, c) = (run.value(scan.b), run.value(scan.c));
    let (a, d) = (weights.floats(scan.a), weights.floats(scan.d));
    let heads = dt.width;
    let (len, width) = (x.width / heads, x.width);
    let numbers = b.width / scan.groups as usize;
    let heads_of_group = heads / scan.groups as usize;
    for (sequence, rows) in &run.groups {
        let states = kept(&mut sequences[*sequence], scan.state);
        // Heads know nothing of each other: each goes through all tokens on one thread.
        let done: Vec<Vec<f32>> = states
            .par_chunks_exact_mut(len * numbers)
            .with_min_len(heads.div_ceil(64))
            .enumerate()
            .map(|(head, states)| {
                let group = head / heads_of_group * numbers;
                let decays = &a[if a.len() == heads {
                    head..head + 1
                } else {
                    head * numbers..(head + 1) * numbers
                }];
                let mut made = Vec::with_capacity(rows.len() * len);
                for row in rows {
                    let dt = dt.row(*row)[head];
                    let b = &b.row(*row)[group..group + numbers];
                    let c = &c.row(*row)[group..group + numbers];
                    let x = &x.row(*row)[head * len..(head + 1) * len];
                    let of_all = (decays.len() == 1).then(|| (dt * decays[0]).exp());
                    for (x, states) in x.iter().zip(states.chunks_exact_mut(numbers)) {
                        let mut sum = 0.0;
                        for (n, state) in states.iter_mut().enumerate() {
                            let decay = of_all.unwrap_or_else(|| (dt * decays[n]).exp());
                            *state = decay * *state + dt * x * b[n];
                            sum += *state * c[n];
                        }
                        made.push(sum + d[head] * x);
                    }
                }
                made
            })
            .collect();
        for (head, made) in done.iter().enumerate() {
            for (row, made) in rows.iter().zip(made.chunks_exact(len)) {
                let start = row * width + head * len;
                out.data[start..start + len].copy_from_slice(made);
            }
        }
    }
}
