//! RWKV version 6, and Qwen 2 with its attention replaced by that.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};

use super::exported::count;
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, captures};
use super::state_space::reshape;
use super::{ExpertSlot, Exported, Family, MappedTensor, Mapping, rwkv};
use crate::vocab;

const NAMES: Table = &[
    ("rwkv.blocks.{}.attention.gate", "blk.{}.time_mix_gate"),
    ("rwkv.blocks.{}.attention.ln_x", "blk.{}.time_mix_ln"),
];
const TIME_MIX: &str = "rwkv.blocks.{}.attention.";
const CHANNEL_MIX: [(&str, &str); 2] = [
    ("rwkv.blocks.{}.feed_forward.time_maa_k", "channel_mix_lerp_k"),
    ("rwkv.blocks.{}.feed_forward.time_maa_r", "channel_mix_lerp_r"),
];

/// What stands for the attention of Qwen 2, under its names.
const NAMES_OF_QWEN: Table = &[
    ("model.layers.{}.self_attn.q_proj", "blk.{}.time_mix_receptance"),
    ("model.layers.{}.self_attn.k_proj", "blk.{}.time_mix_key"),
    ("model.layers.{}.self_attn.v_proj", "blk.{}.time_mix_value"),
    ("model.layers.{}.self_attn.o_proj", "blk.{}.time_mix_output"),
    ("model.layers.{}.self_attn.gate", "blk.{}.time_mix_gate"),
];
const TIME_MIX_OF_QWEN: &str = "model.layers.{}.self_attn.";

/// RWKV has no longest context.
pub(super) const CONTEXT: u32 = 1 << 20;

/// How much of the token before is mixed in, for each of these: parts of one tensor, in its order.
const MIXED: [&str; 5] = ["w", "k", "v", "r", "g"];

/// Places in that order of what Qwen's has in the order r, k, v, w, g.
const PLACES_OF_QWEN: [u32; 5] = [3, 1, 2, 0, 4];

/// What happens to a tensor of the time mix.
#[derive(Clone, Copy)]
enum Form {
    /// One number for each channel, with two dimensions of 1 in front.
    Vector,
    Stored,
    Turned,
}

/// Tensors of the time mix: how their names end, and ours.
const OF_TIME_MIX: [(&str, &str, Form); 7] = [
    ("time_maa_x", "time_mix_lerp_x", Form::Vector),
    ("time_decay", "time_mix_decay", Form::Vector),
    ("time_faaaa", "time_mix_first", Form::Stored),
    ("time_maa_w1", MIX_DOWN, Form::Turned),
    ("time_maa_w2", MIX_UP, Form::Turned),
    ("time_decay_w1", "time_mix_decay_w1", Form::Turned),
    ("time_decay_w2", "time_mix_decay_w2", Form::Turned),
];
const MIX_DOWN: &str = "time_mix_w1";
const MIX_UP: &str = "time_mix_w2";

pub(super) static RWKV6: Family = Family {
    classes: &["Rwkv6ForCausalLM"],
    architecture: "rwkv6",
    model_type: "rwkv6",
    vocabulary: vocab::Kind::Rwkv,
    names: &[NAMES, rwkv::NAMES],
    fields: &[
        ("wkv.head_size", "head_size"),
        ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
        ("rescale_every_n_layers", "rescale_every"),
    ],
    keys,
    special: |config, name| {
        for (foreign, ours) in CHANNEL_MIX {
            if let Some(&[block]) = captures(foreign, name).as_deref() {
                let steps = [of_channels(hyper::width(config)?)];
                return Ok(Some(Mapping::one(format!("blk.{block}.{ours}.weight"), steps)));
            }
        }
        time_mix(config, TIME_MIX, name)
    },
    steps: halved,
    export: |_, exported| {
        let exported = exported.patterns(CHANNEL_MIX.map(|(name, _)| name));
        Some(with_time_mix(exported, TIME_MIX).without(&["attention.head_count"]))
    },
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let width = hyper::width(config)?;
    let is_wide = width == 4096;
    // 3.5 times the width, in multiples of 32.
    let usual = u32::try_from(u64::from(width) * 7 / 64 * 32).unwrap_or(u32::MAX);
    keys.set("context_length", CONTEXT);
    keys.set("embedding_length", width);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
    let rescaled = config.require_u32(&["rescale_every"], "every how many layers to halve")?;
    keys.set("rescale_every_n_layers", rescaled);
    keys.set("wkv.head_size", config.require_u32(&["head_size"], "the width of a head")?);
    keys.set("time_mix_extra_dim", if is_wide { 64u32 } else { 32 });
    keys.set("time_decay_extra_dim", if is_wide { 128u32 } else { 64 });
    keys.set("feed_forward_length", config.u32(&["intermediate_size"])?.unwrap_or(usual));
    keys.file_type();
    // Programs ask for it and do not use it.
    keys.set("attention.head_count", 0u32);
    Ok(())
}

/// What is added to the stream is halved every so many layers, as the stream is when it runs.
fn halved(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let is_output = ["time_mix_output.weight", "channel_mix_value.weight"];
    let every = config.u32(&["rescale_every"])?.filter(|&every| every > 0);
    let block = name.strip_prefix("blk.").and_then(|rest| rest.split('.').next()?.parse().ok());
    let (Some(every), Some(block), true) =
        (every, block, is_output.iter().any(|end| name.ends_with(end)))
    else {
        return Ok(Vec::new());
    };
    let times: u32 = block;
    let times = i32::try_from(times / every).unwrap_or(i32::MAX);
    let step = (times > 0).then(|| Step::Map(Function::Times(0.5f32.powi(times))));
    Ok(Vec::from_iter(step))
}

/// What becomes of a tensor of the time mix, whose names begin with `start`.
fn time_mix(config: &Config, start: &str, name: &str) -> Result<Option<Mapping>, Error> {
    let width = hyper::width(config)?;
    for (end, ours, form) in OF_TIME_MIX {
        if let Some(&[block]) = captures(&format!("{start}{end}"), name).as_deref() {
            let steps = match form {
                Form::Vector => vec![of_channels(width)],
                Form::Stored => vec![],
                Form::Turned => vec![Step::Transpose],
            };
            return Ok(Some(Mapping::one(format!("blk.{block}.{ours}.weight"), steps)));
        }
    }
    for (index, part) in (0..).zip(MIXED) {
        if let Some(&[block]) = captures(&format!("{start}time_maa_{part}"), name).as_deref() {
            return Ok(Some(Mapping::Made(vec![MappedTensor {
                name: format!("blk.{block}.time_mix_lerp_fused.weight"),
                steps: vec![reshape(&[width, 1, 1], &[width, 1, 1])],
                slot: Some(ExpertSlot { index, count: 5 }),
            }])));
        }
    }
    Ok(None)
}

/// A vector of one number for each channel.
fn of_channels(width: u32) -> Step {
    reshape(&[width, 1, 1], &[width])
}

/// With the foreign names of the time mix.
fn with_time_mix(exported: Exported, start: &str) -> Exported {
    let ends = OF_TIME_MIX.iter().map(|(end, ..)| format!("{start}{end}"));
    let mixed = MIXED.iter().map(|part| format!("{start}time_maa_{part}"));
    let names: Vec<String> = ends.chain(mixed).collect();
    exported.patterns(names.iter().map(String::as_str))
}

pub(super) static RWKV6_QWEN2: Family = Family {
    classes: &["RWKV6Qwen2ForCausalLM"],
    architecture: "rwkv6qwen2",
    model_type: "rwkv6qwen2",
    vocabulary: vocab::Kind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    names: &[NAMES_OF_QWEN, LLAMA_LIKE],
    fields: &[
        ("time_mix_extra_dim", "lora_rank_tokenshift"),
        ("time_decay_extra_dim", "lora_rank_decay"),
    ],
    keys: keys_of_qwen,
    special: special_of_qwen,
    rows_of_parts: &["time_mix_w1.weight"],
    export: |model, exported| {
        let heads = count(model, "embedding_length")?.checked_div(count(model, "wkv.head_size")?);
        let exported = with_time_mix(exported, TIME_MIX_OF_QWEN);
        Some(exported.without(&["attention.head_count"]).set_some("num_attention_heads", heads))
    },
    ..Family::DEFAULT
};

fn ranks_of_qwen(config: &Config) -> Result<[u32; 2], Error> {
    let usual = if hyper::width(config)? >= 4096 { [64, 128] } else { [32, 64] };
    let stated = [config.u32(&["lora_rank_tokenshift"])?, config.u32(&["lora_rank_decay"])?];
    Ok([stated[0].unwrap_or(usual[0]), stated[1].unwrap_or(usual[1])])
}

fn keys_of_qwen(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let width = hyper::width(config)?;
    let heads = hyper::head_count(config)?.max(1);
    let [mix, decay] = ranks_of_qwen(config)?;
    let epsilon = config.require_f32(&["rms_norm_eps"], "what the norms add before they divide")?;
    keys.set("context_length", CONTEXT);
    keys.set("embedding_length", width);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("wkv.head_size", width / heads);
    keys.set("time_mix_extra_dim", mix);
    keys.set("time_decay_extra_dim", decay);
    keys.set("feed_forward_length", hyper::feed_forward(config)?);
    keys.file_type();
    keys.set("attention.layer_norm_rms_epsilon", epsilon);
    keys.set("token_shift_count", 1u32);
    keys.set("attention.head_count_kv", hyper::head_count_kv(config)?);
    keys.set("attention.head_count", 0u32);
    Ok(())
}

fn special_of_qwen(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let mapping = time_mix(config, TIME_MIX_OF_QWEN, name)?;
    let Some(Mapping::Made(made)) = &mapping else { return Ok(mapping) };
    let [MappedTensor { name: ours, .. }] = &made[..] else { return Ok(mapping) };
    let (rank, width) = (ranks_of_qwen(config)?[0], hyper::width(config)?);
    let (before, len) = if ours.ends_with("time_mix_w1.weight") {
        (vec![Step::Transpose], rank)
    } else if ours.ends_with("time_mix_w2.weight") {
        let rows = width.saturating_mul(5);
        (vec![Step::Transpose, reshape(&[rank, width, 5], &[rank, rows])], width)
    } else {
        return Ok(mapping);
    };
    let part = |(number, index): (u64, u32)| {
        let len = u64::from(len);
        let pick = Step::Pick { groups: 1, start: number * len, len };
        let steps = [&before[..], &[pick]].concat();
        MappedTensor { name: ours.clone(), steps, slot: Some(ExpertSlot { index, count: 5 }) }
    };
    Ok(Some(Mapping::Made((0..).zip(PLACES_OF_QWEN).map(part).collect())))
}
