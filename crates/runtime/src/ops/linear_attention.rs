//! Linear attention and the gated delta rule.

use gguf_graph::{Decay, LinearAttention};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::distance::slope;
use super::recurrent::kept;
use crate::run::Run;
use crate::state::Sequence;
use crate::value::Value;

pub(super) fn linear_attention(
    run: &Run<'_>,
    attention: &LinearAttention,
    sequences: &mut [Sequence],
    out: &mut Value,
) {
    let heads = attention.heads as usize;
    let key_len = run.value(attention.key).width / heads;
    let (width, value_len) = (out.width, out.width / heads);
    let arch = Arch::new();
    for (sequence, rows) in &run.groups {
        let states = kept(&mut sequences[*sequence], attention.state);
        // Heads know nothing of each other: each goes through all tokens on one thread.
        let done: Vec<Vec<f32>> = states
            .par_chunks_exact_mut(key_len * value_len)
            .with_min_len(heads.div_ceil(64))
            .enumerate()
            .map(|(head, state)| {
                let mut made = vec![0.0; rows.len() * value_len];
                let numbers = Numbers { run, attention, head, heads };
                arch.dispatch(Head { numbers, rows, state, key_len, made: &mut made });
                made
            })
            .collect();
        for (head, made) in done.iter().enumerate() {
            for (row, made) in rows.iter().zip(made.chunks_exact(value_len)) {
                let start = row * width + head * value_len;
                out.data[start..start + value_len].copy_from_slice(made);
            }
        }
    }
}

/// What goes into a head.
#[derive(Clone, Copy)]
struct Numbers<'r> {
    run: &'r Run<'r>,
    attention: &'r LinearAttention,
    head: usize,
    heads: usize,
}

impl<'r> Numbers<'r> {
    /// The part of a token's row that is the head's.
    fn of(self, id: gguf_graph::ValueId, row: usize) -> &'r [f32] {
        let row = self.run.value(id).row(row);
        let len = row.len() / self.heads;
        &row[self.head * len..(self.head + 1) * len]
    }

    /// The decay that is the same for all tokens, if it is.
    fn fixed_decay(self) -> Option<f32> {
        match self.attention.decay {
            Decay::Value(_) => None,
            Decay::AlibiSlopes { max_bias: max, factor } => {
                let slope = slope(self.head as u32, self.heads as u32, max);
                Some((-factor * slope).exp())
            }
        }
    }

    /// Writes the decay of each number of a key.
    fn decay(self, row: usize, out: &mut [f32]) {
        if let Decay::Value(decay) = self.attention.decay {
            match self.of(decay, row) {
                [of_all] => out.fill(*of_all),
                of_each => out.copy_from_slice(of_each),
            }
        }
    }
}

/// All tokens of a head.
struct Head<'r> {
    numbers: Numbers<'r>,
    rows: &'r [usize],
    /// Some columns of the matrix with all their rows, then the next ones: as many as [`Head::columns`] takes.
    state: &'r mut [f32],
    key_len: usize,
    made: &'r mut [f32],
}

impl WithSimd for Head<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let value_len = self.state.len() / self.key_len;
        let mut first = 0;
        while first < value_len {
            first += match value_len - first {
                32.. => self.columns::<32>(first),
                8.. => self.columns::<8>(first),
                _ => self.columns::<1>(first),
            };
        }
    }
}

impl Head<'_> {
    /// Takes all tokens through `N` columns of the state from `first` on: so few stay near the processor, and
    /// their sums in registers.
    #[inline(always)]
    fn columns<const N: usize>(&mut self, first: usize) -> usize {
        let Self { numbers, rows, key_len, .. } = *self;
        let value_len = self.state.len() / key_len;
        let state = &mut self.state[key_len * first..key_len * (first + N)];
        let state = state.as_chunks_mut::<N>().0;
        let LinearAttention { query, key, value, beta: rate, .. } = *numbers.attention;
        let mut decay = vec![numbers.fixed_decay().unwrap_or_default(); key_len];
        for (&row, made) in rows.iter().zip(self.made.chunks_exact_mut(value_len)) {
            let (q, k) = (numbers.of(query, row), numbers.of(key, row));
            numbers.decay(row, &mut decay);
            let mut added = [0.0; N];
            added.copy_from_slice(&numbers.of(value, row)[first..first + N]);
            if let Some(rate) = rate {
                let rate = numbers.of(rate, row)[0];
                let mut known = [0.0; N];
                for ((state, k), w) in state.iter().zip(k).zip(&decay) {
                    let factor = k * w;
                    for (known, state) in known.iter_mut().zip(state) {
                        *known += factor * state;
                    }
                }
                for (added, known) in added.iter_mut().zip(known) {
                    *added = rate * (*added - known);
                }
            }
            let mut sums = [0.0; N];
            for (((state, q), k), w) in state.iter_mut().zip(q).zip(k).zip(&decay) {
                for ((state, added), sum) in state.iter_mut().zip(&added).zip(&mut sums) {
                    *state = w * *state + k * added;
                    *sum += q * *state;
                }
            }
            made[first..first + N].copy_from_slice(&sums);
        }
        N
    }
}
