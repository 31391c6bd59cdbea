//! A graph from the metadata and the tensors of a model.

mod source;

use std::collections::HashMap;

use crate::schema::Hyper;
use gguf::{Finding, Metadata, TensorInfo, Value};

use crate::registry;
use crate::schema::key;
use gguf_graph::{Add, Embedding, Graph, Limits, Matmul, MulWeight, Scale, Slice};
use gguf_graph::{Index, NormKind, Op};
use gguf_graph::{
    Output, OutputKind, Program, RawGraph, State, StateId, ValueId, Weight, WeightId,
};

pub use source::{GraphSource, model_graph};

/// The graph of a model: that of its architecture, every number resolved.
///
/// # Errors
/// `architecture-unknown` if the registry has no graph for the architecture; `key-missing`, `key-type` or
/// `key-value` for a hyper-parameter; `tensor-missing`, or `graph-invalid` where a tensor has
/// another shape than the hyper-parameters say.
pub fn build<'t>(
    metadata: &Metadata,
    tensors: impl IntoIterator<Item = &'t TensorInfo>,
) -> Result<Graph, Finding> {
    let hyper = Hyper::of(metadata)?;
    let name = metadata.architecture().unwrap_or_default();
    let Some(build_graph) = registry::row(name).and_then(|row| row.build_graph) else {
        let message = format!("there is no graph for the architecture {name}");
        return Err(Finding::error("architecture-unknown", message)
            .key("general.architecture")
            .help("a graph stored in the file would do; see `gguf graph --store`"));
    };
    let tensors = tensors.into_iter().map(|info| (&*info.name, info)).collect();
    let graph = RawGraph { architecture: name.to_owned(), ..RawGraph::default() };
    let index = HashMap::new();
    let mut builder = Builder { hyper, metadata, tensors, graph, index, prefix: String::new() };
    build_graph(&mut builder)?;
    Graph::new(builder.graph, Limits::default())
}

/// A graph in the making. Operations go to the end of the main program.
pub(crate) struct Builder<'m> {
    /// The hyper-parameters.
    pub hyper: Hyper<'m>,
    metadata: &'m Metadata,
    tensors: HashMap<&'m str, &'m TensorInfo>,
    graph: RawGraph,
    index: HashMap<String, WeightId>,
    /// What the names of tensors begin with, such as `blk.3.`.
    prefix: String,
}

impl Builder<'_> {
    /// Tensors are those of a layer from here on: of `prefix` and its number, or outside of layers.
    pub fn at(&mut self, prefix: &str, layer: Option<u64>) {
        self.prefix = layer.map_or(prefix.to_owned(), |layer| format!("{prefix}{layer}."));
    }

    /// Adds an operation, and names its value.
    pub fn op(&mut self, op: impl Into<Op>) -> ValueId {
        let ops = &mut self.graph.main.ops;
        ops.push(op.into());
        ValueId(ops.len() as u32 - 1)
    }

    /// What has been built so far becomes the encoder.
    pub fn end_encoder(&mut self) {
        self.graph.encoder = Some(std::mem::take(&mut self.graph.main));
    }

    /// Says what comes out.
    pub fn output(&mut self, kind: OutputKind, value: ValueId) {
        let Program { outputs, .. } = &mut self.graph.main;
        outputs.push(Output { kind, value });
    }

    /// Adds a state.
    pub fn state(&mut self, state: State) -> StateId {
        self.graph.states.push(state);
        StateId(self.graph.states.len() as u32 - 1)
    }

    /// The tensor of this name in the layer, if the model has it.
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

    /// The tensor of this name outside of layers, if the model has it.
    pub fn find_outside(&mut self, name: &str) -> Option<WeightId> {
        let prefix = std::mem::take(&mut self.prefix);
        let found = self.find(name);
        self.prefix = prefix;
        found
    }

    /// The tensor of this name in the layer.
    pub fn weight(&mut self, name: &str) -> Result<WeightId, Finding> {
        self.find(name).ok_or_else(|| {
            Finding::error("tensor-missing", "the model cannot run without this tensor")
                .tensor(format!("{}{name}", self.prefix))
                .help("convert the model again; `gguf check` lists what else is missing")
        })
    }

    /// The tensor of this name outside of layers.
    pub fn weight_outside(&mut self, name: &str) -> Result<WeightId, Finding> {
        let prefix = std::mem::take(&mut self.prefix);
        let found = self.weight(name);
        self.prefix = prefix;
        found
    }

    /// Whether the model has a tensor of this name in the layer.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(&*format!("{}{name}", self.prefix))
    }

    /// Extent of a dimension of a tensor of the layer; 0 if the model does not have it.
    pub fn extent(&self, name: &str, axis: usize) -> u64 {
        let info = self.tensors.get(&*format!("{}{name}", self.prefix));
        info.map_or(0, |info| info.shape.get(axis).copied().unwrap_or(1))
    }

    /// A size among the hyper-parameters.
    pub fn size(&self, name: &str) -> Result<u32, Finding> {
        narrow(name, self.hyper.u64(name)?)
    }

    /// Whole numbers that the model lists.
    pub fn numbers(&self, name: &str) -> Result<Vec<u64>, Finding> {
        let all = self.hyper.stated(name).and_then(|value| value.as_array());
        let all = all.and_then(|all| all.iter().map(|number| number.to_u64()).collect());
        all.ok_or_else(|| {
            Finding::error("key-value", format!("{name} is no list of whole numbers from 0 on"))
                .help("convert the model again")
        })
    }

    /// A size of a layer.
    pub fn size_in(&self, name: &str, layer: u64) -> Result<u32, Finding> {
        narrow(name, self.hyper.u64_in(name, layer)?)
    }

    /// A size of a layer in a list that has one for each.
    pub fn listed(&self, name: &str, layer: u64) -> Result<u32, Finding> {
        let stated = self.hyper.stated(name).and_then(|value| value.as_array());
        let at = usize::try_from(layer).ok();
        let found = stated.zip(at).and_then(|(all, at)| all.iter().nth(at)?.to_u64());
        let found = found.ok_or_else(|| {
            Finding::error("key-value", format!("{name} has no size for layer {layer}"))
                .help("convert the model again")
        })?;
        narrow(name, found)
    }

    /// A number of a layer, which the model states for all or for each.
    pub fn number_in(&self, name: &str, layer: u64) -> Result<f32, Finding> {
        match self.hyper.stated(name) {
            Some(value) if value.as_array().is_some() => number_of(name, value, layer),
            _ => self.hyper.f32(name),
        }
    }

    /// A number of a layer under a key without the architecture in front.
    pub fn bare_number_in(&self, name: &str, layer: u64) -> Result<f32, Finding> {
        match self.metadata.get(name) {
            Some(value) => number_of(name, value, layer),
            None => Err(Finding::error("key-missing", "the model cannot run without this key")
                .key(name)
                .help("convert the model again")),
        }
    }

    /// A truth value of a layer, which the model states for all or for each.
    pub fn flag_in(&self, name: &str, layer: u64) -> Result<bool, Finding> {
        let all = self.hyper.stated(name).and_then(|value| value.as_array());
        let Some(all) = all else { return self.hyper.bool(name) };
        let at = usize::try_from(layer).ok().and_then(|layer| all.iter().nth(layer));
        at.and_then(|value| value.to_bool()).ok_or_else(|| {
            Finding::error("key-value", format!("{name} says nothing of layer {layer}"))
                .help("convert the model again")
        })
    }

    /// A bound of a layer, if it has one: 0 stands for none.
    pub fn limit(&self, name: &str, layer: u64) -> Result<Option<f32>, Finding> {
        if self.hyper.stated(name).is_none() {
            return Ok(None);
        }
        Ok(Some(self.number_in(name, layer)?).filter(|limit| *limit > 1e-6))
    }

    /// A number, if the model states it.
    pub fn stated(&self, name: &str) -> Result<Option<f32>, Finding> {
        self.hyper.stated(name).map(|_| self.hyper.f32(name)).transpose()
    }

    /// A number that the model states, or that its architecture has without a key.
    pub fn known(&self, name: &str) -> Result<Option<f32>, Finding> {
        match self.hyper.f32(name) {
            Err(absent) if absent.code == "key-missing" => Ok(None),
            found => found.map(Some),
        }
    }

    /// A factor; 1 if the model does not state one, or states 0, which stands for none.
    pub fn factor(&self, name: &str) -> Result<f32, Finding> {
        Ok(self.known(name)?.filter(|factor| *factor != 0.0).unwrap_or(1.0))
    }

    /// The embedding of the tokens.
    pub fn embedding(&mut self) -> Result<ValueId, Finding> {
        let table = self.weight("token_embd.weight")?;
        Ok(self.op(Embedding { table, index: Index::Token }))
    }

    /// `x` times the matrix `name.weight`, times the number `name.scale` and plus `name.bias` if the model
    /// has them.
    pub fn matmul(&mut self, x: ValueId, name: &str) -> Result<ValueId, Finding> {
        let weight = self.weight(&format!("{name}.weight"))?;
        let bias = self.find(&format!("{name}.bias"));
        let made = self.op(Matmul { x, weight, bias });
        let scale = format!("{name}.scale");
        // A scale of more numbers is one of what goes in.
        if bias.is_none() && self.extent(&scale, 0) == 1 && self.extent(&scale, 1) == 1 {
            let weight = self.weight(&scale)?;
            return Ok(self.op(MulWeight { x: made, weight }));
        }
        Ok(made)
    }

    /// `x` normed, with `name.weight` and `name.bias` as far as the model has them.
    pub fn norm(&mut self, x: ValueId, name: &str, norm: Norm) -> ValueId {
        self.norm_parts(x, name, norm, 1)
    }

    /// The same of equal parts of each row.
    pub fn norm_parts(&mut self, x: ValueId, name: &str, norm: Norm, groups: u32) -> ValueId {
        // Files of some models have the bare name.
        let weight = self.find(&format!("{name}.weight")).or_else(|| self.find(name));
        let bias = self.find(&format!("{name}.bias"));
        let Norm { kind, epsilon } = norm;
        self.op(kind.op(x, epsilon, groups, weight, bias))
    }

    /// Equal parts of each row normed, and that is all.
    pub fn weightless_norm(&mut self, x: ValueId, norm: Norm, groups: u32) -> ValueId {
        let Norm { kind, epsilon } = norm;
        self.op(kind.op(x, epsilon, groups, None, None))
    }

    /// Whether the model has the weights of this norm in the layer.
    pub fn has_norm(&self, name: &str) -> bool {
        self.has(&format!("{name}.weight")) || self.has(name)
    }

    /// Rows cut into parts of these widths, as far as they go.
    pub fn split<const N: usize>(&mut self, x: ValueId, widths: [u32; N]) -> [ValueId; N] {
        let mut start = 0u32;
        widths.map(|len| {
            let part = self.op(Slice { x, groups: 1, start, len });
            start = start.saturating_add(len);
            part
        })
    }

    /// `a + b`.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.op(Add { a, b })
    }

    /// `x` times a number, which may be 1.
    pub fn scale(&mut self, x: ValueId, factor: f32) -> ValueId {
        if factor == 1.0 { x } else { self.op(Scale { x, factor }) }
    }
}

/// The norm of an architecture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm {
    pub kind: NormKind,
    pub epsilon: f32,
}

impl Norm {
    /// The root mean square norm, with its hyper-parameter.
    pub fn rms(builder: &Builder<'_>) -> Result<Self, Finding> {
        let epsilon = builder.hyper.f32(key::ATTENTION_LAYER_NORM_RMS_EPSILON)?;
        Ok(Self { kind: NormKind::Rms, epsilon })
    }

    /// The norm with mean, with its hyper-parameter; some files have it under the key of the other.
    pub fn layer(builder: &Builder<'_>) -> Result<Self, Finding> {
        let name = "attention.layer_norm_epsilon";
        let epsilon = match builder.stated(name)? {
            Some(epsilon) => epsilon,
            None => match builder.stated(key::ATTENTION_LAYER_NORM_RMS_EPSILON)? {
                Some(epsilon) => epsilon,
                None => builder.hyper.f32(name)?,
            },
        };
        Ok(Self { kind: NormKind::Layer, epsilon })
    }
}

/// A number, or that of a layer among several.
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
        Finding::error("key-value", format!("{name} is {size}: no model is so large"))
            .help("convert the model again")
    })
}
