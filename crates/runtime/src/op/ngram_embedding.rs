//! `ngram_embedding`

use gguf_graph::NgramEmbedding;

use super::Kernel;
use super::parallel::each_row;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for NgramEmbedding {
    fn compute(&self, run: &Run<'_>, sequences: &mut [Sequence], out: &mut Value) {
        let table = run.executor.weights.matrix(self.table);
        let heads = self.heads.len();
        let mut indices = vec![0; out.rows * heads];
        for (sequence, rows) in &run.groups {
            let history = sequences[*sequence].tokens(self.state);
            for &row in rows {
                let id = run.tokens()[row].id;
                look_up(self, id, history, &mut indices[row * heads..(row + 1) * heads]);
                history.push(id);
                if history.len() == self.multipliers.len() {
                    history.remove(0);
                }
            }
        }
        each_row(out, |row, out| {
            let indices = &indices[row * heads..(row + 1) * heads];
            for (index, out) in indices.iter().zip(out.chunks_exact_mut(table.row_len)) {
                table.decode(*index, out);
            }
        });
    }
}

/// Writes the row of each head for a token, given the tokens before it in their order.
fn look_up(op: &NgramEmbedding, id: u32, history: &[u32], indices: &mut [usize]) {
    let Some((own, others)) = op.multipliers.split_first() else { return };
    let heads_per_length = op.heads.len() / others.len();
    let mut heads = op.heads.iter().zip(indices);
    // Tokens before the end of an earlier text do not count.
    let mut text = history.iter().rev().take_while(|id| **id != op.end_token);
    let mut hash = u64::from(id).wrapping_mul(*own);
    for multiplier in others {
        let id = text.next().unwrap_or(&op.end_token);
        hash ^= u64::from(*id).wrapping_mul(*multiplier);
        for (head, index) in heads.by_ref().take(heads_per_length) {
            // The graph was checked: no head exceeds the table.
            *index = (head.offset + hash % head.size) as usize;
        }
    }
}
