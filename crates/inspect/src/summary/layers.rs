//! Layers: how many, how wide, and what they look at.

use std::fmt;

use gguf::Metadata;

/// What the keys of an architecture say of its layers. What they do not say is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layers {
    /// Longest context, in tokens.
    pub context_length: Option<u64>,
    /// Blocks, which some call layers.
    pub block_count: Option<u64>,
    /// Elements of a token's embedding.
    pub embedding_length: Option<u64>,
    /// Width of the feed-forward part.
    pub feed_forward_length: Option<PerLayer>,
    /// Heads of attention.
    pub heads: Option<PerLayer>,
    /// Heads of keys and values: as many as heads if it is not stated.
    pub heads_kv: Option<PerLayer>,
    /// Elements of a key.
    pub key_length: Option<u64>,
    /// Elements of a value.
    pub value_length: Option<u64>,
    /// Tokens that a windowed layer sees.
    pub sliding_window: Option<u64>,
    /// Experts; `None` in a model without.
    pub experts: Option<Experts>,
    /// How positions become rotations; `None` if no key speaks of it.
    pub rope: Option<Rope>,
}

/// A number that layers may differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerLayer {
    /// The least of all layers.
    pub least: u64,
    /// The most of all layers.
    pub most: u64,
}

/// Parts of a layer of which each token uses a few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experts {
    /// How many there are.
    pub count: u64,
    /// How many a token uses.
    pub used: Option<PerLayer>,
    /// How many every token uses besides.
    pub shared: Option<u64>,
}

/// Rotations of keys and queries by position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rope {
    /// Base frequency.
    pub base: Option<f64>,
    /// Dimensions of a head that are rotated.
    pub dimensions: Option<u64>,
    /// How positions are stretched: linear, yarn, longrope; `None` if they are not.
    pub scaling: Option<String>,
    /// By how much.
    pub factor: Option<f64>,
    /// The context before that.
    pub original_context_length: Option<u64>,
}

impl fmt::Display for PerLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.least == self.most {
            true => self.most.fmt(f),
            false => write!(f, "{} to {}", self.least, self.most),
        }
    }
}

impl Layers {
    /// What the keys say.
    pub(super) fn of(metadata: &Metadata) -> Self {
        let Some(architecture) = metadata.architecture() else { return Self::default() };
        let key = |name: &str| format!("{architecture}.{name}");
        let number = |name: &str| metadata.u64(&key(name));
        let per_layer = |name: &str| PerLayer::of(metadata, &key(name));
        let (heads, width) = (per_layer("attention.head_count"), number("embedding_length"));
        // Without a key of its own, a head is its share of the width.
        let share = heads.filter(|heads| heads.least == heads.most && heads.most > 0);
        let share = width.zip(share).map(|(width, heads)| width / heads.most);
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
            return Some(Self { least: same, most: same });
        }
        let numbers = metadata.array(key)?.to_i64s()?;
        let (least, most) = (numbers.iter().min()?, numbers.iter().max()?);
        Some(Self { least: u64::try_from(*least).ok()?, most: u64::try_from(*most).ok()? })
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
            // A factor without a word is of the kind that the format begins with.
            scaling: scaling.or(factor.map(|_| "linear")).map(str::to_owned),
            factor,
            original_context_length: metadata.u64(&key("scaling.original_context_length")),
        };
        (rope != Self::default()).then_some(rope)
    }
}
