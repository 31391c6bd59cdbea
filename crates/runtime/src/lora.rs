//! Low-rank adapters, added while the model runs.

use std::collections::HashMap;

use gguf::{Error, Finding};
use gguf_graph::{Graph, Matmul, Op, WeightId};
use gguf_store::Model;

use crate::weight::Matrix;

/// A model file with an adapter, and by how much it counts.
#[derive(Clone)]
pub struct Adapter {
    /// The file: tensors `NAME.lora_a` and `NAME.lora_b`.
    pub model: Model,
    /// Factor of the adapter, usually 1.
    pub scale: f32,
}

/// What adapters add, by weight.
#[derive(Default)]
pub(crate) struct Adapters(HashMap<u32, Vec<LowRank>>);

/// `scale B A x`.
pub(crate) struct LowRank {
    pub a: Matrix,
    pub b: Matrix,
    pub scale: f32,
}

impl Adapters {
    /// Finds the matrices that the adapters change.
    pub fn bind(graph: &Graph, adapters: &[Adapter]) -> Result<Self, Error> {
        let names: HashMap<&str, u32> =
            graph.raw().weights.iter().zip(0..).map(|(weight, id)| (&*weight.name, id)).collect();
        let products: Vec<u32> = graph.main().0.ops.iter().filter_map(product).collect();
        let mut found: HashMap<u32, Vec<LowRank>> = HashMap::new();
        for adapter in adapters {
            if !adapter.model.tensors().iter().any(|tensor| tensor.info.name.ends_with(".lora_a")) {
                let what = "a file that was given as an adapter has no adapter tensors";
                let help = "name a GGUF that `gguf convert` or `gguf lora` made of an adapter";
                return Err(Error::request("adapter-none", what, help));
            }
            let index = adapter.model.index();
            let alpha = adapter.model.metadata().get("adapter.lora.alpha");
            let alpha = alpha.and_then(gguf::Value::to_f64).unwrap_or(0.0) as f32;
            for (name, a) in &index {
                let Some(base) = name.strip_suffix(".lora_a") else { continue };
                let fault = |message: &str| {
                    Error::from(
                        Finding::error("adapter-other-base", message)
                            .tensor(*name)
                            .help("name the model that the adapter was made for"),
                    )
                };
                let Some(b) = index.get(&*format!("{base}.lora_b")) else {
                    return Err(fault("has no `.lora_b` beside it"));
                };
                let weight = names.get(base).filter(|id| products.contains(id));
                let weight =
                    *weight.ok_or_else(|| fault("the model multiplies with no such matrix"))?;
                let (a, b) = (Matrix::of(a)?, Matrix::of(b)?);
                let shape = &graph.raw().weights[weight as usize].shape;
                let wanted = |axis: usize| shape.get(axis).copied().unwrap_or(1);
                if a.row_len as u64 != wanted(0)
                    || b.rows as u64 != wanted(1)
                    || b.row_len != a.rows
                {
                    return Err(fault("is of another shape than the matrix"));
                }
                let rank = a.rows as f32;
                let scale = adapter.scale * if alpha == 0.0 { 1.0 } else { alpha / rank };
                found.entry(weight).or_default().push(LowRank { a, b, scale });
            }
        }
        Ok(Self(found))
    }

    /// What is added to the product with a weight.
    pub fn of(&self, weight: WeightId) -> &[LowRank] {
        self.0.get(&weight.0).map_or(&[], Vec::as_slice)
    }
}

fn product(op: &Op) -> Option<u32> {
    match op {
        Op::Matmul(Matmul { weight, .. }) => Some(weight.0),
        _ => None,
    }
}
