//! Qwen 3.8 Flash: as Qwen 3.5 with experts, with several streams of the residual instead of norms, an indexer in
//! layers that do not attend linearly, and embeddings of n-grams in one layer.

use std::borrow::Cow;

use gguf::{Array, Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::count;
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, renamed};
use crate::convert::{
    Converter, Description, ExpertSlot, Exported, MappedTensor, Mapping, Values, assembly, draft,
    hparams,
};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::qwen35moe::convert::{QWEN35MOE, Qwen35moe};
use crate::schema::key;
use crate::{qwen3next, qwen35};

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

/// Queries of the indexer above its keys.
const INDEXER: &str = "model.layers.{}.self_attn.indexer.index_qk_proj.weight";

/// What tensors about n-grams begin with, behind the number of their layer.
const NGRAMS: &str = "ple.ple_embedding";

/// A part of the embedding of n-grams.
const SHARD: &str = ".ngram_embedding.shard_";

/// That embedding, of all parts.
const EMBEDDING: &str = "per_layer_token_embd.weight";

const PARTS: &str = "split_ngram_parts";

/// Numbers of the hash that keys hold: keys, and how tensors' names end, which are also fields that their values
/// are set as.
const HASH: [(&str, &str); 3] = [
    ("ple.layer_multipliers", "layer_multipliers"),
    ("ple.head_offsets", "ngram_heads_offsets"),
    ("ple.head_vocab_sizes", "ngram_heads_vocab_sizes"),
];

/// Set by the embedding of n-grams: how long its rows are.
const ROW: &str = "ngram_row_length";

const STREAMS: &str = "hc_count";

const KINDS: &str = "layer_types";

const LINEAR: &str = "linear_attention";

/// The field of layers with n-grams, counted from 1.
const LAYERS: &str = "ple_layer_ids";

const GATE: &str = "output_gate_type";

const RATIO: &str = "indexer_compress_ratio";

const END: &str = "eos_token_id";

const IMAGE: &str = "image_token_id";

const FIELDS: &[(&str, &str)] = &[
    (key::HYPER_CONNECTION_COUNT, STREAMS),
    (key::HYPER_CONNECTION_LOW_RANK, "hc_lowrank"),
    (key::ATTENTION_INDEXER_HEAD_COUNT, "indexer_n_heads"),
    (key::ATTENTION_INDEXER_KEY_LENGTH, "indexer_head_dim"),
    (key::ATTENTION_INDEXER_TOP_K, "indexer_budget"),
    (key::PLE_NGRAM_SIZE, "ngram_size"),
    (key::PLE_HEADS_PER_NGRAM, "heads_per_ngram"),
    (key::PLE_CONV_KERNEL, "ple_conv_kernel_size"),
    (key::PLE_IMAGE_TOKEN_ID, IMAGE),
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
        config.default(LAYERS, Vec::<u32>::new());
        config.default("ple_conv_kernel_size", 4);
        config.default("ngram_size", 3);
        config.default("heads_per_ngram", 8);
        config.default(PARTS, 512);
        if config.find(&[KINDS]).is_none() {
            let interval = config.u32(&["full_attention_interval"])?.unwrap_or(4).max(1);
            let kind = |layer: u32| {
                if (layer + 1).is_multiple_of(interval) { "full_attention" } else { LINEAR }
            };
            let kinds: Vec<_> = (0..hparams::block_count(config)?).map(kind).collect();
            config.set(KINDS, kinds);
        }
        if let Some(streams) = config.u32(&[STREAMS])?.filter(|&streams| streams < 2) {
            return Err(hparams::not_computed(config, STREAMS, streams));
        }
        // Programs know no other gate of linear attention.
        let gate =
            config.find(&[GATE, "hidden_act"]).map_or("silu".into(), |(_, gate)| gate.clone());
        match gate == "sigmoid" {
            true => Ok(()),
            false => Err(hparams::not_computed(config, GATE, gate)),
        }
    }

    fn infer_from_names(&self, _: &mut Config, _: &mut dyn Iterator<Item = Cow<'_, str>>) {
        ()
    }

    // The hash of n-grams, which a checkpoint has as tensors.
    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        if layer_of_ngrams(config)?.is_none() {
            return Ok(());
        }
        for ((_, field), expected) in HASH.into_iter().zip(lengths(config)?) {
            let name = format!("ple_embedding.{field}");
            let found = values.names().find(|found| found.ends_with(&name));
            let numbers = match &found {
                Some(found) => values.whole(found)?,
                None => None,
            };
            let numbers = numbers.ok_or_else(|| values.missing(&name, "the hash of n-grams"))?;
            if numbers.len() as u64 != expected || numbers.iter().any(|number| *number < 0) {
                let what = format!(
                    "does not go with the tensor `{name}`: it has {} numbers, and {expected} from 0 on are needed",
                    numbers.len()
                );
                let help = "take configuration and weights from one place";
                return Err(Error::input("checkpoint-misfit", config.path(), what, help));
            }
            config.set(field, numbers);
        }
        let shard = values.names().find(|name| name.contains(SHARD));
        let shard = shard.ok_or_else(|| values.missing(SHARD, "the embedding of n-grams"))?;
        config.set(ROW, values.row_len(&shard));
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        qwen35::convert::keys_with_sections(config, keys)?;
        let number = |field: &str| config.require_u32(&[field], "streams, or the indexer");
        keys.set(key::HYPER_CONNECTION_COUNT, number(STREAMS)?);
        keys.set(key::HYPER_CONNECTION_LOW_RANK, number("hc_lowrank")?);
        keys.set(key::ATTENTION_INDEXER_HEAD_COUNT, number("indexer_n_heads")?);
        keys.set(key::ATTENTION_INDEXER_KEY_LENGTH, number("indexer_head_dim")?);
        keys.set(key::ATTENTION_INDEXER_TOP_K, number("indexer_budget")?);
        let ratio = draft::signed(number(RATIO)?);
        let kinds = kinds(config)?;
        let ratios: Vec<i32> = kinds.iter().map(|linear| if *linear { 0 } else { ratio }).collect();
        keys.set(key::ATTENTION_COMPRESS_RATIOS, Array::from(&ratios[..]));
        let Some(layer) = layer_of_ngrams(config)? else { return Ok(()) };
        if kinds.get(layer as usize) != Some(&true) {
            return Err(hparams::not_computed(config, LAYERS, u64::from(layer) + 1));
        }
        of_ngrams(config, keys, layer)
    }

    // Layers that guess further tokens.
    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        name.starts_with("mtp.") || name.starts_with("model.mtp.")
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        special(config, name)
    }

    fn row_stacked_suffixes(&self) -> &'static [&'static str] {
        &[EMBEDDING]
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export(model, exported)
    }
}

/// The layer with embeddings of n-grams, counted from 0; `None` if there is none.
fn layer_of_ngrams(config: &Config) -> Result<Option<u32>, Error> {
    let layers = config.u32s(LAYERS)?.unwrap_or_default();
    match layers[..] {
        [] => Ok(None),
        [0] => Err(config.wrong(LAYERS, &layers.into(), "numbers from 1 on")),
        [layer] => Ok(Some(layer - 1)),
        // Programs have room for one hash.
        _ => Err(hparams::not_computed(config, LAYERS, Value::from(layers))),
    }
}

/// How many numbers each list of the hash has.
fn lengths(config: &Config) -> Result<[u64; 3], Error> {
    let number = |field| Ok::<_, Error>(config.require_u32(&[field], "n-grams")?.into());
    let (longest, of_each): (u64, u64) = (number("ngram_size")?, number("heads_per_ngram")?);
    let heads = longest.saturating_sub(1).saturating_mul(of_each);
    Ok([longest, heads, heads])
}

/// Which layers attend linearly.
fn kinds(config: &Config) -> Result<Vec<bool>, Error> {
    let (_, stated) =
        config.find(&[KINDS]).ok_or_else(|| config.missing(KINDS, "what each layer is"))?;
    let kind = |kind: &Value| match kind.as_str()? {
        LINEAR => Some(true),
        // As checkpoints have it, and as newer versions of `transformers` write it.
        "full_attention" | "indexed_attention" => Some(false),
        _ => None,
    };
    let kinds: Option<Vec<bool>> =
        stated.as_array().and_then(|list| list.iter().map(kind).collect());
    let blocks = hparams::block_count(config)? as usize;
    kinds.filter(|kinds| kinds.len() == blocks).ok_or_else(|| {
        config.wrong(KINDS, stated, &format!("{blocks} of linear_attention and full_attention"))
    })
}

fn of_ngrams(config: &Config, keys: &mut Keys, layer: u32) -> Result<(), Error> {
    let number = |field: &str| config.require_u32(&[field], "embeddings of n-grams");
    let width = hparams::width(config)?;
    if let Some(other) = config.u32(&["ple_embed_dim"])?.filter(|&other| other != width) {
        return Err(hparams::not_computed(config, "ple_embed_dim", other));
    }
    keys.set(key::PLE_LAYERS, Array::from(&[draft::signed(layer)][..]));
    keys.set(key::PLE_NGRAM_SIZE, number("ngram_size")?);
    keys.set(key::PLE_HEADS_PER_NGRAM, number("heads_per_ngram")?);
    keys.set(key::PLE_CONV_KERNEL, number("ple_conv_kernel_size")?);
    // Of several the first, by which `transformers` cuts n-grams.
    let end = match config.find(&[END]) {
        Some((_, Value::Array(ends))) => ends.first().cloned().unwrap_or_default(),
        Some((_, end)) => end.clone(),
        None => Value::Null,
    };
    let end = end.as_u64().and_then(|end| u32::try_from(end).ok());
    keys.set(key::PLE_EOS_TOKEN_ID, end.ok_or_else(|| config.missing(END, "what ends n-grams"))?);
    keys.set_u32(key::PLE_IMAGE_TOKEN_ID, config.u32(&[IMAGE])?);
    keys.set_u32(key::EMBEDDING_LENGTH_PER_LAYER_INPUT, config.u32(&[ROW])?);
    for (key, field) in HASH {
        let numbers = config.json().get(field).and_then(Value::as_array);
        if let Some(numbers) = numbers {
            let numbers: Vec<u64> = numbers.iter().filter_map(Value::as_u64).collect();
            keys.set(key, Array::from(&numbers[..]));
        }
    }
    Ok(())
}

fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if HASH.iter().any(|(_, end)| name.ends_with(&format!("ple_embedding.{end}"))) {
        return Ok(Some(Mapping::Dropped));
    }
    if let Some((_, rest)) = name.split_once(SHARD) {
        let index = rest.split('.').next().and_then(|number| number.parse().ok());
        let count = config.require_u32(&[PARTS], "parts of the embedding of n-grams")?;
        return Ok(Some(match index {
            Some(index) => Mapping::slot(EMBEDDING.to_owned(), ExpertSlot { index, count }),
            None => Mapping::Unknown,
        }));
    }
    if let Some(&[block]) = captures(INDEXER, name).as_deref() {
        return indexer(config, block).map(Some);
    }
    let Some(ours) = renamed(name, &[NAMES]) else {
        return qwen3next::convert::special(config, name);
    };
    let mut steps = Vec::new();
    if ours.contains("norm") {
        steps.push(Step::Map(Function::PlusOne));
    }
    if ours.ends_with(".ple_conv1d.weight") {
        let number = |field: &str| config.require_u32(&[field], "the convolution over n-grams");
        let channels = u64::from(number(STREAMS)?) * u64::from(hparams::width(config)?);
        steps.push(hparams::channels(number("ple_conv_kernel_size")?, channels));
    }
    Ok(Some(Mapping::one(ours, steps)))
}

/// Queries and keys apart.
fn indexer(config: &Config, block: u32) -> Result<Mapping, Error> {
    let number = |field: &str| config.require_u32(&[field], "the indexer's size");
    let (heads, len) = (number("indexer_n_heads")?, u64::from(number("indexer_head_dim")?));
    let queries = u64::from(heads).saturating_mul(len);
    let shape = Shape::new(&[hparams::width(config)?.into(), queries.saturating_add(len)])
        .unwrap_or_else(|| unreachable!("two dimensions are no more than four"));
    let part = |part: &str, start, len| MappedTensor {
        name: format!("blk.{block}.indexer.{part}_proj.weight"),
        // Nothing else is in the matrix.
        steps: vec![Step::Reshape { from: shape, to: shape }, Step::Pick { groups: 1, start, len }],
        slot: None,
    };
    Ok(Mapping::Made(vec![part("q", 0, queries), part("k", queries, len)]))
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let list = |key: &str| draft::numbers(model, key);
    let ratio = list("attention.compress_ratios")?.into_iter().find(|&ratio| ratio > 0);
    let mut exported = qwen3next::convert::export(model, exported)?
        .fields(FIELDS)
        .patterns([INDEXER])
        .set_some(RATIO, ratio)
        .set("indexer_kv_heads", 1)
        .set(GATE, "sigmoid");
    let Some(layer) = list("ple.layers").and_then(|layers| layers.first().copied()) else {
        return Some(exported.set(LAYERS, Vec::<i64>::new()));
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
            .set(LAYERS, vec![layer.checked_add(1)?])
            // A list, which says nothing of the vocabulary.
            .set(END, vec![count(model, key::PLE_EOS_TOKEN_ID)?])
            .set(PARTS, 1)
            .unwritten(ROW, count(model, key::EMBEDDING_LENGTH_PER_LAYER_INPUT)?.into()),
    )
}
