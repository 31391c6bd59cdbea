//! Layers and hyperparameters.

use std::fmt;

use gguf::Metadata;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// Hyperparameters of an architecture; `None` without a key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layers {
    /// Context size of the model in tokens.
    pub context_length: Option<u64>,
    /// Number of layers.
    pub block_count: Option<u64>,
    /// Embedding size.
    pub embedding_length: Option<u64>,
    /// Feed-forward size.
    pub feed_forward_length: Option<PerLayer>,
    /// Number of attention heads.
    pub heads: Option<PerLayer>,
    /// Number of KV heads; equal to the attention heads without a key.
    pub heads_kv: Option<PerLayer>,
    /// Size of a key head.
    pub key_length: Option<u64>,
    /// Size of a value head.
    pub value_length: Option<u64>,
    /// Size of the sliding window in tokens.
    pub sliding_window: Option<u64>,
    /// Mixture of experts.
    pub experts: Option<Experts>,
    /// RoPE parameters.
    pub rope: Option<Rope>,
}

/// A value that can differ between layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerLayer {
    /// Minimum of all layers.
    pub min: u64,
    /// Maximum of all layers.
    pub max: u64,
}

/// Mixture-of-experts parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Experts {
    /// Number of experts.
    pub count: u64,
    /// Number of experts per token.
    pub used: Option<PerLayer>,
    /// Number of shared experts.
    pub shared: Option<u64>,
}

/// RoPE parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rope {
    /// Base frequency.
    pub base: Option<f64>,
    /// Number of rotary dimensions.
    pub dimensions: Option<u64>,
    /// RoPE scaling type: linear, yarn, longrope.
    pub scaling: Option<String>,
    /// Scaling factor.
    pub factor: Option<f64>,
    /// Context size before scaling.
    pub original_context_length: Option<u64>,
}

/// Serializes a number, or an object with `min` and `max` if layers differ.
impl Serialize for PerLayer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.min == self.max {
            return serializer.serialize_u64(self.max);
        }
        let mut object = serializer.serialize_struct("PerLayer", 2)?;
        object.serialize_field("min", &self.min)?;
        object.serialize_field("max", &self.max)?;
        object.end()
    }
}

impl fmt::Display for PerLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.min == self.max {
            true => self.max.fmt(f),
            false => write!(f, "{} to {}", self.min, self.max),
        }
    }
}

impl Layers {
    /// Reads the hyperparameters.
    pub(super) fn of(metadata: &Metadata) -> Self {
        let Some(architecture) = metadata.architecture() else { return Self::default() };
        let key = |name: &str| format!("{architecture}.{name}");
        let number = |name: &str| metadata.u64(&key(name));
        let per_layer = |name: &str| PerLayer::of(metadata, &key(name));
        let (heads, width) = (per_layer("attention.head_count"), number("embedding_length"));
        // Without a key, the head size is the embedding size divided by the number of heads.
        let share = heads.filter(|heads| heads.min == heads.max && heads.max > 0);
        let share = width.zip(share).map(|(width, heads)| width / heads.max);
        Self {
            context_length: number("context_length"),
            block_count: number("block_count"),
            embedding_length: width,
            feed_forward_length: per_layer("feed_forward_length"),
            heads,
            heads_kv: per_layer("attention.head_count_kv").or(heads),
            key_length: number("attention.key_length").or(share),
            value_length: number("attention.value_length").or(share),
            sliding_window: number("attention.sliding_window").filter(|window| *window > 0),
            experts: number("expert_count").filter(|count| *count > 0).map(|count| Experts {
                count,
                used: per_layer("expert_used_count"),
                shared: number("expert_shared_count").filter(|shared| *shared > 0),
            }),
            rope: Rope::of(metadata, architecture),
        }
    }
}

impl PerLayer {
    fn of(metadata: &Metadata, key: &str) -> Option<Self> {
        if let Some(same) = metadata.u64(key) {
            return Some(Self { min: same, max: same });
        }
        let numbers = metadata.array(key)?.to_i64s()?;
        let (min, max) = (numbers.iter().min()?, numbers.iter().max()?);
        Some(Self { min: u64::try_from(*min).ok()?, max: u64::try_from(*max).ok()? })
    }
}

impl Rope {
    fn of(metadata: &Metadata, architecture: &str) -> Option<Self> {
        let key = |name: &str| format!("{architecture}.rope.{name}");
        let scaling = metadata.str(&key("scaling.type")).filter(|kind| *kind != "none");
        let factor = ["scaling.factor", "scale_linear", "scale"]
            .iter()
            .find_map(|name| metadata.f64(&key(name)))
            .filter(|factor| *factor != 0.0);
        let rope = Self {
            base: metadata.f64(&key("freq_base")),
            dimensions: metadata.u64(&key("dimension_count")),
            // A factor without a scaling type is linear.
            scaling: scaling.or(factor.map(|_| "linear")).map(str::to_owned),
            factor,
            original_context_length: metadata.u64(&key("scaling.original_context_length")),
        };
        (rope != Self::default()).then_some(rope)
    }
}
