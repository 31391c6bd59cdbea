//! DeepSeek OCR and Unlimited OCR: experts of DeepSeek 2, attention as in llama.

use gguf_store::Model;

use super::hyper::Keys;
use super::names::LLAMA_LIKE;
use super::{Exported, Family, Mapping, experts, hyper};

const WINDOW: &[&str] = &["sliding_window_size", "sliding_window"];

pub(super) static DEEPSEEK2_OCR: Family = Family {
    classes: &["DeepseekOCRForCausalLM", "UnlimitedOCRForCausalLM"],
    architecture: "deepseek2-ocr",
    model_type: "deepseek_vl_v2",
    pre_tokenizers: &["deepseek-v3", "deepseek-llm"],
    names: &[experts::BESIDE_SHARED, LLAMA_LIKE],
    fields: experts::ROUTED_FIELDS,
    complete: |config| {
        config.default("rms_norm_eps", 1e-6);
        config.default("n_shared_experts", 0);
        Ok(())
    },
    first_keys: |_, keys| {
        keys.before_vocabulary("tokenizer.chat_template", TEMPLATE);
        Ok(())
    },
    keys,
    special: |config, name| {
        let tied = config.bool("tie_word_embeddings")?.unwrap_or(false);
        match tied && name == "lm_head.weight" {
            true => Ok(Some(Mapping::Dropped)),
            false => experts::routed(config, name),
        }
    },
    export,
    ..Family::DEFAULT
};

/// The models are asked with nothing around the text.
const TEMPLATE: &str = "{% for m in messages %}{{m['content']}}{% endfor %}";

fn keys(config: &gguf_checkpoint::config::Config, keys: &mut Keys) -> Result<(), gguf::Error> {
    keys.stated(config)?;
    let has_experts = config.u32(&["n_routed_experts"])?.is_some();
    let dense = match config.u32(&["first_k_dense_replace"])? {
        Some(dense) => dense,
        None if has_experts => 0,
        None => hyper::block_count(config)?,
    };
    keys.set("leading_dense_block_count", dense);
    keys.vocab_size(config)?;
    keys.set_u32("attention.q_lora_rank", config.u32(&["q_lora_rank"])?);
    let width = config.u32(&["moe_intermediate_size", "intermediate_size"])?;
    keys.set_u32("expert_feed_forward_length", width);
    keys.set_u32("expert_shared_count", config.u32(&["n_shared_experts"])?);
    keys.set_f32("expert_weights_scale", config.f32(&["routed_scaling_factor"])?);
    if config.bool("norm_topk_prob")? == Some(true) {
        keys.set("expert_weights_norm", true);
    }
    keys.set_u32("rope.dimension_count", config.u32(&["qk_rope_head_dim"])?);
    let windows = config.u32(&WINDOW[..1])?.or(config.u32(&WINDOW[1..])?);
    keys.set_u32("attention.sliding_window", windows.filter(|&window| window > 0));
    Ok(())
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let function = match super::exported::count(model, "expert_gating_func") {
        Some(1) => Some("softmax"),
        Some(2) => Some("sigmoid"),
        _ => None,
    };
    Some(
        exported
            .patterns([experts::ROUTER_BIAS])
            .patterns(experts::one_by_one())
            .fields(&[
                ("rope.dimension_count", "qk_rope_head_dim"),
                ("expert_weights_norm", "norm_topk_prob"),
            ])
            .set_some("scoring_func", function)
            .set("use_mla", false),
    )
}
