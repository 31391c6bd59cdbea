//! `linear_attention`

use gguf_graph::{Decay, LinearAttention, ValueId};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::Kernel;
use super::position_bias::alibi_slope;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for LinearAttention {
    fn compute(&self, run: &Run<'_>, sequences: &mut [Sequence], out: &mut Value) {
        let heads = self.heads as usize;
        let key_len = run.value(self.key).width / heads;
        let (width, value_len) = (out.width, out.width / heads);
        let arch = Arch::new();
        for (sequence, rows) in &run.groups {
            let states = sequences[*sequence].floats(self.state);
            // Heads are independent: one thread takes a head through all tokens.
            let results: Vec<Vec<f32>> = states
                .par_chunks_exact_mut(key_len * value_len)
                .with_min_len(heads.div_ceil(64))
                .enumerate()
                .map(|(head, state)| {
                    let mut out = vec![0.0; rows.len() * value_len];
                    let inputs = Inputs { run, attention: self, head, heads };
                    arch.dispatch(Head { inputs, rows, state, key_len, out: &mut out });
                    out
                })
                .collect();
            for (head, result) in results.iter().enumerate() {
                for (row, result) in rows.iter().zip(result.chunks_exact(value_len)) {
                    let start = row * width + head * value_len;
                    out.data[start..start + value_len].copy_from_slice(result);
                }
            }
        }
    }
}

/// Inputs of a head.
#[derive(Clone, Copy)]
struct Inputs<'r> {
    run: &'r Run<'r>,
    attention: &'r LinearAttention,
    head: usize,
    heads: usize,
}

impl<'r> Inputs<'r> {
    /// Returns the elements of the head in a row of a value.
    fn slice(self, id: ValueId, row: usize) -> &'r [f32] {
        let row = self.run.value(id).row(row);
        let len = row.len() / self.heads;
        &row[self.head * len..(self.head + 1) * len]
    }

    /// Returns the decay, if it is the same for all tokens.
    fn fixed_decay(self) -> Option<f32> {
        match self.attention.decay {
            Decay::Value(_) => None,
            Decay::AlibiSlopes { max_bias, factor } => {
                let slope = alibi_slope(self.head as u32, self.heads as u32, max_bias);
                Some((-factor * slope).exp())
            }
        }
    }

    /// Writes the decay of each element of a key.
    fn decay(self, row: usize, out: &mut [f32]) {
        if let Decay::Value(decay) = self.attention.decay {
            match self.slice(decay, row) {
                [decay] => out.fill(*decay),
                decays => out.copy_from_slice(decays),
            }
        }
    }
}

/// Computation of a head for all tokens of a sequence.
struct Head<'r> {
    inputs: Inputs<'r>,
    rows: &'r [usize],
    /// State matrix in panels of as many columns as [`Head::columns`] takes at a time, each row by row.
    state: &'r mut [f32],
    key_len: usize,
    out: &'r mut [f32],
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
    /// Computes all tokens for `N` columns of the state from `first` on. So few columns stay in the first-level cache,
    /// and their sums in registers.
    #[inline(always)]
    fn columns<const N: usize>(&mut self, first: usize) -> usize {
        let Self { inputs, rows, key_len, .. } = *self;
        let value_len = self.state.len() / key_len;
        let state = &mut self.state[key_len * first..key_len * (first + N)];
        let state = state.as_chunks_mut::<N>().0;
        let LinearAttention { query, key, value, beta, .. } = *inputs.attention;
        let mut decay = vec![inputs.fixed_decay().unwrap_or_default(); key_len];
        for (&row, out) in rows.iter().zip(self.out.chunks_exact_mut(value_len)) {
            let (q, k) = (inputs.slice(query, row), inputs.slice(key, row));
            inputs.decay(row, &mut decay);
            let mut added = [0.0; N];
            added.copy_from_slice(&inputs.slice(value, row)[first..first + N]);
            if let Some(beta) = beta {
                let beta = inputs.slice(beta, row)[0];
                let mut recalled = [0.0; N];
                for ((state, k), w) in state.iter().zip(k).zip(&decay) {
                    let factor = k * w;
                    for (recalled, state) in recalled.iter_mut().zip(state) {
                        *recalled += factor * state;
                    }
                }
                for (added, recalled) in added.iter_mut().zip(recalled) {
                    *added = beta * (*added - recalled);
                }
            }
            let mut sums = [0.0; N];
            for (((state, q), k), w) in state.iter_mut().zip(q).zip(k).zip(&decay) {
                for ((state, added), sum) in state.iter_mut().zip(&added).zip(&mut sums) {
                    *state = w * *state + k * added;
                    *sum += q * *state;
                }
            }
            out[first..first + N].copy_from_slice(&sums);
        }
        N
    }
}
