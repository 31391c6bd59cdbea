//! RWKV version 6, and Qwen 2 with its attention replaced by that.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::ssm::reshape;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{
    Converter, Description, ExpertSlot, Exported, MappedTensor, Mapping, VocabularyKind, hparams,
};
use crate::rwkv;
use crate::schema::key;

const NAMES: Table = &[
    ("rwkv.blocks.{}.attention.gate", "blk.{}.time_mix_gate"),
    ("rwkv.blocks.{}.attention.ln_x", "blk.{}.time_mix_ln"),
];

const TIME_MIX: &str = "rwkv.blocks.{}.attention.";

const CHANNEL_MIX: [(&str, &str); 2] = [
    ("rwkv.blocks.{}.feed_forward.time_maa_k", "channel_mix_lerp_k"),
    ("rwkv.blocks.{}.feed_forward.time_maa_r", "channel_mix_lerp_r"),
];

/// RWKV has no longest context.
pub(crate) const CONTEXT: u32 = 1 << 20;

/// How much of the token before is mixed in, for each of these: parts of one tensor, in its order.
const MIXED: [&str; 5] = ["w", "k", "v", "r", "g"];

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

pub(crate) struct Rwkv6;

/// Description of [`Rwkv6`].
pub(crate) static RWKV6: Description = Description {
    classes: &["Rwkv6ForCausalLM"],
    architecture: "rwkv6",
    model_type: "rwkv6",
    vocabulary: VocabularyKind::Rwkv,
    tensor_names: &[NAMES, rwkv::convert::NAMES],
    config_fields: &[
        (key::WKV_HEAD_SIZE, "head_size"),
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_epsilon"),
        (key::RESCALE_EVERY_N_LAYERS, "rescale_every"),
    ],
    ..Description::DECODER
};

impl Converter for Rwkv6 {
    fn description(&self) -> &'static Description {
        &RWKV6
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = hparams::width(config)?;
        let is_wide = width == 4096;
        // 3.5 times the width, in multiples of 32.
        let usual = u32::try_from(u64::from(width) * 7 / 64 * 32).unwrap_or(u32::MAX);
        keys.set(key::CONTEXT_LENGTH, CONTEXT);
        keys.set(key::EMBEDDING_LENGTH, width);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        let rescaled = config.require_u32(&["rescale_every"], "every how many layers to halve")?;
        keys.set(key::RESCALE_EVERY_N_LAYERS, rescaled);
        keys.set(key::WKV_HEAD_SIZE, config.require_u32(&["head_size"], "the width of a head")?);
        keys.set(key::TIME_MIX_EXTRA_DIM, if is_wide { 64u32 } else { 32 });
        keys.set(key::TIME_DECAY_EXTRA_DIM, if is_wide { 128u32 } else { 64 });
        keys.set(key::FEED_FORWARD_LENGTH, config.u32(&["intermediate_size"])?.unwrap_or(usual));
        keys.file_type();
        // Programs ask for it and do not use it.
        keys.set(key::ATTENTION_HEAD_COUNT, 0u32);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (foreign, ours) in CHANNEL_MIX {
            if let Some(&[block]) = captures(foreign, name).as_deref() {
                let steps = [of_channels(hparams::width(config)?)];
                return Ok(Some(Mapping::one(format!("blk.{block}.{ours}.weight"), steps)));
            }
        }
        time_mix(config, TIME_MIX, name)
    }

    // What is added to the stream is halved every so many layers, as the stream is when it runs.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
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

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported.patterns(CHANNEL_MIX.map(|(name, _)| name));
        Some(with_time_mix(exported, TIME_MIX).without(&[key::ATTENTION_HEAD_COUNT]))
    }
}

/// What becomes of a tensor of the time mix, whose names begin with `start`.
pub(crate) fn time_mix(config: &Config, start: &str, name: &str) -> Result<Option<Mapping>, Error> {
    let width = hparams::width(config)?;
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
pub(crate) fn with_time_mix(exported: Exported, start: &str) -> Exported {
    let ends = OF_TIME_MIX.iter().map(|(end, ..)| format!("{start}{end}"));
    let mixed = MIXED.iter().map(|part| format!("{start}time_maa_{part}"));
    let names: Vec<String> = ends.chain(mixed).collect();
    exported.patterns(names.iter().map(String::as_str))
}
