//! LoRA adapters, applied while the model runs.

use std::collections::HashMap;

use gguf::{Error, Finding};
use gguf_graph::{Graph, Matmul, Op, WeightId};
use gguf_store::Model;

use crate::matmul::exact;
use crate::matrix::Matrix;
use crate::value::Value;
use crate::watch::Watch;

/// A LoRA adapter and its scale.
#[derive(Clone)]
pub struct Adapter {
    /// File with tensors `NAME.lora_a` and `NAME.lora_b`.
    pub model: Model,
    /// Factor of the adapter, usually 1.
    pub scale: f32,
}

/// Low-rank updates by weight.
#[derive(Default)]
pub(crate) struct Adapters(HashMap<u32, Vec<LowRank>>);

/// Low-rank update `scale B A` of a matrix.
struct LowRank {
    a: Matrix,
    b: Matrix,
    scale: f32,
}

impl Adapters {
    /// Binds adapters to the matrices of a graph.
    ///
    /// # Errors
    /// `adapter-none` if a file is not an adapter, `adapter-other-base` if a tensor does not fit the graph.
    pub fn bind(graph: &Graph, adapters: &[Adapter]) -> Result<Self, Error> {
        let names: HashMap<&str, u32> =
            graph.raw().weights.iter().zip(0..).map(|(weight, id)| (&*weight.name, id)).collect();
        let matrices: Vec<u32> = graph.main().0.ops.iter().filter_map(matmul_weight).collect();
        let mut found: HashMap<u32, Vec<LowRank>> = HashMap::new();
        for adapter in adapters {
            if !adapter.model.tensors().iter().any(|tensor| tensor.info.name.ends_with(".lora_a")) {
                let what = "the adapter file has no `.lora_a` tensors";
                let help = "name a GGUF file that `gguf convert` or `gguf lora` wrote";
                return Err(Error::request("adapter-none", what, help));
            }
            let index = adapter.model.index();
            let alpha = adapter.model.metadata().get("adapter.lora.alpha");
            let alpha = alpha.and_then(gguf::Value::to_f64).unwrap_or(0.0) as f32;
            for (name, a) in &index {
                let Some(base) = name.strip_suffix(".lora_a") else { continue };
                let error = |message: &str| {
                    Error::from(
                        Finding::error("adapter-other-base", message)
                            .tensor(*name)
                            .help("name the model that the adapter was made for"),
                    )
                };
                let Some(b) = index.get(&*format!("{base}.lora_b")) else {
                    return Err(error("its `.lora_b` tensor is missing"));
                };
                let weight = names.get(base).filter(|id| matrices.contains(id));
                let weight = *weight.ok_or_else(|| error("the model has no such matrix"))?;
                let (a, b) = (Matrix::new(a)?, Matrix::new(b)?);
                let shape = &graph.raw().weights[weight as usize].shape;
                let extent = |axis: usize| shape.get(axis).copied().unwrap_or(1);
                if a.row_len as u64 != extent(0)
                    || b.rows as u64 != extent(1)
                    || b.row_len != a.rows
                {
                    return Err(error("its shape does not fit the matrix"));
                }
                let rank = a.rows as f32;
                let scale = adapter.scale * if alpha == 0.0 { 1.0 } else { alpha / rank };
                found.entry(weight).or_default().push(LowRank { a, b, scale });
            }
        }
        Ok(Self(found))
    }

    /// Adds the updates of a weight to its product with `x`.
    pub fn add(&self, watch: &Watch<'_>, weight: WeightId, x: &Value, out: &mut Value) {
        for LowRank { a, b, scale } in self.0.get(&weight.0).map_or(&[][..], Vec::as_slice) {
            let mut low = Value::zeros(x.rows, a.rows, Vec::new());
            exact::matmul(watch, a, 0, x, &mut low);
            let mut update = Value::zeros(x.rows, b.rows, Vec::new());
            exact::matmul(watch, b, 0, &low, &mut update);
            out.data.iter_mut().zip(&update.data).for_each(|(out, update)| *out += scale * update);
        }
    }
}

/// Returns the weight of a matrix multiplication.
fn matmul_weight(op: &Op) -> Option<u32> {
    match op {
        Op::Matmul(Matmul { weight, .. }) => Some(weight.0),
        _ => None,
    }
}
