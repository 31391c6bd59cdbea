//! Conversion of DeciLM and Nemotron models found by neural architecture search: `block_configs`
//! describes each layer, from which head counts and FFN sizes become arrays. `linear_attn` becomes
//! `attn_output` in layers without KV heads.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, VocabularyKind, export, hparams, rope,
    steps,
};
use crate::schema::{HyperParameters, key};

const LINEAR_ATTENTION: Table = &[("model.layers.{}.self_attn.linear_attn", "blk.{}.attn_output")];

const BLOCK_CONFIGS: &str = "block_configs";

const KV_HEADS_PER_LAYER: &str = "num_key_value_heads_per_layer";

pub(crate) struct Deci;

/// Description of [`Deci`].
pub(crate) static DECI: Description = Description {
    classes: &["DeciLMForCausalLM"],
    architecture: "deci",
    model_type: "nemotron-nas",
    vocabulary: VocabularyKind::LlamaHf,
    pre_tokenizers: &["llama-bpe"],
    tensor_names: &[LLAMA_LIKE, LINEAR_ATTENTION],
    ..Description::DECODER
};

impl Converter for Deci {
    fn description(&self) -> &'static Description {
        &DECI
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        match layers(config)? {
            None => {
                keys.stated(config)?;
                if let Some(heads) = kv_heads_per_layer(config) {
                    keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&heads[..]));
                }
            }
            Some(layers) => {
                let list = |of: fn(&Layer) -> u32| {
                    let numbers =
                        layers.iter().map(|layer| of(layer).try_into().unwrap_or(i32::MAX));
                    numbers.collect::<Vec<i32>>()
                };
                keys.set_f32(key::ROPE_FREQ_BASE, Rope::of(config)?.base);
                keys.set(
                    key::ATTENTION_HEAD_COUNT_KV,
                    Array::from(&list(|layer| layer.heads_kv)[..]),
                );
                keys.set(key::ATTENTION_HEAD_COUNT, Array::from(&list(|layer| layer.heads)[..]));
                keys.set(key::FEED_FORWARD_LENGTH, Array::from(&list(|layer| layer.ffn_size)[..]));
                keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
                keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
                keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
                let epsilon =
                    config.require_f32(&["rms_norm_eps"], "the epsilon of the RMS norms")?;
                keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon);
                let head_dim = hparams::width(config)? / hparams::head_count(config)?.max(1);
                keys.set(key::ATTENTION_KEY_LENGTH, head_dim);
                keys.set(key::ATTENTION_VALUE_LENGTH, head_dim);
                keys.file_type();
            }
        }
        keys.vocab_size(config)?;
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        Ok(())
    }

    // Layers without KV heads have `linear_attn` instead of `o_proj`.
    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let Some(&[layer]) = captures("model.layers.{}.self_attn.o_proj.weight", name).as_deref()
        else {
            return Ok(None);
        };
        let layers = layers(config)?;
        let layer = layers.as_ref().and_then(|layers| layers.get(layer as usize));
        Ok(layer.filter(|layer| layer.heads_kv == 0).map(|_| Mapping::Unknown))
    }

    // Rows are permuted to the interleaved RoPE layout by the KV heads of the layer.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let mut layer_config = config.clone();
        if let Some(&[layer]) = captures("blk.{}.attn_k.weight", name).as_deref() {
            let heads = match layers(config)? {
                Some(layers) => layers.get(layer as usize).map(|layer| layer.heads_kv),
                None => kv_heads_per_layer(config)
                    .and_then(|heads| heads.get(layer as usize).copied())
                    .and_then(|heads| u32::try_from(heads).ok()),
            };
            if let Some(heads) = heads {
                layer_config.set("num_key_value_heads", heads);
            }
        }
        steps::llama_order(&layer_config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let hyper = HyperParameters::from_metadata(model.metadata()).ok()?;
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let list = |key: &str| {
            (0..blocks)
                .map(|layer| hyper.u64_in_layer(key, layer).unwrap_or(0))
                .collect::<Vec<u64>>()
        };
        let heads_kv = list("attention.head_count_kv");
        if model.metadata().array("deci.attention.head_count").is_none() {
            return Some(
                exported.without(&[key::ATTENTION_HEAD_COUNT_KV]).set(KV_HEADS_PER_LAYER, heads_kv),
            );
        }
        let (all_heads, widths) = (list("attention.head_count"), list("feed_forward_length"));
        let heads = all_heads.iter().copied().max().filter(|&heads| heads > 0)?;
        let width = count(model, key::EMBEDDING_LENGTH)? as f64;
        let block_configs =
            all_heads.iter().zip(&heads_kv).zip(&widths).map(|((heads_of_layer, kv), ff)| {
                let group_size = (*kv > 0).then(|| heads / kv);
                let gives_ffn_size = |multiplier: f64| {
                    ((2.0 * multiplier * width / 3.0) as u64).next_multiple_of(FFN_MULTIPLE.into())
                        == *ff
                };
                let multiplier = export::shortest(*ff as f64 * 1.5 / width, gives_ffn_size);
                json!({
                    "attention": {"n_heads_in_group": group_size, "no_op": *heads_of_layer == 0,
                        "replace_with_linear": *heads_of_layer > 0 && *kv == 0},
                    "ffn": {"ffn_mult": if *ff > 0 { Value::from(multiplier) } else { Value::Null },
                        "no_op": *ff == 0, "replace_with_linear": false},
                })
            });
        Some(
            exported
                .without(&[
                    key::ATTENTION_HEAD_COUNT,
                    key::ATTENTION_HEAD_COUNT_KV,
                    key::FEED_FORWARD_LENGTH,
                    key::ATTENTION_KEY_LENGTH,
                ])
                .set("num_attention_heads", heads)
                .set(BLOCK_CONFIGS, block_configs.collect::<Vec<_>>()),
        )
    }
}

/// Query heads, KV heads and FFN size of a layer.
struct Layer {
    heads: u32,
    heads_kv: u32,
    ffn_size: u32,
}

/// Returns the layers of `block_configs`; `None` without this field.
fn layers(config: &Config) -> Result<Option<Vec<Layer>>, Error> {
    let Some((_, list)) = config.find(&[BLOCK_CONFIGS]) else { return Ok(None) };
    let heads = hparams::head_count(config)?;
    let width = f64::from(hparams::width(config)?);
    let layers = list.as_array().into_iter().flatten().map(|layer| {
        let attention = &layer["attention"];
        let group_size = attention["n_heads_in_group"].as_u64().and_then(|n| u32::try_from(n).ok());
        let (heads, heads_kv) = match group_size.filter(|&count| count > 0) {
            Some(count) => (heads, heads / count),
            None if attention["replace_with_linear"] == true => (heads, 0),
            None => (0, 0),
        };
        let multiplier = layer["ffn"]["ffn_mult"].as_f64().unwrap_or(0.0);
        let ffn_size = ((2.0 * multiplier * width / 3.0) as u32).next_multiple_of(FFN_MULTIPLE);
        Layer { heads, heads_kv, ffn_size }
    });
    Ok(Some(layers.collect()))
}

/// FFN sizes are rounded up to multiples of this number.
const FFN_MULTIPLE: u32 = 256;

/// Returns the KV heads per layer; `None` without the field.
fn kv_heads_per_layer(config: &Config) -> Option<Vec<i32>> {
    let heads = config.find(&[KV_HEADS_PER_LAYER])?.1.as_array()?;
    heads.iter().map(|heads| heads.as_i64()?.try_into().ok()).collect()
}
