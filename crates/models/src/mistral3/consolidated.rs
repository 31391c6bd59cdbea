//! Conversion of checkpoints in Mistral's and Meta's own layout: `params.json` and
//! `consolidated.*`. The rows of Q and K are in the interleaved RoPE layout already.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{Converter, Description, Mapping, VocabularyKind, hparams, moe};
use crate::deepseek2;
use crate::deepseek2::convert::DEEPSEEK2;
use crate::schema::key;

/// Tensor names of dense models.
const NAMES: Table = &[
    ("tok_embeddings", "token_embd"),
    ("model.norm", "output_norm"),
    ("output", "output"),
    ("model.layers.{}.attention_norm", "blk.{}.attn_norm"),
    ("model.layers.{}.attention.wq", "blk.{}.attn_q"),
    ("model.layers.{}.attention.wk", "blk.{}.attn_k"),
    ("model.layers.{}.attention.wv", "blk.{}.attn_v"),
    ("model.layers.{}.attention.wo", "blk.{}.attn_output"),
    ("model.layers.{}.ffn_norm", "blk.{}.ffn_norm"),
    ("model.layers.{}.feed_forward.w1", "blk.{}.ffn_gate"),
    ("model.layers.{}.feed_forward.w2", "blk.{}.ffn_down"),
    ("model.layers.{}.feed_forward.w3", "blk.{}.ffn_up"),
];

/// Prefixes of the vision encoder and projector.
const VISION_PREFIXES: [&str; 4] =
    ["vision_encoder.", "vision_language_adapter.", "patch_merger.", "pre_mm_projector_norm."];

/// Base of all converters of this layout.
pub struct Native;

/// Description of [`Native`].
pub(crate) static NATIVE: Description = Description {
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: &["tekken"],
    tensor_names: &[NAMES],
    ..Description::DECODER
};

impl Converter for Native {
    fn description(&self) -> &'static Description {
        &NATIVE
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let head_dim = hparams::head_dim(config)?;
        keys.decoder(config, Some(head_dim))?;
        keys.set(key::ROPE_DIMENSION_COUNT, head_dim);
        yarn_and_temperature_keys(config, keys)
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        name == "rope.freqs" || VISION_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// Dense models without an attention temperature.
pub struct Llama;

/// Description of [`Llama`].
pub(crate) static LLAMA: Description = Description { architecture: "llama", ..NATIVE };

impl Converter for Llama {
    fn description(&self) -> &'static Description {
        &LLAMA
    }

    fn base(&self) -> &'static dyn Converter {
        &Native
    }
}

/// Dense models with an attention temperature.
pub struct Mistral3;

/// Description of [`Mistral3`].
pub(crate) static MISTRAL3: Description = Description { architecture: "mistral3", ..NATIVE };

impl Converter for Mistral3 {
    fn description(&self) -> &'static Description {
        &MISTRAL3
    }

    fn base(&self) -> &'static dyn Converter {
        &Native
    }
}

/// Models with DeepSeek's MoE and MLA.
pub struct DeepseekMoe;

/// Description of [`DeepseekMoe`].
pub(crate) static DEEPSEEK_MOE: Description = Description {
    architecture: "deepseek2",
    tensor_names: &[NAMES, DEEPSEEK_NAMES],
    config_fields: DEEPSEEK2.config_fields,
    ..NATIVE
};

impl Converter for DeepseekMoe {
    fn description(&self) -> &'static Description {
        &DEEPSEEK_MOE
    }

    fn base(&self) -> &'static dyn Converter {
        &Native
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        let moe = config.part(MOE);
        let fields: Vec<_> = MOE_FIELDS
            .iter()
            .filter_map(|(field, hf_field)| Some((*hf_field, moe.find(&[field])?.1.clone())))
            .collect();
        fields.into_iter().for_each(|(field, value)| config.set(field, value));
        config.set("norm_topk_prob", true);
        config.set("scoring_func", "softmax");
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        deepseek2::convert::mla_keys(config, keys)?;
        yarn_and_temperature_keys(config, keys)?;
        if config.find(&[YARN]).is_some() {
            let original = config
                .part(YARN)
                .require_u32(&[ORIGINAL], "the original context length, in `yarn`")?;
            keys.set(key::ATTENTION_TEMPERATURE_LENGTH, original);
            // Runtimes multiply the key by 10 in this architecture.
            keys.set(key::ROPE_SCALING_YARN_LOG_MULTIPLIER, 0.1f32);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if let Some(&[block]) = captures(KV_B_PROJ, name).as_deref() {
            return deepseek2::convert::split_kv_b(config, block).map(Some);
        }
        moe::one_of(&EXPERTS, name, || hparams::expert_count(config))
    }
}

/// Projection that expands keys and values.
const KV_B_PROJ: &str = "model.layers.{}.attention.wkv_b.weight";

/// Matrices of an expert, and their stacked GGUF tensors.
const EXPERTS: [(&str, &str); 3] = [
    ("model.layers.{}.experts.{}.w1.weight", "ffn_gate_exps"),
    ("model.layers.{}.experts.{}.w2.weight", "ffn_down_exps"),
    ("model.layers.{}.experts.{}.w3.weight", "ffn_up_exps"),
];

/// Tensor names of MLA and MoE.
const DEEPSEEK_NAMES: Table = &[
    ("model.layers.{}.attention.wq_a", "blk.{}.attn_q_a"),
    ("model.layers.{}.attention.q_a_norm", "blk.{}.attn_q_a_norm"),
    ("model.layers.{}.attention.wq_b", "blk.{}.attn_q_b"),
    ("model.layers.{}.attention.wkv_a_with_mqa", "blk.{}.attn_kv_a_mqa"),
    ("model.layers.{}.attention.kv_a_norm", "blk.{}.attn_kv_a_norm"),
    ("model.layers.{}.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.shared_experts.w1", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.shared_experts.w2", "blk.{}.ffn_down_shexp"),
    ("model.layers.{}.shared_experts.w3", "blk.{}.ffn_up_shexp"),
];

/// Fields of the MoE configuration, and DeepSeek's fields in config.json.
const MOE_FIELDS: [(&str, &str); 8] = [
    ("first_k_dense_replace", "first_k_dense_replace"),
    ("num_experts_per_tok", "num_experts_per_tok"),
    ("num_experts", "n_routed_experts"),
    ("expert_hidden_dim", "moe_intermediate_size"),
    ("routed_scale", "routed_scaling_factor"),
    ("num_shared_experts", "n_shared_experts"),
    ("num_expert_groups", "n_group"),
    ("num_expert_groups_per_tok", "topk_group"),
];

/// Field with the MoE configuration.
const MOE: &str = "moe";

/// Returns the converter of a checkpoint in this layout; `None` if the configuration is not
/// `params.json`.
pub fn find(config: &Config) -> Result<Option<&'static dyn Converter>, Error> {
    if !config.is_params_json() {
        return Ok(None);
    }
    if config.bool("use_scaled_rope")? == Some(true) {
        let what = "has `use_scaled_rope`, but not the factors of the RoPE scaling";
        let help = "convert the model in the Hugging Face layout, which states them";
        return Err(Error::input("config-unsupported", config.path(), what, help));
    }
    let has = |field: &str| config.find(&[field]).is_some();
    Ok(Some(match (has(MOE), has(ATTENTION_TEMPERATURE)) {
        (true, _) => &DeepseekMoe,
        (false, true) => &Mistral3,
        (false, false) => &Llama,
    }))
}

/// Field with the configuration of the attention temperature.
const ATTENTION_TEMPERATURE: &str = "llama_4_scaling";

/// Field with the configuration of YaRN.
const YARN: &str = "yarn";

/// Field of YaRN with the original context length.
const ORIGINAL: &str = "original_max_position_embeddings";

/// Writes the keys of YaRN and of the attention temperature.
fn yarn_and_temperature_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    if config.find(&[YARN]).is_some() {
        let yarn = config.part(YARN);
        let number = |field| yarn.require_f32(&[field], "a parameter of YaRN, in `yarn`");
        let original = yarn.require_u32(&[ORIGINAL], "the original context length, in `yarn`")?;
        let applies = yarn.bool("apply_scale")?.unwrap_or(true);
        keys.set(key::ROPE_SCALING_TYPE, "yarn");
        keys.set(key::ROPE_SCALING_FACTOR, number("factor")?);
        keys.set(key::ROPE_SCALING_YARN_BETA_FAST, number("beta")?);
        keys.set(key::ROPE_SCALING_YARN_BETA_SLOW, number("alpha")?);
        keys.set(key::ROPE_SCALING_YARN_LOG_MULTIPLIER, if applies { 0.0f32 } else { 1.0 });
        keys.set(key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH, original);
    }
    if config.find(&[ATTENTION_TEMPERATURE]).is_some() {
        let beta = config.part(ATTENTION_TEMPERATURE).require_f32(
            &["beta"],
            "the scale of the attention temperature, in `llama_4_scaling`",
        )?;
        keys.set(key::ATTENTION_TEMPERATURE_SCALE, beta);
    }
    Ok(())
}
