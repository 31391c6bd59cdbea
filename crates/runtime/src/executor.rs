//! Executors: a graph with its weights.

use std::sync::Arc;

use gguf::{Bytes, Error, TensorInfo, TensorType};
use gguf_graph::{Embedding, Graph, Index, Op, OutputKind, State};
use gguf_lora::Adapter;
use gguf_store::Model;

use crate::instructions::{InstructionSet, SimdToken};
use crate::lora::Adapters;
use crate::matmul::Precision;
use crate::memory_budget::MemoryBudget;
use crate::read_ahead::ReadAhead;
use crate::repack::RepackBudget;
use crate::system_memory;
use crate::weights::{Shared, Weights};

/// A graph and its weights. It is immutable: any number of contexts may share it, and a clone shares all weights.
#[derive(Clone)]
pub struct Executor {
    pub(crate) graph: Arc<Graph>,
    pub(crate) weights: Weights,
    pub(crate) adapters: Arc<Adapters>,
    pub(crate) precision: Precision,
    instructions: InstructionSet,
    pub(crate) simd: SimdToken,
    pub(crate) repack_budget: Arc<RepackBudget>,
    pub(crate) read_ahead: Arc<ReadAhead>,
    memory: Arc<MemoryBudget>,
}

impl Executor {
    /// Binds the weights of a graph to the tensors of a model. Those of a memory-mapped file are not copied; those of a
    /// remote or big-endian file are read. The memory budget is the default one.
    ///
    /// # Errors
    /// `tensor-missing` or `tensor-shape` if the model lacks a tensor of the graph, `weights-unusable` for NaN in
    /// dequantized weights, `memory-budget` if copies of weights exceed the budget, and errors of reading.
    pub fn new(model: &Model, graph: Graph, precision: Precision) -> Result<Self, Error> {
        Self::within(model, graph, precision, MemoryBudget::for_model(model))
    }

    /// Binds the weights with a memory budget, which all contexts of the executor share.
    ///
    /// # Errors
    /// As [`Executor::new`].
    pub fn within(
        model: &Model,
        graph: Graph,
        precision: Precision,
        memory: MemoryBudget,
    ) -> Result<Self, Error> {
        Self::bind(model, graph, precision, memory, None)
    }

    /// Binds the weights of a draft model, of which the tensors named in `shared` are those of its target model where that
    /// has them: they take no memory.
    ///
    /// # Errors
    /// As [`Executor::new`].
    pub fn draft(
        model: &Model,
        graph: Graph,
        memory: MemoryBudget,
        target: &Self,
        shared: &[&str],
    ) -> Result<Self, Error> {
        let shared = Shared { graph: &target.graph, weights: &target.weights, names: shared };
        let bound = Self::bind(model, graph, Precision::Fast, memory, Some(shared))?;
        bound.with_instructions(target.instructions)
    }

    fn bind(
        model: &Model,
        graph: Graph,
        precision: Precision,
        memory: MemoryBudget,
        shared: Option<Shared<'_>>,
    ) -> Result<Self, Error> {
        let memory = Arc::new(memory);
        let weights = Weights::bind(&graph, model, &memory, shared)?;
        let (graph, adapters) = (Arc::new(graph), Arc::default());
        let instructions = InstructionSet::best();
        let simd = instructions.require()?;
        let repack_budget = Arc::new(RepackBudget::within(0, memory.clone()));
        let read_ahead = Arc::new(ReadAhead::plan(&graph, &weights, u64::MAX));
        let bound = Self {
            graph,
            weights,
            adapters,
            precision,
            instructions,
            simd,
            repack_budget,
            read_ahead,
            memory,
        };
        Ok(bound.with_available_memory(system_memory::available().unwrap_or(u64::MAX)))
    }

    /// Returns the memory budget.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Returns the executor with another instruction set than the best available one.
    ///
    /// # Errors
    /// `instructions-missing` if this processor or its system does not support it.
    pub fn with_instructions(self, instructions: InstructionSet) -> Result<Self, Error> {
        Ok(Self { instructions, simd: instructions.require()?, ..self })
    }

    /// Returns the instruction set of matrix multiplications.
    pub fn instructions(&self) -> InstructionSet {
        self.instructions
    }

    /// Returns the executor for a machine with this number of available bytes; the default is what the system states when the
    /// weights are bound. If the weights of a memory-mapped file need more, most of the available memory is filled with weights
    /// that stay, and all others are read ahead of their use and evicted after it, instead of reading the whole file again for each
    /// token. Half of the available memory is for repacked weights, nothing if the weights need more than all. Results are the same.
    pub fn with_available_memory(self, bytes: u64) -> Self {
        let read_ahead = ReadAhead::plan(&self.graph, &self.weights, bytes);
        // Repacked weights cannot be evicted.
        let for_repacking = if read_ahead.exceeds_memory { 0 } else { RepackBudget::share(bytes) };
        Self { read_ahead: Arc::new(read_ahead), ..self.with_repacking(for_repacking) }
    }

    /// Returns the bytes of weights that every run reads from the file, since they do not fit into memory. Networks of experts
    /// do not count: how many of them a run reads depends on the tokens.
    pub fn evicted_bytes(&self) -> u64 {
        self.read_ahead.evicted_bytes(&self.weights)
    }

    /// Whether the weights that are memory-mapped do not fit into memory.
    pub fn exceeds_memory(&self) -> bool {
        self.read_ahead.exceeds_memory
    }

    /// Returns the executor with a limit in bytes for weight repacking: copies of matrices in the order in which token
    /// generation reads them. 0 disables it; the default is half of the memory available at creation. Repacked weights
    /// also take from the memory budget. Only
    /// [`Precision::Fast`] repacks, on processors that gain from it, after several products of a matrix with few
    /// tokens (24 with AVX2, 48 with AVX-512). Results are the same.
    pub fn with_repacking(self, limit: u64) -> Self {
        let repack_budget = Arc::new(RepackBudget::within(limit, self.memory.clone()));
        Self { repack_budget, ..self }
    }

    /// Returns the executor with another number of products with one to four tokens after which a matrix is repacked; the
    /// default is 4.
    pub fn with_repacking_after(self, products: usize) -> Self {
        let repack_budget = Arc::new(self.repack_budget.after(products));
        Self { repack_budget, ..self }
    }

    /// Returns the bytes of repacked weights.
    pub fn repacked_bytes(&self) -> u64 {
        self.repack_budget.used()
    }

    /// Returns the executor with LoRA adapters and their scales, usually 1; `base` is the model of the executor.
    ///
    /// # Errors
    /// `adapter-other-base` if an adapter does not fit the model, and errors of reading.
    pub fn with_adapters(self, base: &Model, adapters: &[(Adapter, f32)]) -> Result<Self, Error> {
        let (weights, adapters) = Adapters::bind(&self.graph, &self.weights, base, adapters)?;
        Ok(Self { weights, adapters: Arc::new(adapters), ..self })
    }

    /// Returns the executor with other data for one of its tensors, of any type and in the layout of the file. All other
    /// weights are shared.
    ///
    /// # Errors
    /// `tensor-missing` if the graph has no such tensor, `tensor-shape` if the bytes do not have the size of its shape in
    /// this type.
    pub fn with_tensor(&self, name: &str, ty: TensorType, bytes: Bytes) -> Result<Self, Error> {
        let weights = self.weights.with_tensor(&self.graph, name, ty, bytes)?;
        Ok(Self { weights, ..self.clone() })
    }

    /// Returns the executor with another graph of the same weights, for example one that computes more outputs.
    ///
    /// # Errors
    /// `request-invalid` if the graph reads other weights.
    pub fn with_graph(&self, graph: Graph) -> Result<Self, Error> {
        if graph.raw().weights != self.graph.raw().weights {
            let help = "pass a graph of the same model";
            return Err(Error::request("request-invalid", "the graph has other weights", help));
        }
        Ok(Self { graph: Arc::new(graph), ..self.clone() })
    }

    /// Returns the precision of matrix multiplications.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Returns the executor with another precision. All weights are shared.
    pub fn with_precision(&self, precision: Precision) -> Self {
        Self { precision, ..self.clone() }
    }

    /// Returns the graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the bytes of the weights that the graph multiplies by or looks rows up in: about what a token reads.
    pub fn matrix_bytes(&self) -> u64 {
        self.weights.matrix_bytes()
    }

    /// Returns the size of the vocabulary: the number of rows of the token embedding.
    pub fn vocabulary_len(&self) -> Option<usize> {
        let (program, _) = self.graph.main();
        program.ops.iter().find_map(|op| match op {
            Op::Embedding(Embedding { table, index: Index::Token | Index::MappedToken(_) }) => {
                Some(self.weights.matrix(*table).rows)
            }
            _ => None,
        })
    }

    /// Whether tokens can be removed from contexts: all states are KV caches.
    pub fn can_truncate(&self) -> bool {
        let states = &self.graph.raw().states;
        let is_cache =
            |state: &State| matches!(state, State::KvCache { .. } | State::EncoderKv { .. });
        !states.is_empty() && states.iter().all(is_cache)
    }

    /// Returns the width of an output; `None` if the model does not compute it.
    pub fn width(&self, kind: OutputKind) -> Option<usize> {
        self.graph.output(kind).map(|(_, shape)| shape.width as usize)
    }

    /// Returns the tensors of a model, for the builder of a graph.
    pub fn tensors(model: &Model) -> impl Iterator<Item = &TensorInfo> {
        model.tensors().iter().map(|tensor| &tensor.info)
    }
}
