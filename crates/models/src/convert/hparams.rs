//! Hyper-parameters that all decoder families write alike, in the order of llama.cpp's converter.

use std::fmt::Display;

use gguf::{Array, Error, Finding, Metadata, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use serde_json::Value;

use crate::schema::{HyperParameters, key};

/// The keys of one architecture.
pub struct Keys<'m> {
    architecture: &'static str,
    /// The number of the mix, which stands among the hyper-parameters.
    file_type: u32,
    metadata: &'m mut Metadata,
    /// The first value that a key does not hold.
    fault: Option<Finding>,
}

impl<'m> Keys<'m> {
    /// Returns the writer of keys under `architecture` that writes `file_type` among them.
    pub fn new(architecture: &'static str, file_type: u32, metadata: &'m mut Metadata) -> Self {
        Self { architecture, file_type, metadata, fault: None }
    }

    /// Sets `<architecture>.<key>`, as the table of keys has it.
    pub fn set(&mut self, key: &str, value: impl Into<gguf::Value>) {
        let set = HyperParameters::set(self.metadata, self.architecture, key, value);
        self.fault = self.fault.take().or(set.err());
    }

    /// Fails if a value was one that its key does not hold.
    pub fn finish(self, config: &Config) -> Result<(), Error> {
        match self.fault {
            None => Ok(()),
            Some(fault) => {
                let what = format!("leads to a key that cannot be: {fault}");
                Err(Error::input(
                    "config-field",
                    config.path(),
                    what,
                    "correct the field that the key comes from",
                ))
            }
        }
    }

    /// Sets a key that may have been set before, which then counts.
    pub fn set_if_absent(&mut self, key: &str, value: impl Into<gguf::Value>) {
        if self.metadata.get(&format!("{}.{key}", self.architecture)).is_none() {
            self.set(key, value);
        }
    }

    /// Sets a key if there is a value.
    pub fn set_u32(&mut self, key: &str, value: Option<u32>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Sets a key if there is a value.
    pub fn set_f32(&mut self, key: &str, value: Option<f32>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// The parameters of a decoder with RMS norms, up to and including the file type, for classes
    /// whose configuration `transformers` completes: with a base frequency and key and value heads.
    ///
    /// `head_dim` is the width of a head where the family states it.
    pub fn decoder(&mut self, config: &Config, head_dim: Option<u32>) -> Result<(), Error> {
        if config.find(RMS_EPSILON).is_none() {
            return Err(Error::input(
                "config-field-missing",
                config.path(),
                "has no field `rms_norm_eps` (what the norms add before they divide)",
                "add the field or take the file from the model's repository",
            ));
        }
        let rope = Rope::of(config)?;
        let base = rope.base.unwrap_or(DEFAULT_BASE);
        self.common(config, Some(head_count_kv(config)?), &rope, Some(base), head_dim)
    }

    /// The same, of what the configuration states, whatever the norms.
    pub fn stated(&mut self, config: &Config) -> Result<(), Error> {
        let rope = Rope::of(config)?;
        let head_count_kv = config.u32(HEAD_COUNT_KV)?;
        let head_dim = stated_head_dim(config)?;
        self.common(config, head_count_kv, &rope, rope.base, head_dim)
    }

    /// Those of llama and of what is derived from it: with the number of tokens, and how much of a
    /// head rotates.
    ///
    /// `head_dim` is the width of a head where the family states it.
    pub fn llama_like(&mut self, config: &Config, head_dim: Option<u32>) -> Result<(), Error> {
        self.decoder(config, head_dim)?;
        self.vocab_size(config)?;
        self.set(key::ROPE_DIMENSION_COUNT, self::head_dim(config)?);
        Ok(())
    }

    /// The number of tokens.
    pub fn vocab_size(&mut self, config: &Config) -> Result<(), Error> {
        self.set(key::VOCAB_SIZE, config.require_u32(&["vocab_size"], "the number of tokens")?);
        Ok(())
    }

    fn common(
        &mut self,
        config: &Config,
        head_count_kv: Option<u32>,
        rope: &Rope,
        rope_base: Option<f32>,
        head_dim: Option<u32>,
    ) -> Result<(), Error> {
        let blocks = block_count(config)?;
        let context = context_length(config)?;
        let width = width(config)?;
        // A model of experts alone may have no other.
        let feed_forward = match config.u32(FEED_FORWARD)? {
            None if config.find(EXPERT_WIDTH).is_none() => Some(feed_forward(config)?),
            width => width,
        };
        let heads = head_count(config)?;
        self.set(key::BLOCK_COUNT, blocks);
        self.set(key::CONTEXT_LENGTH, context);
        self.set(key::EMBEDDING_LENGTH, width);
        self.set_u32(key::FEED_FORWARD_LENGTH, feed_forward);
        self.set(key::ATTENTION_HEAD_COUNT, heads);
        self.set_u32(key::ATTENTION_HEAD_COUNT_KV, head_count_kv);
        if config.bool("is_causal")? == Some(false) {
            self.set(key::ATTENTION_CAUSAL, false);
        }
        self.rope(config, rope)?;
        if let Some(sections) = rope.sections()? {
            self.set(key::ROPE_DIMENSION_SECTIONS, Array::from(&sections[..]));
        }
        self.set_f32(key::ROPE_FREQ_BASE, rope_base);
        self.set_f32(key::ROPE_FREQ_BASE_SWA, rope.window_base(config)?);
        self.set_f32(key::ATTENTION_LAYER_NORM_RMS_EPSILON, config.f32(RMS_EPSILON)?);
        self.set_f32(key::ATTENTION_LAYER_NORM_EPSILON, config.f32(EPSILON)?);
        self.set_u32(key::EXPERT_COUNT, config.u32(EXPERT_COUNT)?);
        self.set_u32(key::EXPERT_USED_COUNT, config.u32(EXPERT_USED)?);
        self.set_u32(key::EXPERT_GROUP_COUNT, config.u32(&["n_group"])?);
        self.set_u32(key::EXPERT_GROUP_USED_COUNT, config.u32(&["topk_group"])?);
        self.set_u32(key::EXPERT_GATING_FUNC, gating_function(config)?);
        self.set_u32(key::ATTENTION_KEY_LENGTH, head_dim);
        self.set_u32(key::ATTENTION_VALUE_LENGTH, head_dim);
        self.file_type();
        Ok(())
    }

    /// The number of the mix.
    pub fn file_type(&mut self) {
        self.metadata.set("general.file_type", self.file_type);
    }

    /// Sets a key that has no architecture in its name, though it is of one.
    pub fn set_whole(&mut self, key: &'static str, value: impl Into<gguf::Value>) {
        self.metadata.set(key, value);
    }

    /// A key of the tokenizer that stands among those of the model.
    pub fn before_vocabulary(&mut self, key: &'static str, value: impl Into<gguf::Value>) {
        self.set_whole(key, value);
    }

    /// The base frequency and how it is stretched, for families where programs take 10000 and
    /// llama.cpp's converter writes no key: then only what is different is written.
    pub fn unusual_rope(&mut self, config: &Config) -> Result<(), Error> {
        let rope = Rope::of(config)?;
        self.rope(config, &rope)?;
        self.set_f32(key::ROPE_FREQ_BASE, rope.base.filter(|&base| base != DEFAULT_BASE));
        Ok(())
    }

    /// That positions are not stretched, unless they are: of some families llama.cpp's converter
    /// writes so.
    pub fn else_not_stretched(&mut self) {
        self.set_if_absent(key::ROPE_SCALING_TYPE, "none");
    }

    /// How rotary embedding is scaled.
    pub fn rope(&mut self, config: &Config, rope: &Rope) -> Result<(), Error> {
        let factor = rope.number("factor")?;
        match (rope.kind.as_deref(), factor) {
            (Some("linear"), Some(factor)) => {
                self.set(key::ROPE_SCALING_TYPE, "linear");
                self.set(key::ROPE_SCALING_FACTOR, factor);
            }
            (Some("yarn"), Some(factor)) => {
                self.set(key::ROPE_SCALING_TYPE, "yarn");
                self.set(key::ROPE_SCALING_FACTOR, factor);
                let original = rope.original_context()? as u32;
                self.set(key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH, original);
                for (key, fields) in [
                    ("yarn_ext_factor", &["extrapolation_factor"][..]),
                    ("yarn_attn_factor", &["attention_factor", "attn_factor"]),
                    ("yarn_beta_fast", &["beta_fast"]),
                    ("yarn_beta_slow", &["beta_slow"]),
                ] {
                    let value = fields.iter().find_map(|field| rope.number(field).transpose());
                    self.set_f32(&format!("rope.scaling.{key}"), value.transpose()?);
                }
            }
            (Some("su" | "longrope"), _) => self.set(key::ROPE_SCALING_TYPE, "longrope"),
            // `llama3` and `proportional` are written as factors per frequency; the rest has no
            // key, and programs take the frequencies as they are.
            (None | Some("default" | "llama3" | "proportional" | "dynamic"), _) => {}
            (Some(other), _) => {
                let what = format!("the rotary embedding is scaled by `{other}`");
                let help =
                    "this scaling cannot be converted; known are linear, yarn, llama3, longrope";
                return Err(Error::input("config-unsupported", config.path(), what, help));
            }
        }
        Ok(())
    }
}

/// The base frequency where nothing is said, as in `transformers`.
pub const DEFAULT_BASE: f32 = 10000.0;

const FEED_FORWARD: &[&str] = &[
    "intermediate_size",
    "prefix_dense_intermediate_size",
    "dense_intermediate_size",
    "n_inner",
    "hidden_dim",
];

const EXPERT_WIDTH: &[&str] = &["moe_intermediate_size", "moe_ffn_hidden_size"];

const BASE: &[&str] = &["global_rope_theta", "rope_theta", "rotary_emb_base"];

const HEAD_COUNT_KV: &[&str] = &["num_key_value_heads", "n_kv_heads"];

const RMS_EPSILON: &[&str] = &["rms_norm_eps", "norm_eps"];

const EPSILON: &[&str] = &["layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"];

const EXPERT_COUNT: &[&str] = &["num_local_experts", "num_experts", "n_routed_experts"];

const EXPERT_USED: &[&str] = &["num_experts_per_tok", "num_experts_per_token", "top_k_experts"];

const BLOCK_COUNT: &[&str] = &["num_hidden_layers", "n_layers", "n_layer", "num_layers"];

const CONTEXT_LENGTH: &[&str] = &[
    "max_position_embeddings",
    "n_ctx",
    "n_positions",
    "max_length",
    "max_sequence_length",
    "model_max_length",
];

const EMBEDDING_LENGTH: &[&str] = &["hidden_size", "n_embd", "n_embed", "dim"];

/// Layers.
pub fn block_count(config: &Config) -> Result<u32, Error> {
    possible(config, "layers", config.require_u32(BLOCK_COUNT, "the number of layers")?)
}

/// Refuses a number that no model comes near, before as many values are computed.
pub fn possible(config: &Config, of: &str, number: u32) -> Result<u32, Error> {
    const LIMIT: u32 = 1 << 16;
    if number <= LIMIT {
        return Ok(number);
    }
    let what = format!("states {number} {of}");
    Err(Error::input(
        "config-field",
        config.path(),
        what,
        "take the file from the model's repository",
    ))
}

/// The longest context, in tokens.
pub fn context_length(config: &Config) -> Result<u32, Error> {
    config.require_u32(CONTEXT_LENGTH, "the longest context, in tokens")
}

/// The width of the model.
pub fn width(config: &Config) -> Result<u32, Error> {
    config.require_u32(EMBEDDING_LENGTH, "the width of the model")
}

/// The feed-forward width.
pub fn feed_forward(config: &Config) -> Result<u32, Error> {
    config.require_u32(FEED_FORWARD, "the feed-forward width")
}

/// The width inside the feed-forward layer where it is four times the model's unless stated.
pub fn inner_width(config: &Config, width: u32) -> Result<u32, Error> {
    Ok(config.u32(&["n_inner"])?.unwrap_or(width.saturating_mul(4)))
}

/// The epsilon of norms that take away the mean.
pub fn layer_norm_epsilon(config: &Config) -> Result<f32, Error> {
    config.require_f32(EPSILON, "what the norms add before they divide")
}

/// Queries, keys and values that are stored head by head, sorted by kind.
pub fn sort_heads(config: &Config) -> Result<Step, Error> {
    let head_dim = u64::from(head_dim(config)?);
    Ok(Step::Regroup { groups: head_count(config)?.into(), kinds: [head_dim; 3] })
}

/// Convolutions of `kernel` weights, each of a channel of its own, without the dimension of the one input
/// that each has.
pub fn channels(kernel: u32, channels: u64) -> Step {
    let shape = |dims: &[u64]| {
        Shape::new(dims).unwrap_or_else(|| unreachable!("three dimensions are no more than four"))
    };
    let kernel = kernel.into();
    Step::Reshape { from: shape(&[kernel, 1, channels]), to: shape(&[kernel, channels]) }
}

/// Fails if a field asks for what no program computes with this architecture.
pub fn expect(config: &Config, field: &str, expected: bool) -> Result<(), Error> {
    match config.bool(field)? {
        Some(stated) if stated != expected => Err(not_computed(config, field, stated)),
        _ => Ok(()),
    }
}

/// That the value of a field asks for what no program computes with this architecture.
pub fn not_computed(config: &Config, field: &str, stated: impl Display) -> Error {
    let what = format!("`{field}` is {stated}, which no program computes");
    let help = "this model cannot be converted; correct the field if it is wrong";
    Error::input("config-unsupported", config.path(), what, help)
}

/// Experts.
pub fn expert_count(config: &Config) -> Result<u32, Error> {
    config.require_u32(EXPERT_COUNT, "the number of experts")
}

/// How routers turn scores into weights: the number of the function in the format.
fn gating_function(config: &Config) -> Result<Option<u32>, Error> {
    const FIELDS: &[&str] = &[
        "score_function",
        "scoring_func",
        "score_func",
        "moe_router_activation",
        "moe_router_activation_func",
        "expert_selection_fn",
    ];
    let Some((field, value)) = config.find(FIELDS) else { return Ok(None) };
    match value.as_str() {
        Some("softmax") => Ok(Some(1)),
        Some("sigmoid") => Ok(Some(2)),
        Some("sqrtsoftplus") => Ok(Some(4)),
        _ => {
            let what = format!("`{field}` of the router is {value}");
            let help = "this cannot be converted; known are softmax, sigmoid, sqrtsoftplus";
            Err(Error::input("config-unsupported", config.path(), what, help))
        }
    }
}

/// Attention heads.
pub fn head_count(config: &Config) -> Result<u32, Error> {
    config.require_u32(&["num_attention_heads", "n_head", "n_heads"], "the number of heads")
}

/// Key and value heads: as many as there are heads unless the configuration says otherwise.
pub fn head_count_kv(config: &Config) -> Result<u32, Error> {
    match config.u32(HEAD_COUNT_KV)? {
        Some(0) | None => head_count(config),
        Some(count) => Ok(count),
    }
}

/// What `transformers` completes in most classes: as many key and value heads as heads, and the
/// base frequency.
pub fn default_attention(config: &mut Config) -> Result<(), Error> {
    config.default("num_key_value_heads", head_count_kv(config)?);
    if Rope::of(config)?.base.is_none() {
        config.set("rope_theta", DEFAULT_BASE);
    }
    Ok(())
}

/// The rows of queries and keys as in llama: its rotary embedding turns pairs of neighbours, while
/// checkpoints are arranged for the form that turns the first half of a head against the second.
pub fn llama_order(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let heads = if name.contains(".attn_q.") {
        head_count(config)?
    } else if name.contains(".attn_k.") {
        head_count_kv(config)?
    } else {
        return Ok(Vec::new());
    };
    Ok(vec![Step::InterleaveHalves { heads: heads.into() }])
}

/// `head_dim` of the configuration.
pub fn stated_head_dim(config: &Config) -> Result<Option<u32>, Error> {
    config.u32(&["head_dim"])
}

/// The same, or what `transformers` completes it with where the configuration is of Llama's type, whatever its
/// class.
pub fn completed_head_dim(config: &Config) -> Result<Option<u32>, Error> {
    match is_of_llama(config) {
        true => head_dim(config).map(Some),
        false => stated_head_dim(config),
    }
}

/// Whether `transformers` completes the configuration as that of a Llama.
pub fn is_of_llama(config: &Config) -> bool {
    config.json()["model_type"] == "llama"
}

/// `head_dim`, or the width of the model divided among its heads.
pub fn head_dim(config: &Config) -> Result<u32, Error> {
    if let Some(dim) = stated_head_dim(config)? {
        return Ok(dim);
    }
    Ok(width(config)? / head_count(config)?)
}

/// Dimensions of a head that rotate: a share of them, which is `default` where none is stated.
pub fn rotated_dims(config: &Config, head_dim: u32, default: f64) -> Result<u32, Error> {
    Ok((rotated_share(config, default)? * f64::from(head_dim)) as u32)
}

/// The same, if a share is stated.
pub fn stated_rotated_dims(config: &Config) -> Result<Option<u32>, Error> {
    let Some(share) = stated_share(config)? else { return Ok(None) };
    Ok(Some((share * f64::from(head_dim(config)?)) as u32))
}

/// Returns the share of rotary dimensions in a head.
pub fn rotated_share(config: &Config, default: f64) -> Result<f64, Error> {
    Ok(stated_share(config)?.unwrap_or(default))
}

fn stated_share(config: &Config) -> Result<Option<f64>, Error> {
    const FIELDS: &[&str] = &["partial_rotary_factor", "rope_pct", "rope_percent", "rotary_pct"];
    let nested = Rope::of(config)?.f64(FIELDS[0])?;
    Ok(nested.or(config.f64(FIELDS)?))
}

/// The rotary embedding of a configuration, in its old form (`rope_theta`, `rope_scaling`) or its
/// new one (`rope_parameters`, where models with windows have one for each kind of layers).
pub struct Rope<'c> {
    config: &'c Config,
    all: Option<&'c Value>,
    /// Of the layers without a window.
    fields: Option<&'c Value>,
    /// `rope_type`, or its old name `type`.
    kind: Option<String>,
    /// The base frequency.
    pub(crate) base: Option<f32>,
}

impl<'c> Rope<'c> {
    pub fn of(config: &'c Config) -> Result<Self, Error> {
        let all = config.find(&["rope_parameters", "rope_scaling"]).map(|(_, fields)| fields);
        let fields = all.map(|all| all.get("full_attention").unwrap_or(all));
        let kind = fields.and_then(|f| f.get("rope_type").or_else(|| f.get("type")));
        let kind = kind.and_then(Value::as_str).map(str::to_lowercase);
        let mut rope = Self { config, all, fields, kind, base: None };
        let base = rope.number("rope_theta")?;
        rope.base = base.or(config.f32(BASE)?);
        Ok(rope)
    }

    /// The base frequency of layers with a window, if it is stated.
    fn window_base(&self, config: &Config) -> Result<Option<f32>, Error> {
        const FIELDS: &[&str] =
            &["rope_local_base_freq", "local_rope_theta", "rope_local_theta", "swa_rope_theta"];
        let window = self.all.and_then(|all| all.get("sliding_attention"));
        match window.and_then(|window| window.get("rope_theta")).and_then(Value::as_f64) {
            Some(base) => Ok(Some(base as f32)),
            None => config.f32(FIELDS),
        }
    }

    /// Whether the embedding is scaled in this way.
    pub fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    pub fn f64(&self, field: &str) -> Result<Option<f64>, Error> {
        match self.fields.and_then(|fields| fields.get(field)) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_f64().map(Some).ok_or_else(|| {
                let what = format!("`{field}` of the rotary embedding is {value}");
                Error::input("config-field", self.config.path(), what, "give a number")
            }),
        }
    }

    /// The dimensions that rotate for time, height, width and one more, of models that see.
    pub fn sections(&self) -> Result<Option<[i32; 4]>, Error> {
        const FIELD: &str = "mrope_section";
        let Some(value) = self.all.and_then(|all| all.get(FIELD)) else { return Ok(None) };
        let mut sections = [0; 4];
        let numbers = value.as_array().and_then(|list| {
            let numbers = list.iter().map(|number| i32::try_from(number.as_i64()?).ok());
            numbers.collect::<Option<Vec<_>>>()
        });
        let Some(numbers) = numbers else {
            let what = format!("`{FIELD}` of the rotary embedding is {value}");
            let help = "give a list of up to four numbers";
            return Err(Error::input("config-field", self.config.path(), what, help));
        };
        sections.iter_mut().zip(numbers).for_each(|(section, number)| *section = number);
        Ok(Some(sections))
    }

    fn number(&self, field: &str) -> Result<Option<f32>, Error> {
        Ok(self.f64(field)?.map(|number| number as f32))
    }

    /// The longest context before scaling: of the embedding, else at the top, else the longest of
    /// the model, as `transformers` completes it.
    pub fn original_context(&self) -> Result<f32, Error> {
        const FIELD: &str = "original_max_position_embeddings";
        match self.number(FIELD)?.or(self.config.f32(&[FIELD])?) {
            Some(length) => Ok(length),
            None => Ok(context_length(self.config)? as f32),
        }
    }

    /// A factor for each of `count` frequencies, if the field is there.
    fn factors(&self, field: &str, count: u32) -> Result<Option<Vec<f32>>, Error> {
        let Some(value) = self.fields.and_then(|fields| fields.get(field)) else { return Ok(None) };
        let list = value.as_array().filter(|list| list.len() == count as usize);
        let factors = list.and_then(|list| {
            list.iter().map(|factor| factor.as_f64().map(|factor| factor as f32)).collect()
        });
        factors.map(Some).ok_or_else(|| {
            let what = format!("`{field}` of the rotary embedding is no list of {count} numbers");
            Error::input(
                "config-field",
                self.config.path(),
                what,
                "take the file from the model's repository",
            )
        })
    }
}

/// The factors of `longrope` scaling, one pair of tensors: for long contexts and for short ones.
///
/// `dims` is the number of dimensions that rotate.
pub fn longrope_factors(config: &Config, dims: u32) -> Result<Vec<(String, Vec<f32>)>, Error> {
    let rope = Rope::of(config)?;
    let long = rope.factors("long_factor", dims / 2)?;
    let short = rope.factors("short_factor", dims / 2)?;
    match (long, short) {
        (None, None) => Ok(Vec::new()),
        (Some(long), Some(short)) => Ok(vec![
            ("rope_factors_long.weight".to_owned(), long),
            ("rope_factors_short.weight".to_owned(), short),
        ]),
        _ => {
            let what = "the rotary embedding has only one of `long_factor` and `short_factor`";
            Err(Error::input(
                "config-field",
                config.path(),
                what,
                "take the file from the model's repository",
            ))
        }
    }
}

/// The factors of `llama3` scaling as a tensor, if the configuration asks for it.
pub fn rope_freqs(config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
    let factors = llama3_factors(config)?;
    Ok(factors.map(|factors| (ROPE_FREQS.to_owned(), factors)).into_iter().collect())
}

/// The tensor of factors by which frequencies are divided.
pub const ROPE_FREQS: &str = "rope_freqs.weight";

/// Fails if the frequencies are scaled as `llama3` does it and no tensor says so: programs do not
/// read the tensor of every architecture, and some refuse a file that has it (llama.cpp that of a
/// SmolLM3, for which its converter writes one).
pub fn require_rope_freqs(config: &Config, computed: &[(String, Vec<f32>)]) -> Result<(), Error> {
    let is_llama3 = Rope::of(config)?.kind.as_deref() == Some("llama3");
    match is_llama3 && !computed.iter().any(|(name, _)| name == ROPE_FREQS) {
        true => Err(not_computed(config, "rope_type", "llama3")),
        false => Ok(()),
    }
}

/// The factors by which `llama3` scaling divides each frequency, if the configuration asks for
/// it: 1 for short wavelengths, `factor` for long ones, smooth in between.
///
/// Formula: `_compute_llama3_parameters` in transformers' `modeling_rope_utils.py`, in single
/// precision and step by step as torch does it: a power rounded once, and a number divided by an
/// element as its reciprocal times the number. The values are a unit in the last place off
/// otherwise.
pub fn llama3_factors(config: &Config) -> Result<Option<Vec<f32>>, Error> {
    if !Rope::of(config)?.is("llama3") {
        return Ok(None);
    }
    llama3_factors_of(config, head_dim(config)?, Precision::Single)
}

/// In which precision llama.cpp's converter computes factors.
#[derive(Clone, Copy, PartialEq)]
pub enum Precision {
    /// Of most families: as torch does it.
    Single,
    /// Of Step 3.5: as Python does it, once frequencies are known.
    Double,
}

/// The same where `dim` dimensions of a head rotate.
pub fn llama3_factors_of(
    config: &Config,
    dim: u32,
    precision: Precision,
) -> Result<Option<Vec<f32>>, Error> {
    let rope = Rope::of(config)?;
    if !rope.is("llama3") {
        return Ok(None);
    }
    let factor = rope.number("factor")?.unwrap_or(8.0);
    let low = rope.number("low_freq_factor")?.unwrap_or(1.0);
    let high = rope.number("high_freq_factor")?.unwrap_or(4.0);
    let original = rope.original_context()?;
    let dim = possible(config, "dimensions of a head", dim)?;
    let base = rope.base.unwrap_or(DEFAULT_BASE);
    let turn = 2.0 * std::f32::consts::PI;
    let factors = (0..dim).step_by(2).map(|i| {
        let exponent = i as f32 / dim as f32;
        let frequency = 1.0 / f64::from(base).powf(f64::from(exponent)) as f32;
        if precision == Precision::Double {
            let [factor, low, high] = [factor, low, high].map(f64::from);
            let original = f64::from(original);
            let wavelength = 2.0 * std::f64::consts::PI / f64::from(frequency);
            return if wavelength < original / high {
                1.0
            } else if wavelength > original / low {
                factor as f32
            } else {
                let smooth = (original / wavelength - low) / (high - low);
                (1.0 / ((1.0 - smooth) / factor + smooth)) as f32
            };
        }
        let wavelength = (1.0 / frequency) * turn;
        if wavelength < original / high {
            1.0
        } else if wavelength > original / low {
            factor
        } else {
            let smooth = ((1.0 / wavelength) * original - low) / (high - low);
            1.0 / ((1.0 - smooth) / factor + smooth)
        }
    });
    Ok(Some(factors.collect()))
}
