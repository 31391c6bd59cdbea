//! Changes of tensors of a base model by adapters.

use gguf::Error;
use gguf_store::ModelTensor;

use super::adapter::Adapter;
use super::pair::{EMBEDDING, Pair, PairDims};
use super::values::values;

/// Change of a tensor by all adapters.
pub struct Change {
    /// Elements of a row.
    columns: usize,
    /// Rows of a matrix.
    rows: usize,
    updates: Vec<Update>,
    /// Share of the base tensor: 1 minus the scales of the replacements.
    base_share: f32,
    /// Scales and elements of tensors that replace it.
    replacements: Vec<(f32, Vec<f32>)>,
}

/// Low-rank update of a tensor.
struct Update {
    rank: usize,
    /// Elements of shape `[matrices, rank, columns]`.
    a: Vec<f32>,
    /// Scaled elements of shape `[matrices, rows, rank]`.
    b: Vec<f32>,
}

impl Change {
    /// Reads what adapters with their scales change in the tensor `base`; `None` if they do not change it. The adapters
    /// fit the base model.
    ///
    /// # Errors
    /// If a tensor of an adapter cannot be read.
    pub fn read(base: &ModelTensor, adapters: &[(Adapter, f32)]) -> Result<Option<Self>, Error> {
        let (name, shape) = (&*base.info.name, &base.info.shape);
        let columns = shape.row_len() as usize;
        let rows = shape.get(1).copied().unwrap_or(1) as usize;
        let (mut updates, mut replacements, mut base_share) = (Vec::new(), Vec::new(), 1.0);
        for (adapter, scale) in adapters {
            if let Some(pair) = adapter.pairs.get(name)
                && let Some(dims) = pair.dims(name)
            {
                updates.push(Update::read(name, pair, dims, scale * adapter.alpha)?);
            }
            for tensor in adapter.replaced.iter().filter(|tensor| &*tensor.info.name == name) {
                base_share -= scale;
                replacements.push((*scale, values(tensor)?));
            }
        }
        let is_change = !updates.is_empty() || !replacements.is_empty();
        Ok(is_change.then_some(Self { columns, rows, updates, base_share, replacements }))
    }

    /// Applies the change to `values`: rows of the base tensor from the row `first` of all its matrices on.
    pub fn apply(&self, values: &mut [f32], first: usize) {
        for (row, values) in (first..).zip(values.chunks_exact_mut(self.columns.max(1))) {
            if !self.replacements.is_empty() {
                values.iter_mut().for_each(|x| *x *= self.base_share);
            }
            for (scale, elements) in &self.replacements {
                let elements = elements.iter().skip(row * self.columns);
                values.iter_mut().zip(elements).for_each(|(x, element)| *x += scale * element);
            }
            for update in &self.updates {
                update.add_to(values, row, self.rows);
            }
        }
    }
}

impl Update {
    fn read(name: &str, pair: &Pair, dims: PairDims, strength: f32) -> Result<Self, Error> {
        let (rank, columns) = (dims.rank as usize, dims.columns as usize);
        let (mut a, mut b) = (values(&pair.a)?, values(&pair.b)?);
        if name == EMBEDDING {
            // `a` has a row per token, `b` one per column.
            let turned = (0..rank * columns).map(|i| b[i % columns * rank + i / columns]).collect();
            (a, b) = (turned, a);
        }
        let scale = strength / dims.rank as f32;
        b.iter_mut().for_each(|x| *x *= scale);
        Ok(Self { rank, a, b })
    }

    /// Adds the update to `values`, a row of the base tensor.
    fn add_to(&self, values: &mut [f32], row: usize, rows: usize) {
        let columns = values.len();
        let first = row / rows.max(1) * self.rank;
        for k in 0..self.rank {
            let factor = self.b[row * self.rank + k];
            let a = &self.a[(first + k) * columns..][..columns];
            values.iter_mut().zip(a).for_each(|(x, a)| *x += factor * a);
        }
    }
}
