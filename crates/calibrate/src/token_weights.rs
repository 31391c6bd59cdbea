//! Weights of tokens in the sums of a matrix whose output is added to the residual stream.
//!
//! The residual stream of a few tokens, mostly the first of a chunk, has 1,000 to 100,000 times the energy of the
//! others (Sun et al., "Massive Activations in Large Language Models", 2024). The norms that read the stream divide by
//! its RMS, so an error of such a token matters less by the same factor. Without weights, the sums would hardly depend
//! on the other tokens.

use gguf_runtime::Value;
use rayon::prelude::*;

/// Input energy, relative to the median, above which the output is expected to be a massive activation, although
/// the stream does not have it yet.
const MASSIVE: f32 = 100.0;

/// Least relative energy: a token counts at most four times.
const LEAST: f32 = 0.25;

/// Returns the square root of the weight of each token, given the input of the matrix and the stream that its
/// output is added to. Most weights are about 1.
pub(crate) fn roots(input: &Value, stream: &Value) -> Vec<f32> {
    let (inputs, streams) = (relative_energies(input), relative_energies(stream));
    let weight = |(input, stream): (f32, f32)| {
        1.0 / if input > MASSIVE { stream.max(input) } else { stream }
    };
    inputs.into_iter().zip(streams).map(weight).map(f32::sqrt).collect()
}

/// Returns the energy of each row, relative to the median.
fn relative_energies(value: &Value) -> Vec<f32> {
    let rows = value.data.par_chunks_exact(value.width.max(1));
    let energies: Vec<f32> = rows.map(|row| row.iter().map(|x| x * x).sum()).collect();
    let mut sorted = energies.clone();
    sorted.sort_by(f32::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().filter(|median| *median > 0.0);
    let relative = |energy: f32| median.map_or(1.0, |median| (energy / median).max(LEAST));
    energies.into_iter().map(relative).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of two equal numbers.
    fn rows(numbers: &[f32]) -> Value {
        let data = numbers.iter().flat_map(|number| [*number; 2]).collect();
        Value { rows: numbers.len(), width: 2, data }
    }

    #[test]
    fn errors_count_relative_to_the_stream() {
        let input = rows(&[1.0; 5]);
        assert_eq!(roots(&input, &rows(&[1.0, 100.0, -1.0, 2.0, 1.0])), [1.0, 0.01, 1.0, 0.5, 1.0]);
        // A token with a small stream counts at most four times.
        assert_eq!(
            roots(&input, &rows(&[1.0, 0.0, 1.0, 0.75, 1.0])),
            [1.0, 2.0, 1.0, 1.0 / 0.75, 1.0]
        );
    }

    #[test]
    fn massive_inputs_count_less_before_the_stream_has_them() {
        let stream = rows(&[1.0; 5]);
        assert_eq!(roots(&rows(&[1.0, 20.0, 5.0, 1.0, 1.0]), &stream), [1.0, 0.05, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn zeros_have_equal_weights() {
        let zeros = rows(&[0.0; 3]);
        assert_eq!(roots(&zeros, &zeros), [1.0; 3]);
    }
}
