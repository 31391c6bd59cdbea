//! `selective_scan`

use gguf_graph::SelectiveScan;
use rayon::prelude::*;

use super::Kernel;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for SelectiveScan {
    fn compute(&self, run: &Run<'_>, sequences: &mut [Sequence], out: &mut Value) {
        let weights = &run.executor.weights;
        let (x, dt) = (run.value(self.x), run.value(self.dt));
        let (b, c) = (run.value(self.b), run.value(self.c));
        let (a, d) = (weights.floats(self.a), weights.floats(self.d));
        let heads = dt.width;
        let (len, width) = (x.width / heads, x.width);
        let state_len = b.width / self.groups as usize;
        let heads_per_group = heads / self.groups as usize;
        for (sequence, rows) in &run.groups {
            let states = sequences[*sequence].floats(self.state);
            // Heads are independent: one thread takes a head through all tokens.
            let results: Vec<Vec<f32>> = states
                .par_chunks_exact_mut(len * state_len)
                .with_min_len(heads.div_ceil(64))
                .enumerate()
                .map(|(head, states)| {
                    let group = head / heads_per_group * state_len;
                    let decays = &a[if a.len() == heads {
                        head..head + 1
                    } else {
                        head * state_len..(head + 1) * state_len
                    }];
                    let mut result = Vec::with_capacity(rows.len() * len);
                    for row in rows {
                        let dt = dt.row(*row)[head];
                        let b = &b.row(*row)[group..group + state_len];
                        let c = &c.row(*row)[group..group + state_len];
                        let x = &x.row(*row)[head * len..(head + 1) * len];
                        let head_decay = (decays.len() == 1).then(|| (dt * decays[0]).exp());
                        for (x, states) in x.iter().zip(states.chunks_exact_mut(state_len)) {
                            let mut sum = 0.0;
                            for (n, state) in states.iter_mut().enumerate() {
                                let decay = head_decay.unwrap_or_else(|| (dt * decays[n]).exp());
                                *state = decay * *state + dt * x * b[n];
                                sum += *state * c[n];
                            }
                            result.push(sum + d[head] * x);
                        }
                    }
                    result
                })
                .collect();
            for (head, result) in results.iter().enumerate() {
                for (row, result) in rows.iter().zip(result.chunks_exact(len)) {
                    let start = row * width + head * len;
                    out.data[start..start + len].copy_from_slice(result);
                }
            }
        }
    }
}
