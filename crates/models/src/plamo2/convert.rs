//! Conversion of PLaMo 2. Norm weights are stored as offsets: from 1 before a block, from smaller
//! constants after it. Head counts are arrays with 0 for SSM layers.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures, filled};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, hparams, rope, steps,
};
use crate::plamo::convert::{EMBEDDING_AND_OUTPUT, epsilon};
use crate::schema::key;

/// Layer names of PLaMo 2 and 3.
pub(crate) const LAYER_NAMES: Table = &[
    ("model.layers.layers.{}.pre_mixer_norm", "blk.{}.attn_norm"),
    ("model.layers.layers.{}.mixer.qkv_proj", "blk.{}.attn_qkv"),
    ("model.layers.layers.{}.mixer.o_proj", "blk.{}.attn_output"),
    ("model.layers.layers.{}.pre_mlp_norm", "blk.{}.ffn_norm"),
    ("model.layers.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
    ("model.layers.layers.{}.mlp.down_proj", "blk.{}.ffn_down"),
];

const SSM_NAMES: Table = &[
    ("model.layers.layers.{}.mixer.in_proj", "blk.{}.ssm_in"),
    ("model.layers.layers.{}.mixer.conv1d", "blk.{}.ssm_conv1d"),
    ("model.layers.layers.{}.mixer.bcdt_proj", "blk.{}.ssm_x"),
    ("model.layers.layers.{}.mixer.dt_proj", "blk.{}.ssm_dt"),
    ("model.layers.layers.{}.mixer.out_proj", "blk.{}.ssm_out"),
];

/// Norms after the mixer and the FFN.
pub(crate) const POST_NORMS: [(&str, &str); 2] = [
    ("model.layers.layers.{}.post_mixer_norm.weight", "blk.{}.post_attention_norm"),
    ("model.layers.layers.{}.post_mlp_norm.weight", "blk.{}.post_ffw_norm"),
];

/// Parameters whose names have no `.weight`.
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
    tensor_names: &[EMBEDDING_AND_OUTPUT, LAYER_NAMES, SSM_NAMES],
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
        for (field, default) in [
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
            config.default(field, default);
        }
        config.default("rms_norm_eps", 1e-6);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let blocks = hparams::block_count(config)?;
        let step = size(config, "mamba_step")?.max(1);
        // Models with few layers have attention in the last one.
        let is_attention = |layer: u32| match blocks <= step / 2 {
            true => layer + 1 == blocks,
            false => layer % step == step / 2,
        };
        let of_attention_layers = |count: u32| -> Array {
            let count = i32::try_from(count).unwrap_or(i32::MAX);
            let layers = (0..blocks).map(|layer| if is_attention(layer) { count } else { 0 });
            Array::from(&layers.collect::<Vec<i32>>()[..])
        };
        keys.vocab_size(config)?;
        keys.set(
            key::ATTENTION_HEAD_COUNT_KV,
            of_attention_layers(hparams::head_count_kv(config)?),
        );
        keys.set(key::ATTENTION_HEAD_COUNT, of_attention_layers(hparams::head_count(config)?));
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        let head = size(config, "hidden_size_per_head")?;
        keys.set(key::ATTENTION_KEY_LENGTH, head);
        keys.set(key::ATTENTION_VALUE_LENGTH, head);
        keys.set(key::BLOCK_COUNT, blocks);
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon(config)?);
        let base = rope::Rope::of(config)?.base;
        keys.set(key::ROPE_FREQ_BASE, base.unwrap_or(rope::DEFAULT_BASE));
        keys.set(key::SSM_STATE_SIZE, size(config, "mamba_d_state")?);
        keys.set(key::SSM_CONV_KERNEL, size(config, "mamba_d_conv")?);
        keys.set(key::SSM_TIME_STEP_RANK, size(config, "mamba_num_heads")?);
        keys.set(key::SSM_INNER_SIZE, mamba_inner_size(config)?);
        keys.set(key::SSM_GROUP_COUNT, 0u32);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.file_type();
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (checkpoint_name, gguf_name) in PARAMETERS {
            if let Some(numbers) = captures(checkpoint_name, name) {
                let decay = gguf_name.ends_with("ssm_a").then_some(Step::Map(Function::MinusExp));
                return Ok(Some(Mapping::one(filled(gguf_name, &numbers), Vec::from_iter(decay))));
            }
        }
        Ok(map_post_norm(name))
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        if name.ends_with(".ssm_conv1d.weight") {
            let kernel = size(config, "mamba_d_conv")?;
            return Ok(vec![steps::channels(kernel, mamba_inner_size(config)?.into())]);
        }
        Ok(norm_steps(name))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let head_counts = |key: &str| {
            let heads = model.metadata().array(&format!("plamo2.attention.{key}"))?;
            Some(heads.iter().map(|count| count.to_u64().unwrap_or(0)).collect::<Vec<_>>())
        };
        let (heads, kv) = (head_counts("head_count")?, head_counts("head_count_kv")?);
        let first = heads.iter().position(|&count| count > 0);
        let second = first.and_then(|first| {
            Some(first + 1 + heads[first + 1..].iter().position(|&count| count > 0)?)
        });
        // The attention layer is the middle one of each period.
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

/// Constants that norm weights after the mixer and after the FFN are stored as offsets from.
const MIXER_NORM_OFFSET: f32 = 0.2;

const FFN_NORM_OFFSET: f32 = 0.089_442_72;

/// Maps a norm after the mixer or the FFN.
pub(crate) fn map_post_norm(name: &str) -> Option<Mapping> {
    let mut norms = POST_NORMS.iter().zip([MIXER_NORM_OFFSET, FFN_NORM_OFFSET]);
    norms.find_map(|((checkpoint_name, gguf_name), offset)| {
        let numbers = captures(checkpoint_name, name)?;
        Some(Mapping::one(filled(gguf_name, &numbers), [Step::Map(Function::Plus(offset))]))
    })
}

/// Returns the steps of a tensor by its GGUF name: norm weights are stored as the difference from 1.
pub(crate) fn norm_steps(name: &str) -> Vec<Step> {
    let is_norm = name.ends_with("_norm.weight");
    Vec::from_iter(is_norm.then_some(Step::Map(Function::PlusOne)))
}

fn size(config: &Config, field: &str) -> Result<u32, Error> {
    config.require_u32(&[field], "a size of the model")
}

/// Returns the inner size of the SSM.
fn mamba_inner_size(config: &Config) -> Result<u32, Error> {
    Ok(size(config, "mamba_num_heads")?.saturating_mul(size(config, "hidden_size_per_head")?))
}
