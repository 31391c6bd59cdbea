//! Memory of a run, estimated from the header: weights, KV cache and compute buffer, divided over devices.

use std::collections::{BTreeMap, HashSet};

use gguf::{Error, Finding, Metadata};
use gguf_graph::{Graph, OutputKind, State};
use gguf_store::Model;

use crate::sequence::windows;
use crate::{CacheType, ContextMemory, ContextOptions};

/// Parameters of a run whose memory is estimated.
#[derive(Clone, Debug, Default)]
pub struct MemoryOptions {
    /// Context size in tokens; `None` is the context size of the model.
    pub context: Option<u64>,
    /// Element type of the KV cache.
    pub cache_type: CacheType,
    /// Batch size in tokens.
    pub batch: u64,
    /// Devices of the layers.
    pub devices: Devices,
}

/// Devices over which layers are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Devices {
    /// A number of equal devices.
    Equal(u64),
    /// The number of layers on each device.
    Layers(Vec<u64>),
}

impl Default for Devices {
    fn default() -> Self {
        Self::Equal(1)
    }
}

/// Returns the context length in tokens that the model was trained with.
pub fn trained_context(metadata: &Metadata) -> Option<u64> {
    metadata.u64(&format!("{}.context_length", metadata.architecture()?))
}

/// Number of tokens by which every cache grows by whole blocks, also if 128 tokens share a row.
const STEP: u64 = 64 * 128;

/// Estimated memory of a run, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// Context size in tokens.
    pub context: u64,
    /// Batch size in tokens.
    pub batch: u64,
    /// All tensors.
    pub weights: u64,
    /// Full KV cache and recurrent states of one sequence.
    pub cache: u64,
    /// Growth of the KV cache per token of context.
    pub cache_per_token: u64,
    /// Compute buffer: peak size of the intermediate values of a batch.
    pub compute_buffer: u64,
    /// Weights that stay in host memory if layers are on devices: the token embedding.
    pub host: u64,
    /// Memory of each device.
    pub devices: Vec<DeviceMemory>,
}

/// Estimated memory of a device, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// First layer, and the layer after the last.
    pub layers: (u64, u64),
    /// Whether the device computes the output projection.
    pub has_output: bool,
    /// Weights of its layers.
    pub weights: u64,
    /// KV cache and recurrent states of its layers.
    pub cache: u64,
    /// Compute buffer.
    pub compute_buffer: u64,
}

impl DeviceMemory {
    /// Returns the sum of weights, cache and compute buffer.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache).saturating_add(self.compute_buffer)
    }
}

impl MemoryEstimate {
    /// Returns the sum of weights, cache and compute buffer.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache).saturating_add(self.compute_buffer)
    }

    /// Estimates the memory of a model with this graph from its header.
    ///
    /// # Errors
    /// If `options.devices` does not match the number of layers.
    pub fn new(model: &Model, graph: &Graph, options: &MemoryOptions) -> Result<Self, Error> {
        let metadata = model.metadata();
        let context = options.context.or_else(|| trained_context(metadata)).unwrap_or(4096);
        let byte_len = |tensor: &gguf_store::ModelTensor| tensor.info.byte_len().unwrap_or(0);
        let weights = model.tensors().iter().map(byte_len).sum();
        let in_context = |context: u64| ContextOptions {
            tokens: usize::try_from(context).unwrap_or(usize::MAX),
            cache_type: options.cache_type,
            // A batch is not larger than the context.
            batch: usize::try_from(options.batch.min(context)).unwrap_or(usize::MAX),
            ..ContextOptions::default()
        };
        let kinds = [OutputKind::Logits, OutputKind::Pooled, OutputKind::Hidden];
        let kind = kinds.into_iter().find(|kind| graph.output(*kind).is_some());
        let kind = kind.unwrap_or(OutputKind::Hidden);
        let memory = ContextMemory::new(graph, in_context(context), kind);
        let sum = |states: &[u64]| states.iter().copied().fold(0, u64::saturating_add);
        let cache = sum(&memory.states);
        let longer = ContextMemory::new(graph, in_context(context.saturating_add(STEP)), kind);
        // A state belongs to the layer of the last weight before it.
        let mut layer = 0;
        let mut states: BTreeMap<u64, u64> = BTreeMap::new();
        let mut counted = HashSet::new();
        for op in &graph.main().0.ops {
            let mut layers = op
                .weights()
                .into_iter()
                .filter_map(|id| layer_of(&graph.raw().weights.get(id.0 as usize)?.name));
            layer = layers.next_back().unwrap_or(layer);
            for state in op.states().into_iter().filter(|state| counted.insert(*state)) {
                let bytes = memory.states.get(state.0 as usize).copied().unwrap_or(0);
                let sum = states.entry(layer).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        let mut estimate = Self {
            context,
            batch: options.batch.min(context),
            weights,
            cache,
            cache_per_token: sum(&longer.states).saturating_sub(cache) / STEP,
            compute_buffer: memory.values,
            host: 0,
            devices: Vec::new(),
        };
        estimate.divide(model, &options.devices, &states)?;
        Ok(estimate)
    }

    /// Divides the layers over devices as llama.cpp does with `--split-mode layer`: the output counts as a layer.
    fn divide(
        &mut self,
        model: &Model,
        devices: &Devices,
        states: &BTreeMap<u64, u64>,
    ) -> Result<(), Error> {
        let mut weights: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut output, mut is_tied) = (0u64, true);
        for tensor in model.tensors().iter().map(|tensor| &tensor.info) {
            let bytes = tensor.byte_len().unwrap_or(0);
            match layer_of(&tensor.name) {
                Some(layer) => *weights.entry(layer).or_default() += bytes,
                None if tensor.name.starts_with("output") => {
                    is_tied &= &*tensor.name != "output.weight";
                    output += bytes;
                }
                None => self.host += bytes,
            }
        }
        if is_tied {
            let embedding = model.index().get("token_embd.weight").and_then(|t| t.info.byte_len());
            output += embedding.unwrap_or(0);
        }
        let count = weights.keys().chain(states.keys()).max().map_or(0, |last| last + 1);
        let mut first = 0;
        for len in devices.layer_counts(count)? {
            let layers = (first, first + len);
            let within = |by_layer: &BTreeMap<u64, u64>| {
                by_layer
                    .range(layers.0..layers.1)
                    .map(|(_, bytes)| *bytes)
                    .fold(0, u64::saturating_add)
            };
            self.devices.push(DeviceMemory {
                layers,
                has_output: false,
                weights: within(&weights),
                cache: within(states),
                compute_buffer: self.compute_buffer,
            });
            first += len;
        }
        if let Some(last) = self.devices.last_mut() {
            last.has_output = true;
            last.weights += output;
        }
        Ok(())
    }
}

impl Devices {
    /// Returns the number of layers on each device, for a model with `count` layers.
    fn layer_counts(&self, count: u64) -> Result<Vec<u64>, Error> {
        let wrong = |what: String| {
            let finding = Finding::error("option-contradicts", what);
            Error::Caller(Box::new(
                finding.help("the layers of all devices must add up to those of the model"),
            ))
        };
        match self {
            Self::Equal(devices) => {
                if *devices == 0 || *devices > count + 1 {
                    return Err(wrong(format!("{count} layers cannot be on {devices} devices")));
                }
                // The output counts as one more layer, on the last device.
                let bound = |device: u64| (device * (count + 1)).div_ceil(*devices).min(count);
                Ok((0..*devices).map(|device| bound(device + 1) - bound(device)).collect())
            }
            Self::Layers(counts) => {
                let sum = counts.iter().copied().fold(0, u64::saturating_add);
                if sum != count {
                    return Err(wrong(format!("the model has {count} layers, not {sum}")));
                }
                Ok(counts.clone())
            }
        }
    }
}

/// Memory of a layer, from which the estimate of another runtime can be computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerMemory {
    /// Number of the layer.
    pub layer: u64,
    /// Bytes of its weights.
    pub weights: u64,
    /// Its KV caches.
    pub caches: Vec<LayerCache>,
    /// Bytes of its recurrent states in F32.
    pub state: u64,
}

/// A KV cache of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerCache {
    /// Elements of the keys of a row.
    pub key_width: u32,
    /// Elements of the values of a row.
    pub value_width: u32,
    /// Tokens per row.
    pub block: u32,
    /// Positions that a token attends to; `None` for all.
    pub window: Option<u32>,
}

impl LayerMemory {
    /// Returns the memory of each layer of a model with this graph.
    pub fn of_layers(model: &Model, graph: &Graph) -> Vec<Self> {
        let mut layers: BTreeMap<u64, Self> = BTreeMap::new();
        let at = |layer: u64| Self { layer, ..Self::default() };
        for tensor in model.tensors().iter().map(|tensor| &tensor.info) {
            if let Some(layer) = layer_of(&tensor.name) {
                let entry = layers.entry(layer).or_insert_with(|| at(layer));
                entry.weights = entry.weights.saturating_add(tensor.byte_len().unwrap_or(0));
            }
        }
        let windows = windows(graph);
        let mut layer = 0;
        let mut counted = HashSet::new();
        for op in &graph.main().0.ops {
            let mut named = op
                .weights()
                .into_iter()
                .filter_map(|id| layer_of(&graph.raw().weights.get(id.0 as usize)?.name));
            layer = named.next_back().unwrap_or(layer);
            for id in op.states().into_iter().filter(|id| counted.insert(*id)) {
                let Some(state) = graph.raw().states.get(id.0 as usize) else { continue };
                let entry = layers.entry(layer).or_insert_with(|| at(layer));
                let floats = match *state {
                    State::KvCache { key_width, value_width, block } => {
                        let window = windows.get(id.0 as usize).copied().flatten();
                        entry.caches.push(LayerCache { key_width, value_width, block, window });
                        0
                    }
                    State::RowHistory { width, len } => u64::from(width) * u64::from(len),
                    State::Recurrent { len } => len.into(),
                    State::EncoderKv { .. } | State::TokenHistory { .. } => 0,
                };
                entry.state = entry.state.saturating_add(floats.saturating_mul(4));
            }
        }
        layers.into_values().collect()
    }
}

/// Returns the layer number in a tensor name.
fn layer_of(name: &str) -> Option<u64> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}
