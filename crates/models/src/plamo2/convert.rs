//! PLaMo: the first, with fewer heads of keys; the second, with state spaces in most layers; the third,
//! with windows.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{Table, captures, filled};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, hparams};
use crate::plamo::convert::{ENDS, epsilon, inner, size};
use crate::schema::key;

/// Of the second and the third.
pub(crate) const NAMES_SINCE: Table = &[
    ("model.layers.layers.{}.pre_mixer_norm", "blk.{}.attn_norm"),
    ("model.layers.layers.{}.mixer.qkv_proj", "blk.{}.attn_qkv"),
    ("model.layers.layers.{}.mixer.o_proj", "blk.{}.attn_output"),
    ("model.layers.layers.{}.pre_mlp_norm", "blk.{}.ffn_norm"),
    ("model.layers.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
    ("model.layers.layers.{}.mlp.down_proj", "blk.{}.ffn_down"),
];

const STATE_SPACE: Table = &[
    ("model.layers.layers.{}.mixer.in_proj", "blk.{}.ssm_in"),
    ("model.layers.layers.{}.mixer.conv1d", "blk.{}.ssm_conv1d"),
    ("model.layers.layers.{}.mixer.bcdt_proj", "blk.{}.ssm_x"),
    ("model.layers.layers.{}.mixer.dt_proj", "blk.{}.ssm_dt"),
    ("model.layers.layers.{}.mixer.out_proj", "blk.{}.ssm_out"),
];

/// Whole names, of norms behind a part and of what is no matrix.
pub(crate) const POST_NORMS: [(&str, &str); 2] = [
    ("model.layers.layers.{}.post_mixer_norm.weight", "blk.{}.post_attention_norm"),
    ("model.layers.layers.{}.post_mlp_norm.weight", "blk.{}.post_ffw_norm"),
];

const PARAMETERS: [(&str, &str); 8] = [
    ("model.layers.layers.{}.mixer.A_log", "blk.{}.ssm_a"),
    ("model.layers.layers.{}.mixer.D", "blk.{}.ssm_d"),
    ("model.layers.layers.{}.mixer.dt_bias", "blk.{}.ssm_dt.bias"),
    ("model.layers.layers.{}.mixer.dt_norm_weight", "blk.{}.ssm_dt_norm"),
    ("model.layers.layers.{}.mixer.B_norm_weight", "blk.{}.ssm_b_norm"),
    ("model.layers.layers.{}.mixer.C_norm_weight", "blk.{}.ssm_c_norm"),
    ("model.layers.layers.{}.mixer.q_weight", "blk.{}.attn_q_norm.weight"),
    ("model.layers.layers.{}.mixer.k_weight", "blk.{}.attn_k_norm.weight"),
];

pub(crate) struct Plamo2;

/// Description of [`Plamo2`].
pub(crate) static PLAMO2: Description = Description {
    classes: &["Plamo2ForCausalLM", "PLaMo2ForCausalLM"],
    architecture: "plamo2",
    model_type: "plamo2",
    vocabulary: VocabularyKind::Plamo { template: false },
    tensor_names: &[ENDS, NAMES_SINCE, STATE_SPACE],
    config_fields: &[
        (key::ATTENTION_KEY_LENGTH, "hidden_size_per_head"),
        (key::SSM_CONV_KERNEL, "mamba_d_conv"),
        (key::SSM_STATE_SIZE, "mamba_d_state"),
        (key::SSM_TIME_STEP_RANK, "mamba_num_heads"),
    ],
    required_flags: &[("mamba_enabled", true)],
    ..Description::DECODER
};

impl Converter for Plamo2 {
    fn description(&self) -> &'static Description {
        &PLAMO2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        for (field, usual) in [
            ("mamba_step", 2),
            ("num_key_value_heads", 4),
            ("num_attention_heads", 32),
            ("max_position_embeddings", 2048),
            ("hidden_size", 4096),
            ("hidden_size_per_head", 128),
            ("mamba_d_state", 64),
            ("mamba_d_conv", 4),
            ("mamba_num_heads", 64),
            ("intermediate_size", 13312),
        ] {
            config.default(field, usual);
        }
        config.default("rms_norm_eps", 1e-6);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let blocks = hparams::block_count(config)?;
        let step = size(config, "mamba_step")?.max(1);
        // With few layers the last one has attention.
        let is_attention = |layer: u32| match blocks <= step / 2 {
            true => layer + 1 == blocks,
            false => layer % step == step / 2,
        };
        let heads = |count: u32| -> Array {
            let count = i32::try_from(count).unwrap_or(i32::MAX);
            let layers = (0..blocks).map(|layer| if is_attention(layer) { count } else { 0 });
            Array::from(&layers.collect::<Vec<i32>>()[..])
        };
        keys.vocab_size(config)?;
        keys.set(key::ATTENTION_HEAD_COUNT_KV, heads(hparams::head_count_kv(config)?));
        keys.set(key::ATTENTION_HEAD_COUNT, heads(hparams::head_count(config)?));
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        let head = size(config, "hidden_size_per_head")?;
        keys.set(key::ATTENTION_KEY_LENGTH, head);
        keys.set(key::ATTENTION_VALUE_LENGTH, head);
        keys.set(key::BLOCK_COUNT, blocks);
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon(config)?);
        let base = hparams::Rope::of(config)?.base;
        keys.set(key::ROPE_FREQ_BASE, base.unwrap_or(hparams::DEFAULT_BASE));
        keys.set(key::SSM_STATE_SIZE, size(config, "mamba_d_state")?);
        keys.set(key::SSM_CONV_KERNEL, size(config, "mamba_d_conv")?);
        keys.set(key::SSM_TIME_STEP_RANK, size(config, "mamba_num_heads")?);
        keys.set(key::SSM_INNER_SIZE, inner(config)?);
        keys.set(key::SSM_GROUP_COUNT, 0u32);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.file_type();
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (foreign, ours) in PARAMETERS {
            if let Some(numbers) = captures(foreign, name) {
                let decay = ours.ends_with("ssm_a").then_some(Step::Map(Function::MinusExp));
                return Ok(Some(Mapping::one(filled(ours, &numbers), Vec::from_iter(decay))));
            }
        }
        post_norm(config, name)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        if name.ends_with(".ssm_conv1d.weight") {
            let kernel = size(config, "mamba_d_conv")?;
            return Ok(vec![hparams::channels(kernel, inner(config)?.into())]);
        }
        norms(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let of_layers = |key: &str| {
            let heads = model.metadata().array(&format!("plamo2.attention.{key}"))?;
            Some(heads.iter().map(|count| count.to_u64().unwrap_or(0)).collect::<Vec<_>>())
        };
        let (heads, kv) = (of_layers("head_count")?, of_layers("head_count_kv")?);
        let first = heads.iter().position(|&count| count > 0);
        let second = first.and_then(|first| {
            Some(first + 1 + heads[first + 1..].iter().position(|&count| count > 0)?)
        });
        // Layers with attention come in the middle of each period.
        let step = match (first, second) {
            (Some(first), Some(second)) => second - first,
            (Some(first), None) if first > 0 && first * 3 >= heads.len() => first * 2,
            _ => heads.len() * 2,
        };
        let exported = exported
            .first(POST_NORMS.iter().chain(&PARAMETERS).map(|(name, _)| *name))
            .without(&[key::ATTENTION_HEAD_COUNT, key::ATTENTION_HEAD_COUNT_KV])
            .set("mamba_step", step)
            .set("num_attention_heads", heads.iter().max().copied())
            .set("num_key_value_heads", kv.iter().max().copied());
        Some(exported)
    }
}

/// Norms are stored as the difference from one, those behind a part from a share of it.
const OF_MIXER: f32 = 0.2;

const OF_NETWORK: f32 = 0.089_442_72;

pub(crate) fn post_norm(_: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let mut norms = POST_NORMS.iter().zip([OF_MIXER, OF_NETWORK]);
    Ok(norms.find_map(|((foreign, ours), share)| {
        let numbers = captures(foreign, name)?;
        Some(Mapping::one(filled(ours, &numbers), [Step::Map(Function::Plus(share))]))
    }))
}

pub(crate) fn norms(_: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let is_norm = name.ends_with("_norm.weight");
    Ok(Vec::from_iter(is_norm.then_some(Step::Map(Function::PlusOne))))
}
