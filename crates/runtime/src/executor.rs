//! A graph with its weights.

use std::sync::Arc;

use gguf::{Error, TensorInfo, TensorType};
use gguf_graph::{Embedding, Graph, Index, Op, OutputKind};
use gguf_store::Model;

use crate::instructions::{Instructions, Proof};
use crate::lora::{Adapter, Adapters};
use crate::product::Arithmetic;
use crate::repacking::Repacking;
use crate::weight::Weights;

/// A graph, and the weights it names. Nothing in it changes: any number of contexts may share it.
/// A clone shares all weights.
#[derive(Clone)]
pub struct Executor {
    pub(crate) graph: Arc<Graph>,
    pub(crate) weights: Weights,
    pub(crate) adapters: Arc<Adapters>,
    pub(crate) arithmetic: Arithmetic,
    instructions: Instructions,
    pub(crate) proof: Proof,
    pub(crate) repacking: Arc<Repacking>,
}

impl Executor {
    /// Binds the weights of a graph to the tensors of a model. Those of a mapped file stay where they
    /// are; those of a far or big-endian one are read.
    ///
    /// # Errors
    /// `tensor-missing` or `tensor-shape` if the model does not have what the graph names,
    /// `weights-unusable` for NaN among the weights that are decoded here, and errors of reading.
    pub fn new(model: &Model, graph: Graph, arithmetic: Arithmetic) -> Result<Self, Error> {
        let weights = Weights::bind(&graph, model)?;
        let (graph, adapters) = (Arc::new(graph), Arc::default());
        let instructions = Instructions::best();
        let proof = instructions.require()?;
        let repacking = Arc::default();
        Ok(Self { graph, weights, adapters, arithmetic, instructions, proof, repacking })
    }

    /// With a set of instructions for products, instead of the best that is there.
    ///
    /// # Errors
    /// `instructions-missing` if this processor or its system does not have it.
    pub fn with_instructions(self, instructions: Instructions) -> Result<Self, Error> {
        Ok(Self { instructions, proof: instructions.require()?, ..self })
    }

    /// What products are computed by.
    pub fn instructions(&self) -> Instructions {
        self.instructions
    }

    /// With a limit in bytes on weights that are kept in memory once more, in the order in which generating
    /// reads them; 0 forbids it. Without this, up to half of the memory that is available when the executor
    /// is made. Only [`Arithmetic::Fast`] does so, where the processor gains from it, with matrices that were
    /// multiplied with one to four tokens several times. Results are the same.
    pub fn with_repacking(self, limit: u64) -> Self {
        Self { repacking: Arc::new(Repacking::of(limit)), ..self }
    }

    /// Bytes of weights that are in memory once more by now.
    pub fn repacked(&self) -> u64 {
        self.repacking.taken()
    }

    /// With low-rank adapters, which are added to the products of their matrices.
    ///
    /// # Errors
    /// If a tensor of an adapter goes with no matrix of the graph.
    pub fn with_adapters(mut self, adapters: &[Adapter]) -> Result<Self, Error> {
        self.adapters = Arc::new(Adapters::bind(&self.graph, adapters)?);
        Ok(self)
    }

    /// The same model with other weights in one of its tensors, of any type: rows of blocks as a file has
    /// them. All others are shared.
    ///
    /// # Errors
    /// `tensor-missing` if the graph names no such tensor, `tensor-shape` if the bytes are not those of its
    /// shape in this type.
    pub fn with_tensor(&self, name: &str, ty: TensorType, bytes: Vec<u8>) -> Result<Self, Error> {
        let weights = self.weights.with_tensor(&self.graph, name, ty, bytes)?;
        Ok(Self { weights, ..self.clone() })
    }

    /// The same model, its products computed in another way. All weights are shared.
    pub fn with_arithmetic(&self, arithmetic: Arithmetic) -> Self {
        Self { arithmetic, ..self.clone() }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Ids that the model knows: rows of the table that ids look up in.
    pub fn vocabulary_len(&self) -> Option<usize> {
        let (program, _) = self.graph.main();
        program.ops.iter().find_map(|op| match op {
            Op::Embedding(Embedding { table, index: Index::Token | Index::MappedToken(_) }) => {
                Some(self.weights.matrix(*table).rows)
            }
            _ => None,
        })
    }

    /// Numbers of a row of a result; `None` if the model does not compute it.
    pub fn width(&self, kind: OutputKind) -> Option<usize> {
        self.graph.output(kind).map(|(_, shape)| shape.width as usize)
    }

    /// The tensors of a model, as [`gguf_models::build_graph`] wants them.
    pub fn tensors(model: &Model) -> impl Iterator<Item = &TensorInfo> {
        model.tensors().iter().map(|tensor| &tensor.info)
    }
}
