//! Hunyuan, dense, and what sees with it: norms of queries and keys, positions stretched by their base.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::{head_dim, number, shortest};
use crate::convert::hparams::{Keys, Rope};
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, hparams};
use crate::schema::key;

pub(crate) const NORMS: Table = &[
    ("model.layers.{}.self_attn.query_layernorm", "blk.{}.attn_q_norm"),
    ("model.layers.{}.self_attn.key_layernorm", "blk.{}.attn_k_norm"),
];

/// What the models are for, whatever their configuration says.
const CONTEXT: u32 = 1 << 18;

pub(crate) struct HunyuanDense;

/// Description of [`HunyuanDense`].
pub(crate) static HUNYUAN_DENSE: Description = Description {
    classes: &["HunYuanDenseV1ForCausalLM"],
    architecture: "hunyuan-dense",
    model_type: "hunyuan_v1_dense",
    vocabulary: VocabularyKind::Hunyuan,
    pre_tokenizers: &["hunyuan-dense"],
    tensor_names: &[NORMS, LLAMA_LIKE],
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
        hparams::default_attention(config)
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

pub(crate) fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let mut dense = config.clone();
    // Dense models state one expert.
    if config.u32(&["num_experts"])?.is_some_and(|count| count <= 1) {
        dense.set("num_experts", Value::Null);
    }
    keys.stated(&dense)?;
    stretched(config, keys, 50.0)
}

/// Positions are stretched by their base. `usual` is the factor where none is stated.
pub(crate) fn stretched(config: &Config, keys: &mut Keys, usual: f64) -> Result<(), Error> {
    let rope = Rope::of(config)?;
    if rope.is("dynamic") {
        let alpha = rope.f64("alpha")?.unwrap_or(usual);
        let base = f64::from(rope.base.unwrap_or(hparams::DEFAULT_BASE));
        let dims = f64::from(hparams::head_dim(config)?);
        keys.set(key::ROPE_FREQ_BASE, (base * alpha.powf(dims / (dims - 2.0))) as f32);
        keys.set(key::ROPE_SCALING_TYPE, "none");
        keys.set(key::ROPE_SCALING_FACTOR, 1.0f32);
        keys.set(key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH, CONTEXT);
        keys.set(key::CONTEXT_LENGTH, CONTEXT);
    }
    Ok(())
}

/// The factor of the base is what leads to the base that was stretched.
pub(crate) fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let exported = exported.set("use_qk_norm", true);
    if number(model, key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH).is_none() {
        return Some(exported);
    }
    let stretched = number(model, key::ROPE_FREQ_BASE)?;
    let dims = head_dim(model)? as f64;
    let power = dims / (dims - 2.0);
    let base = f64::from(hparams::DEFAULT_BASE);
    let leads_back = |alpha: f64| (base * alpha.powf(power)) as f32 == stretched as f32;
    let alpha = shortest((stretched / base).powf(1.0 / power), leads_back);
    let scaling = json!({"rope_type": "dynamic", "alpha": alpha, "factor": 1.0});
    Some(
        exported
            .without(&[key::ROPE_FREQ_BASE])
            .set("rope_theta", base)
            .set("rope_scaling", scaling),
    )
}
