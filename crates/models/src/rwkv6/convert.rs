//! Conversion of RWKV 6. Outputs of time and channel mixing are scaled down in later layers, as
//! runtimes halve the residual stream every `rescale_every_n_layers` layers.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use crate::convert::keys::Keys;
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

/// Context length of all models, as RWKV has no limit but runtimes expect the key.
pub(crate) const CONTEXT: u32 = 1 << 20;

/// Parts of `time_mix_lerp_fused`, in order: the inputs that have their own token shift.
const TOKEN_SHIFT_PARTS: [&str; 5] = ["w", "k", "v", "r", "g"];

/// Form of a time-mixing tensor in checkpoints.
#[derive(Clone, Copy)]
enum Form {
    /// Vector with one element for each channel and two leading dimensions of 1.
    Vector,
    /// As in GGUF.
    Unchanged,
    Transposed,
}

/// Time-mixing tensors: ends of checkpoint names, and GGUF names.
const TIME_MIX_TENSORS: [(&str, &str, Form); 7] = [
    ("time_maa_x", "time_mix_lerp_x", Form::Vector),
    ("time_decay", "time_mix_decay", Form::Vector),
    ("time_faaaa", "time_mix_first", Form::Unchanged),
    ("time_maa_w1", MIX_DOWN, Form::Transposed),
    ("time_maa_w2", MIX_UP, Form::Transposed),
    ("time_decay_w1", "time_mix_decay_w1", Form::Transposed),
    ("time_decay_w2", "time_mix_decay_w2", Form::Transposed),
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
        let is_7b = width == 4096;
        // Default of the FFN width: 3.5 times the embedding length, in multiples of 32.
        let default_ffn = u32::try_from(u64::from(width) * 7 / 64 * 32).unwrap_or(u32::MAX);
        keys.set(key::CONTEXT_LENGTH, CONTEXT);
        keys.set(key::EMBEDDING_LENGTH, width);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        let rescaled = config.require_u32(
            &["rescale_every"],
            "the number of layers between halvings of the residual stream",
        )?;
        keys.set(key::RESCALE_EVERY_N_LAYERS, rescaled);
        keys.set(key::WKV_HEAD_SIZE, config.require_u32(&["head_size"], "the head dimension")?);
        keys.set(key::TIME_MIX_EXTRA_DIM, if is_7b { 64u32 } else { 32 });
        keys.set(key::TIME_DECAY_EXTRA_DIM, if is_7b { 128u32 } else { 64 });
        keys.set(
            key::FEED_FORWARD_LENGTH,
            config.u32(&["intermediate_size"])?.unwrap_or(default_ffn),
        );
        keys.file_type();
        // llama.cpp requires the key and does not use it.
        keys.set(key::ATTENTION_HEAD_COUNT, 0u32);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (checkpoint_name, gguf_name) in CHANNEL_MIX {
            if let Some(&[block]) = captures(checkpoint_name, name).as_deref() {
                let steps = [drop_leading_dims(hparams::width(config)?)];
                return Ok(Some(Mapping::one(format!("blk.{block}.{gguf_name}.weight"), steps)));
            }
        }
        map_time_mix(config, TIME_MIX, name)
    }

    // The outputs of layers are halved every `rescale_every` layers, as the residual stream is at run time.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let output_matrices = ["time_mix_output.weight", "channel_mix_value.weight"];
        let interval = config.u32(&["rescale_every"])?.filter(|&interval| interval > 0);
        let block = name.strip_prefix("blk.").and_then(|rest| rest.split('.').next()?.parse().ok());
        let (Some(interval), Some(block), true) =
            (interval, block, output_matrices.iter().any(|end| name.ends_with(end)))
        else {
            return Ok(Vec::new());
        };
        let block: u32 = block;
        let halvings = i32::try_from(block / interval).unwrap_or(i32::MAX);
        let step = (halvings > 0).then(|| Step::Map(Function::Times(0.5f32.powi(halvings))));
        Ok(Vec::from_iter(step))
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported.patterns(CHANNEL_MIX.map(|(name, _)| name));
        Some(export_time_mix(exported, TIME_MIX).without(&[key::ATTENTION_HEAD_COUNT]))
    }
}

/// Maps a time-mixing tensor, whose checkpoint name starts with `start`.
pub(crate) fn map_time_mix(
    config: &Config,
    start: &str,
    name: &str,
) -> Result<Option<Mapping>, Error> {
    let width = hparams::width(config)?;
    for (end, gguf_name, form) in TIME_MIX_TENSORS {
        if let Some(&[block]) = captures(&format!("{start}{end}"), name).as_deref() {
            let steps = match form {
                Form::Vector => vec![drop_leading_dims(width)],
                Form::Unchanged => vec![],
                Form::Transposed => vec![Step::Transpose],
            };
            return Ok(Some(Mapping::one(format!("blk.{block}.{gguf_name}.weight"), steps)));
        }
    }
    for (index, part) in (0..).zip(TOKEN_SHIFT_PARTS) {
        if let Some(&[block]) = captures(&format!("{start}time_maa_{part}"), name).as_deref() {
            return Ok(Some(Mapping::Tensors(vec![MappedTensor {
                name: format!("blk.{block}.time_mix_lerp_fused.weight"),
                steps: vec![reshape(&[width, 1, 1], &[width, 1, 1])],
                slot: Some(ExpertSlot { index, count: 5 }),
            }])));
        }
    }
    Ok(None)
}

/// Returns the step that drops the leading dimensions of a vector.
fn drop_leading_dims(width: u32) -> Step {
    reshape(&[width, 1, 1], &[width])
}

/// Adds the checkpoint names of time-mixing tensors to an export.
pub(crate) fn export_time_mix(exported: Exported, start: &str) -> Exported {
    let ends = TIME_MIX_TENSORS.iter().map(|(end, ..)| format!("{start}{end}"));
    let mixed = TOKEN_SHIFT_PARTS.iter().map(|part| format!("{start}time_maa_{part}"));
    let names: Vec<String> = ends.chain(mixed).collect();
    exported.patterns(names.iter().map(String::as_str))
}
