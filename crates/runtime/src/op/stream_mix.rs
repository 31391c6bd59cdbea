//! `stream_mix`

use gguf_graph::StreamMix;

use super::Kernel;
use super::parallel::each_row;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for StreamMix {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        stream_mix(run.value(self.x), run.value(self.matrix), self.streams as usize, out);
    }
}

/// Adds to `out`, which is all zeros.
fn stream_mix(x: &Value, matrix: &Value, streams: usize, out: &mut Value) {
    let [len, outputs] = [x, matrix].map(|value| value.width / streams);
    each_row(out, |row, out| {
        let streams = x.row(row).chunks_exact(len).zip(matrix.row(row).chunks_exact(outputs));
        for (stream, factors) in streams {
            for (out, factor) in out.chunks_exact_mut(len).zip(factors) {
                out.iter_mut().zip(stream).for_each(|(out, x)| *out += factor * x);
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

    #[test]
    fn streams_are_mixed_by_a_matrix_per_row() {
        // Three streams of two elements become two streams; two tokens.
        let x = value(6, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -1.0, 0.0, 0.5, 2.0, 8.0, 1.0]);
        let matrix = value(6, &[1.0, 0.0, 2.0, 1.0, 0.5, -1.0, 0.0, 3.0, 4.0, 0.0, 0.25, 1.0]);
        let mut out = Value::zeros(2, 4, Vec::new());
        stream_mix(&x, &matrix, 3, &mut out);
        assert_eq!(out.data, [9.5, 13.0, -2.0, -2.0, 4.0, 8.25, 5.0, 1.0]);
    }
}
