//! What mixes parts of a row: streams of a residual, and the shares that they have in each other.

use super::each_row;
use super::elementwise::softmax;
use crate::value::Value;

pub(super) fn sinkhorn(x: &Value, iterations: u32, epsilon: f32, out: &mut Value) {
    let size = x.width.isqrt();
    each_row(out, |row, out| {
        out.copy_from_slice(x.row(row));
        out.chunks_exact_mut(size).for_each(softmax);
        out.iter_mut().for_each(|share| *share += epsilon);
        divide_columns(out, size, epsilon);
        for _ in 1..iterations {
            for row in out.chunks_exact_mut(size) {
                let sum = row.iter().sum::<f32>() + epsilon;
                row.iter_mut().for_each(|share| *share /= sum);
            }
            divide_columns(out, size, epsilon);
        }
    });
}

/// Divides each column by its sum.
fn divide_columns(matrix: &mut [f32], size: usize, epsilon: f32) {
    for column in 0..size {
        let sum = matrix.iter().skip(column).step_by(size).sum::<f32>() + epsilon;
        matrix.iter_mut().skip(column).step_by(size).for_each(|share| *share /= sum);
    }
}

/// `out` is all zeros before.
pub(super) fn combine(x: &Value, shares: &Value, parts: u32, out: &mut Value) {
    let [len, made] = [x, shares].map(|value| value.width / parts as usize);
    each_row(out, |row, out| {
        let parts = x.row(row).chunks_exact(len).zip(shares.row(row).chunks_exact(made));
        for (part, shares) in parts {
            for (out, share) in out.chunks_exact_mut(len).zip(shares) {
                out.iter_mut().zip(part).for_each(|(out, x)| *out += share * x);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(width: usize, data: &[f32]) -> Value {
        Value { rows: data.len() / width, width, data: data.to_vec() }
    }

    fn assert_close(found: &[f32], wanted: &[f32]) {
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 2e-6, "{found} instead of {wanted}");
        }
    }

    /// Beside the formula in double precision, written down in Python.
    #[test]
    fn shares_become_even() {
        let x = value(9, &[0.5, -1.0, 2.0, 1.0, 0.0, -0.5, -2.0, 1.5, 0.25]);
        let of = |iterations| {
            let mut out = Value::zeros(1, 9, Vec::new());
            sinkhorn(&x, iterations, 0.01, &mut out);
            out.data
        };
        assert_close(&of(1), &ONE);
        assert_close(&of(2), &TWO);
        let even = of(20);
        assert_close(&even, &TWENTY);
        for line in even.chunks_exact(3) {
            assert!((line.iter().sum::<f32>() - 1.0).abs() < 0.02, "{line:?}");
        }
    }

    #[test]
    fn parts_are_weighed_for_each_new_part() {
        // Three parts of two numbers become two parts; two tokens.
        let x = value(6, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -1.0, 0.0, 0.5, 2.0, 8.0, 1.0]);
        let shares = value(6, &[1.0, 0.0, 2.0, 1.0, 0.5, -1.0, 0.0, 3.0, 4.0, 0.0, 0.25, 1.0]);
        let mut out = Value::zeros(2, 4, Vec::new());
        combine(&x, &shares, 3, &mut out);
        assert_eq!(out.data, [9.5, 13.0, -2.0, -2.0, 4.0, 8.25, 5.0, 1.0]);
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
