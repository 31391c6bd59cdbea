//! Encoding of tensors with one or several matrices that share Hessians.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gguf::{Error, TensorType};
use gguf_pipeline::Item;
use gguf_quant::CodecError;
use gguf_store::Progress;

use crate::correction::Correction;
use crate::encoder::Encoder;
use crate::hessian::Hessian;
use crate::objective::Objective;

/// Damping of the diagonal of a Hessian, relative to its mean; see [`Hessian::damped_diagonal`].
#[derive(Clone, Copy, Debug)]
pub struct Damping {
    /// For the rounding. More damping fits the calibration set less: texts unlike it gain.
    pub rounding: f32,
    /// For the correction of the weights before it.
    pub correction: f32,
}

impl Default for Damping {
    fn default() -> Self {
        Self { rounding: 0.3, correction: 0.1 }
    }
}

/// A calibrated tensor.
pub struct CalibratedTensor {
    /// Name of the tensor.
    pub name: String,
    /// Encoded rows.
    pub bytes: Vec<u8>,
    /// Number of matrices (experts or heads).
    pub matrices: usize,
    /// Number of matrices that no token reached; their columns are weighted equally.
    pub unreached: usize,
    /// Number of columns of each matrix.
    pub columns: usize,
    /// Smallest number of calibration tokens of any matrix that was reached.
    pub tokens: u64,
    /// Number of columns whose input is always 0, over all matrices that were reached.
    pub dead_columns: usize,
}

/// Encoders by tensor type, created on first use.
#[derive(Default)]
pub struct Encoders(HashMap<TensorType, Encoder>);

impl Encoders {
    fn encoder(&mut self, item: &Item) -> Result<&Encoder, Error> {
        Ok(match self.0.entry(item.target) {
            Entry::Occupied(encoder) => encoder.into_mut(),
            Entry::Vacant(entry) => {
                let encoded = Encoder::new(item.target);
                entry.insert(encoded.map_err(|fault| failed(item, fault))?)
            }
        })
    }

    /// Encodes a tensor block by block without error propagation between blocks, minimizing squared
    /// errors weighted by the importance of the columns, if there is one.
    ///
    /// # Errors
    /// Returns an error if the tensor cannot be read or encoded.
    pub fn encode_blockwise(
        &mut self,
        item: &Item,
        progress: &dyn Progress,
    ) -> Result<CalibratedTensor, Error> {
        let mut encoded = unencoded(item);
        let encoder = self.encoder(item)?;
        let (len, bytes) = encoder.block();
        let (columns, matrices) = (encoded.columns, encoded.matrices.max(1));
        let rows = item.tensor.rows() as usize / matrices;
        let (in_row, row_bytes) = (columns / len, columns / len * bytes);
        for number in 0..matrices {
            let first = (number * rows) as u64;
            let weights = item.tensor.decode_rows(first, rows as u64)?;
            let importance = item.importance_of_row(first).0;
            for block in 0..in_row {
                progress.step(0)?;
                let mut hessian = Hessian::new(len, false);
                if let Some(importance) = importance {
                    hessian.tokens = 1;
                    let diagonal = hessian.matrix.iter_mut().step_by(len + 1);
                    diagonal.zip(&importance[block * len..]).for_each(|(to, from)| *to = *from);
                }
                let target = Objective::new(hessian, 0.0);
                let block_weights: Vec<f32> = weights
                    .chunks_exact(columns)
                    .flat_map(|row| &row[block * len..][..len])
                    .copied()
                    .collect();
                let mut out = vec![0; rows * bytes];
                encoder.encode(&block_weights, &target, &mut out).map_err(|f| failed(item, f))?;
                let places = encoded.bytes[number * rows * row_bytes..].chunks_exact_mut(row_bytes);
                for (place, out) in places.zip(out.chunks_exact(bytes)) {
                    place[block * bytes..][..bytes].copy_from_slice(out);
                }
            }
        }
        Ok(encoded)
    }

    /// Encodes tensors that share an input. `hessians` holds one symmetrized Hessian per matrix and
    /// may be empty; `output_error` is the argument of [`Correction::new`] for tensors with one matrix.
    ///
    /// # Errors
    /// Returns an error if a tensor cannot be read or encoded.
    pub fn encode(
        &mut self,
        items: &[&Item],
        hessians: Vec<Hessian>,
        output_error: Vec<f32>,
        damping: Damping,
        progress: &dyn Progress,
    ) -> Result<Vec<CalibratedTensor>, Error> {
        let mut tensors: Vec<CalibratedTensor> = items.iter().map(|item| unencoded(item)).collect();
        let matrices = tensors.iter().map(|encoded| encoded.matrices).max().unwrap_or(0);
        let columns = tensors.first().map_or(0, |encoded| encoded.columns);
        let mut hessians = hessians.into_iter();
        let mut output_error = Some(output_error);
        for number in 0..matrices {
            let mut hessian = hessians.next().unwrap_or_else(|| Hessian::new(columns, false));
            let (tokens, dead_columns) = (hessian.tokens, hessian.dead_columns());
            let decode = |(item, encoded): (&&Item, &CalibratedTensor)| {
                let rows = item.tensor.rows() / encoded.matrices.max(1) as u64;
                item.tensor.decode_rows(number as u64 * rows, rows)
            };
            let mut weights =
                items.iter().zip(&tensors).map(decode).collect::<Result<Vec<_>, Error>>()?;
            let output_error = output_error.take().unwrap_or_default();
            if let Some(correction) =
                Correction::new(&mut hessian, output_error, damping.correction)
            {
                for weights in &mut weights {
                    progress.step(0)?;
                    correction.correct(weights);
                }
            }
            let target = Objective::new(hessian, damping.rounding);
            for ((item, encoded), weights) in items.iter().zip(&mut tensors).zip(weights) {
                progress.step(0)?;
                let len = encoded.bytes.len() / encoded.matrices.max(1);
                let bytes = &mut encoded.bytes[number * len..][..len];
                self.encoder(item)?
                    .encode(&weights, &target, bytes)
                    .map_err(|f| failed(item, f))?;
                if tokens == 0 {
                    encoded.unreached += 1;
                } else {
                    encoded.tokens = encoded.tokens.min(tokens);
                    encoded.dead_columns += dead_columns;
                }
            }
        }
        Ok(tensors)
    }
}

/// Creates the result of a tensor before any matrix is encoded.
fn unencoded(item: &Item) -> CalibratedTensor {
    let shape = &item.tensor.shape;
    CalibratedTensor {
        name: item.tensor.name.clone(),
        bytes: vec![0; item.target.byte_len(shape).unwrap_or(0) as usize],
        matrices: shape.iter().skip(2).product::<u64>() as usize,
        unreached: 0,
        columns: shape.row_len() as usize,
        tokens: u64::MAX,
        dead_columns: 0,
    }
}

fn failed(item: &Item, fault: CodecError) -> Error {
    Error::weights(&item.tensor.name, fault.to_string())
}
