//! Conversion of OpenELM. Head counts and FFN widths of each layer become arrays; the width is
//! computed from the multipliers of config.json.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::keys::Keys;
use crate::convert::moe::halves;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind};
use crate::schema::key;

const NAMES: Table = &[
    ("transformer.token_embeddings", "token_embd"),
    ("transformer.norm", "output_norm"),
    ("transformer.layers.{}.attn_norm", "blk.{}.attn_norm"),
    ("transformer.layers.{}.attn.qkv_proj", "blk.{}.attn_qkv"),
    ("transformer.layers.{}.attn.q_norm", "blk.{}.attn_q_norm"),
    ("transformer.layers.{}.attn.k_norm", "blk.{}.attn_k_norm"),
    ("transformer.layers.{}.attn.out_proj", "blk.{}.attn_output"),
    ("transformer.layers.{}.ffn_norm", "blk.{}.ffn_norm"),
    ("transformer.layers.{}.ffn.proj_2", "blk.{}.ffn_down"),
];

const GATE_AND_UP: &str = "transformer.layers.{}.ffn.proj_1.weight";

const DIVISOR: &str = "ffn_dim_divisor";

pub(crate) struct Openelm;

/// Description of [`Openelm`].
pub(crate) static OPENELM: Description = Description {
    classes: &["OpenELMForCausalLM"],
    architecture: "openelm",
    model_type: "openelm",
    vocabulary: VocabularyKind::SentencePiece,
    tensor_names: &[NAMES],
    config_fields: &[
        (key::BLOCK_COUNT, "num_transformer_layers"),
        (key::CONTEXT_LENGTH, "max_context_length"),
        (key::EMBEDDING_LENGTH, "model_dim"),
        (key::ROPE_FREQ_BASE, "rope_freq_constant"),
    ],
    required_flags: &[("share_input_output_layers", true), ("normalize_qk_projections", true)],
    ..Description::DECODER
};

impl Converter for Openelm {
    fn description(&self) -> &'static Description {
        &OPENELM
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let number = |field: &str, meaning: &str| config.require_u32(&[field], meaning);
        let head_dim = number("head_dim", "the head dimension")?;
        keys.set(key::BLOCK_COUNT, number("num_transformer_layers", "the number of layers")?);
        keys.set(key::CONTEXT_LENGTH, number("max_context_length", "the context length")?);
        keys.set(key::EMBEDDING_LENGTH, number("model_dim", "the embedding length")?);
        keys.set(key::FEED_FORWARD_LENGTH, Array::from(&ffn_widths(config)?[..]));
        keys.set(
            key::ATTENTION_HEAD_COUNT,
            Array::from(&head_counts(config, "num_query_heads")?[..]),
        );
        keys.set(
            key::ATTENTION_HEAD_COUNT_KV,
            Array::from(&head_counts(config, "num_kv_heads")?[..]),
        );
        keys.set_f32(key::ROPE_FREQ_BASE, config.f32(&["rope_freq_constant"])?);
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, 1e-6f32);
        keys.set(key::ROPE_DIMENSION_COUNT, head_dim);
        keys.set(key::ATTENTION_KEY_LENGTH, head_dim);
        keys.set(key::ATTENTION_VALUE_LENGTH, head_dim);
        keys.file_type();
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let found = captures(GATE_AND_UP, name);
        let Some(&[block]) = found.as_deref() else { return Ok(None) };
        let names = ["gate", "up"].map(|part| format!("blk.{block}.ffn_{part}"));
        let width = ffn_widths(config)?.get(block as usize).copied().unwrap_or(0);
        Ok(Some(halves(names, 1, width.unsigned_abs())))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let metadata = model.metadata();
        let width = metadata.u64("openelm.embedding_length").filter(|&width| width > 0)? as f64;
        let array = |key: &str| {
            let array = metadata.array(&format!("openelm.{key}"))?;
            Some(array.iter().filter_map(|value| value.to_u64()).collect::<Vec<_>>())
        };
        // With a divisor of 1 the multipliers give the widths without rounding.
        let widths = array("feed_forward_length")?;
        let multipliers: Vec<f64> =
            widths.into_iter().map(|ffn_width| ffn_width as f64 / width).collect();
        let exported = exported
            .patterns([GATE_AND_UP])
            .without(&[
                key::FEED_FORWARD_LENGTH,
                key::ATTENTION_HEAD_COUNT,
                key::ATTENTION_HEAD_COUNT_KV,
                key::ATTENTION_LAYER_NORM_RMS_EPSILON,
            ])
            .set("num_query_heads", array("attention.head_count")?)
            .set("num_kv_heads", array("attention.head_count_kv")?)
            .set("ffn_multipliers", multipliers)
            .set(DIVISOR, 1)
            .set("share_input_output_layers", true)
            .set("normalize_qk_projections", true);
        Some(exported)
    }
}

/// Returns a list of config.json that has one number for each layer.
fn layer_list<'c>(config: &'c Config, field: &str) -> Result<&'c [Value], Error> {
    let values = config.find(&[field]).and_then(|(_, value)| value.as_array());
    values.map(Vec::as_slice).ok_or_else(|| {
        let what = format!("has no list `{field}` (one number for each layer)");
        let help = "take the file from the model's repository";
        Error::input("config-field-missing", config.path(), what, help)
    })
}

/// Returns the head counts of all layers.
fn head_counts(config: &Config, field: &str) -> Result<Vec<i32>, Error> {
    let number = |value: &Value| value.as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
    Ok(layer_list(config, field)?.iter().map(number).collect())
}

/// Returns the FFN widths of all layers: the multiplier of the layer times the embedding length, rounded to a
/// multiple of the divisor, but not down by more than 10 %.
fn ffn_widths(config: &Config) -> Result<Vec<i32>, Error> {
    let width = f64::from(config.require_u32(&["model_dim"], "the embedding length")?);
    let divisor = config.u32(&[DIVISOR])?.unwrap_or(256).max(1);
    let ffn_width = |multiplier: &Value| {
        let exact = multiplier.as_f64().unwrap_or(0.0) * width;
        let nearest = (exact + f64::from(divisor) / 2.0) as u32 / divisor * divisor;
        let nearest = nearest.max(divisor);
        let up = if f64::from(nearest) < 0.9 * exact { divisor } else { 0 };
        i32::try_from(nearest.saturating_add(up)).unwrap_or(i32::MAX)
    };
    Ok(layer_list(config, "ffn_multipliers")?.iter().map(ffn_width).collect())
}
