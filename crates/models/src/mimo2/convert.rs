//! MiMo V2: layers with a window have more heads of keys, values are narrower than keys.

use std::borrow::Cow;

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Tensor;
use gguf_store::Model;

use crate::convert::export::{count, has, rotated_share};
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{Converter, Description, Exported, Mapping, hparams, moe, mtp};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"),
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.final_layernorm", "blk.{}.layer_output_norm"),
];

const SINKS: &str = "model.layers.{}.self_attn.attention_sink_bias";

/// Layers that guess further tokens, which stand behind the others in a GGUF.
const FURTHER: &str = "model.mtp.layers.";

const PATTERN: &str = "hybrid_layer_pattern";

/// Fields of layers with a window that must be as those of the others.
const ALIKE: [(&str, &str); 3] = [
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
        let number = |name: &str| name.strip_prefix(FURTHER)?.split('.').next()?.parse().ok();
        let last: Option<u32> = names.filter_map(|name| number(&name)).max();
        config.set(mtp::COUNT, last.map_or(0, |last| last.saturating_add(1)));
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        for (of_window, usual) in ALIKE {
            let widths = [of_window, usual].map(|field| config.u32(&[field]));
            let [stated, usual] = widths;
            let (stated, usual) = (stated?, usual?);
            if let Some(stated) = stated.filter(|stated| Some(*stated) != usual) {
                return Err(hparams::not_computed(config, of_window, stated));
            }
        }
        keys.stated(config)?;
        let further =
            hparams::possible(config, "further layers", config.u32(&[mtp::COUNT])?.unwrap_or(0))?;
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?.saturating_add(further));
        let mut windowed = pattern(config)?;
        windowed.resize(windowed.len() + further as usize, 1);
        let usual = hparams::head_count_kv(config)?;
        let of_window = config.u32(&["swa_num_key_value_heads"])?.unwrap_or(usual);
        let heads = windowed.iter().map(|is| if *is == 1 { of_window } else { usual });
        let heads: Vec<i32> = heads.map(|heads| heads.try_into().unwrap_or(i32::MAX)).collect();
        keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&heads[..]));
        let window = config.require_u32(&["sliding_window"], "the length of the window")?;
        keys.set(key::ATTENTION_SLIDING_WINDOW, window);
        keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&windowed[..]));
        let value = config.require_u32(&["v_head_dim"], "the width of a value")?;
        keys.set(key::ATTENTION_VALUE_LENGTH, value);
        keys.set(key::EXPERT_COUNT, hparams::expert_count(config)?);
        let width = config.require_u32(moe::WIDTH, "the width of an expert")?;
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, width);
        let rotated = hparams::rotated_dims(config, hparams::head_dim(config)?, 1.0)?;
        keys.set(key::ROPE_DIMENSION_COUNT, rotated);
        let epsilon = config.f32(&["layernorm_epsilon"])?.unwrap_or(1e-5);
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon);
        keys.set_f32(key::ATTENTION_VALUE_SCALE, config.f32(&["attention_value_scale"])?);
        keys.set_u32(key::NEXTN_PREDICT_LAYERS, Some(further).filter(|&further| further > 0));
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let moved = name.strip_prefix(FURTHER).and_then(|rest| {
            let (number, rest) = rest.split_once('.')?;
            let number: u32 = number.parse().ok()?;
            Some((number, rest))
        });
        if let Some((number, rest)) = moved {
            let block = hparams::block_count(config)?.saturating_add(number);
            return (&Mimo2 as &dyn Converter)
                .mapping(config, &format!("model.layers.{block}.{rest}"))
                .map(Some);
        }
        let sinks = name.strip_suffix(".weight").unwrap_or(name);
        if let Some(&[block]) = captures(SINKS, sinks).as_deref() {
            return Ok(Some(Mapping::one(format!("blk.{block}.attn_sinks.weight"), [])));
        }
        moe::routed(config, name)
    }

    fn order_tensors(&self, tensors: &mut [Tensor]) {
        moe::gates_first(tensors)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let further = count(model, key::NEXTN_PREDICT_LAYERS).unwrap_or(0);
        let blocks = count(model, key::BLOCK_COUNT)?.checked_sub(further)?;
        let metadata = model.metadata();
        let list = |key: &str| {
            let list = metadata.array(&format!("mimo2.attention.{key}"))?;
            Some(list.iter().map(|value| value.to_u64().unwrap_or(0)).collect::<Vec<_>>())
        };
        let windowed = list("sliding_window_pattern")?;
        let heads = list("head_count_kv")?;
        let of = |kind: u64| {
            windowed.iter().zip(&heads).find(|(is, _)| **is == kind).map(|(_, heads)| *heads)
        };
        // Those of further layers count before those of layers of such numbers, which there are not.
        let names: Vec<String> = exported
            .patterns
            .iter()
            .map(String::as_str)
            .chain([SINKS, moe::ROUTER_BIAS])
            .chain(moe::one_by_one())
            .filter_map(|name| name.strip_prefix("model.layers."))
            .map(|rest| format!("{FURTHER}{rest}"))
            .collect();
        let own = [
            ("swa_num_attention_heads", count(model, key::ATTENTION_HEAD_COUNT)),
            ("swa_head_dim", count(model, key::ATTENTION_KEY_LENGTH)),
            ("swa_v_head_dim", count(model, key::ATTENTION_VALUE_LENGTH)),
            ("swa_num_key_value_heads", of(1)),
            ("num_key_value_heads", of(0).or(of(1))),
        ];
        let exported = exported
            .first(names.iter().map(String::as_str))
            .patterns([SINKS, moe::ROUTER_BIAS])
            .patterns(moe::one_by_one())
            .without(&[key::BLOCK_COUNT, key::ATTENTION_HEAD_COUNT_KV])
            .set("num_hidden_layers", blocks)
            .set(PATTERN, windowed.get(..blocks as usize).unwrap_or_default())
            .set(mtp::COUNT, further)
            .set("topk_method", "noaux_tc")
            .set("add_swa_attention_sink_bias", has(model, "blk.1.attn_sinks.weight"))
            .set_some("partial_rotary_factor", rotated_share(model));
        let exported = match count(model, key::EXPERT_GATING_FUNC) {
            Some(2) => exported.set("scoring_func", "sigmoid"),
            _ => exported,
        };
        Some(
            own.into_iter()
                .fold(exported, |exported, (field, value)| exported.set_some(field, value)),
        )
    }
}

/// A 1 for each layer with a window, a 0 for the others.
fn pattern(config: &Config) -> Result<Vec<i32>, Error> {
    let listed = config.find(&[PATTERN]).and_then(|(_, list)| list.as_array());
    let listed = listed.ok_or_else(|| {
        let what = format!("has no list `{PATTERN}` (which layers have a window)");
        let help = "add the field or take the file from the model's repository";
        Error::input("config-field-missing", config.path(), what, help)
    })?;
    Ok(listed.iter().map(|is| i32::from(is.as_i64() == Some(1))).collect())
}
