//! `matmul_id`

use std::collections::BTreeMap;

use gguf_graph::MatmulId;

use super::Kernel;
use crate::matmul::matmul_id;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for MatmulId {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let matrix = run.executor.weights.matrix(self.weight);
        let (x, ids) = (run.value(self.x), run.value(self.ids));
        let count = matrix.rows / matrix.rows_per_matrix.max(1);
        let mut rows_by_id: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (row, id) in ids.data.iter().enumerate() {
            rows_by_id.entry(nearest(*id, count)).or_default().push(row);
        }
        for (id, rows) in rows_by_id {
            let mut input = Value::zeros(rows.len(), x.width, Vec::new());
            for (row, input) in rows.iter().zip(input.data.chunks_exact_mut(x.width)) {
                input.copy_from_slice(x.row(*row));
            }
            let mut product = Value::zeros(rows.len(), out.width, Vec::new());
            matmul_id(run.matmul_context(), matrix, id, (&input).into(), &mut product);
            run.executor.adapters.add(run.watch, self.weight, id, &input, &mut product);
            for (row, product) in rows.iter().zip(product.data.chunks_exact(product.width)) {
                out.data[row * product.len()..(row + 1) * product.len()].copy_from_slice(product);
            }
        }
    }
}

/// Returns the number of the matrix nearest to an id.
fn nearest(id: f32, count: usize) -> usize {
    // The conversion turns negative numbers and NaN to 0.
    (id.round() as usize).min(count.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_selects_a_matrix() {
        let cases = [(0.0, 0), (0.4, 0), (0.5, 1), (1.5, 2), (2.5, 2), (9.0, 2), (-7.0, 0)];
        for (number, matrix) in cases {
            assert_eq!(nearest(number, 3), matrix, "{number}");
        }
        assert_eq!([f32::NAN, f32::INFINITY].map(|number| nearest(number, 3)), [0, 2]);
    }
}
