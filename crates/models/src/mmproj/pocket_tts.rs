//! Pocket TTS: the voice encoder, the flow network, and the decoder of the Mimi codec.

use gguf::Error;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, Foreign, divided, reshaped};
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures, filled};
use crate::schema::key;

/// Number of resampling convolutions in Mimi's encoder and decoder.
const STAGES: u32 = 3;

pub static POCKET_TTS: Encoder = Encoder {
    classes: &["PocketTTSModel"],
    keys,
    special,
    kept: &[
        (".seanet.", TypeOverride::F16),
        ("a.downsample.conv.", TypeOverride::F16),
        ("a.gen.wav.upsample.", TypeOverride::F16),
    ],
    ..Encoder::AUDIO
};

/// Tensor names before a suffix.
const ENDING: Table = &[
    ("flow_lm.input_linear", "a.gen.input_linear"),
    ("flow_lm.out_eos", "a.gen.out_eos"),
    ("flow_lm.flow_net.input_proj", "a.gen.flow.input_proj"),
    ("flow_lm.flow_net.cond_embed", "a.gen.flow.cond_embd"),
    ("flow_lm.flow_net.final_layer.linear", "a.gen.flow.final.proj"),
    ("flow_lm.flow_net.final_layer.adaLN_modulation.1", "a.gen.flow.final.ada"),
    ("flow_lm.flow_net.time_embed.{}.mlp.0", "a.gen.flow.time.{}.up"),
    ("flow_lm.flow_net.time_embed.{}.mlp.2", "a.gen.flow.time.{}.down"),
    ("flow_lm.flow_net.res_blocks.{}.in_ln", "a.gen.flow.blk.{}.norm"),
    ("flow_lm.flow_net.res_blocks.{}.mlp.0", "a.gen.flow.blk.{}.up"),
    ("flow_lm.flow_net.res_blocks.{}.mlp.2", "a.gen.flow.blk.{}.down"),
    ("flow_lm.flow_net.res_blocks.{}.adaLN_modulation.1", "a.gen.flow.blk.{}.ada"),
    ("mimi.downsample.conv.conv", "a.downsample.conv"),
    ("mimi.upsample.convtr.convtr", "a.gen.wav.upsample"),
    ("mimi.quantizer.output_proj", "a.gen.wav.quant_out"),
];

/// Tensor names without a suffix or with another.
const WHOLE: Table = &[
    ("flow_lm.speaker_proj_weight", "a.speaker_proj.weight"),
    ("flow_lm.emb_mean", "a.gen.emb_mean"),
    ("flow_lm.emb_std", "a.gen.emb_std"),
    ("flow_lm.flow_net.time_embed.{}.freqs", "a.gen.flow.time.{}.freqs"),
    ("flow_lm.flow_net.time_embed.{}.mlp.3.alpha", "a.gen.flow.time.{}.norm"),
];

/// Mimi's encoder and decoder: prefixes of checkpoint and GGUF names, and indices of the resampling convolution and the
/// residual block in a stage.
struct Half {
    name: &'static str,
    layers: &'static str,
    ours: &'static str,
    scale: u32,
    residual: u32,
}

const HALVES: [Half; 2] = [
    Half { name: "encoder", layers: "a.blk.", ours: "a.seanet.", scale: 3, residual: 1 },
    Half {
        name: "decoder",
        layers: "a.gen.wav.tfm.blk.",
        ours: "a.gen.wav.seanet.",
        scale: 2,
        residual: 3,
    },
];

/// Tensor names of Mimi's layers, between layer index and suffix.
const LAYER: Table = &[
    ("norm1", "ln1"),
    ("norm2", "ln2"),
    ("self_attn.out_proj", "attn_out"),
    ("linear1", "ffn_up"),
    ("linear2", "ffn_down"),
    ("layer_scale_1", "ls1"),
    ("layer_scale_2", "ls2"),
];

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    let audio = &parts.audio;
    let number = |field| EncoderConfigs::number(audio, &[field], "a size of the audio encoder");
    let (width, wide) = (number("hidden_size")?, number("intermediate_size")?);
    let (layers, heads) = (number("num_hidden_layers")?, number("num_attention_heads")?);
    let projected = parts.text_width()?;
    keys.file_type();
    keys.set(key::HAS_AUDIO_ENCODER, true);
    keys.set(key::AUDIO_PROJECTOR_TYPE, "pockettts_spkenc");
    keys.set(key::AUDIO_PROJECTION_DIM, projected);
    keys.set(key::AUDIO_BLOCK_COUNT, layers);
    keys.set(key::AUDIO_EMBEDDING_LENGTH, width);
    keys.set(key::AUDIO_FEED_FORWARD_LENGTH, wide);
    keys.set(key::AUDIO_ATTENTION_HEAD_COUNT, heads);
    keys.set(key::AUDIO_ATTENTION_LAYER_NORM_EPSILON, 1e-5f32);
    // Audio is not normalized.
    keys.set(key::AUDIO_NUM_MEL_BINS, 1u32);
    keys.set(key::HAS_GEN_AUDIO_ENCODER, true);
    keys.set(key::GEN_AUDIO_PROJECTOR_TYPE, "pockettts_gen");
    keys.set(key::GEN_AUDIO_PROJECTION_DIM, projected);
    keys.set(key::GEN_AUDIO_EMBEDDING_LENGTH, width);
    keys.set(key::GEN_AUDIO_FEED_FORWARD_LENGTH, wide);
    keys.set(key::GEN_AUDIO_BLOCK_COUNT, layers);
    keys.set(key::GEN_AUDIO_ATTENTION_HEAD_COUNT, heads);
    keys.set(key::GEN_AUDIO_ATTENTION_LAYER_NORM_EPSILON, 1e-5f32);
    // Language, which names the folders of the repository.
    let dir = parts.model.path().parent().and_then(|dir| dir.file_name());
    let variant = dir.unwrap_or_default().to_string_lossy().into_owned();
    keys.set(key::GEN_AUDIO_MODEL_VARIANT, variant);
    Ok(())
}

fn special(_: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    let name = tensor.name;
    let find = |name: &str, table: Table| {
        let found = |(foreign, ours): &(&str, &str)| Some(filled(ours, &captures(foreign, name)?));
        table.iter().find_map(found)
    };
    if let Some(ours) = find(name, WHOLE) {
        return Ok(Some(EncoderMapping::one(ours, Vec::new())));
    }
    let Some((stem, end)) = name.rsplit_once('.') else { return Ok(None) };
    if let Some(ours) = find(stem, ENDING) {
        let steps = match *tensor.shape {
            [1, inputs, outputs] if ours == "a.gen.wav.quant_out" => {
                reshaped(tensor.shape, &[inputs, outputs])
            }
            _ => Vec::new(),
        };
        return Ok(Some(EncoderMapping::one(format!("{ours}.{end}"), steps)));
    }
    Ok(HALVES.iter().find_map(|half| layer(half, tensor).or_else(|| convolution(half, name, end))))
}

/// Maps a tensor of a Mimi layer.
fn layer(half: &Half, tensor: &Foreign) -> Option<EncoderMapping> {
    let name = tensor.name.strip_prefix("mimi.")?.strip_prefix(half.name)?;
    let (number, part) = name.strip_prefix("_transformer.transformer.layers.")?.split_once('.')?;
    let number: u32 = number.parse().ok()?;
    let ours = |part: &str| format!("{}{number}.{part}", half.layers);
    if part == "self_attn.in_proj.weight" {
        let names = ["q", "k", "v"].map(|part| ours(&format!("attn_{part}.weight")));
        return Some(divided(names, tensor.shape));
    }
    let (stem, end) = part.rsplit_once('.')?;
    let (_, part) = LAYER.iter().find(|(foreign, _)| *foreign == stem)?;
    let end = if end == "scale" { "weight" } else { end };
    Some(EncoderMapping::one(ours(&format!("{part}.{end}")), Vec::new()))
}

/// Maps a convolution of Mimi, whose number determines its role.
fn convolution(half: &Half, name: &str, end: &str) -> Option<EncoderMapping> {
    let name = name.strip_prefix("mimi.")?.strip_prefix(half.name)?.strip_prefix(".model.")?;
    let (number, rest) = name.split_once('.')?;
    let number: u32 = number.parse().ok()?;
    let made =
        |part: String| Some(EncoderMapping::one(format!("{}{part}.{end}", half.ours), Vec::new()));
    if number == 0 {
        return made("conv_in".into());
    }
    if number == 3 * STAGES + 2 {
        return made("conv_out".into());
    }
    (0..STAGES).find_map(|stage| {
        if number == half.scale + 3 * stage {
            return made(format!("blk.{stage}.scale_conv"));
        }
        if number != half.residual + 3 * stage {
            return None;
        }
        match rest.strip_prefix("block.")?.split_once('.')?.0 {
            "1" => made(format!("blk.{stage}.res_conv1")),
            _ => made(format!("blk.{stage}.res_conv2")),
        }
    })
}
