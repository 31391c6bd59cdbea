//! Conversion of RWKV 7, from flash-linear-attention and from the names of other implementations.
//! The token-shift weights of a layer become one tensor.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::ssm::reshape;
use crate::convert::tensor_names::Table;
use crate::convert::{
    Converter, Description, ExpertSlot, Exported, MappedTensor, Mapping, VocabularyKind, hparams,
    tensor_names,
};
use crate::rwkv6::convert::CONTEXT;
use crate::schema::key;

/// Names in flash-linear-attention, each followed by the name in other implementations, if any.
const NAMES: Table = &[
    ("model.embeddings", "token_embd"),
    ("model.embed", "token_embd"),
    ("model.layers.0.pre_norm", "token_embd_norm"),
    ("model.pre_ln", "token_embd_norm"),
    ("model.norm", "output_norm"),
    ("model.ln_out", "output_norm"),
    ("lm_head", "output"),
    ("head", "output"),
    ("model.layers.{}.attn_norm", "blk.{}.attn_norm"),
    ("model.layers.{}.ffn_norm", "blk.{}.attn_norm_2"),
    ("model.layers.{}.attn.r_proj", "blk.{}.time_mix_receptance"),
    ("model.layers.{}.attn.k_proj", "blk.{}.time_mix_key"),
    ("model.layers.{}.attn.v_proj", "blk.{}.time_mix_value"),
    ("model.layers.{}.attn.o_proj", "blk.{}.time_mix_output"),
    ("model.layers.{}.attn.receptance", "blk.{}.time_mix_receptance"),
    ("model.layers.{}.attn.key", "blk.{}.time_mix_key"),
    ("model.layers.{}.attn.value", "blk.{}.time_mix_value"),
    ("model.layers.{}.attn.output", "blk.{}.time_mix_output"),
    ("model.layers.{}.attn.g_norm", "blk.{}.time_mix_ln"),
    ("model.layers.{}.ffn.key", "blk.{}.channel_mix_key"),
    ("model.layers.{}.ffn.value", "blk.{}.channel_mix_value"),
];

const CHANNEL_MIX: &str = "model.layers.{}.ffn.x_k";

/// Parts of `time_mix_lerp_fused`, in order: the inputs that have their own token shift. Models without gate do not
/// have the last.
pub(crate) const TOKEN_SHIFT_PARTS: [&str; 6] = ["r", "w", "k", "v", "a", "g"];

/// Low-rank projections: decay, in-context learning rate, value residual and gate, each with two matrices and, but for
/// the gate, a bias.
pub(crate) const LORA_PARTS: [&str; 4] = ["w", "a", "v", "g"];

/// Vectors with one factor for each channel.
pub(crate) const CHANNEL_FACTORS: [&str; 3] = ["k_k", "k_a", "r_k"];

pub(crate) struct Rwkv7;

/// Description of [`Rwkv7`].
pub(crate) static RWKV7: Description = Description {
    classes: &["RWKV7ForCausalLM", "Rwkv7ForCausalLM"],
    architecture: "rwkv7",
    model_type: "rwkv7",
    vocabulary: VocabularyKind::Rwkv,
    tensor_names: &[NAMES],
    config_fields: &[
        (key::WKV_HEAD_SIZE, "head_dim"),
        (key::ATTENTION_LAYER_NORM_EPSILON, "norm_eps"),
        (key::ATTENTION_DECAY_LORA_RANK, "decay_low_rank_dim"),
        (key::ATTENTION_ICLR_LORA_RANK, "a_low_rank_dim"),
        (key::ATTENTION_VALUE_RESIDUAL_MIX_LORA_RANK, "v_low_rank_dim"),
        (key::ATTENTION_GATE_LORA_RANK, "gate_low_rank_dim"),
    ],
    ..Description::DECODER
};

impl Converter for Rwkv7 {
    fn description(&self) -> &'static Description {
        &RWKV7
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = hparams::width(config)?;
        let head = config.require_u32(&["head_size", "head_dim"], "the head dimension")?;
        let epsilon =
            config.require_f32(&["layer_norm_epsilon", "norm_eps"], "epsilon of the norms")?;
        let ffn_width = config.u32(&["intermediate_size"])?.unwrap_or(width.saturating_mul(4));
        // Defaults of the ranks: powers of the embedding length, in multiples of 32.
        let rank = |fields: &[&str], exponent: f64, factor: f64| {
            let default = f64::from(width).powf(exponent) * factor / 32.0;
            let default = default.round_ties_even().max(1.0) * 32.0;
            Ok::<_, Error>(config.u32(fields)?.unwrap_or(default as u32))
        };
        keys.set(key::CONTEXT_LENGTH, CONTEXT);
        keys.set(key::EMBEDDING_LENGTH, width);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, epsilon);
        keys.set(key::WKV_HEAD_SIZE, head);
        for (key, fields, exponent, factor) in [
            ("decay_lora_rank", ["lora_rank_decay", "decay_low_rank_dim"], 0.5, 1.8),
            ("iclr_lora_rank", ["lora_rank_iclr", "a_low_rank_dim"], 0.5, 1.8),
            (
                "value_residual_mix_lora_rank",
                ["lora_rank_value_residual_mix", "v_low_rank_dim"],
                0.5,
                1.3,
            ),
            ("gate_lora_rank", ["lora_rank_gate", "gate_low_rank_dim"], 0.8, 0.6),
        ] {
            keys.set(&format!("attention.{key}"), rank(&fields, exponent, factor)?);
        }
        keys.set(key::FEED_FORWARD_LENGTH, ffn_width);
        keys.file_type();
        // llama.cpp requires the key and does not use it.
        keys.set(key::ATTENTION_HEAD_COUNT, 0u32);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let name = canonical_name(name);
        match map_time_mix(config, &name)? {
            Some(mapping) => Ok(Some(mapping)),
            None => {
                let gguf_name = tensor_names::renamed(&name, &[NAMES]);
                Ok(gguf_name.map(|gguf_name| Mapping::one(gguf_name, [])))
            }
        }
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        let lora = |part: &str, end: &str| format!("model.layers.{{}}.attn.{part}_lora.{end}");
        let low_rank = LORA_PARTS.iter().flat_map(|part| {
            ["lora.0.weight", "lora.2.weight", "lora.2.bias"].map(|end| lora(part, end))
        });
        let mixed = TOKEN_SHIFT_PARTS.iter().map(|part| format!("model.layers.{{}}.attn.x_{part}"));
        let factors = CHANNEL_FACTORS.iter().map(|part| format!("model.layers.{{}}.attn.{part}"));
        let names: Vec<String> = low_rank.chain(mixed).chain(factors).collect();
        let exported = exported.patterns(names.iter().map(String::as_str));
        Some(exported.patterns([CHANNEL_MIX]).without(&[key::ATTENTION_HEAD_COUNT]))
    }
}

/// Returns the name of a tensor in flash-linear-attention.
pub(crate) fn canonical_name(name: &str) -> String {
    const PAIRS: [(&str, &str); 9] = [
        (".blocks.", ".layers."),
        ("time_mixer.", ""),
        (".self_attn.", ".attn."),
        (".attention.", ".attn."),
        (".feed_forward.", ".ffn."),
        (".attention_norm.", ".attn_norm."),
        (".ln1.", ".attn_norm."),
        (".ln2.", ".ffn_norm."),
        (".ln_x.", ".g_norm."),
    ];
    PAIRS.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// Maps a time-mixing tensor that is in no table of names, by its [`canonical_name`].
pub(crate) fn map_time_mix(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let width = hparams::width(config)?;
    let in_layer = name.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.'));
    let Some((block, part)) = in_layer else { return Ok(None) };
    let Ok(block) = block.parse::<u32>() else { return Ok(None) };
    let one = |gguf_name: &str, steps: Vec<Step>| {
        Ok(Some(Mapping::one(format!("blk.{block}.{gguf_name}.weight"), steps)))
    };
    if part == "ffn.x_k" {
        return one("channel_mix_lerp_k", vec![reshape(&[width], &[width])]);
    }
    let Some(part) = part.strip_prefix("attn.") else { return Ok(None) };
    if let Some(mixed) = part.strip_prefix("x_") {
        let count = if has_gate(config)? { 6u32 } else { 5 };
        let name = format!("blk.{block}.time_mix_lerp_fused.weight");
        if mixed == "x" {
            let steps = [reshape(&[width, count], &[width, 1, 1, count])];
            return Ok(Some(Mapping::one(name, steps)));
        }
        let Some(index) = (0..count).zip(TOKEN_SHIFT_PARTS).find(|(_, part)| *part == mixed) else {
            return Ok(None);
        };
        let slot = Some(ExpertSlot { index: index.0, count });
        let steps = vec![reshape(&[width, 1, 1], &[width, 1, 1])];
        return Ok(Some(Mapping::Tensors(vec![MappedTensor { name, steps, slot }])));
    }
    if CHANNEL_FACTORS.contains(&part) {
        let head = config.u32(&["head_size", "head_dim"])?.unwrap_or(width).max(1);
        let before = if part == "r_k" { vec![head, width / head] } else { vec![width] };
        return one(&format!("time_mix_{part}"), vec![reshape(&before, &[width])]);
    }
    // Two matrices and a bias, which are layers in flash-linear-attention and transposed matrices elsewhere.
    let low_rank = match part.split_once("_lora.lora.") {
        Some((of, "0.weight")) => Some((of, 1, vec![])),
        Some((of, "2.weight")) => Some((of, 2, vec![])),
        Some((of, "2.bias")) => Some((of, 0, vec![])),
        Some(_) => None,
        None if part.len() == 2 && part.is_ascii() => match part.split_at(1) {
            (of, "0") => Some((of, 0, vec![reshape(&[width, 1, 1], &[width])])),
            (of, "1") => Some((of, 1, vec![Step::Transpose])),
            (of, "2") => Some((of, 2, vec![Step::Transpose])),
            _ => None,
        },
        None => None,
    };
    let Some((of, number, steps)) = low_rank.filter(|(part, ..)| LORA_PARTS.contains(part)) else {
        return Ok(None);
    };
    let tensor = |part: &str| MappedTensor {
        name: format!("blk.{block}.time_mix_{part}{number}.weight"),
        steps: steps.clone(),
        slot: None,
    };
    Ok(Some(match (block, of) {
        // The first layer has no value residual: llama.cpp requires the tensors and does not use them.
        (0, "v") => Mapping::Dropped,
        (0, "a") => Mapping::Tensors(vec![tensor("v"), tensor("a")]),
        _ => Mapping::Tensors(vec![tensor(of)]),
    }))
}

/// Returns whether time mixing has an output gate.
pub(crate) fn has_gate(config: &Config) -> Result<bool, Error> {
    Ok(config.bool("wkv_has_gate")?.unwrap_or(true))
}
