//! A graph from the metadata and the tensors of a model.

use std::collections::HashMap;

use gguf::schema::Hyper;
use gguf::{Finding, Metadata, TensorInfo};

use crate::family;
use crate::graph::{Graph, Limits};
use crate::op::{Index, NormKind, Op};
use crate::raw::{
    Output, OutputKind, Program, RawGraph, State, StateId, ValueId, Weight, WeightId,
};

/// The graph of a model: that of its architecture, every number resolved.
///
/// # Errors
/// `architecture-unknown` if no family here knows the architecture; `key-missing`, `key-type` or
/// `key-value` for a hyper-parameter; `tensor-missing`, or `graph-invalid` where a tensor has
/// another shape than the hyper-parameters say.
pub fn build<'t>(
    metadata: &Metadata,
    tensors: impl IntoIterator<Item = &'t TensorInfo>,
) -> Result<Graph, Finding> {
    let hyper = Hyper::of(metadata)?;
    let name = metadata.architecture().unwrap_or_default();
    let Some(family) = family::of(name) else {
        let message = format!("there is no graph for the architecture {name}");
        return Err(Finding::error("architecture-unknown", message)
            .key("general.architecture")
            .help("a graph stored in the file would do; see `gguf graph --store`"));
    };
    let tensors = tensors.into_iter().map(|info| (&*info.name, info)).collect();
    let graph = RawGraph { architecture: name.to_owned(), ..RawGraph::default() };
    let mut builder =
        Builder { hyper, tensors, graph, index: HashMap::new(), prefix: String::new() };
    family(&mut builder)?;
    Graph::new(builder.graph, Limits::default())
}

/// A graph in the making. Operations go to the end of the main program.
pub(crate) struct Builder<'m> {
    /// The hyper-parameters.
    pub hyper: Hyper<'m>,
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
    pub fn op(&mut self, op: Op) -> ValueId {
        let ops = &mut self.graph.main.ops;
        ops.push(op);
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
                .help("convert the model anew; `gguf check` lists what else is missing")
        })
    }

    /// Whether the model has a tensor of this name in the layer.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(&*format!("{}{name}", self.prefix))
    }

    /// Whether the layer has weights for a norm. Some models call them without an end.
    pub fn has_norm(&self, name: &str) -> bool {
        self.has(&format!("{name}.weight")) || self.has(name)
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

    /// A size of a layer.
    pub fn size_in(&self, name: &str, layer: u64) -> Result<u32, Finding> {
        narrow(name, self.hyper.u64_in(name, layer)?)
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
        Ok(self.op(Op::Embed { table, index: Index::Token }))
    }

    /// `x` times the matrix `name.weight`, plus `name.bias` if the model has one.
    pub fn product(&mut self, x: ValueId, name: &str) -> Result<ValueId, Finding> {
        let weight = self.weight(&format!("{name}.weight"))?;
        let bias = self.find(&format!("{name}.bias"));
        Ok(self.op(Op::Product { x, weight, bias }))
    }

    /// `x` normed, with `name.weight` and `name.bias` as far as the model has them.
    pub fn norm(&mut self, x: ValueId, name: &str, norm: Norm) -> ValueId {
        self.norm_parts(x, name, norm, 1)
    }

    /// The same of equal parts of each row.
    pub fn norm_parts(&mut self, x: ValueId, name: &str, norm: Norm, groups: u32) -> ValueId {
        let weight = self.find(&format!("{name}.weight")).or_else(|| self.find(name));
        let bias = self.find(&format!("{name}.bias"));
        let Norm { kind, epsilon } = norm;
        self.op(Op::Norm { x, kind, epsilon, groups, weight, bias })
    }

    /// Rows cut into parts of these widths, as far as they go.
    pub fn split<const N: usize>(&mut self, x: ValueId, widths: [u32; N]) -> [ValueId; N] {
        let mut start = 0u32;
        widths.map(|len| {
            let part = self.op(Op::Slice { x, groups: 1, start, len });
            start = start.saturating_add(len);
            part
        })
    }

    /// `a + b`.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.op(Op::Add { a, b })
    }

    /// `x` times a number, which may be 1.
    pub fn scale(&mut self, x: ValueId, factor: f32) -> ValueId {
        if factor == 1.0 { x } else { self.op(Op::Scale { x, factor }) }
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
    pub fn mean_square(builder: &Builder<'_>) -> Result<Self, Finding> {
        let epsilon = builder.hyper.f32("attention.layer_norm_rms_epsilon")?;
        Ok(Self { kind: NormKind::MeanSquare, epsilon })
    }

    /// The norm with mean, with its hyper-parameter.
    pub fn variance(builder: &Builder<'_>) -> Result<Self, Finding> {
        let epsilon = builder.hyper.f32("attention.layer_norm_epsilon")?;
        Ok(Self { kind: NormKind::Variance, epsilon })
    }
}

fn narrow(name: &str, size: u64) -> Result<u32, Finding> {
    u32::try_from(size).map_err(|_| {
        Finding::error("key-value", format!("{name} is {size}: no model is so large"))
            .help("convert the model anew")
    })
}
