//! Numbers of tokens by their ids, and matrices chosen by numbers.

use std::collections::BTreeMap;

use gguf_graph::TokenConstant;

use crate::product;
use crate::run::Run;
use crate::value::Value;
use crate::weight::Matrix;

pub(super) fn mark(run: &Run<'_>, mark: &TokenConstant, out: &mut Value) {
    for (out, token) in out.data.iter_mut().zip(run.tokens()) {
        *out = of_token(&mark.values, token.id, mark.default);
    }
}

/// What stands beside a token among these, which are in ascending order.
pub(super) fn of_token<T: Copy>(all: &[(u32, T)], token: u32, otherwise: T) -> T {
    let found = all.binary_search_by_key(&token, |(token, _)| *token);
    found.map_or(otherwise, |at| all[at].1)
}

/// Multiplies each row with the matrix of its number.
pub(super) fn multiply(run: &Run<'_>, matrix: &Matrix, x: &Value, number: &Value, out: &mut Value) {
    let count = matrix.rows / matrix.rows_of_one.max(1);
    let mut rows_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (row, number) in number.data.iter().enumerate() {
        rows_of.entry(nearest(*number, count)).or_default().push(row);
    }
    for (which, rows) in rows_of {
        let mut input = Value::zeros(rows.len(), x.width, Vec::new());
        for (row, input) in rows.iter().zip(input.data.chunks_exact_mut(x.width)) {
            input.copy_from_slice(x.row(*row));
        }
        let mut made = Value::zeros(rows.len(), out.width, Vec::new());
        product::multiply_expert(run.how(), matrix, which, (&input).into(), &mut made);
        for (row, made) in rows.iter().zip(made.data.chunks_exact(made.width)) {
            out.data[row * made.len()..(row + 1) * made.len()].copy_from_slice(made);
        }
    }
}

/// The matrix of a number, among so many.
fn nearest(number: f32, count: usize) -> usize {
    // What is below 0, or no number, becomes 0.
    (number.round() as usize).min(count.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_has_a_matrix() {
        let cases = [(0.0, 0), (0.4, 0), (0.5, 1), (1.5, 2), (2.5, 2), (9.0, 2), (-7.0, 0)];
        for (number, matrix) in cases {
            assert_eq!(nearest(number, 3), matrix, "{number}");
        }
        assert_eq!([f32::NAN, f32::INFINITY].map(|number| nearest(number, 3)), [0, 2]);
    }
}
