//! Conversion of StableLM. The QK-norms of the 12B model, one tensor for each head in checkpoints,
//! are stacked.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::captures;
use crate::convert::{
    Converter, Description, ExpertSlot, Exported, Mapping, export, hparams, rope,
};
use crate::schema::key;

/// QK-norms, which only the 12B model has: checkpoint name for one head, GGUF name for all.
const HEAD_NORMS: [(&str, &str); 2] = [
    ("model.layers.{}.self_attn.q_layernorm.norms.{}.weight", "attn_q_norm"),
    ("model.layers.{}.self_attn.k_layernorm.norms.{}.weight", "attn_k_norm"),
];

/// Maximum number of heads for which an export lists names, more than any model has.
const MAX_HEADS: u64 = 1024;

/// Class in `transformers`.
const TRANSFORMERS_CLASS: &str = "StableLmForCausalLM";

pub(crate) struct Stablelm;

/// Description of [`Stablelm`].
pub(crate) static STABLELM: Description = Description {
    classes: &[TRANSFORMERS_CLASS, "StableLMEpochForCausalLM", "LlavaStableLMEpochForCausalLM"],
    architecture: "stablelm",
    model_type: "stablelm",
    pre_tokenizers: &["stablelm2", "gpt-2"],
    config_fields: &[
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_eps"),
        (key::USE_PARALLEL_RESIDUAL, "use_parallel_residual"),
    ],
    ..Description::DECODER
};

impl Converter for Stablelm {
    fn description(&self) -> &'static Description {
        &STABLELM
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let head_dim = hparams::width(config)? / hparams::head_count(config)?;
        // The default in `transformers` is a sequential residual, that of the authors' older class a parallel one.
        let default = config.class()? != TRANSFORMERS_CLASS;
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(key::ROPE_DIMENSION_COUNT, rope::rotated_dims(config, head_dim, 0.25)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, hparams::head_count_kv(config)?);
        let parallel = config.bool("use_parallel_residual")?.unwrap_or(default);
        keys.set(key::USE_PARALLEL_RESIDUAL, parallel);
        let epsilon = config.f32(&["layer_norm_eps", "norm_eps"])?.unwrap_or(1e-5);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, epsilon);
        keys.file_type();
        keys.rope_unless_default(config)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (checkpoint_name, gguf_name) in HEAD_NORMS {
            if let Some(&[block, index]) = captures(checkpoint_name, name).as_deref() {
                let count = match gguf_name {
                    "attn_q_norm" => hparams::head_count(config)?,
                    _ => hparams::head_count_kv(config)?,
                };
                let name = format!("blk.{block}.{gguf_name}.weight");
                return Ok(Some(Mapping::slot(name, ExpertSlot { index, count })));
            }
        }
        Ok(None)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let index = model.index();
        // The second number in a name is the head, not an expert.
        let head_norms = HEAD_NORMS.iter().flat_map(|(name, gguf_name)| {
            let norms = index.get(&*format!("blk.0.{gguf_name}.weight"));
            let heads = norms.and_then(|norms| norms.info.shape.last().copied()).unwrap_or(0);
            (0..heads.min(MAX_HEADS))
                .map(|head| name.replace(".norms.{}", &format!(".norms.{head}")))
        });
        let head_norms: Vec<String> = head_norms.collect();
        let exported = exported
            .first(head_norms.iter().map(String::as_str))
            .fields(&[
                ("attention.layer_norm_epsilon", "layer_norm_eps"),
                ("use_parallel_residual", "use_parallel_residual"),
            ])
            .set_some("partial_rotary_factor", export::rotated_share(model))
            .set("use_qkv_bias", export::has(model, "blk.0.attn_q.bias"))
            .set("qk_layernorm", index.contains_key("blk.0.attn_q_norm.weight"));
        Some(exported)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_head_norms_to_slots_of_one_tensor() {
        let config = Config::of(json!({"num_attention_heads": 32, "num_key_value_heads": 8}));
        let norm = "model.layers.3.self_attn.k_layernorm.norms.5.weight";
        let name = "blk.3.attn_k_norm.weight".to_owned();
        let mapping = Mapping::slot(name, ExpertSlot { index: 5, count: 8 });
        assert_eq!((&Stablelm as &dyn Converter).mapping(&config, norm).unwrap(), mapping);
    }
}
