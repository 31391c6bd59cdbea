//! Tensors of one or several matrices, encoded by moments that they have in common.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gguf::{Error, TensorType};
use gguf_pipeline::Item;
use gguf_quant::CodecError;
use gguf_store::Progress;

use crate::calibrate::Calibrated;
use crate::encode::{Encoder, Target};
use crate::moments::Moments;

/// Encoders of the types that were needed so far.
#[derive(Default)]
pub struct Encoders(HashMap<TensorType, Encoder>);

impl Encoders {
    fn of(&mut self, item: &Item) -> Result<&Encoder, Error> {
        Ok(match self.0.entry(item.target) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(room) => {
                let made = Encoder::new(item.target);
                room.insert(made.map_err(|fault| failed(item, fault))?)
            }
        })
    }

    /// Encodes a tensor block by block, each for itself: so that squares of errors are least, times the importance of
    /// their columns if there is one.
    ///
    /// # Errors
    /// If it cannot be read or encoded.
    pub fn encode_alone(
        &mut self,
        item: &Item,
        progress: &dyn Progress,
    ) -> Result<Calibrated, Error> {
        let mut made = empty(item);
        let encoder = self.of(item)?;
        let (len, bytes) = encoder.block();
        let (columns, matrices) = (made.columns, made.matrices.max(1));
        let rows = item.tensor.rows() as usize / matrices;
        let (in_row, row_bytes) = (columns / len, columns / len * bytes);
        for number in 0..matrices {
            let first = (number * rows) as u64;
            let weights = item.tensor.decode_rows(first, rows as u64)?;
            let importance = item.importance_of_row(first).0;
            for block in 0..in_row {
                progress.step(0)?;
                let mut moments = Moments::new(len, false);
                if let Some(importance) = importance {
                    moments.tokens = 1;
                    let diagonal = moments.squares.iter_mut().step_by(len + 1);
                    diagonal.zip(&importance[block * len..]).for_each(|(to, from)| *to = *from);
                }
                let target = Target::new(moments, 0.0);
                let of_block: Vec<f32> = weights
                    .chunks_exact(columns)
                    .flat_map(|row| &row[block * len..][..len])
                    .copied()
                    .collect();
                let mut out = vec![0; rows * bytes];
                encoder.encode(&of_block, &target, &mut out).map_err(|f| failed(item, f))?;
                let places = made.bytes[number * rows * row_bytes..].chunks_exact_mut(row_bytes);
                for (place, out) in places.zip(out.chunks_exact(bytes)) {
                    place[block * bytes..][..bytes].copy_from_slice(out);
                }
            }
        }
        Ok(made)
    }

    /// Encodes tensors whose matrices are multiplied with the same: `moments` has complete ones for each matrix, or
    /// none if nothing is known of any; `missing` is that of [`Target::with_missing`], of tensors of one matrix.
    /// `damping` is that of [`Options`](crate::Options).
    ///
    /// # Errors
    /// If a tensor cannot be read or encoded.
    pub fn encode(
        &mut self,
        items: &[&Item],
        moments: Vec<Moments>,
        missing: Vec<f32>,
        damping: f32,
        progress: &dyn Progress,
    ) -> Result<Vec<Calibrated>, Error> {
        let mut all: Vec<Calibrated> = items.iter().map(|item| empty(item)).collect();
        let matrices = all.iter().map(|made| made.matrices).max().unwrap_or(0);
        let columns = all.first().map_or(0, |made| made.columns);
        let mut moments = moments.into_iter();
        let mut missing = Some(missing);
        for number in 0..matrices {
            let known = moments.next().unwrap_or_else(|| Moments::new(columns, false));
            let (tokens, dead) = (known.tokens, known.dead());
            let target =
                Target::new(known, damping).with_missing(missing.take().unwrap_or_default());
            for (item, made) in items.iter().zip(&mut all) {
                progress.step(0)?;
                let rows = item.tensor.rows() / made.matrices.max(1) as u64;
                let weights = item.tensor.decode_rows(number as u64 * rows, rows)?;
                let len = made.bytes.len() / made.matrices.max(1);
                let bytes = &mut made.bytes[number * len..][..len];
                self.of(item)?.encode(&weights, &target, bytes).map_err(|f| failed(item, f))?;
                if tokens == 0 {
                    made.unreached += 1;
                } else {
                    made.tokens = made.tokens.min(tokens);
                    made.dead += dead;
                }
            }
        }
        Ok(all)
    }
}

/// A tensor that nothing is known of yet.
fn empty(item: &Item) -> Calibrated {
    let shape = &item.tensor.shape;
    Calibrated {
        name: item.tensor.name.clone(),
        bytes: vec![0; item.target.byte_len(shape).unwrap_or(0) as usize],
        matrices: shape.iter().skip(2).product::<u64>() as usize,
        unreached: 0,
        columns: shape.row_len() as usize,
        tokens: u64::MAX,
        dead: 0,
    }
}

fn failed(item: &Item, fault: CodecError) -> Error {
    Error::weights(&item.tensor.name, fault.to_string())
}
