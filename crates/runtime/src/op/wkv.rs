//! `wkv`

use gguf_graph::Wkv;

use super::Kernel;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Wkv {
    fn compute(&self, run: &Run<'_>, sequences: &mut [Sequence], out: &mut Value) {
        let weights = &run.executor.weights;
        let width = out.width;
        for (sequence, rows) in &run.groups {
            let sequence = &mut sequences[*sequence];
            for row in rows {
                let out = &mut out.data[row * width..(row + 1) * width];
                let input = |id| run.value(id).row(*row);
                match *self {
                    Self::V4 { k, v, decay, bonus, state } => {
                        let (decay, bonus) = (weights.floats(decay), weights.floats(bonus));
                        v4(input(k), input(v), decay, bonus, sequence.floats(state), out);
                    }
                    Self::V6 { r, w, k, v, bonus, head_len, state } => {
                        let (bonus, len) = (weights.floats(bonus), head_len as usize);
                        let state = sequence.floats(state);
                        v6(input(r), input(w), input(k), input(v), bonus, len, state, out);
                    }
                    Self::V7 { r, w, k, v, a, b, head_len, state } => {
                        let inputs = [r, w, k, v, a, b].map(input);
                        v7(inputs, head_len as usize, sequence.floats(state), out);
                    }
                }
            }
        }
    }
}

/// Numerators and denominators are stored divided by the exponential of `exponents`, the maximum exponent so far, as
/// the reference implementation does: sums of exponentials would overflow.
fn v4(k: &[f32], v: &[f32], decay: &[f32], bonus: &[f32], state: &mut [f32], out: &mut [f32]) {
    let (numerators, rest) = state.split_at_mut(k.len());
    let (denominators, exponents) = rest.split_at_mut(k.len());
    for i in 0..k.len() {
        let (n, d, e) = (&mut numerators[i], &mut denominators[i], &mut exponents[i]);
        let now = bonus[i] + k[i];
        let max = e.max(now);
        let (old, new) = ((*e - max).exp(), (now - max).exp());
        out[i] = (old * *n + new * v[i]) / (old * *d + new);
        let decayed = *e - decay[i].exp();
        let max = decayed.max(k[i]);
        let (old, new) = ((decayed - max).exp(), (k[i] - max).exp());
        *n = old * *n + new * v[i];
        *d = old * *d + new;
        *e = max;
    }
}

#[expect(clippy::too_many_arguments, reason = "the variables of the formula")]
fn v6(
    r: &[f32],
    w: &[f32],
    k: &[f32],
    v: &[f32],
    bonus: &[f32],
    len: usize,
    state: &mut [f32],
    out: &mut [f32],
) {
    for (head, matrix) in state.chunks_exact_mut(len * len).enumerate() {
        let start = head * len;
        for (i, row) in matrix.chunks_exact_mut(len).enumerate() {
            let at = start + i;
            for (j, state) in row.iter_mut().enumerate() {
                let kv = k[at] * v[start + j];
                out[start + j] += r[at] * (bonus[at] * kv + *state);
                *state = w[at] * *state + kv;
            }
        }
    }
}

fn v7([r, w, k, v, a, b]: [&[f32]; 6], len: usize, state: &mut [f32], out: &mut [f32]) {
    for (head, matrix) in state.chunks_exact_mut(len * len).enumerate() {
        let start = head * len;
        let of = |x: &'_ [f32], j: usize| x[start + j];
        for (i, row) in matrix.chunks_exact_mut(len).enumerate() {
            let removed: f32 = row.iter().enumerate().map(|(j, state)| state * of(a, j)).sum();
            let mut sum = 0.0;
            for (j, state) in row.iter_mut().enumerate() {
                *state = of(w, j) * *state + v[start + i] * of(k, j) + removed * of(b, j);
                sum += *state * of(r, j);
            }
            out[start + i] = sum;
        }
    }
}
