//! Writing of the hyper-parameters that most architectures share, in the order of llama.cpp's converter.

use gguf::{Array, Error, Finding, Metadata};
use gguf_checkpoint::config::Config;

use crate::convert::hparams::{
    self, EPSILON, EXPERT_COUNT, FEED_FORWARD, HEAD_COUNT_KV, block_count, context_length,
    feed_forward, head_count, head_count_kv, stated_head_dim, width,
};
use crate::convert::rope::{DEFAULT_BASE, Rope};
use crate::schema::{HyperParameters, key};

const RMS_EPSILON: &[&str] = &["rms_norm_eps", "norm_eps"];

const EXPERT_WIDTH: &[&str] = &["moe_intermediate_size", "moe_ffn_hidden_size"];

const EXPERT_USED: &[&str] = &["num_experts_per_tok", "num_experts_per_token", "top_k_experts"];

/// Writer of the hyper-parameters of an architecture as metadata keys.
pub struct Keys<'m> {
    architecture: &'static str,
    /// Value of `general.file_type`, which llama.cpp's converter writes among the hyper-parameters.
    file_type: u32,
    metadata: &'m mut Metadata,
    /// Error of the first value that its key cannot hold.
    fault: Option<Finding>,
}

impl<'m> Keys<'m> {
    /// Returns a writer of keys with the prefix `architecture`.
    pub fn new(architecture: &'static str, file_type: u32, metadata: &'m mut Metadata) -> Self {
        Self { architecture, file_type, metadata, fault: None }
    }

    /// Sets `<architecture>.<key>`, with the type that the table of keys gives it.
    pub fn set(&mut self, key: &str, value: impl Into<gguf::Value>) {
        let set = HyperParameters::set(self.metadata, self.architecture, key, value);
        self.fault = self.fault.take().or(set.err());
    }

    /// Returns the error of the first value that its key cannot hold.
    pub fn finish(self, config: &Config) -> Result<(), Error> {
        match self.fault {
            None => Ok(()),
            Some(fault) => {
                let what = format!("leads to an invalid key: {fault}");
                Err(Error::input(
                    "config-field",
                    config.path(),
                    what,
                    "correct the field that the key comes from",
                ))
            }
        }
    }

    /// Sets a key unless it is set.
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

    /// Writes the hyper-parameters of a decoder with RMS norms, up to `general.file_type`. The RoPE base
    /// and the number of KV heads are written even if config.json leaves them to the defaults.
    ///
    /// `head_dim` is the head size, if it is to be written.
    pub fn decoder(&mut self, config: &Config, head_dim: Option<u32>) -> Result<(), Error> {
        if config.find(RMS_EPSILON).is_none() {
            return Err(Error::input(
                "config-field-missing",
                config.path(),
                "has no field `rms_norm_eps` (epsilon of the norms)",
                "add the field or take the file from the model's repository",
            ));
        }
        let rope = Rope::of(config)?;
        let base = rope.base.unwrap_or(DEFAULT_BASE);
        self.common(config, Some(head_count_kv(config)?), &rope, Some(base), head_dim)
    }

    /// Writes the hyper-parameters that config.json states, with any kind of norm, up to `general.file_type`.
    pub fn stated(&mut self, config: &Config) -> Result<(), Error> {
        let rope = Rope::of(config)?;
        let head_count_kv = config.u32(HEAD_COUNT_KV)?;
        let head_dim = stated_head_dim(config)?;
        self.common(config, head_count_kv, &rope, rope.base, head_dim)
    }

    /// Writes the hyper-parameters of Llama and similar decoders: those of [`decoder`](Self::decoder), the
    /// vocabulary size and the number of rotary dimensions.
    pub fn llama_like(&mut self, config: &Config, head_dim: Option<u32>) -> Result<(), Error> {
        self.decoder(config, head_dim)?;
        self.vocab_size(config)?;
        self.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        Ok(())
    }

    /// Writes the vocabulary size.
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
        // A model in which all layers have experts may state no dense FFN size.
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

    /// Writes `general.file_type`.
    pub fn file_type(&mut self) {
        self.metadata.set("general.file_type", self.file_type);
    }

    /// Sets a key without the prefix of the architecture.
    pub fn set_unprefixed(&mut self, key: &'static str, value: impl Into<gguf::Value>) {
        self.metadata.set(key, value);
    }

    /// Writes RoPE scaling, and the RoPE base unless it is 10,000: for architectures for which
    /// llama.cpp's converter writes neither and runtimes use the default.
    pub fn rope_unless_default(&mut self, config: &Config) -> Result<(), Error> {
        let rope = Rope::of(config)?;
        self.rope(config, &rope)?;
        self.set_f32(key::ROPE_FREQ_BASE, rope.base.filter(|&base| base != DEFAULT_BASE));
        Ok(())
    }

    /// Writes that there is no RoPE scaling, unless there is: for architectures for which llama.cpp's
    /// converter writes this.
    pub fn rope_scaling_or_none(&mut self) {
        self.set_if_absent(key::ROPE_SCALING_TYPE, "none");
    }

    /// Writes RoPE scaling.
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
                // llama.cpp ignores the key of a stated factor, and multiplies the default by another key.
                let usual = rope.usual_yarn_attention_factor()?;
                let attention = match rope.stated_yarn_attention_factor()? {
                    Some(stated) if (stated / usual - 1.0).abs() > 1e-6 => {
                        self.set(key::ROPE_SCALING_ATTN_FACTOR, (stated / usual) as f32);
                        &[][..]
                    }
                    _ => &["attention_factor", "attn_factor"],
                };
                for (key, fields) in [
                    ("yarn_ext_factor", &["extrapolation_factor"][..]),
                    ("yarn_attn_factor", attention),
                    ("yarn_beta_fast", &["beta_fast"]),
                    ("yarn_beta_slow", &["beta_slow"]),
                ] {
                    let value = fields.iter().find_map(|field| rope.number(field).transpose());
                    self.set_f32(&format!("rope.scaling.{key}"), value.transpose()?);
                }
            }
            (Some("su" | "longrope"), _) => self.set(key::ROPE_SCALING_TYPE, "longrope"),
            // `llama3` and `proportional` become a tensor of factors per frequency. The others have no
            // key, and runtimes do not scale.
            (None | Some("default" | "mrope" | "llama3" | "proportional" | "dynamic"), _) => {}
            (Some(other), _) => {
                let what = format!("the RoPE scaling is `{other}`");
                let help = "this scaling cannot be converted; supported are linear, yarn, llama3 and longrope";
                return Err(Error::input("config-unsupported", config.path(), what, help));
            }
        }
        Ok(())
    }
}

/// Returns the value of `expert_gating_func`: the function that turns scores of the router into weights.
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
            let help = "this cannot be converted; supported are softmax, sigmoid and sqrtsoftplus";
            Err(Error::input("config-unsupported", config.path(), what, help))
        }
    }
}
