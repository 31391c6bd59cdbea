//! LoRA adapters, applied while the model runs.
//!
//! Weights of matrix multiplications and lookups stay as they are in memory: the low-rank product is added to their
//! outputs. Other weights, such as norms and convolutions, are small and are changed when the adapters are bound.

use std::collections::{HashMap, HashSet};

use gguf::{Error, TensorType};
use gguf_graph::{Graph, Op, WeightId};
use gguf_lora::{Adapter, Change, EMBEDDING, Pair, values};
use gguf_store::{Model, ModelTensor};

use crate::matmul::exact;
use crate::matrix::Matrix;
use crate::value::Value;
use crate::watch::Watch;
use crate::weights::Weights;

/// Low-rank updates by weight.
#[derive(Default)]
pub(crate) struct Adapters {
    products: HashMap<u32, Vec<LowRank>>,
    tables: HashMap<u32, Vec<LowRank>>,
}

/// Low-rank update `scale B A` of a matrix.
struct LowRank {
    /// For a product, A: a row per rank. For a table, a row of B per row of the table.
    first: Matrix,
    /// For a product, B: a row per output. For a table, the transpose of A: a row per output.
    second: Matrix,
    scale: f32,
}

/// Operations that read a weight.
#[derive(Clone, Copy, Default)]
struct Usage {
    product: bool,
    table: bool,
    other: bool,
}

impl Adapters {
    /// Binds adapters with their scales to the weights of a graph. Returns the weights, of which some are changed, and
    /// the updates of the others. Tensors that the graph does not read have no effect.
    ///
    /// # Errors
    /// `adapter-other-base` if an adapter does not fit the model; errors of reading.
    pub fn bind(
        graph: &Graph,
        weights: &Weights,
        base: &Model,
        adapters: &[(Adapter, f32)],
    ) -> Result<(Weights, Self), Error> {
        for (adapter, _) in adapters {
            adapter.require_fit(base)?;
        }
        let (mut weights, mut bound) = (weights.clone(), Self::default());
        let index = base.index();
        let usage = usage(graph);
        let mut changed: HashSet<&str> = HashSet::new();
        for ((id, weight), usage) in (0..).zip(&graph.raw().weights).zip(usage) {
            let name = weight.name.as_str();
            let Some(tensor) = index.get(name) else { continue };
            let is_replaced = adapters.iter().any(|(adapter, _)| {
                adapter.replaced.iter().any(|tensor| &*tensor.info.name == name)
            });
            if usage.other || is_replaced {
                if changed.insert(name)
                    && let Some(change) = Change::read(tensor, adapters)?
                {
                    weights = weights.with_tensor(
                        graph,
                        name,
                        TensorType::F32,
                        apply(&change, tensor)?.into(),
                    )?;
                }
                continue;
            }
            for (adapter, scale) in adapters {
                let Some(pair) = adapter.pairs.get(name) else { continue };
                let low_rank = |first, second: Matrix| {
                    let scale = scale * adapter.alpha / second.row_len as f32;
                    LowRank { first, second, scale }
                };
                // The pair of the token embedding does not change an output projection that is tied to it.
                if usage.product && name != EMBEDDING {
                    let update = low_rank(Matrix::new(&pair.a)?, Matrix::new(&pair.b)?);
                    bound.products.entry(id).or_default().push(update);
                }
                if usage.table {
                    let [first, second] = of_table(name, pair)?;
                    bound.tables.entry(id).or_default().push(low_rank(first, second));
                }
            }
        }
        Ok((weights, bound))
    }

    /// Adds the updates of a weight to its product with `x`, for the matrix `id` of the tensor.
    pub fn add(&self, watch: &Watch<'_>, weight: WeightId, id: usize, x: &Value, out: &mut Value) {
        for update in self.products.get(&weight.0).into_iter().flatten() {
            let LowRank { first, second, .. } = update;
            let mut low = Value::zeros(x.rows, first.rows_per_matrix, Vec::new());
            exact::matmul(watch, first, id * first.rows_per_matrix, x, &mut low);
            update.expand(watch, id * second.rows_per_matrix, &low, out);
        }
    }

    /// Adds the updates of a table to rows that were looked up; `index` returns the row of the table for a row of `out`.
    pub fn add_rows(
        &self,
        watch: &Watch<'_>,
        table: WeightId,
        index: impl Fn(usize) -> usize,
        out: &mut Value,
    ) {
        for update in self.tables.get(&table.0).into_iter().flatten() {
            let mut low = Value::zeros(out.rows, update.first.row_len, Vec::new());
            for (row, low) in low.data.chunks_exact_mut(update.first.row_len).enumerate() {
                update.first.decode(index(row), low);
            }
            update.expand(watch, 0, &low, out);
        }
    }
}

impl LowRank {
    /// Adds the product of the second matrix, from the row `first` on, to `out`.
    fn expand(&self, watch: &Watch<'_>, first: usize, low: &Value, out: &mut Value) {
        let mut update = Value::zeros(low.rows, out.width, Vec::new());
        exact::matmul(watch, &self.second, first, low, &mut update);
        out.data.iter_mut().zip(&update.data).for_each(|(out, x)| *out += self.scale * x);
    }
}

/// Returns the matrices of a pair as a table needs them.
fn of_table(name: &str, pair: &Pair) -> Result<[Matrix; 2], Error> {
    if name == EMBEDDING {
        return Ok([Matrix::new(&pair.a)?, Matrix::new(&pair.b)?]);
    }
    let (columns, rank) = (pair.a.info.shape.row_len(), pair.b.info.shape.row_len());
    let a = values(&pair.a)?;
    let turned =
        (0..columns as usize).flat_map(|column| a.iter().skip(column).step_by(columns as usize));
    let bytes: Vec<u8> = turned.flat_map(|x| x.to_le_bytes()).collect();
    let (name, shape) = (&pair.a.info.name, [rank, columns]);
    let turned = Matrix::from_bytes(name, &shape, TensorType::F32, bytes.into())?;
    Ok([Matrix::new(&pair.b)?, turned])
}

/// Returns a changed tensor as F32.
fn apply(change: &Change, tensor: &ModelTensor) -> Result<Vec<u8>, Error> {
    let mut values = values(tensor)?;
    change.apply(&mut values, 0);
    Ok(values.iter().flat_map(|x| x.to_le_bytes()).collect())
}

/// Returns the operations that read each weight.
fn usage(graph: &Graph) -> Vec<Usage> {
    let mut found = vec![Usage::default(); graph.raw().weights.len()];
    let programs = [Some(graph.main()), graph.encoder()].into_iter().flatten();
    for op in programs.flat_map(|(program, _)| &program.ops) {
        let mut others = op.weights();
        if let Op::Matmul(_) | Op::MatmulId(_) | Op::Moe(_) | Op::Embedding(_) = op {
            for matrix in op.matrices() {
                others.retain(|id| *id != matrix);
                let usage = &mut found[matrix.0 as usize];
                let is_table = matches!(op, Op::Embedding(_));
                *(if is_table { &mut usage.table } else { &mut usage.product }) = true;
            }
        }
        others.into_iter().for_each(|id| found[id.0 as usize].other = true);
    }
    found
}
