//! Hyper-parameters that all decoder families write alike, in the official converter's order.

use gguf::Metadata;
use serde_json::Value;

use crate::Error;
use crate::config::Config;
use crate::step::Step;

/// The keys of one architecture.
pub(super) struct Keys<'m> {
    architecture: &'static str,
    metadata: &'m mut Metadata<'static>,
}

impl<'m> Keys<'m> {
    pub(super) fn new(architecture: &'static str, metadata: &'m mut Metadata<'static>) -> Self {
        Self { architecture, metadata }
    }

    /// Sets `<architecture>.<key>`.
    pub(super) fn set(&mut self, key: &str, value: impl Into<gguf::Value<'static>>) {
        self.metadata.set(format!("{}.{key}", self.architecture), value);
    }

    fn set_u32(&mut self, key: &str, value: Option<u32>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    fn set_f32(&mut self, key: &str, value: Option<f32>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Sets the number of the file's mix.
    pub(super) fn file_type(&mut self, number: u32) {
        self.metadata.set("general.file_type", number);
    }

    /// The base frequency of rotary embedding.
    pub(super) fn rope_base(&mut self, config: &Config) -> Result<(), Error> {
        self.set("rope.freq_base", Rope::of(config)?.base);
        Ok(())
    }

    /// The base frequency of rotary embedding, unless it is what programs take without a
    /// statement: for families whose files do not have the key otherwise.
    pub(super) fn unusual_rope_base(&mut self, config: &Config) -> Result<(), Error> {
        if Rope::of(config)?.base != USUAL_ROPE_BASE {
            self.rope_base(config)?;
        }
        Ok(())
    }

    /// The parameters of a decoder, up to and including the file type.
    ///
    /// `head_dim` is the width of a head where the family states it.
    pub(super) fn decoder(
        &mut self,
        config: &Config,
        head_dim: Option<u32>,
        file_type: u32,
    ) -> Result<(), Error> {
        let blocks = block_count(config)?;
        let context = context_length(config)?;
        let width = embedding_length(config)?;
        let feed_forward = config.require_u32(&["intermediate_size"], "the feed-forward width")?;
        let heads = head_count(config)?;
        self.set("block_count", blocks);
        self.set("context_length", context);
        self.set("embedding_length", width);
        self.set("feed_forward_length", feed_forward);
        self.set("attention.head_count", heads);
        self.set("attention.head_count_kv", head_count_kv(config)?);
        self.rope(config)?;
        match config.f32(&["norm_epsilon"])? {
            Some(epsilon) => self.set("attention.layer_norm_epsilon", epsilon),
            None => self.set(
                "attention.layer_norm_rms_epsilon",
                config.require_f32(&["rms_norm_eps"], EPSILON)?,
            ),
        }
        self.set_u32("expert_count", config.u32(&["num_local_experts", "num_experts"])?);
        self.set_u32("expert_used_count", config.u32(&["num_experts_per_tok"])?);
        self.set_u32("attention.key_length", head_dim);
        self.set_u32("attention.value_length", head_dim);
        self.file_type(file_type);
        Ok(())
    }

    /// Rotary embedding: scaling, then base frequency.
    fn rope(&mut self, config: &Config) -> Result<(), Error> {
        let rope = Rope::of(config)?;
        let factor = rope.number("factor")?;
        match (rope.kind.as_deref(), factor) {
            (Some("linear"), Some(factor)) => {
                self.set("rope.scaling.type", "linear");
                self.set("rope.scaling.factor", factor);
            }
            (Some("yarn"), Some(factor)) => {
                self.set("rope.scaling.type", "yarn");
                self.set("rope.scaling.factor", factor);
                let original = rope.require("original_max_position_embeddings")?;
                self.set("rope.scaling.original_context_length", original as u32);
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
            (Some("su" | "longrope"), _) => self.set("rope.scaling.type", "longrope"),
            // `llama3` is written as factors per frequency, see `llama3_factors`; the rest has no
            // key, and programs take the frequencies as they are.
            (None | Some("default" | "llama3" | "dynamic"), _) => {}
            (Some(other), _) => {
                let what = format!("the rotary embedding is scaled by `{other}`");
                let help =
                    "this scaling cannot be converted; known are linear, yarn, llama3, longrope";
                return Err(Error::input(config.path(), what, help));
            }
        }
        self.set("rope.freq_base", rope.base);
        Ok(())
    }
}

const BLOCK_COUNT: &[&str] = &["num_hidden_layers", "n_layers", "n_layer", "num_layers"];
const CONTEXT_LENGTH: &[&str] = &["max_position_embeddings", "n_ctx", "n_positions"];
const EMBEDDING_LENGTH: &[&str] = &["hidden_size", "n_embd", "n_embed", "dim"];
const EPSILON: &str = "what the norms add before they divide";

/// Blocks, or layers.
pub(super) fn block_count(config: &Config) -> Result<u32, Error> {
    config.require_u32(BLOCK_COUNT, "the number of blocks")
}

/// The longest context.
pub(super) fn context_length(config: &Config) -> Result<u32, Error> {
    config.require_u32(CONTEXT_LENGTH, "the longest context, in tokens")
}

/// The width of the model.
pub(super) fn embedding_length(config: &Config) -> Result<u32, Error> {
    config.require_u32(EMBEDDING_LENGTH, "the width of the model")
}

/// The width inside the feed-forward layer where it is four times the model's unless stated.
pub(super) fn inner_width(config: &Config, width: u32) -> Result<u32, Error> {
    Ok(config.u32(&["n_inner"])?.unwrap_or(width.saturating_mul(4)))
}

/// The epsilon of norms that take away the mean.
pub(super) fn layer_norm_epsilon(config: &Config) -> Result<f32, Error> {
    config.require_f32(&["layer_norm_epsilon", "layer_norm_eps"], EPSILON)
}

/// The share of a head that is rotated, if it is stated: by `rope_parameters` or by one of these
/// fields.
pub(super) fn rotary_share(config: &Config, names: &[&str]) -> Result<Option<f64>, Error> {
    let within = config.part("rope_parameters").f64(&["partial_rotary_factor"])?;
    within.map_or_else(|| config.f64(names), |share| Ok(Some(share)))
}

/// Queries, keys and values that are stored head by head, sorted by kind.
pub(super) fn sort_heads(config: &Config) -> Result<Step, Error> {
    let head_dim = u64::from(head_dim(config)?);
    Ok(Step::Regroup { groups: head_count(config)?.into(), kinds: [head_dim; 3] })
}

/// Fails if a field asks for what no program computes with this architecture.
pub(super) fn expect(config: &Config, field: &str, expected: bool) -> Result<(), Error> {
    match config.bool(field)? {
        Some(stated) if stated != expected => {
            let what = format!("`{field}` is {stated}, which no program computes");
            let help = "this model cannot be converted; correct the field if it is wrong";
            Err(Error::input(config.path(), what, help))
        }
        _ => Ok(()),
    }
}

/// Attention heads.
pub(super) fn head_count(config: &Config) -> Result<u32, Error> {
    config.require_u32(&["num_attention_heads", "n_head", "n_heads"], "the number of heads")
}

/// Key and value heads: as many as there are heads unless the configuration says otherwise.
pub(super) fn head_count_kv(config: &Config) -> Result<u32, Error> {
    match config.u32(&["num_key_value_heads", "n_kv_heads"])? {
        Some(0) | None => head_count(config),
        Some(count) => Ok(count),
    }
}

/// `head_dim` of the configuration.
pub(super) fn stated_head_dim(config: &Config) -> Result<Option<u32>, Error> {
    config.u32(&["head_dim"])
}

/// `head_dim`, or the width of the model divided among its heads.
pub(super) fn head_dim(config: &Config) -> Result<u32, Error> {
    if let Some(dim) = stated_head_dim(config)? {
        return Ok(dim);
    }
    Ok(embedding_length(config)? / head_count(config)?)
}

/// The base frequency where nothing is said, as in `transformers`.
const USUAL_ROPE_BASE: f32 = 10000.0;

/// The rotary embedding of a configuration, in its old form (`rope_theta`, `rope_scaling`) or its
/// new one (`rope_parameters`).
struct Rope<'c> {
    config: &'c Config,
    fields: Option<&'c Value>,
    /// `rope_type`, or its old name `type`.
    kind: Option<String>,
    /// The base frequency.
    base: f32,
}

impl<'c> Rope<'c> {
    fn of(config: &'c Config) -> Result<Self, Error> {
        let fields = config.find(&["rope_parameters", "rope_scaling"]).map(|(_, fields)| fields);
        let kind = fields.and_then(|f| f.get("rope_type").or_else(|| f.get("type")));
        let kind = kind.and_then(Value::as_str).map(str::to_lowercase);
        let mut rope = Self { config, fields, kind, base: USUAL_ROPE_BASE };
        let base = rope.number("rope_theta")?;
        rope.base = base.or(config.f32(&["rope_theta", "rotary_emb_base"])?).unwrap_or(rope.base);
        Ok(rope)
    }

    fn number(&self, field: &str) -> Result<Option<f32>, Error> {
        match self.fields.and_then(|fields| fields.get(field)) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_f64().map(|number| Some(number as f32)).ok_or_else(|| {
                let what = format!("`{field}` of the rotary embedding is {value}");
                Error::input(self.config.path(), what, "give a number")
            }),
        }
    }

    fn require(&self, field: &str) -> Result<f32, Error> {
        // Some configurations keep it at the top.
        let value = self.number(field)?.or(self.config.f32(&[field])?);
        value.ok_or_else(|| {
            let what = format!("the rotary embedding has no `{field}`");
            Error::input(self.config.path(), what, "add the field")
        })
    }
}

/// The factors by which `llama3` scaling divides each frequency, if the configuration asks for
/// it: 1 for short wavelengths, `factor` for long ones, smooth in between.
///
/// Formula: `_compute_llama3_parameters` in transformers' `modeling_rope_utils.py`.
pub(super) fn llama3_factors(config: &Config) -> Result<Option<Vec<f32>>, Error> {
    let rope = Rope::of(config)?;
    if rope.kind.as_deref() != Some("llama3") {
        return Ok(None);
    }
    let factor = rope.number("factor")?.unwrap_or(8.0);
    let low = rope.number("low_freq_factor")?.unwrap_or(1.0);
    let high = rope.number("high_freq_factor")?.unwrap_or(4.0);
    let original = rope.number("original_max_position_embeddings")?.unwrap_or(8192.0);
    let dim = head_dim(config)?;
    let factors = (0..dim).step_by(2).map(|i| {
        let frequency = 1.0 / rope.base.powf(i as f32 / dim as f32);
        let wavelength = 2.0 * std::f32::consts::PI / frequency;
        if wavelength < original / high {
            1.0
        } else if wavelength > original / low {
            factor
        } else {
            let smooth = (original / wavelength - low) / (high - low);
            1.0 / ((1.0 - smooth) / factor + smooth)
        }
    });
    Ok(Some(factors.collect()))
}
