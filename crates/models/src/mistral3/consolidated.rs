//! Mistral's and Meta's own form: `params.json` and `consolidated.*`, with rows of queries and keys in
//! the order of GGUF.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{Converter, Description, Mapping, VocabularyKind, hparams, moe};
use crate::deepseek2;
use crate::deepseek2::convert::DEEPSEEK2;
use crate::schema::key;

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

/// The parts of a model that sees.
const OTHER_PARTS: [&str; 4] =
    ["vision_encoder.", "vision_language_adapter.", "patch_merger.", "pre_mm_projector_norm."];

/// What both have in common.
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
        self::keys(config, keys)
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        name == "rope.freqs" || OTHER_PARTS.iter().any(|part| name.starts_with(part))
    }
}

/// All but the last generation.
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

/// Whose attention sharpens on long texts.
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

/// With experts and compressed attention, as DeepSeek has them.
pub struct ExpertsOfDeepseek;

/// Description of [`ExpertsOfDeepseek`].
pub(crate) static EXPERTS_OF_DEEPSEEK: Description = Description {
    architecture: "deepseek2",
    tensor_names: &[NAMES, OF_DEEPSEEK],
    config_fields: DEEPSEEK2.config_fields,
    ..NATIVE
};

impl Converter for ExpertsOfDeepseek {
    fn description(&self) -> &'static Description {
        &EXPERTS_OF_DEEPSEEK
    }

    fn base(&self) -> &'static dyn Converter {
        &Native
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        let experts = config.part(EXPERTS);
        let fields: Vec<_> = FIELDS_OF_EXPERTS
            .iter()
            .filter_map(|(theirs, gguf_name)| {
                Some((*gguf_name, experts.find(&[theirs])?.1.clone()))
            })
            .collect();
        fields.into_iter().for_each(|(field, value)| config.set(field, value));
        config.set("norm_topk_prob", true);
        config.set("scoring_func", "softmax");
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        deepseek2::convert::mla_keys(config, keys)?;
        stretched(config, keys)?;
        if config.find(&[YARN]).is_some() {
            let original = config.part(YARN).require_u32(&[ORIGINAL], "in `yarn`")?;
            keys.set(key::ATTENTION_TEMPERATURE_LENGTH, original);
            // A tenth of what the key says elsewhere: programs know this of the architecture.
            keys.set(key::ROPE_SCALING_YARN_LOG_MULTIPLIER, 0.1f32);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if let Some(&[block]) = captures(KV_B_PROJ, name).as_deref() {
            return deepseek2::convert::split_kv_b(config, block).map(Some);
        }
        moe::one_of(&ONE_BY_ONE, name, || hparams::expert_count(config))
    }
}

const KV_B_PROJ: &str = "model.layers.{}.attention.wkv_b.weight";

const ONE_BY_ONE: [(&str, &str); 3] = [
    ("model.layers.{}.experts.{}.w1.weight", "ffn_gate_exps"),
    ("model.layers.{}.experts.{}.w2.weight", "ffn_down_exps"),
    ("model.layers.{}.experts.{}.w3.weight", "ffn_up_exps"),
];

const OF_DEEPSEEK: Table = &[
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

/// What is said of experts, and the fields of DeepSeek that say it.
const FIELDS_OF_EXPERTS: [(&str, &str); 8] = [
    ("first_k_dense_replace", "first_k_dense_replace"),
    ("num_experts_per_tok", "num_experts_per_tok"),
    ("num_experts", "n_routed_experts"),
    ("expert_hidden_dim", "moe_intermediate_size"),
    ("routed_scale", "routed_scaling_factor"),
    ("num_shared_experts", "n_shared_experts"),
    ("num_expert_groups", "n_group"),
    ("num_expert_groups_per_tok", "topk_group"),
];

const EXPERTS: &str = "moe";

/// The family of a model in this form; none if its configuration is another.
pub fn find(config: &Config) -> Result<Option<&'static dyn Converter>, Error> {
    if !config.is_params_json() {
        return Ok(None);
    }
    if config.bool("use_scaled_rope")? == Some(true) {
        let what = "has `use_scaled_rope`, and does not say by how much positions are stretched";
        let help = "convert the model's form of Hugging Face, which says it";
        return Err(Error::input("config-unsupported", config.path(), what, help));
    }
    let has = |field: &str| config.find(&[field]).is_some();
    Ok(Some(match (has(EXPERTS), has(SHARPENING)) {
        (true, _) => &ExpertsOfDeepseek,
        (false, true) => &Mistral3,
        (false, false) => &Llama,
    }))
}

const SHARPENING: &str = "llama_4_scaling";

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let head_dim = hparams::head_dim(config)?;
    keys.decoder(config, Some(head_dim))?;
    keys.set(key::ROPE_DIMENSION_COUNT, head_dim);
    stretched(config, keys)
}

const YARN: &str = "yarn";

const ORIGINAL: &str = "original_max_position_embeddings";

/// How positions are stretched, and attention sharpened.
fn stretched(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    if config.find(&[YARN]).is_some() {
        let yarn = config.part(YARN);
        let number = |field| yarn.require_f32(&[field], "how positions are stretched (`yarn`)");
        let original = yarn.require_u32(&[ORIGINAL], "in `yarn`")?;
        let applies = yarn.bool("apply_scale")?.unwrap_or(true);
        keys.set(key::ROPE_SCALING_TYPE, "yarn");
        keys.set(key::ROPE_SCALING_FACTOR, number("factor")?);
        keys.set(key::ROPE_SCALING_YARN_BETA_FAST, number("beta")?);
        keys.set(key::ROPE_SCALING_YARN_BETA_SLOW, number("alpha")?);
        keys.set(key::ROPE_SCALING_YARN_LOG_MULTIPLIER, if applies { 0.0f32 } else { 1.0 });
        keys.set(key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH, original);
    }
    if config.find(&[SHARPENING]).is_some() {
        let beta = config.part(SHARPENING).require_f32(&["beta"], "in `llama_4_scaling`")?;
        keys.set(key::ATTENTION_TEMPERATURE_SCALE, beta);
    }
    Ok(())
}
