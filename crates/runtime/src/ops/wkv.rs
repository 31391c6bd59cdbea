//! The recurrences of RWKV.

use gguf_graph::Wkv;

use super::recurrent::kept;
use crate::run::Run;
use crate::state::Sequence;
use crate::value::Value;

pub(super) fn wkv(run: &Run<'_>, wkv: &Wkv, sequences: &mut [Sequence], out: &mut Value) {
    let weights = &run.executor.weights;
    let width = out.width;
    for (sequence, rows) in &run.groups {
        let sequence = &mut sequences[*sequence];
        for row in rows {
            let out = &mut out.data[row * width..(row + 1) * width];
            let of = |id| run.value(id).row(*row);
            match *wkv {
                Wkv::V4 { k, v, decay, bonus: first, state } => {
                    let (decay, first) = (weights.floats(decay), weights.floats(first));
                    v4(of(k), of(v), decay, first, kept(sequence, state), out);
                }
                Wkv::V6 { r, w, k, v, bonus: first, head_len, state } => {
                    let (first, len) = (weights.floats(first), head_len as usize);
                    v6(of(r), of(w), of(k), of(v), first, len, kept(sequence, state), out);
                }
                Wkv::V7 { r, w, k, v, a, b, head_len, state } => {
                    let inputs = [of(r), of(w), of(k), of(v), of(a), of(b)];
                    v7(inputs, head_len as usize, kept(sequence, state), out);
                }
            }
        }
    }
}

/// Numerators and denominators are kept divided by the exponential of `exponents`, the greatest
/// exponent so far, as the authors' program does it: sums of exponentials would overflow.
fn v4(k: &[f32], v: &[f32], decay: &[f32], first: &[f32], state: &mut [f32], out: &mut [f32]) {
    let (numerators, rest) = state.split_at_mut(k.len());
    let (denominators, exponents) = rest.split_at_mut(k.len());
    for i in 0..k.len() {
        let (n, d, e) = (&mut numerators[i], &mut denominators[i], &mut exponents[i]);
        let now = first[i] + k[i];
        let greatest = e.max(now);
        let (old, new) = ((*e - greatest).exp(), (now - greatest).exp());
        out[i] = (old * *n + new * v[i]) / (old * *d + new);
        let kept = *e - decay[i].exp();
        let greatest = kept.max(k[i]);
        let (old, new) = ((kept - greatest).exp(), (k[i] - greatest).exp());
        *n = old * *n + new * v[i];
        *d = old * *d + new;
        *e = greatest;
    }
}

#[expect(clippy::too_many_arguments, reason = "the letters of the formula")]
fn v6(
    r: &[f32],
    w: &[f32],
    k: &[f32],
    v: &[f32],
    first: &[f32],
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
                out[start + j] += r[at] * (first[at] * kv + *state);
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
