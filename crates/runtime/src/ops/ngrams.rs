//! Embeddings of n-grams.

use gguf_graph::NgramEmbedding;

use super::each_row;
use crate::run::Run;
use crate::state::{Kept, Sequence};
use crate::value::Value;

pub(super) fn ngrams(
    run: &Run<'_>,
    ngrams: &NgramEmbedding,
    sequences: &mut [Sequence],
    out: &mut Value,
) {
    let table = run.executor.weights.matrix(ngrams.table);
    let heads = ngrams.heads.len();
    let mut places = vec![0; out.rows * heads];
    for (sequence, rows) in &run.groups {
        let Kept::Tokens(last) = &mut sequences[*sequence].kept[ngrams.state.0 as usize] else {
            unreachable!("the graph's states have been checked");
        };
        for &row in rows {
            let id = run.tokens()[row].id;
            look_up(ngrams, id, last, &mut places[row * heads..(row + 1) * heads]);
            last.push(id);
            if last.len() == ngrams.multipliers.len() {
                last.remove(0);
            }
        }
    }
    each_row(out, |row, out| {
        let places = &places[row * heads..(row + 1) * heads];
        for (place, out) in places.iter().zip(out.chunks_exact_mut(table.row_len)) {
            table.decode(*place, out);
        }
    });
}

/// The row of each head for a token and those before it, the last of which stands last.
fn look_up(ngrams: &NgramEmbedding, id: u32, before: &[u32], places: &mut [usize]) {
    let Some((own, others)) = ngrams.multipliers.split_first() else { return };
    let of_each = ngrams.heads.len() / others.len();
    let mut heads = ngrams.heads.iter().zip(places);
    // Of one text: nothing from its end on.
    let mut text = before.iter().rev().take_while(|id| **id != ngrams.end_token);
    let mut hash = u64::from(id).wrapping_mul(*own);
    for multiplier in others {
        let id = text.next().unwrap_or(&ngrams.end_token);
        hash ^= u64::from(*id).wrapping_mul(*multiplier);
        for (head, place) in heads.by_ref().take(of_each) {
            // Within the table, as was checked.
            *place = (head.offset + hash % head.size) as usize;
        }
    }
}
