//! Conversion of dense Hunyuan models: NTK-aware RoPE scaling (`dynamic` with `alpha`) becomes a
//! larger base frequency, as in llama.cpp.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::{head_dim, number, shortest};
use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, defaults, hparams, rope,
};
use crate::schema::key;

/// Norms of queries and keys.
pub(crate) const QK_NORMS: Table = &[
    ("model.layers.{}.self_attn.query_layernorm", "blk.{}.attn_q_norm"),
    ("model.layers.{}.self_attn.key_layernorm", "blk.{}.attn_k_norm"),
];

/// Context length with NTK-aware scaling, whatever config.json states.
const CONTEXT: u32 = 1 << 18;

pub(crate) struct HunyuanDense;

/// Description of [`HunyuanDense`].
pub(crate) static HUNYUAN_DENSE: Description = Description {
    classes: &["HunYuanDenseV1ForCausalLM"],
    architecture: "hunyuan-dense",
    model_type: "hunyuan_v1_dense",
    vocabulary: VocabularyKind::Hunyuan,
    pre_tokenizers: &["hunyuan-dense"],
    tensor_names: &[QK_NORMS, LLAMA_LIKE],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for HunyuanDense {
    fn description(&self) -> &'static Description {
        &HUNYUAN_DENSE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let tied = config.bool("tie_word_embeddings")?.unwrap_or(false);
        Ok((tied && name == "lm_head.weight").then_some(Mapping::Dropped))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export(model, exported)
    }
}

/// Writes the keys of dense Hunyuan models.
pub(crate) fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let mut dense = config.clone();
    // Dense models state one expert.
    if config.u32(&["num_experts"])?.is_some_and(|count| count <= 1) {
        dense.set("num_experts", Value::Null);
    }
    keys.stated(&dense)?;
    ntk_keys(config, keys, 50.0)
}

/// Writes the base frequency of NTK-aware scaling, `base * alpha^(d/(d-2))`.
pub(crate) fn ntk_keys(config: &Config, keys: &mut Keys, default_alpha: f64) -> Result<(), Error> {
    let rope = Rope::of(config)?;
    if rope.is("dynamic") {
        let alpha = rope.f64("alpha")?.unwrap_or(default_alpha);
        let base = f64::from(rope.base.unwrap_or(rope::DEFAULT_BASE));
        let dims = f64::from(hparams::head_dim(config)?);
        keys.set(key::ROPE_FREQ_BASE, (base * alpha.powf(dims / (dims - 2.0))) as f32);
        keys.set(key::ROPE_SCALING_TYPE, "none");
        keys.set(key::ROPE_SCALING_FACTOR, 1.0f32);
        keys.set(key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH, CONTEXT);
        keys.set(key::CONTEXT_LENGTH, CONTEXT);
    }
    Ok(())
}

/// Completes an export: finds `alpha` by the scaled base frequency.
pub(crate) fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let exported = exported.set("use_qk_norm", true);
    if number(model, key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH).is_none() {
        return Some(exported);
    }
    let scaled = number(model, key::ROPE_FREQ_BASE)?;
    let dims = head_dim(model)? as f64;
    let exponent = dims / (dims - 2.0);
    let base = f64::from(rope::DEFAULT_BASE);
    let round_trips = |alpha: f64| (base * alpha.powf(exponent)) as f32 == scaled as f32;
    let alpha = shortest((scaled / base).powf(1.0 / exponent), round_trips);
    let scaling = json!({"rope_type": "dynamic", "alpha": alpha, "factor": 1.0});
    Some(
        exported
            .without(&[key::ROPE_FREQ_BASE])
            .set("rope_theta", base)
            .set("rope_scaling", scaling),
    )
}
