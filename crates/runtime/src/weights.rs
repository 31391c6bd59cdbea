//! Weights of a graph, bound to the tensors of a model.

use std::collections::HashSet;
use std::sync::Arc;

use gguf::units::distinct_sizes;
use gguf::{Bytes, Error, Finding, TensorType};
use gguf_graph::{Graph, WeightId};
use gguf_store::{Advice, Model, ModelTensor};

use crate::matrix::Matrix;
use crate::memory_budget::{MemoryBudget, zeros};

/// A weight in the forms that operations need.
pub(crate) struct Weight {
    /// Quantized, for matrix multiplication and lookup.
    matrix: Option<Matrix>,
    /// Dequantized, for everything else.
    floats: Vec<f32>,
}

impl Weight {
    /// Whether the weight is there in the forms that a graph needs.
    fn has_forms(&self, matrix: bool, floats: bool) -> bool {
        (!matrix || self.matrix.is_some()) && (!floats || !self.floats.is_empty())
    }
}

/// Weights of an executor that another one uses too.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'w> {
    pub graph: &'w Graph,
    pub weights: &'w Weights,
    /// Names of the tensors.
    pub names: &'w [&'w str],
}

impl<'w> Shared<'w> {
    /// Returns a weight that is shared, of the same shape.
    fn weight(self, declared: &gguf_graph::Weight) -> Option<&'w Arc<Weight>> {
        if !self.names.contains(&&*declared.name) {
            return None;
        }
        let all = self.graph.raw().weights.iter().zip(&self.weights.0);
        let is_same = |other: &gguf_graph::Weight| {
            other.name == declared.name && trimmed(&other.shape) == trimmed(&declared.shape)
        };
        all.into_iter().find(|(other, _)| is_same(other)).map(|(_, weight)| weight)
    }
}

/// Weights of a graph.
#[derive(Clone)]
pub(crate) struct Weights(Vec<Arc<Weight>>);

impl Weights {
    /// Binds the weights to the tensors of a model. Those named in `shared` are taken from another executor.
    ///
    /// # Errors
    /// `tensor-missing`, `tensor-shape`, `tensor-type-unknown`, `memory-budget` if copies exceed the budget, and errors
    /// of reading.
    pub fn bind(
        graph: &Graph,
        model: &Model,
        memory: &MemoryBudget,
        shared: Option<Shared<'_>>,
    ) -> Result<Self, Error> {
        let index = model.index();
        let reserve = |tensor: &ModelTensor, bytes: u64| match memory.take(bytes) {
            true => Ok(()),
            false => Err(too_large(tensor, bytes, memory)),
        };
        let (matrices, others) = usage(graph);
        let bind = |(id, weight): (u32, &gguf_graph::Weight)| {
            let error = |finding: Finding| Error::from(finding.tensor(weight.name.as_str()));
            let (is_matrix, has_floats) = (matrices.contains(&id), others.contains(&id));
            let found = shared.and_then(|shared| shared.weight(weight));
            if let Some(found) = found.filter(|found| found.has_forms(is_matrix, has_floats)) {
                return Ok(found.clone());
            }
            let Some(tensor) = index.get(&*weight.name) else {
                return Err(error(
                    Finding::error(
                        "tensor-missing",
                        "the graph reads this tensor, and the model lacks it",
                    )
                    .help("the graph belongs to another model, or a shard is missing"),
                ));
            };
            let found: &[u64] = &tensor.info.shape;
            if trimmed(found) != trimmed(&weight.shape) {
                let message =
                    format!("the shape is {found:?}; the graph expects {:?}", weight.shape);
                return Err(error(
                    Finding::error("tensor-shape", message)
                        .help("the graph belongs to another model"),
                ));
            }
            if tensor.data().is_none() {
                reserve(tensor, tensor.info.byte_len().unwrap_or(u64::MAX))?;
            }
            let matrix = Matrix::new(tensor)?;
            if is_matrix && !has_floats {
                return Ok(Arc::new(Weight { matrix: Some(matrix), floats: Vec::new() }));
            }
            reserve(tensor, 4 * matrix.rows as u64 * matrix.row_len as u64)?;
            let floats = dequantized(&matrix)?;
            Ok(Arc::new(Weight { matrix: is_matrix.then_some(matrix), floats }))
        };
        (0..).zip(&graph.raw().weights).map(bind).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the weights with other data for a tensor. All other weights are shared.
    pub fn with_tensor(
        &self,
        graph: &Graph,
        name: &str,
        ty: TensorType,
        bytes: Bytes,
    ) -> Result<Self, Error> {
        let mut weights = self.0.clone();
        let mut found = false;
        for (weight, declared) in weights.iter_mut().zip(&graph.raw().weights) {
            if declared.name != name {
                continue;
            }
            let matrix = Matrix::from_bytes(name, &declared.shape, ty, bytes.clone())?;
            let floats = if weight.floats.is_empty() { Vec::new() } else { dequantized(&matrix)? };
            *weight = Arc::new(Weight { matrix: weight.matrix.as_ref().map(|_| matrix), floats });
            found = true;
        }
        match found {
            true => Ok(Self(weights)),
            false => Err(Finding::error("tensor-missing", "the graph has no such tensor")
                .tensor(name)
                .help("name a weight of the graph")
                .into()),
        }
    }

    /// Returns a weight that operations multiply by or look rows up in.
    pub fn matrix(&self, id: WeightId) -> &Matrix {
        let weight = &self.0[id.0 as usize];
        weight.matrix.as_ref().expect("weights of matmul are bound as matrices")
    }

    /// Returns the bytes of a matrix in a mapped file; 0 for other weights.
    pub fn mapped_bytes(&self, id: WeightId) -> u64 {
        let matrix = self.0[id.0 as usize].matrix.as_ref();
        matrix.filter(|matrix| matrix.is_mapped()).map_or(0, |matrix| matrix.bytes().len() as u64)
    }

    /// Tells the system what happens next to a matrix of a mapped file.
    pub fn advise(&self, id: WeightId, advice: Advice) {
        if let Some(matrix) = &self.0[id.0 as usize].matrix {
            matrix.advise(0, matrix.rows, advice);
        }
    }

    /// Returns the bytes of all matrices.
    pub fn matrix_bytes(&self) -> u64 {
        let matrices = self.0.iter().filter_map(|weight| weight.matrix.as_ref());
        matrices.map(|matrix| matrix.bytes().len() as u64).sum()
    }

    /// Returns any other weight.
    pub fn floats(&self, id: WeightId) -> &[f32] {
        &self.0[id.0 as usize].floats
    }

    /// Returns an optional weight.
    pub fn optional(&self, id: Option<WeightId>) -> Option<&[f32]> {
        id.map(|id| self.floats(id))
    }
}

/// Returns the error for a copy of a tensor that exceeds the budget.
fn too_large(tensor: &ModelTensor, bytes: u64, memory: &MemoryBudget) -> Error {
    let left = memory.limit().saturating_sub(memory.used());
    let [needed, allowed] = distinct_sizes(bytes, left);
    let message =
        format!("the copy of {} in memory needs {needed}; {allowed} are allowed", tensor.info.name);
    Error::request("memory-budget", message, "allow more memory with `--memory-limit SIZE`")
}

/// Returns all elements of a matrix; refuses NaN and infinity.
fn dequantized(matrix: &Matrix) -> Result<Vec<f32>, Error> {
    let mut floats = zeros(matrix.rows * matrix.row_len)?;
    matrix.decode(0, &mut floats);
    match floats.iter().position(|number| !number.is_finite()) {
        Some(at) => Err(Error::weights(&matrix.name, format!("element {at} is {}", floats[at]))),
        None => Ok(floats),
    }
}

/// Returns the weights that stay quantized, and those that are dequantized. A weight may be both.
fn usage(graph: &Graph) -> (HashSet<u32>, HashSet<u32>) {
    let (mut matrices, mut others) = (HashSet::new(), HashSet::new());
    let programs = [Some(graph.main()), graph.encoder()].into_iter().flatten();
    for op in programs.flat_map(|(program, _)| &program.ops) {
        let mut rest = op.weights();
        for id in op.matrices() {
            matrices.insert(id.0);
            if let Some(place) = rest.iter().position(|other| *other == id) {
                rest.remove(place);
            }
        }
        others.extend(rest.into_iter().map(|id| id.0));
    }
    (matrices, others)
}

/// Returns a shape without trailing dimensions of 1.
fn trimmed(shape: &[u64]) -> &[u64] {
    let end = shape.iter().rposition(|extent| *extent != 1).map_or(0, |last| last + 1);
    &shape[..end]
}
