//! Token embedding with a two-layer projection folded into it.

use std::sync::Arc;

use gguf::{Error, Finding};
use gguf_pipeline::Tensor;
use gguf_store::Source;

/// Activation function between the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x / (1 + exp(-x))`.
    Silu,
    /// GELU with the error function.
    Gelu,
    /// ReLU.
    Relu,
}

impl Activation {
    fn of(self, x: f32) -> f32 {
        match self {
            Self::Silu => x / (1.0 + (-x).exp()),
            Self::Gelu => 0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2)),
            Self::Relu => x.max(0.0),
        }
    }
}

/// Linear layer with a bias.
pub struct Layer {
    /// Elements in column-major order.
    columns: Vec<f32>,
    bias: Vec<f32>,
}

impl Layer {
    /// Returns a layer of a matrix whose rows are outputs; `None` if matrix and bias differ in size.
    pub fn new(rows: &[f32], bias: Vec<f32>) -> Option<Self> {
        let (outputs, len) = (bias.len(), rows.len());
        if outputs == 0 || !len.is_multiple_of(outputs) {
            return None;
        }
        let inputs = len / outputs;
        let mut columns = vec![0.0; len];
        for (output, row) in rows.chunks_exact(inputs.max(1)).enumerate() {
            for (input, weight) in row.iter().enumerate() {
                columns[input * outputs + output] = *weight;
            }
        }
        Some(Self { columns, bias })
    }

    /// Returns the number of inputs.
    pub fn inputs(&self) -> usize {
        self.columns.len() / self.bias.len()
    }

    /// Returns the number of outputs.
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Applies the layer to several rows, one column of the matrix at a time.
    fn of(&self, rows: &[f32]) -> Vec<f32> {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let count = rows.len() / inputs.max(1);
        let mut sums = vec![0.0; count * outputs];
        for (input, column) in self.columns.chunks_exact(outputs).enumerate() {
            for (sums, row) in sums.chunks_exact_mut(outputs).zip(rows.chunks_exact(inputs)) {
                let x = row[input];
                sums.iter_mut().zip(column).for_each(|(sum, weight)| *sum += x * weight);
            }
        }
        for sums in sums.chunks_exact_mut(outputs) {
            sums.iter_mut().zip(&self.bias).for_each(|(sum, bias)| *sum += bias);
        }
        sums
    }
}

/// F32 rows of an embedding after a network, then unchanged rows of another embedding.
pub struct Folded {
    /// Input of the network.
    pub embedding: Tensor,
    /// Layers.
    pub layers: [Layer; 2],
    /// Activation function between the layers.
    pub activation: Activation,
    /// Unchanged rows behind the others.
    pub others: Tensor,
}

/// Number of rows per batch, for which the matrices are read once.
const TOGETHER: u64 = 32;

impl Folded {
    /// Returns the source of the bytes, which are computed when they are read.
    pub fn source(self) -> Arc<dyn Source> {
        Arc::new(self)
    }

    /// Returns the width of rows.
    fn width(&self) -> u64 {
        self.layers[1].outputs() as u64
    }

    /// Returns rows from `first` on, all of one kind.
    fn rows(&self, first: u64, count: u64) -> Result<Vec<f32>, Error> {
        let before = self.embedding.rows();
        if first >= before {
            return self.others.decode_rows(first - before, count);
        }
        let mut hidden = self.layers[0].of(&self.embedding.decode_rows(first, count)?);
        hidden.iter_mut().for_each(|x| *x = self.activation.of(*x));
        Ok(self.layers[1].of(&hidden))
    }
}

impl Source for Folded {
    fn byte_len(&self) -> u64 {
        (self.embedding.rows() + self.others.rows()) * self.width() * 4
    }

    fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<(), Error> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.byte_len()) {
            let what = "a computed embedding is shorter than its shape";
            return Err(Finding::error("weights-cut", what).into());
        }
        let (row_bytes, before) = (self.width() * 4, self.embedding.rows());
        while !buffer.is_empty() {
            let (first, within) = (offset / row_bytes, offset % row_bytes);
            let end = if first < before { before } else { before + self.others.rows() };
            let asked = (within + buffer.len() as u64).div_ceil(row_bytes);
            let rows = self.rows(first, asked.min(TOGETHER).min(end - first))?;
            let bytes = rows.iter().flat_map(|x| x.to_le_bytes()).skip(within as usize);
            let len = (rows.len() as u64 * 4 - within).min(buffer.len() as u64);
            let (filled, rest) = std::mem::take(&mut buffer).split_at_mut(len as usize);
            filled.iter_mut().zip(bytes).for_each(|(out, byte)| *out = byte);
            buffer = rest;
            offset += len;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gguf::{Shape, TensorType};
    use gguf_pipeline::Content;

    use super::*;

    fn matrix(name: &str, columns: u64, values: Vec<f32>) -> Tensor {
        let shape = Shape::new(&[columns, values.len() as u64 / columns]).unwrap();
        let content = Content::Values(values);
        Tensor { name: name.into(), shape, stored_type: TensorType::F32, content }
    }

    #[test]
    fn any_part_can_be_read() {
        let layers = [
            Layer::new(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], vec![0.5, 0.0, -1.0]).unwrap(),
            Layer::new(&[1.0, 2.0, 4.0, 0.0, 0.0, 1.0], vec![0.0, 0.25]).unwrap(),
        ];
        let embedding: Vec<f32> = (0..140).map(|x| (x % 9) as f32 - 4.0).collect();
        let others = vec![7.0, 8.0, 9.0, 10.0];
        let expected: Vec<f32> = embedding
            .chunks_exact(2)
            .flat_map(|x| {
                let hidden = [x[0] + 0.5, x[1], x[0] + x[1] - 1.0].map(|x| x.max(0.0));
                [hidden[0] + 2.0 * hidden[1] + 4.0 * hidden[2], hidden[2] + 0.25]
            })
            .chain(others.clone())
            .collect();
        let expected: Vec<u8> = expected.iter().flat_map(|x| x.to_le_bytes()).collect();
        let (embedding, others) = (matrix("a", 2, embedding), matrix("b", 2, others));
        let source = Folded { embedding, layers, activation: Activation::Relu, others }.source();
        assert_eq!(source.byte_len(), expected.len() as u64);
        for (start, end) in [(0, 576), (0, 4), (3, 9), (250, 570), (555, 563), (560, 576)] {
            let mut bytes = vec![0; end - start];
            source.read_at(&mut bytes, start as u64).unwrap();
            assert_eq!(bytes, expected[start..end], "{start}..{end}");
        }
        assert_eq!(source.read_at(&mut [0; 2], 575).unwrap_err().code(), "weights-cut");
    }

    #[test]
    fn activations_are_those_of_torch() {
        // `torch.nn.functional` at -1.5, in F32: within two last bits.
        let close = |of: Activation, expected: f32| (of.of(-1.5) - expected).abs() < 6e-8;
        assert!(close(Activation::Silu, -0.273_638_28));
        assert!(close(Activation::Gelu, -0.100_210_816));
        assert_eq!(Activation::Relu.of(-1.5), 0.0);
    }
}
