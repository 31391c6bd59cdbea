//! Builds the computation graph of a model from its metadata and tensors.

mod purpose;
mod source;

use std::collections::HashMap;

use gguf::{Finding, Metadata, TensorInfo, Value};
use gguf_graph::{
    Add, Embedding, Graph, Index, Limits, Matmul, MulWeight, NormKind, Op, Output, OutputKind,
    Program, RawGraph, Scale, Slice, State, StateId, ValueId, Weight, WeightId,
};

use crate::schema::{HyperParameters, key};
use crate::{ollama, registry};

pub use purpose::{DraftFeatures, Purpose};
pub use source::{GraphSource, model_graph};

/// Builds the computation graph of a model, with all sizes resolved.
///
/// # Errors
/// `ollama-naming` for a file of Ollama's own engine; `architecture-unknown` if the registry has no graph for the architecture; `key-missing`, `key-type` or
/// `key-value` for a hyper-parameter; `tensor-missing` for a tensor; `graph-invalid` if the shape of a
/// tensor does not match the hyper-parameters.
pub fn build<'t>(
    metadata: &Metadata,
    tensors: impl IntoIterator<Item = &'t TensorInfo>,
) -> Result<Graph, Finding> {
    build_for(&Purpose::Model, metadata, tensors)
}

/// Builds the computation graph of a model for a purpose.
///
/// # Errors
/// `draft-unusable` if the model has no MTP layer, or its architecture has no features for draft models; else as [`build`].
pub fn build_for<'t>(
    purpose: &Purpose,
    metadata: &Metadata,
    tensors: impl IntoIterator<Item = &'t TensorInfo>,
) -> Result<Graph, Finding> {
    let tensors: HashMap<&str, &TensorInfo> =
        tensors.into_iter().map(|info| (&*info.name, info)).collect();
    if let Some(sign) = ollama::sign(metadata, tensors.keys().copied()) {
        let message = format!("the file was written for Ollama's own engine: {sign}");
        return Err(Finding::error(ollama::CODE, message)
            .key("general.architecture")
            .help(ollama::HELP));
    }
    let hparams = HyperParameters::from_metadata(metadata)?;
    let name = metadata.architecture().unwrap_or_default();
    let Some(build_graph) = registry::row(name).and_then(|row| row.build_graph) else {
        let message = format!("the runtime does not support the architecture {name}");
        return Err(Finding::error("architecture-unknown", message)
            .key("general.architecture")
            .help("store a graph in the file; see `gguf graph --store`"));
    };
    let graph = RawGraph { architecture: name.to_owned(), ..RawGraph::default() };
    let index = HashMap::new();
    let prefix = String::new();
    let mut builder = Builder { hparams, metadata, tensors, purpose, graph, index, prefix };
    build_graph(&mut builder)?;
    purpose.check(name, &builder.graph.main)?;
    Graph::new(builder.graph, Limits::default())
}

/// Builder of a graph. Appends operations to the main program.
pub(crate) struct Builder<'m> {
    /// Hyper-parameters of the model.
    pub hparams: HyperParameters<'m>,
    /// Purpose of the graph.
    pub purpose: &'m Purpose,
    metadata: &'m Metadata,
    tensors: HashMap<&'m str, &'m TensorInfo>,
    graph: RawGraph,
    index: HashMap<String, WeightId>,
    /// Prefix of tensor names, such as `blk.3.`.
    prefix: String,
}

impl Builder<'_> {
    /// Sets the layer that tensor names refer to: `prefix` and a layer index, or only `prefix`.
    pub fn set_layer(&mut self, prefix: &str, layer: Option<u64>) {
        self.prefix = layer.map_or(prefix.to_owned(), |layer| format!("{prefix}{layer}."));
    }

    /// Appends an operation and returns its value.
    pub fn op(&mut self, op: impl Into<Op>) -> ValueId {
        let ops = &mut self.graph.main.ops;
        ops.push(op.into());
        ValueId(ops.len() as u32 - 1)
    }

    /// Makes the operations so far the encoder program, and starts the main program.
    pub fn end_encoder(&mut self) {
        self.graph.encoder = Some(std::mem::take(&mut self.graph.main));
    }

    /// Adds an output of the graph.
    pub fn output(&mut self, kind: OutputKind, value: ValueId) {
        let Program { outputs, .. } = &mut self.graph.main;
        outputs.push(Output { kind, value });
    }

    /// Adds a state.
    pub fn state(&mut self, state: State) -> StateId {
        self.graph.states.push(state);
        StateId(self.graph.states.len() as u32 - 1)
    }

    /// Returns the tensor with this name in the layer; `None` if the model does not have it.
    pub fn find(&mut self, name: &str) -> Option<WeightId> {
        let name = format!("{}{name}", self.prefix);
        if let Some(id) = self.index.get(&name) {
            return Some(*id);
        }
        let info = self.tensors.get(&*name)?;
        let shape = info.shape.to_vec();
        self.graph.weights.push(Weight { name: name.clone(), shape });
        let id = WeightId(self.graph.weights.len() as u32 - 1);
        self.index.insert(name, id);
        Some(id)
    }

    /// Returns the tensor with this name outside of layers; `None` if the model does not have it.
    pub fn find_global(&mut self, name: &str) -> Option<WeightId> {
        let prefix = std::mem::take(&mut self.prefix);
        let found = self.find(name);
        self.prefix = prefix;
        found
    }

    /// Returns the tensor with this name in the layer.
    pub fn weight(&mut self, name: &str) -> Result<WeightId, Finding> {
        self.find(name).ok_or_else(|| {
            Finding::error("tensor-missing", "the graph requires this tensor")
                .tensor(format!("{}{name}", self.prefix))
                .help("convert the model again; `gguf check` lists all missing tensors")
        })
    }

    /// Returns the tensor with this name outside of layers.
    pub fn global_weight(&mut self, name: &str) -> Result<WeightId, Finding> {
        let prefix = std::mem::take(&mut self.prefix);
        let found = self.weight(name);
        self.prefix = prefix;
        found
    }

    /// Returns true if the model has a tensor with this name in the layer.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(&*format!("{}{name}", self.prefix))
    }

    /// Returns the size of a dimension of a tensor of the layer; 0 if the model does not have the tensor.
    pub fn extent(&self, name: &str, axis: usize) -> u64 {
        let info = self.tensors.get(&*format!("{}{name}", self.prefix));
        info.map_or(0, |info| info.shape.get(axis).copied().unwrap_or(1))
    }

    /// Returns an integer hyper-parameter.
    pub fn size(&self, name: &str) -> Result<u32, Finding> {
        narrow(name, self.hparams.u64(name)?)
    }

    /// Returns a hyper-parameter that is an array of integers.
    pub fn u64_array(&self, name: &str) -> Result<Vec<u64>, Finding> {
        let all = self.hparams.value(name).and_then(|value| value.as_array());
        let all = all.and_then(|all| all.iter().map(|number| number.to_u64()).collect());
        all.ok_or_else(|| {
            Finding::error("key-value", format!("{name} is not an array of non-negative integers"))
                .help("convert the model again")
        })
    }

    /// Returns an integer hyper-parameter of a layer.
    pub fn size_in_layer(&self, name: &str, layer: u64) -> Result<u32, Finding> {
        narrow(name, self.hparams.u64_in_layer(name, layer)?)
    }

    /// Returns the element of a layer in a hyper-parameter that is an array with one integer per layer.
    pub fn size_from_list(&self, name: &str, layer: u64) -> Result<u32, Finding> {
        let stated = self.hparams.value(name).and_then(|value| value.as_array());
        let at = usize::try_from(layer).ok();
        let found = stated.zip(at).and_then(|(all, at)| all.iter().nth(at)?.to_u64());
        let found = found.ok_or_else(|| {
            Finding::error("key-value", format!("{name} has no element for layer {layer}"))
                .help("convert the model again")
        })?;
        narrow(name, found)
    }

    /// Returns a float hyper-parameter of a layer; the key has one value, or one per layer.
    pub fn f32_in_layer(&self, name: &str, layer: u64) -> Result<f32, Finding> {
        match self.hparams.value(name) {
            Some(value) if value.as_array().is_some() => number_of(name, value, layer),
            _ => self.hparams.f32(name),
        }
    }

    /// Returns a float of a layer under a key without the prefix of the architecture.
    pub fn f32_without_prefix(&self, name: &str, layer: u64) -> Result<f32, Finding> {
        match self.metadata.get(name) {
            Some(value) => number_of(name, value, layer),
            None => Err(Finding::error("key-missing", "the graph requires this key")
                .key(name)
                .help("convert the model again")),
        }
    }

    /// Returns a boolean hyper-parameter of a layer; the key has one value, or one per layer.
    pub fn bool_in_layer(&self, name: &str, layer: u64) -> Result<bool, Finding> {
        let all = self.hparams.value(name).and_then(|value| value.as_array());
        let Some(all) = all else { return self.hparams.bool(name) };
        let at = usize::try_from(layer).ok().and_then(|layer| all.iter().nth(layer));
        at.and_then(|value| value.to_bool()).ok_or_else(|| {
            Finding::error("key-value", format!("{name} has no element for layer {layer}"))
                .help("convert the model again")
        })
    }

    /// Returns the clamp limit of a layer; `None` if the key is missing or the limit is 0.
    pub fn clamp_limit(&self, name: &str, layer: u64) -> Result<Option<f32>, Finding> {
        if self.hparams.value(name).is_none() {
            return Ok(None);
        }
        Ok(Some(self.f32_in_layer(name, layer)?).filter(|limit| *limit > 1e-6))
    }

    /// Returns a float hyper-parameter; `None` if the key is missing, even if it has a default.
    pub fn f32_if_present(&self, name: &str) -> Result<Option<f32>, Finding> {
        self.hparams.value(name).map(|_| self.hparams.f32(name)).transpose()
    }

    /// Returns a float hyper-parameter or its default; `None` if the key is missing and has no default.
    pub fn f32_or_default(&self, name: &str) -> Result<Option<f32>, Finding> {
        match self.hparams.f32(name) {
            Err(absent) if absent.code == "key-missing" => Ok(None),
            found => found.map(Some),
        }
    }

    /// Returns a scale; 1 if the key is missing or its value is 0.
    pub fn scale_or_one(&self, name: &str) -> Result<f32, Finding> {
        Ok(self.f32_or_default(name)?.filter(|factor| *factor != 0.0).unwrap_or(1.0))
    }

    /// Appends the token embedding.
    pub fn embedding(&mut self) -> Result<ValueId, Finding> {
        let table = self.weight("token_embd.weight")?;
        Ok(self.op(Embedding { table, index: Index::Token }))
    }

    /// Appends a linear layer with `name.weight`, and with `name.bias` and the scalar `name.scale` if the
    /// model has them.
    pub fn matmul(&mut self, x: ValueId, name: &str) -> Result<ValueId, Finding> {
        let weight = self.weight(&format!("{name}.weight"))?;
        let bias = self.find(&format!("{name}.bias"));
        let made = self.op(Matmul { x, weight, bias });
        let scale = format!("{name}.scale");
        // A `scale` with more elements applies to the input.
        if bias.is_none() && self.extent(&scale, 0) == 1 && self.extent(&scale, 1) == 1 {
            let weight = self.weight(&scale)?;
            return Ok(self.op(MulWeight { x: made, weight }));
        }
        Ok(made)
    }

    /// Appends a norm, with `name.weight` and `name.bias` if the model has them.
    pub fn norm(&mut self, x: ValueId, name: &str, norm: Norm) -> ValueId {
        self.group_norm(x, name, norm, 1)
    }

    /// Appends a norm over `groups` equal parts of each row, with its weight and bias if present.
    pub fn group_norm(&mut self, x: ValueId, name: &str, norm: Norm, groups: u32) -> ValueId {
        // Files of some models have the name without `.weight`.
        let weight = self.find(&format!("{name}.weight")).or_else(|| self.find(name));
        let bias = self.find(&format!("{name}.bias"));
        let Norm { kind, epsilon } = norm;
        self.op(kind.op(x, epsilon, groups, weight, bias))
    }

    /// Appends a norm over `groups` equal parts of each row, without weight and bias.
    pub fn norm_without_weight(&mut self, x: ValueId, norm: Norm, groups: u32) -> ValueId {
        let Norm { kind, epsilon } = norm;
        self.op(kind.op(x, epsilon, groups, None, None))
    }

    /// Returns true if the layer has the weight of this norm.
    pub fn has_norm(&self, name: &str) -> bool {
        self.has(&format!("{name}.weight")) || self.has(name)
    }

    /// Splits rows into consecutive slices of these widths.
    pub fn split<const N: usize>(&mut self, x: ValueId, widths: [u32; N]) -> [ValueId; N] {
        let mut start = 0u32;
        widths.map(|len| {
            let part = self.op(Slice { x, groups: 1, start, len });
            start = start.saturating_add(len);
            part
        })
    }

    /// Appends `a + b`.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.op(Add { a, b })
    }

    /// Appends `x * factor`; returns `x` if the factor is 1.
    pub fn scale(&mut self, x: ValueId, factor: f32) -> ValueId {
        if factor == 1.0 { x } else { self.op(Scale { x, factor }) }
    }
}

/// Kind and epsilon of a norm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm {
    pub kind: NormKind,
    pub epsilon: f32,
}

impl Norm {
    /// Returns the RMS norm with the epsilon of the model.
    pub fn rms(builder: &Builder<'_>) -> Result<Self, Finding> {
        let epsilon = builder.hparams.f32(key::ATTENTION_LAYER_NORM_RMS_EPSILON)?;
        Ok(Self { kind: NormKind::Rms, epsilon })
    }

    /// Returns the layer norm with the epsilon of the model; some files have the key of the RMS norm.
    pub fn layer(builder: &Builder<'_>) -> Result<Self, Finding> {
        let name = "attention.layer_norm_epsilon";
        let epsilon = match builder.f32_if_present(name)? {
            Some(epsilon) => epsilon,
            None => match builder.f32_if_present(key::ATTENTION_LAYER_NORM_RMS_EPSILON)? {
                Some(epsilon) => epsilon,
                None => builder.hparams.f32(name)?,
            },
        };
        Ok(Self { kind: NormKind::Layer, epsilon })
    }
}

/// Returns a number, or the element of a layer if the value is an array.
fn number_of(name: &str, value: &Value, layer: u64) -> Result<f32, Finding> {
    let number = match value.as_array() {
        Some(all) => {
            let at = usize::try_from(layer).ok().and_then(|layer| all.iter().nth(layer));
            at.and_then(|value| value.to_f64())
        }
        None => value.to_f64(),
    };
    number.map(|number| number as f32).ok_or_else(|| {
        Finding::error("key-value", format!("{name} has no number for layer {layer}"))
            .help("convert the model again")
    })
}

fn narrow(name: &str, size: u64) -> Result<u32, Finding> {
    u32::try_from(size).map_err(|_| {
        Finding::error(
            "key-value",
            format!("{name} is {size}, more than the limit of {}", u32::MAX),
        )
        .help("convert the model again")
    })
}
