//! Conversion of `BailingMoeForCausalLM`: the fused projection `query_key_value` is split into
//! query, key and value, and query and key rows are permuted to the interleaved RoPE layout.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{Converter, Description, Exported, MappedTensor, Mapping, hparams, moe};
use crate::schema::key;

pub(crate) const NAMES: Table = &[
    ("model.word_embeddings", "token_embd"),
    ("model.layers.{}.attention.dense", "blk.{}.attn_output"),
    ("model.layers.{}.attention.query_layernorm", "blk.{}.attn_q_norm"),
    ("model.layers.{}.attention.key_layernorm", "blk.{}.attn_k_norm"),
];

pub(crate) const CONFIG_FIELDS: &[(&str, &str)] = &[
    (key::LEADING_DENSE_BLOCK_COUNT, "first_k_dense_replace"),
    (key::EXPERT_SHARED_COUNT, "num_shared_experts"),
    (key::EXPERT_WEIGHTS_NORM, "norm_topk_prob"),
    (key::EXPERT_GROUP_COUNT, "n_group"),
    (key::EXPERT_GROUP_USED_COUNT, "topk_group"),
];

const QUERY_KEY_VALUE: &str = "model.layers.{}.attention.query_key_value.weight";

pub(crate) struct BailingMoe;

/// Description of [`BailingMoe`].
pub(crate) static BAILING_MOE: Description = Description {
    classes: &["BailingMoeForCausalLM"],
    architecture: "bailingmoe",
    model_type: "bailing_moe",
    pre_tokenizers: &["bailingmoe"],
    tensor_names: &[NAMES, moe::BESIDE_SHARED, LLAMA_LIKE],
    config_fields: CONFIG_FIELDS,
    required_flags: &[("norm_head", false), ("use_bias", false), ("use_qkv_bias", false)],
    ..Description::DECODER
};

impl Converter for BailingMoe {
    fn description(&self) -> &'static Description {
        &BAILING_MOE
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        keys.set_u32(key::LEADING_DENSE_BLOCK_COUNT, config.u32(&["first_k_dense_replace"])?);
        keys.vocab_size(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
        keys.set(key::EXPERT_WEIGHTS_SCALE, 1.0f32);
        keys.set_u32(key::EXPERT_SHARED_COUNT, config.u32(&["num_shared_experts"])?);
        keys.set(key::EXPERT_WEIGHTS_NORM, config.bool("norm_topk_prob")?.unwrap_or(false));
        Ok(())
    }

    // `query_key_value` holds all query rows, then all key rows, then all value rows.
    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let Some(&[block]) = captures(QUERY_KEY_VALUE, name).as_deref() else {
            return moe::mapping(config, name, || moe::width(config));
        };
        let (heads, heads_kv) = (hparams::head_count(config)?, hparams::head_count_kv(config)?);
        let head_dim = u64::from(hparams::head_dim(config)?);
        let (q_rows, kv_rows) = (u64::from(heads) * head_dim, u64::from(heads_kv) * head_dim);
        let slice = |part: &str, start, len, heads: Option<u32>| {
            let mut steps = vec![Step::Pick { groups: 1, start, len }];
            steps.extend(heads.map(|heads| Step::InterleaveHalves { heads: heads.into() }));
            MappedTensor { name: format!("blk.{block}.{part}.weight"), steps, slot: None }
        };
        Ok(Some(Mapping::Tensors(vec![
            slice("attn_q", 0, q_rows, Some(heads)),
            slice("attn_k", q_rows, kv_rows, Some(heads_kv)),
            slice("attn_v", q_rows + kv_rows, kv_rows, None),
        ])))
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.first([QUERY_KEY_VALUE]).patterns(moe::one_by_one()).set("norm_head", false))
    }
}
