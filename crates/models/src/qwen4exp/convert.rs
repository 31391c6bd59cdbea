//! Conversion of Qwen 3.8 Flash: as Qwen3.5 with MoE layers, and hyper-connections, an indexer and
//! n-gram embeddings. The parameters of the n-gram hash are tensors in checkpoints and keys in
//! GGUF; the parts of the n-gram table are stacked.

use std::borrow::Cow;

use gguf::{Array, Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, renamed};
use crate::convert::{
    Converter, Description, ExpertSlot, Exported, MappedTensor, Mapping, Values, assembly, draft,
    hparams, steps,
};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::qwen3next;
use crate::qwen35moe::convert::{QWEN35MOE, Qwen35moe};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.attn_hyper_connection.hc_norm", "blk.{}.hc_attn_norm"),
    ("model.layers.{}.attn_hyper_connection.input_mix_weight_down", "blk.{}.hc_attn_down"),
    ("model.layers.{}.attn_hyper_connection.input_mix_weight_up", "blk.{}.hc_attn_up"),
    ("model.layers.{}.attn_hyper_connection.block_inject_weight", "blk.{}.hc_attn_inject"),
    ("model.layers.{}.mlp_hyper_connection.hc_norm", "blk.{}.hc_ffn_norm"),
    ("model.layers.{}.mlp_hyper_connection.input_mix_weight_down", "blk.{}.hc_ffn_down"),
    ("model.layers.{}.mlp_hyper_connection.input_mix_weight_up", "blk.{}.hc_ffn_up"),
    ("model.layers.{}.mlp_hyper_connection.block_inject_weight", "blk.{}.hc_ffn_inject"),
    ("model.hyper_connection_mixer.hc_norm", "output_hc_norm"),
    ("model.hyper_connection_mixer.input_mix_weight_down", "output_hc_down"),
    ("model.hyper_connection_mixer.input_mix_weight_up", "output_hc_up"),
    ("model.layers.{}.self_attn.indexer.q_layernorm", "blk.{}.indexer.q_norm"),
    ("model.layers.{}.self_attn.indexer.k_layernorm", "blk.{}.indexer.k_norm"),
    ("model.layers.{}.ple.key_proj", "blk.{}.ple_key"),
    ("model.layers.{}.ple.value_proj", "blk.{}.ple_value"),
    ("model.layers.{}.ple.norm_key", "blk.{}.ple_norm_key"),
    ("model.layers.{}.ple.norm_query", "blk.{}.ple_norm_query"),
    ("model.layers.{}.ple.norm_conv", "blk.{}.ple_norm_conv"),
    ("model.layers.{}.ple.conv1d", "blk.{}.ple_conv1d"),
];

/// Fused projection of the indexer: queries, then keys.
const INDEXER: &str = "model.layers.{}.self_attn.indexer.index_qk_proj.weight";

/// Start of the names of n-gram tensors after the layer number.
const NGRAMS: &str = "ple.ple_embedding";

/// Start of the number of a part of the n-gram table.
const SHARD: &str = ".ngram_embedding.shard_";

/// The n-gram table in GGUF.
const EMBEDDING: &str = "per_layer_token_embd.weight";

const PARTS: &str = "split_ngram_parts";

/// Parameters of the n-gram hash: metadata keys, and ends of tensor names, which are also the names of the fields
/// that [`infer_from_values`](Converter::infer_from_values) sets.
const HASH: [(&str, &str); 3] = [
    ("ple.layer_multipliers", "layer_multipliers"),
    ("ple.head_offsets", "ngram_heads_offsets"),
    ("ple.head_vocab_sizes", "ngram_heads_vocab_sizes"),
];

/// Field with the row length of the n-gram table, set from its shape.
const ROW_LENGTH: &str = "ngram_row_length";

const STREAMS: &str = "hc_count";

const LAYER_TYPES: &str = "layer_types";

const LINEAR: &str = "linear_attention";

/// Field with the layers that have n-gram embeddings, counted from 1.
const NGRAM_LAYERS: &str = "ple_layer_ids";

const OUTPUT_GATE: &str = "output_gate_type";

const COMPRESS_RATIO: &str = "indexer_compress_ratio";

const EOS_TOKEN: &str = "eos_token_id";

const IMAGE_TOKEN: &str = "image_token_id";

const FIELDS: &[(&str, &str)] = &[
    (key::HYPER_CONNECTION_COUNT, STREAMS),
    (key::HYPER_CONNECTION_LOW_RANK, "hc_lowrank"),
    (key::ATTENTION_INDEXER_HEAD_COUNT, "indexer_n_heads"),
    (key::ATTENTION_INDEXER_KEY_LENGTH, "indexer_head_dim"),
    (key::ATTENTION_INDEXER_TOP_K, "indexer_budget"),
    (key::PLE_NGRAM_SIZE, "ngram_size"),
    (key::PLE_HEADS_PER_NGRAM, "heads_per_ngram"),
    (key::PLE_CONV_KERNEL, "ple_conv_kernel_size"),
    (key::PLE_IMAGE_TOKEN_ID, IMAGE_TOKEN),
];

pub(crate) struct Qwen4Exp;

/// Description of [`Qwen4Exp`].
pub(crate) static QWEN4_EXP: Description = Description {
    classes: &["Qwen4ExpForCausalLM", "Qwen4ExpForConditionalGeneration"],
    architecture: "qwen4exp",
    model_type: "qwen4_exp_text",
    tensor_names: &[NAMES, qwen3next::convert::NAMES, EXPERT_NAMES, LLAMA_LIKE],
    ..QWEN35MOE
};

impl Converter for Qwen4Exp {
    fn description(&self) -> &'static Description {
        &QWEN4_EXP
    }

    fn base(&self) -> &'static dyn Converter {
        &Qwen35moe
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        Qwen35moe.complete_config(config)?;
        config.default(STREAMS, 4);
        config.default("hc_lowrank", 320);
        config.default(NGRAM_LAYERS, Vec::<u32>::new());
        config.default("ple_conv_kernel_size", 4);
        config.default("ngram_size", 3);
        config.default("heads_per_ngram", 8);
        config.default(PARTS, 512);
        if config.find(&[LAYER_TYPES]).is_none() {
            let interval = config.u32(&["full_attention_interval"])?.unwrap_or(4).max(1);
            let kind = |layer: u32| {
                if (layer + 1).is_multiple_of(interval) { "full_attention" } else { LINEAR }
            };
            let kinds: Vec<_> = (0..hparams::block_count(config)?).map(kind).collect();
            config.set(LAYER_TYPES, kinds);
        }
        if let Some(streams) = config.u32(&[STREAMS])?.filter(|&streams| streams < 2) {
            return Err(hparams::not_computed(config, STREAMS, streams));
        }
        // Runtimes compute linear attention with a sigmoid output gate only.
        let gate = config
            .find(&[OUTPUT_GATE, "hidden_act"])
            .map_or("silu".into(), |(_, gate)| gate.clone());
        match gate == "sigmoid" {
            true => Ok(()),
            false => Err(hparams::not_computed(config, OUTPUT_GATE, gate)),
        }
    }

    // MTP layers are left out, so that they are not counted.
    fn infer_from_names(&self, _: &mut Config, _: &mut dyn Iterator<Item = Cow<'_, str>>) {}

    // Reads the parameters of the n-gram hash.
    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        if ngram_layer(config)?.is_none() {
            return Ok(());
        }
        for ((_, field), expected) in HASH.into_iter().zip(hash_lengths(config)?) {
            let name = format!("ple_embedding.{field}");
            let found = values.names().find(|found| found.ends_with(&name));
            let numbers = match &found {
                Some(found) => values.whole(found)?,
                None => None,
            };
            let numbers =
                numbers.ok_or_else(|| values.missing(&name, "a parameter of the n-gram hash"))?;
            if numbers.len() as u64 != expected || numbers.iter().any(|number| *number < 0) {
                let what = format!(
                    "does not match the tensor `{name}`: it has {} numbers; expected {expected} that are not negative",
                    numbers.len()
                );
                let help = "download the configuration and the weights from the same repository";
                return Err(Error::input("checkpoint-misfit", config.path(), what, help));
            }
            config.set(field, numbers);
        }
        let shard = values.names().find(|name| name.contains(SHARD));
        let shard = shard.ok_or_else(|| values.missing(SHARD, "the n-gram table"))?;
        config.set(ROW_LENGTH, values.row_len(&shard));
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        Qwen35moe.hyper_parameters(config, keys)?;
        let number = |field: &str| {
            config.require_u32(&[field], "a size of the hyper-connections or the indexer")
        };
        keys.set(key::HYPER_CONNECTION_COUNT, number(STREAMS)?);
        keys.set(key::HYPER_CONNECTION_LOW_RANK, number("hc_lowrank")?);
        keys.set(key::ATTENTION_INDEXER_HEAD_COUNT, number("indexer_n_heads")?);
        keys.set(key::ATTENTION_INDEXER_KEY_LENGTH, number("indexer_head_dim")?);
        keys.set(key::ATTENTION_INDEXER_TOP_K, number("indexer_budget")?);
        let ratio = draft::signed(number(COMPRESS_RATIO)?);
        let is_linear = linear_layers(config)?;
        let ratios: Vec<i32> =
            is_linear.iter().map(|linear| if *linear { 0 } else { ratio }).collect();
        keys.set(key::ATTENTION_COMPRESS_RATIOS, Array::from(&ratios[..]));
        let Some(layer) = ngram_layer(config)? else { return Ok(()) };
        if is_linear.get(layer as usize) != Some(&true) {
            return Err(hparams::not_computed(config, NGRAM_LAYERS, u64::from(layer) + 1));
        }
        ngram_keys(config, keys, layer)
    }

    // MTP layers are left out.
    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        name.starts_with("mtp.") || name.starts_with("model.mtp.")
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if HASH.iter().any(|(_, end)| name.ends_with(&format!("ple_embedding.{end}"))) {
            return Ok(Some(Mapping::Dropped));
        }
        if let Some((_, rest)) = name.split_once(SHARD) {
            let index = rest.split('.').next().and_then(|number| number.parse().ok());
            let count = config.require_u32(&[PARTS], "the number of parts of the n-gram table")?;
            return Ok(Some(match index {
                Some(index) => Mapping::slot(EMBEDDING.to_owned(), ExpertSlot { index, count }),
                None => Mapping::Unknown,
            }));
        }
        if let Some(&[block]) = captures(INDEXER, name).as_deref() {
            return split_indexer(config, block).map(Some);
        }
        let Some(gguf_name) = renamed(name, &[NAMES]) else {
            return Qwen35moe.map_tensor(config, name);
        };
        let mut steps = Vec::new();
        if gguf_name.contains("norm") {
            steps.push(Step::Map(Function::PlusOne));
        }
        if gguf_name.ends_with(".ple_conv1d.weight") {
            let number =
                |field: &str| config.require_u32(&[field], "a size of the n-gram convolution");
            let channels = u64::from(number(STREAMS)?) * u64::from(hparams::width(config)?);
            steps.push(steps::channels(number("ple_conv_kernel_size")?, channels));
        }
        Ok(Some(Mapping::one(gguf_name, steps)))
    }

    fn row_stacked_suffixes(&self) -> &'static [&'static str] {
        &[EMBEDDING]
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let list = |key: &str| draft::numbers(model, key);
        let ratio = list("attention.compress_ratios")?.into_iter().find(|&ratio| ratio > 0);
        let mut exported = Qwen35moe
            .export(model, exported)?
            .fields(FIELDS)
            .patterns([INDEXER])
            .set_some(COMPRESS_RATIO, ratio)
            .set("indexer_kv_heads", 1)
            .set(OUTPUT_GATE, "sigmoid");
        let Some(layer) = list("ple.layers").and_then(|layers| layers.first().copied()) else {
            return Some(exported.set(NGRAM_LAYERS, Vec::<i64>::new()));
        };
        let begin = format!("model.layers.{layer}.{NGRAMS}");
        for (key, field) in HASH {
            let numbers = list(key)?;
            exported.tensors.push(assembly::integer_list(&format!("{begin}.{field}"), &numbers));
            exported = exported.unwritten(field, numbers.into());
        }
        Some(
            exported
                .patterns([&*format!("{begin}{SHARD}0.weight")])
                .set(NGRAM_LAYERS, vec![layer.checked_add(1)?])
                // As a list, the field does not replace the end-of-text token of the vocabulary.
                .set(EOS_TOKEN, vec![count(model, key::PLE_EOS_TOKEN_ID)?])
                .set(PARTS, 1)
                .unwritten(ROW_LENGTH, count(model, key::EMBEDDING_LENGTH_PER_LAYER_INPUT)?.into()),
        )
    }
}

/// Returns the layer with n-gram embeddings, counted from 0; `None` if there is none.
fn ngram_layer(config: &Config) -> Result<Option<u32>, Error> {
    let layers = config.u32s(NGRAM_LAYERS)?.unwrap_or_default();
    match layers[..] {
        [] => Ok(None),
        [0] => Err(config.wrong(NGRAM_LAYERS, &layers.into(), "numbers above 0")),
        [layer] => Ok(Some(layer - 1)),
        // The keys have room for one hash.
        _ => Err(hparams::not_computed(config, NGRAM_LAYERS, Value::from(layers))),
    }
}

/// Returns the expected lengths of the lists of [`HASH`].
fn hash_lengths(config: &Config) -> Result<[u64; 3], Error> {
    let number = |field| {
        Ok::<_, Error>(config.require_u32(&[field], "a size of the n-gram embeddings")?.into())
    };
    let (longest, heads_per_ngram): (u64, u64) =
        (number("ngram_size")?, number("heads_per_ngram")?);
    let heads = longest.saturating_sub(1).saturating_mul(heads_per_ngram);
    Ok([longest, heads, heads])
}

/// Returns whether each layer has linear attention.
fn linear_layers(config: &Config) -> Result<Vec<bool>, Error> {
    let (_, stated) = config
        .find(&[LAYER_TYPES])
        .ok_or_else(|| config.missing(LAYER_TYPES, "the attention type of each layer"))?;
    let kind = |kind: &Value| match kind.as_str()? {
        LINEAR => Some(true),
        // Checkpoints have the first name, newer versions of `transformers` write the second.
        "full_attention" | "indexed_attention" => Some(false),
        _ => None,
    };
    let kinds: Option<Vec<bool>> =
        stated.as_array().and_then(|list| list.iter().map(kind).collect());
    let blocks = hparams::block_count(config)? as usize;
    kinds.filter(|kinds| kinds.len() == blocks).ok_or_else(|| {
        config.wrong(
            LAYER_TYPES,
            stated,
            &format!("{blocks} entries, each `linear_attention` or `full_attention`"),
        )
    })
}

/// Writes the keys of n-gram embeddings.
fn ngram_keys(config: &Config, keys: &mut Keys, layer: u32) -> Result<(), Error> {
    let number = |field: &str| config.require_u32(&[field], "a size of the n-gram embeddings");
    let width = hparams::width(config)?;
    if let Some(other) = config.u32(&["ple_embed_dim"])?.filter(|&other| other != width) {
        return Err(hparams::not_computed(config, "ple_embed_dim", other));
    }
    keys.set(key::PLE_LAYERS, Array::from(&[draft::signed(layer)][..]));
    keys.set(key::PLE_NGRAM_SIZE, number("ngram_size")?);
    keys.set(key::PLE_HEADS_PER_NGRAM, number("heads_per_ngram")?);
    keys.set(key::PLE_CONV_KERNEL, number("ple_conv_kernel_size")?);
    // `transformers` ends n-grams at the first end-of-text token of a list.
    let end = match config.find(&[EOS_TOKEN]) {
        Some((_, Value::Array(ends))) => ends.first().cloned().unwrap_or_default(),
        Some((_, end)) => end.clone(),
        None => Value::Null,
    };
    let end = end.as_u64().and_then(|end| u32::try_from(end).ok());
    keys.set(
        key::PLE_EOS_TOKEN_ID,
        end.ok_or_else(|| config.missing(EOS_TOKEN, "the token that ends n-grams"))?,
    );
    keys.set_u32(key::PLE_IMAGE_TOKEN_ID, config.u32(&[IMAGE_TOKEN])?);
    keys.set_u32(key::EMBEDDING_LENGTH_PER_LAYER_INPUT, config.u32(&[ROW_LENGTH])?);
    for (key, field) in HASH {
        let numbers = config.json().get(field).and_then(Value::as_array);
        if let Some(numbers) = numbers {
            let numbers: Vec<u64> = numbers.iter().filter_map(Value::as_u64).collect();
            keys.set(key, Array::from(&numbers[..]));
        }
    }
    Ok(())
}

/// Splits the fused projection of the indexer.
fn split_indexer(config: &Config, block: u32) -> Result<Mapping, Error> {
    let number = |field: &str| config.require_u32(&[field], "a size of the indexer");
    let (heads, len) = (number("indexer_n_heads")?, u64::from(number("indexer_head_dim")?));
    let queries = u64::from(heads).saturating_mul(len);
    let shape = Shape::new(&[hparams::width(config)?.into(), queries.saturating_add(len)])
        .unwrap_or_else(|| unreachable!("two dimensions are no more than four"));
    let part = |part: &str, start, len| MappedTensor {
        name: format!("blk.{block}.indexer.{part}_proj.weight"),
        // The reshape checks that the matrix has no other rows.
        steps: vec![Step::Reshape { from: shape, to: shape }, Step::Pick { groups: 1, start, len }],
        slot: None,
    };
    Ok(Mapping::Tensors(vec![part("q", 0, queries), part("k", queries, len)]))
}
