//! Memory that a model takes when it is run: weights, caches, and values of a batch.

use std::collections::{BTreeMap, HashSet};

use gguf::Finding;
use gguf_graph::OutputKind;
use gguf_runtime::{CacheType, ContextOptions, Memory};
use gguf_store::Model;

use crate::Error;
use crate::run::{GraphSource, graph_of};
use crate::summary::Summary;

/// How a model is to be run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Tokens of the context; that which the model was trained on if `None`.
    pub context: Option<u64>,
    /// How caches store numbers.
    pub cache_type: CacheType,
    /// Tokens that are computed together.
    pub batch: u64,
    /// Where the layers are to be.
    pub devices: Devices,
}

/// Devices that layers are divided over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Devices {
    /// So many that are alike.
    Equal(u64),
    /// One for each number, with so many layers.
    Layers(Vec<u64>),
}

impl Default for Devices {
    fn default() -> Self {
        Self::Equal(1)
    }
}

/// Tokens for which caches grow by whole blocks of rows, also where up to 128 tokens have one row.
const STEP: u64 = 64 * 128;

/// What a model takes, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Tokens of the context.
    pub context: u64,
    /// Tokens that are computed together.
    pub batch: u64,
    /// All tensors.
    pub weights: u64,
    /// Full caches and states of one sequence.
    pub caches: u64,
    /// What a token of context adds to them.
    pub per_token: u64,
    /// Values of a batch, at most at a time.
    pub scratch: u64,
    /// What stays in the memory of the machine if layers are on devices: the embedding.
    pub input: u64,
    /// The devices.
    pub devices: Vec<Device>,
}

/// What is on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// The first layer on it, and the one after the last.
    pub layers: (u64, u64),
    /// Whether the output is computed there.
    pub has_output: bool,
    /// Weights of its layers.
    pub weights: u64,
    /// Their caches and states.
    pub caches: u64,
    /// Values of a batch.
    pub scratch: u64,
}

impl Device {
    /// Weights, caches and values together.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.caches).saturating_add(self.scratch)
    }
}

impl Report {
    /// Weights, caches and values together.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.caches).saturating_add(self.scratch)
    }

    /// What `model` takes; nothing but its header is read.
    ///
    /// # Errors
    /// If there is no computation graph for it, or the devices have other layers than it has.
    pub fn of(model: &Model, options: &Options) -> Result<Self, Error> {
        let graph = graph_of(model, GraphSource::Auto)?;
        let summary = Summary::of(model);
        let context = options.context.or(summary.layers.context_length).unwrap_or(4096);
        let in_context = |context: u64| ContextOptions {
            tokens: usize::try_from(context).unwrap_or(usize::MAX),
            cache_type: options.cache_type,
            // No more is computed together than the context holds.
            batch: usize::try_from(options.batch.min(context)).unwrap_or(usize::MAX),
            ..ContextOptions::default()
        };
        let kinds = [OutputKind::Logits, OutputKind::Pooled, OutputKind::Hidden];
        let kind = kinds.into_iter().find(|kind| graph.output(*kind).is_some());
        let kind = kind.unwrap_or(OutputKind::Hidden);
        let memory = Memory::of(&graph, in_context(context), kind);
        let sum = |states: &[u64]| states.iter().copied().fold(0, u64::saturating_add);
        let caches = sum(&memory.states);
        let longer = Memory::of(&graph, in_context(context.saturating_add(STEP)), kind);
        // States belong to the layer whose weights were used last before them.
        let mut layer = 0;
        let mut states: BTreeMap<u64, u64> = BTreeMap::new();
        let mut counted = HashSet::new();
        for op in &graph.main().0.ops {
            let mut named = op
                .weights()
                .into_iter()
                .filter_map(|id| layer_of(&graph.raw().weights.get(id.0 as usize)?.name));
            layer = named.next_back().unwrap_or(layer);
            for state in op.states().into_iter().filter(|state| counted.insert(*state)) {
                let bytes = memory.states.get(state.0 as usize).copied().unwrap_or(0);
                let sum = states.entry(layer).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        let mut report = Self {
            context,
            batch: options.batch.min(context),
            weights: summary.data_bytes,
            caches,
            per_token: sum(&longer.states).saturating_sub(caches) / STEP,
            scratch: memory.values,
            input: 0,
            devices: Vec::new(),
        };
        report.divide(model, &options.devices, &states)?;
        Ok(report)
    }

    /// Puts layers on devices, as llama.cpp does with `--split-mode layer`: the output counts as a layer.
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
                None => self.input += bytes,
            }
        }
        if is_tied {
            let embedding = model.index().get("token_embd.weight").and_then(|t| t.info.byte_len());
            output += embedding.unwrap_or(0);
        }
        let count = weights.keys().chain(states.keys()).max().map_or(0, |last| last + 1);
        let mut first = 0;
        for len in devices.lens(count)? {
            let layers = (first, first + len);
            let within = |of: &BTreeMap<u64, u64>| {
                of.range(layers.0..layers.1).map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
            };
            self.devices.push(Device {
                layers,
                has_output: false,
                weights: within(&weights),
                caches: within(states),
                scratch: self.scratch,
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
    /// Layers of each.
    fn lens(&self, count: u64) -> Result<Vec<u64>, Error> {
        let wrong = |what: String| {
            let finding = Finding::error("option-contradicts", what);
            Error::Caller(Box::new(finding.help("give as many devices or layers as there are")))
        };
        match self {
            Self::Equal(devices) => {
                if *devices == 0 || *devices > count + 1 {
                    return Err(wrong(format!("{count} layers cannot be on {devices} devices")));
                }
                // The output is one more, on the last.
                let bound = |device: u64| (device * (count + 1)).div_ceil(*devices).min(count);
                Ok((0..*devices).map(|device| bound(device + 1) - bound(device)).collect())
            }
            Self::Layers(lens) => {
                let sum = lens.iter().copied().fold(0, u64::saturating_add);
                if sum != count {
                    return Err(wrong(format!("the model has {count} layers, not {sum}")));
                }
                Ok(lens.clone())
            }
        }
    }
}

/// The layer that a tensor is of, by its name.
fn layer_of(name: &str) -> Option<u64> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}
