//! Conversion of MiMo-V2: KV heads per layer, sliding-window flags per layer, and MTP layers that
//! are counted in the checkpoint and moved behind the trunk.

use std::borrow::Cow;

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Tensor;
use gguf_store::Model;

use crate::convert::export::{count, has, rotated_share};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{Converter, Description, Exported, Mapping, hparams, moe, mtp, rope};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"),
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.final_layernorm", "blk.{}.layer_output_norm"),
];

/// Attention sinks.
const SINKS: &str = "model.layers.{}.self_attn.attention_sink_bias";

/// Prefix of MTP layers, which follow the trunk in GGUF.
const MTP_PREFIX: &str = "model.mtp.layers.";

/// Field with a flag per layer, 1 for sliding-window attention.
const HYBRID_PATTERN: &str = "hybrid_layer_pattern";

/// Fields of sliding-window layers that must equal those of full-attention layers.
const EQUAL_FIELDS: [(&str, &str); 3] = [
    ("swa_head_dim", "head_dim"),
    ("swa_num_attention_heads", "num_attention_heads"),
    ("swa_v_head_dim", "v_head_dim"),
];

pub(crate) struct Mimo2;

/// Description of [`Mimo2`].
pub(crate) static MIMO2: Description = Description {
    classes: &["MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM"],
    architecture: "mimo2",
    model_type: "mimo_v2_flash",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[NAMES, mtp::NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_COUNT, "n_routed_experts"),
        (key::EXPERT_GROUP_COUNT, "n_group"),
        (key::EXPERT_GROUP_USED_COUNT, "topk_group"),
        (key::ATTENTION_VALUE_LENGTH, "v_head_dim"),
        (key::ATTENTION_VALUE_SCALE, "attention_value_scale"),
        (key::ATTENTION_LAYER_NORM_RMS_EPSILON, "layernorm_epsilon"),
        (key::ROPE_FREQ_BASE_SWA, "swa_rope_theta"),
    ],
    ..Description::DECODER
};

impl Converter for Mimo2 {
    fn description(&self) -> &'static Description {
        &MIMO2
    }

    fn infer_from_names(&self, config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>) {
        let layer = |name: &str| name.strip_prefix(MTP_PREFIX)?.split('.').next()?.parse().ok();
        let last: Option<u32> = names.filter_map(|name| layer(&name)).max();
        config.set(mtp::COUNT, last.map_or(0, |last| last.saturating_add(1)));
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        for (swa_field, full_field) in EQUAL_FIELDS {
            let full = config.u32(&[full_field])?;
            if let Some(swa) = config.u32(&[swa_field])?.filter(|swa| Some(*swa) != full) {
                return Err(hparams::not_computed(config, swa_field, swa));
            }
        }
        keys.stated(config)?;
        let mtp_layers =
            hparams::possible(config, "MTP layers", config.u32(&[mtp::COUNT])?.unwrap_or(0))?;
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?.saturating_add(mtp_layers));
        let mut is_swa = hybrid_pattern(config)?;
        is_swa.resize(is_swa.len() + mtp_layers as usize, 1);
        let full_heads = hparams::head_count_kv(config)?;
        let swa_heads = config.u32(&["swa_num_key_value_heads"])?.unwrap_or(full_heads);
        let heads = is_swa.iter().map(|flag| if *flag == 1 { swa_heads } else { full_heads });
        let heads: Vec<i32> = heads.map(|heads| heads.try_into().unwrap_or(i32::MAX)).collect();
        keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&heads[..]));
        let window = config.require_u32(&["sliding_window"], "the sliding window in tokens")?;
        keys.set(key::ATTENTION_SLIDING_WINDOW, window);
        keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&is_swa[..]));
        let value_length = config.require_u32(&["v_head_dim"], "the head size of values")?;
        keys.set(key::ATTENTION_VALUE_LENGTH, value_length);
        keys.set(key::EXPERT_COUNT, hparams::expert_count(config)?);
        let expert_length = moe::width(config)?;
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, expert_length);
        let rotary_dims = rope::rotated_dims(config, hparams::head_dim(config)?, 1.0)?;
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
        let epsilon = config.f32(&["layernorm_epsilon"])?.unwrap_or(1e-5);
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon);
        keys.set_f32(key::ATTENTION_VALUE_SCALE, config.f32(&["attention_value_scale"])?);
        keys.set_u32(key::NEXTN_PREDICT_LAYERS, Some(mtp_layers).filter(|&count| count > 0));
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let in_mtp_layer = name.strip_prefix(MTP_PREFIX).and_then(|rest| {
            let (layer, rest) = rest.split_once('.')?;
            let layer: u32 = layer.parse().ok()?;
            Some((layer, rest))
        });
        if let Some((layer, rest)) = in_mtp_layer {
            let block = hparams::block_count(config)?.saturating_add(layer);
            return (&Mimo2 as &dyn Converter)
                .mapping(config, &format!("model.layers.{block}.{rest}"))
                .map(Some);
        }
        let sinks = name.strip_suffix(".weight").unwrap_or(name);
        if let Some(&[block]) = captures(SINKS, sinks).as_deref() {
            return Ok(Some(Mapping::one(format!("blk.{block}.attn_sinks.weight"), [])));
        }
        moe::routed(config, name, moe::ROUTER_BIAS)
    }

    fn order_tensors(&self, tensors: &mut [Tensor]) {
        moe::gates_first(tensors)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let mtp_layers = count(model, key::NEXTN_PREDICT_LAYERS).unwrap_or(0);
        let blocks = count(model, key::BLOCK_COUNT)?.checked_sub(mtp_layers)?;
        let metadata = model.metadata();
        let list = |key: &str| {
            let list = metadata.array(&format!("mimo2.attention.{key}"))?;
            Some(list.iter().map(|value| value.to_u64().unwrap_or(0)).collect::<Vec<_>>())
        };
        let is_swa = list("sliding_window_pattern")?;
        let heads = list("head_count_kv")?;
        let heads_of_kind = |kind: u64| {
            is_swa.iter().zip(&heads).find(|(flag, _)| **flag == kind).map(|(_, heads)| *heads)
        };
        // Patterns of MTP layers come first: the trunk has no layers of their numbers.
        let names: Vec<String> = exported
            .patterns
            .iter()
            .map(String::as_str)
            .chain([SINKS, moe::ROUTER_BIAS])
            .chain(moe::one_by_one())
            .filter_map(|name| name.strip_prefix("model.layers."))
            .map(|rest| format!("{MTP_PREFIX}{rest}"))
            .collect();
        let fields = [
            ("swa_num_attention_heads", count(model, key::ATTENTION_HEAD_COUNT)),
            ("swa_head_dim", count(model, key::ATTENTION_KEY_LENGTH)),
            ("swa_v_head_dim", count(model, key::ATTENTION_VALUE_LENGTH)),
            ("swa_num_key_value_heads", heads_of_kind(1)),
            ("num_key_value_heads", heads_of_kind(0).or(heads_of_kind(1))),
        ];
        let exported = exported
            .first(names.iter().map(String::as_str))
            .patterns([SINKS, moe::ROUTER_BIAS])
            .patterns(moe::one_by_one())
            .without(&[key::BLOCK_COUNT, key::ATTENTION_HEAD_COUNT_KV])
            .set("num_hidden_layers", blocks)
            .set(HYBRID_PATTERN, is_swa.get(..blocks as usize).unwrap_or_default())
            .set(mtp::COUNT, mtp_layers)
            .set("topk_method", "noaux_tc")
            .set("add_swa_attention_sink_bias", has(model, "blk.1.attn_sinks.weight"))
            .set_some("partial_rotary_factor", rotated_share(model));
        let exported = match count(model, key::EXPERT_GATING_FUNC) {
            Some(2) => exported.set("scoring_func", "sigmoid"),
            _ => exported,
        };
        Some(
            fields
                .into_iter()
                .fold(exported, |exported, (field, value)| exported.set_some(field, value)),
        )
    }
}

/// Returns a flag per layer: 1 for sliding-window attention, 0 for full attention.
fn hybrid_pattern(config: &Config) -> Result<Vec<i32>, Error> {
    let listed = config.find(&[HYBRID_PATTERN]).and_then(|(_, list)| list.as_array());
    let listed = listed.ok_or_else(|| {
        let what = format!(
            "has no list `{HYBRID_PATTERN}` (a flag per layer for sliding-window attention)"
        );
        let help = "add the field or take the file from the model's repository";
        Error::input("config-field-missing", config.path(), what, help)
    })?;
    Ok(listed.iter().map(|flag| i32::from(flag.as_i64() == Some(1))).collect())
}
