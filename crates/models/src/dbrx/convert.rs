//! Conversion of `DbrxForCausalLM`. The matrices of all experts are stacked by rows; they are
//! reshaped to three dimensions, and `w2` is transposed. Attention and FFN sizes stand in
//! `attn_config` and `ffn_config`.

use gguf::{Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::json;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{Converter, Description, Exported, Mapping, export};
use crate::schema::key;

const NAMES: Table = &[
    ("transformer.wte", "token_embd"),
    ("lm_head", "output"),
    ("transformer.norm_f", "output_norm"),
    ("transformer.blocks.{}.norm_attn_norm.norm_1", "blk.{}.attn_norm"),
    ("transformer.blocks.{}.norm_attn_norm.attn.Wqkv", "blk.{}.attn_qkv"),
    ("transformer.blocks.{}.norm_attn_norm.attn.out_proj", "blk.{}.attn_output"),
    ("transformer.blocks.{}.norm_attn_norm.norm_2", "blk.{}.attn_output_norm"),
    ("transformer.blocks.{}.ffn.router.layer", "blk.{}.ffn_gate_inp"),
];

/// Matrices of all experts, stacked by rows: checkpoint name, GGUF name, whether it is stored
/// transposed.
const EXPERTS: [(&str, &str, bool); 3] = [
    ("transformer.blocks.{}.ffn.experts.mlp.w1", "ffn_gate_exps", false),
    ("transformer.blocks.{}.ffn.experts.mlp.w2", "ffn_down_exps", true),
    ("transformer.blocks.{}.ffn.experts.mlp.v1", "ffn_up_exps", false),
];

pub(crate) struct Dbrx;

/// Description of [`Dbrx`].
pub(crate) static DBRX: Description = Description {
    classes: &["DbrxForCausalLM"],
    architecture: "dbrx",
    model_type: "dbrx",
    pre_tokenizers: &["dbrx"],
    tensor_names: &[NAMES],
    config_fields: &[
        (key::BLOCK_COUNT, "n_layers"),
        (key::CONTEXT_LENGTH, "max_seq_len"),
        (key::EMBEDDING_LENGTH, "d_model"),
        (key::ATTENTION_HEAD_COUNT, "n_heads"),
    ],
    ..Description::DECODER
};

impl Converter for Dbrx {
    fn description(&self) -> &'static Description {
        &DBRX
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let [attention, ffn] = sub_configs(config);
        let number =
            |config: &Config, field: &str| config.require_u32(&[field], "a size of the model");
        keys.set(key::BLOCK_COUNT, number(config, "n_layers")?);
        keys.set(key::CONTEXT_LENGTH, number(config, "max_seq_len")?);
        keys.set(key::EMBEDDING_LENGTH, number(config, "d_model")?);
        keys.set(key::FEED_FORWARD_LENGTH, number(&ffn, "ffn_hidden_size")?);
        keys.set(key::ATTENTION_HEAD_COUNT, number(config, "n_heads")?);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, number(&attention, "kv_n_heads")?);
        keys.set_f32(key::ROPE_FREQ_BASE, attention.f32(&["rope_theta"])?);
        keys.set_f32(key::ATTENTION_CLAMP_KQV, attention.f32(&["clip_qkv"])?);
        keys.set(key::EXPERT_COUNT, number(&ffn, "moe_num_experts")?);
        keys.set(key::EXPERT_USED_COUNT, number(&ffn, "moe_top_k")?);
        // The epsilon is a constant of the class.
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, 1e-5f32);
        keys.file_type();
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let [_, ffn] = sub_configs(config);
        for (hf_name, gguf_name, is_transposed) in EXPERTS {
            let found = captures(hf_name, name);
            let Some(&[block]) = found.as_deref() else { continue };
            let number = |config: &Config, field: &str| {
                config.require_u32(&[field], "a size of the model").map(u64::from)
            };
            let columns = number(config, "d_model")?;
            let (rows, count) =
                (number(&ffn, "ffn_hidden_size")?, number(&ffn, "moe_num_experts")?);
            let shape = |dims: &[u64]| {
                Shape::new(dims).unwrap_or_else(|| unreachable!("three are no more than four"))
            };
            let from = shape(&[columns, rows.saturating_mul(count)]);
            let mut steps = vec![Step::Reshape { from, to: shape(&[columns, rows, count]) }];
            steps.extend(is_transposed.then_some(Step::Transpose));
            return Ok(Some(Mapping::one(format!("blk.{block}.{gguf_name}.weight"), steps)));
        }
        Ok(None)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let number = |key: &str| export::number(model, key).map(export::whole);
        let attention = json!({"kv_n_heads": number("attention.head_count_kv"),
        "rope_theta": number("rope.freq_base"), "clip_qkv": number("attention.clamp_kqv")});
        let ffn = json!({"ffn_hidden_size": number("feed_forward_length"),
        "moe_num_experts": number("expert_count"), "moe_top_k": number("expert_used_count")});
        let nested = [
            "attention.head_count_kv",
            "rope.freq_base",
            "feed_forward_length",
            "expert_count",
            "expert_used_count",
        ];
        let exported = exported
            .patterns(EXPERTS.map(|(name, _, _)| name))
            .without(&nested)
            .set("attn_config", attention)
            .set("ffn_config", ffn);
        Some(exported)
    }
}

/// Returns the configurations of attention and FFN, with the defaults of the class.
fn sub_configs(config: &Config) -> [Config; 2] {
    let mut sub_configs = [config.part("attn_config"), config.part("ffn_config")];
    let [attention, ffn] = &mut sub_configs;
    attention.default("kv_n_heads", 1);
    attention.default("rope_theta", 1e4);
    ffn.default("ffn_hidden_size", 3584);
    ffn.default("moe_num_experts", 4);
    ffn.default("moe_top_k", 1);
    sub_configs
}
