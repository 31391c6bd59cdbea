//! `sinkhorn`

use gguf_graph::Sinkhorn;

use super::Kernel;
use super::parallel::each_row;
use super::softmax::softmax;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Sinkhorn {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        sinkhorn(self, run.value(self.x), out);
    }
}

fn sinkhorn(op: &Sinkhorn, x: &Value, out: &mut Value) {
    let (size, epsilon) = (x.width.isqrt(), op.epsilon);
    each_row(out, |row, out| {
        out.copy_from_slice(x.row(row));
        out.chunks_exact_mut(size).for_each(softmax);
        out.iter_mut().for_each(|x| *x += epsilon);
        divide_columns(out, size, epsilon);
        for _ in 1..op.iterations {
            for row in out.chunks_exact_mut(size) {
                let sum = row.iter().sum::<f32>() + epsilon;
                row.iter_mut().for_each(|x| *x /= sum);
            }
            divide_columns(out, size, epsilon);
        }
    });
}

/// Divides each column by its sum plus `epsilon`.
fn divide_columns(matrix: &mut [f32], size: usize, epsilon: f32) {
    for column in 0..size {
        let sum = matrix.iter().skip(column).step_by(size).sum::<f32>() + epsilon;
        matrix.iter_mut().skip(column).step_by(size).for_each(|x| *x /= sum);
    }
}

#[cfg(test)]
mod tests {
    use gguf_graph::ValueId;

    use super::*;

    fn assert_close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 2e-6, "{found}; expected {expected}");
        }
    }

    /// Expected values were computed with the formula in double precision, in Python.
    #[test]
    fn matrices_become_doubly_stochastic() {
        let data = vec![0.5, -1.0, 2.0, 1.0, 0.0, -0.5, -2.0, 1.5, 0.25];
        let x = Value { rows: 1, width: 9, data };
        let compute = |iterations| {
            let mut out = Value::zeros(1, 9, Vec::new());
            let op = Sinkhorn { x: ValueId(0), iterations, epsilon: 0.01 };
            sinkhorn(&op, &x, &mut out);
            out.data
        };
        assert_close(&compute(1), &ONE);
        assert_close(&compute(2), &TWO);
        let converged = compute(20);
        assert_close(&converged, &TWENTY);
        for row in converged.chunks_exact(3) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 0.02, "{row:?}");
        }
    }

    #[rustfmt::skip]
    const ONE: [f32; 9] = [
        0.2137745, 0.0459078, 0.6722783,
        0.736_691_3, 0.225_483, 0.1269563,
        0.0379970, 0.7192618, 0.1923155,
    ];

    #[rustfmt::skip]
    const TWO: [f32; 9] = [
        0.2397, 0.0480898, 0.6864988,
        0.707_915, 0.2024248, 0.1111036,
        0.0418230, 0.7396181, 0.1927787,
    ];

    #[rustfmt::skip]
    const TWENTY: [f32; 9] = [
        0.2512927, 0.0484614, 0.6902459,
        0.6945499, 0.1909052, 0.1045449,
        0.0441574, 0.7506334, 0.1952091,
    ];
}
