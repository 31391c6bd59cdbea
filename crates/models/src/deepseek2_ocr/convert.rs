//! Conversion of the language models of DeepSeek OCR and Unlimited OCR. A chat template that
//! inserts nothing is written before all other keys.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, export, hparams, moe};
use crate::schema::key;

const WINDOW: &[&str] = &["sliding_window_size", "sliding_window"];

pub(crate) struct Deepseek2Ocr;

/// Description of [`Deepseek2Ocr`].
pub(crate) static DEEPSEEK2_OCR: Description = Description {
    classes: &["DeepseekOCRForCausalLM", "UnlimitedOCRForCausalLM"],
    architecture: "deepseek2-ocr",
    model_type: "deepseek_vl_v2",
    pre_tokenizers: &["deepseek-v3", "deepseek-llm"],
    tensor_names: &[moe::BESIDE_SHARED, LLAMA_LIKE],
    config_fields: moe::ROUTED_FIELDS,
    ..Description::DECODER
};

impl Converter for Deepseek2Ocr {
    fn description(&self) -> &'static Description {
        &DEEPSEEK2_OCR
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        config.default("n_shared_experts", 0);
        Ok(())
    }

    fn leading_keys(&self, _: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.set_unprefixed(key::TOKENIZER_CHAT_TEMPLATE, CHAT_TEMPLATE);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let has_experts = config.u32(&["n_routed_experts"])?.is_some();
        let dense = match config.u32(&["first_k_dense_replace"])? {
            Some(dense) => dense,
            None if has_experts => 0,
            None => hparams::block_count(config)?,
        };
        keys.set(key::LEADING_DENSE_BLOCK_COUNT, dense);
        keys.vocab_size(config)?;
        keys.set_u32(key::ATTENTION_Q_LORA_RANK, config.u32(&["q_lora_rank"])?);
        let width = config.u32(&["moe_intermediate_size", "intermediate_size"])?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, width);
        keys.set_u32(key::EXPERT_SHARED_COUNT, config.u32(&["n_shared_experts"])?);
        keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["routed_scaling_factor"])?);
        if config.bool("norm_topk_prob")? == Some(true) {
            keys.set(key::EXPERT_WEIGHTS_NORM, true);
        }
        keys.set_u32(key::ROPE_DIMENSION_COUNT, config.u32(&["qk_rope_head_dim"])?);
        let window = config.u32(&WINDOW[..1])?.or(config.u32(&WINDOW[1..])?);
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, window.filter(|&len| len > 0));
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let tied = config.bool("tie_word_embeddings")?.unwrap_or(false);
        match tied && name == "lm_head.weight" {
            true => Ok(Some(Mapping::Dropped)),
            false => moe::routed(config, name, moe::ROUTER_BIAS),
        }
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let router = match export::count(model, key::EXPERT_GATING_FUNC) {
            Some(1) => Some("softmax"),
            Some(2) => Some("sigmoid"),
            _ => None,
        };
        Some(
            exported
                .patterns([moe::ROUTER_BIAS])
                .patterns(moe::one_by_one())
                .fields(&[
                    ("rope.dimension_count", "qk_rope_head_dim"),
                    ("expert_weights_norm", "norm_topk_prob"),
                ])
                .set_some("scoring_func", router)
                .set("use_mla", false),
        )
    }
}

/// Chat template that concatenates the contents of messages.
const CHAT_TEMPLATE: &str = "{% for m in messages %}{{m['content']}}{% endfor %}";
