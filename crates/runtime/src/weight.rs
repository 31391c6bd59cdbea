//! The weights of a graph, bound to the tensors of a model.

use std::collections::HashSet;
use std::sync::Arc;

use gguf::{Error, Finding, TensorType};
use gguf_graph::{BatchedMatmul, Embedding, Graph, Matmul, MatmulId, Op, WeightId};
use gguf_quant::Codec;
use gguf_store::{Model, ModelTensor};

#[cfg(target_arch = "x86_64")]
use crate::product::Lazily;

/// A tensor as rows of blocks, mapped or in memory.
pub(crate) struct Matrix {
    pub name: Box<str>,
    pub codec: &'static Codec,
    /// Elements of a row.
    pub row_len: usize,
    /// Elements of a block.
    pub block_len: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Rows of all matrices of the tensor together.
    pub rows: usize,
    /// Extent of the second dimension: rows of one matrix.
    pub rows_of_one: usize,
    data: Data,
    /// The same once more, for generating.
    #[cfg(target_arch = "x86_64")]
    pub packed: Lazily,
}

enum Data {
    Mapped(ModelTensor),
    Owned(Arc<Vec<u8>>),
}

impl Matrix {
    /// The tensor, without a copy where it is mapped.
    pub fn of(tensor: &ModelTensor) -> Result<Self, Error> {
        let info = &tensor.info;
        let at = |finding: Finding| finding.tensor(info.name.clone());
        let Some(codec) = gguf_quant::codec(info.tensor_type) else {
            let message = format!("{} cannot be computed with", info.tensor_type);
            return Err(at(Finding::error("tensor-type-unknown", message)
                .help("convert the tensor to another type"))
            .into());
        };
        let too_large =
            || at(Finding::error("tensor-size-overflow", "is too large for this machine"));
        let size = |n: u64| usize::try_from(n).map_err(|_| too_large());
        let elements = size(info.shape.elements().ok_or_else(too_large)?)?;
        let row_len = size(info.shape.row_len())?;
        let bytes = size(info.byte_len().ok_or_else(too_large)?)?;
        let rows = elements.checked_div(row_len).unwrap_or(0);
        if rows == 0 {
            return Err(at(
                Finding::error("tensor-empty", "has no elements").help("convert the model anew")
            )
            .into());
        }
        let data = if tensor.data().is_some() {
            Data::Mapped(tensor.clone())
        } else {
            let mut owned = vec![0; bytes];
            tensor.read_at(&mut owned, 0)?;
            Data::Owned(Arc::new(owned))
        };
        Ok(Self {
            name: info.name.to_string().into(),
            codec,
            row_len,
            block_len: info.tensor_type.block().map_or(1, |(len, _)| len as usize),
            row_bytes: bytes / rows,
            rows,
            rows_of_one: size(info.shape.get(1).copied().unwrap_or(1))?,
            data,
            #[cfg(target_arch = "x86_64")]
            packed: Lazily::default(),
        })
    }

    /// A tensor of a shape whose data are in memory.
    pub fn of_bytes(
        name: &str,
        shape: &[u64],
        ty: TensorType,
        bytes: &Arc<Vec<u8>>,
    ) -> Result<Self, Error> {
        let fault = |message: String| {
            Error::from(Finding::error("tensor-shape", message).tensor(name).help("give all rows"))
        };
        let Some(codec) = gguf_quant::codec(ty) else {
            return Err(fault(format!("{ty} cannot be computed with")));
        };
        if ty.byte_len(shape) != Some(bytes.len() as u64) {
            return Err(fault(format!("{} bytes are not {shape:?} of {ty}", bytes.len())));
        }
        let row_len = shape.first().copied().unwrap_or(1) as usize;
        let rows: usize = shape.iter().skip(1).map(|extent| *extent as usize).product();
        Ok(Self {
            name: name.into(),
            codec,
            row_len,
            block_len: ty.block().map_or(1, |(len, _)| len as usize),
            row_bytes: bytes.len() / rows.max(1),
            rows,
            rows_of_one: shape.get(1).map_or(1, |extent| *extent as usize),
            data: Data::Owned(bytes.clone()),
            #[cfg(target_arch = "x86_64")]
            packed: Lazily::default(),
        })
    }

    /// Rows of plain floats in memory.
    #[cfg(test)]
    pub fn of_floats(ty: TensorType, row_len: usize, rows: usize, data: Vec<u8>) -> Self {
        Self {
            name: "floats".into(),
            codec: gguf_quant::codec(ty).expect("floats have a codec"),
            row_len,
            block_len: 1,
            row_bytes: data.len() / rows,
            rows,
            rows_of_one: rows,
            data: Data::Owned(Arc::new(data)),
            #[cfg(target_arch = "x86_64")]
            packed: Lazily::default(),
        }
    }

    /// All rows.
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Mapped(tensor) => tensor.data().unwrap_or_default(),
            Data::Owned(bytes) => bytes,
        }
    }

    /// Some rows.
    pub fn rows(&self, first: usize, count: usize) -> &[u8] {
        let start = first * self.row_bytes;
        self.bytes().get(start..start + count * self.row_bytes).unwrap_or_default()
    }

    /// Decodes rows from the first on, as many as `out` holds.
    pub fn decode(&self, first: usize, out: &mut [f32]) {
        let count = out.len() / self.row_len;
        // Lengths fit: they come from the shape and the size of the type.
        let decoded = self.codec.decode_row(self.rows(first, count), out);
        debug_assert!(decoded.is_ok(), "{}", self.name);
    }
}

/// A weight as its operations need it.
pub(crate) struct Weight {
    /// For products and look-ups.
    matrix: Option<Matrix>,
    /// For everything else, decoded.
    floats: Vec<f32>,
}

/// All weights of a graph.
#[derive(Clone)]
pub(crate) struct Weights(Vec<Arc<Weight>>);

impl Weights {
    /// Finds every weight in the model.
    ///
    /// # Errors
    /// `tensor-missing`, `tensor-shape`, or that a tensor cannot be read or computed with.
    pub fn bind(graph: &Graph, model: &Model) -> Result<Self, Error> {
        let index = model.index();
        let (matrices, others) = used(graph);
        let bind = |(id, weight): (u32, &gguf_graph::Weight)| {
            let fault = |finding: Finding| Error::from(finding.tensor(weight.name.as_str()));
            let Some(tensor) = index.get(&*weight.name) else {
                return Err(fault(
                    Finding::error("tensor-missing", "the graph needs this tensor")
                        .help("the graph and the model do not go together, or a shard is missing"),
                ));
            };
            let found: &[u64] = &tensor.info.shape;
            if trimmed(found) != trimmed(&weight.shape) {
                let message = format!("is {found:?} instead of {:?}", weight.shape);
                return Err(fault(
                    Finding::error("tensor-shape", message)
                        .help("the graph and the model do not go together"),
                ));
            }
            let matrix = Matrix::of(tensor)?;
            let is_matrix = matrices.contains(&id);
            if is_matrix && !others.contains(&id) {
                return Ok(Arc::new(Weight { matrix: Some(matrix), floats: Vec::new() }));
            }
            let floats = decoded(&matrix)?;
            Ok(Arc::new(Weight { matrix: is_matrix.then_some(matrix), floats }))
        };
        (0..).zip(&graph.raw().weights).map(bind).collect::<Result<_, _>>().map(Self)
    }

    /// The same with other data for a tensor; the others are shared.
    pub fn with_tensor(
        &self,
        graph: &Graph,
        name: &str,
        ty: TensorType,
        bytes: Vec<u8>,
    ) -> Result<Self, Error> {
        let bytes = Arc::new(bytes);
        let mut all = self.0.clone();
        let mut found = false;
        for (weight, of_graph) in all.iter_mut().zip(&graph.raw().weights) {
            if of_graph.name != name {
                continue;
            }
            let matrix = Matrix::of_bytes(name, &of_graph.shape, ty, &bytes)?;
            let floats = if weight.floats.is_empty() { Vec::new() } else { decoded(&matrix)? };
            *weight = Arc::new(Weight { matrix: weight.matrix.as_ref().map(|_| matrix), floats });
            found = true;
        }
        match found {
            true => Ok(Self(all)),
            false => Err(Finding::error("tensor-missing", "the graph has no such tensor")
                .tensor(name)
                .help("name a tensor that the model computes with")
                .into()),
        }
    }

    /// A weight that is multiplied with or looked up in.
    pub fn matrix(&self, id: WeightId) -> &Matrix {
        let weight = &self.0[id.0 as usize];
        weight.matrix.as_ref().expect("what products use is bound as a matrix")
    }

    /// Any other weight.
    pub fn floats(&self, id: WeightId) -> &[f32] {
        &self.0[id.0 as usize].floats
    }

    /// The same, which may be absent.
    pub fn optional(&self, id: Option<WeightId>) -> Option<&[f32]> {
        id.map(|id| self.floats(id))
    }
}

/// All elements of a tensor.
fn decoded(matrix: &Matrix) -> Result<Vec<f32>, Error> {
    let mut floats = vec![0.0; matrix.rows * matrix.row_len];
    matrix.decode(0, &mut floats);
    match floats.iter().position(|number| !number.is_finite()) {
        Some(at) => Err(Error::weights(&matrix.name, format!("element {at} is {}", floats[at]))),
        None => Ok(floats),
    }
}

/// The weights that stay as they are stored, and those that are decoded; a weight may be both.
fn used(graph: &Graph) -> (HashSet<u32>, HashSet<u32>) {
    let (mut matrices, mut others) = (HashSet::new(), HashSet::new());
    let programs = [Some(graph.main()), graph.encoder()].into_iter().flatten();
    for op in programs.flat_map(|(program, _)| &program.ops) {
        let mut rest = op.weights();
        for id in multiplied(op) {
            matrices.insert(id.0);
            if let Some(place) = rest.iter().position(|other| *other == id) {
                rest.remove(place);
            }
        }
        others.extend(rest.into_iter().map(|id| id.0));
    }
    (matrices, others)
}

/// The weights that an operation multiplies with, or looks up in.
fn multiplied(op: &Op) -> Vec<WeightId> {
    match op {
        Op::Embedding(Embedding { table, .. }) => vec![*table],
        Op::NgramEmbedding(ngrams) => vec![ngrams.table],
        Op::Matmul(Matmul { weight, .. })
        | Op::BatchedMatmul(BatchedMatmul { weight, .. })
        | Op::MatmulId(MatmulId { weight, .. }) => vec![*weight],
        Op::Moe(experts) => {
            [experts.gate, Some(experts.up), Some(experts.down)].into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// A shape without the dimensions of 1 at its end.
fn trimmed(shape: &[u64]) -> &[u64] {
    let end = shape.iter().rposition(|extent| *extent != 1).map_or(0, |last| last + 1);
    &shape[..end]
}
