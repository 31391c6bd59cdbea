//! MiMo V2.5: Qwen's vision encoder with window attention, and an audio tokenizer with codebooks.

use std::collections::BTreeMap;

use gguf::{Array, Error};
use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use serde_json::Value;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, Foreign, common, frames, reshaped};
use super::tensor_names::{QWEN, WHISPER};
use super::tensor_types::TypeOverride;
use crate::convert::assembly::misfit;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{ExpertSlot, MappedTensor, Mapping};
use crate::schema::key;

const FOLDER: &str = "audio_tokenizer";
const CODEBOOK: &str = "audio_tokenizer/encoder.quantizer.vq.layers.{}._codebook.embed";
/// Field of the codebook sizes, which the tensors determine.
const SIZES: &str = "codebook_sizes";
const EMBEDDING: &str = "speech_embeddings.{}.weight";

pub static MIMO: Encoder = Encoder {
    classes: &["MiMoV2ForCausalLM"],
    audio: &["audio_config"],
    folder: Some(FOLDER),
    complete,
    survey,
    keys,
    places: &[
        ("visual.", QWEN),
        ("audio_encoder.", LOCAL),
        ("audio_tokenizer/encoder.", WHISPER),
        ("audio_tokenizer/encoder.", TOKENIZER),
        ("speech_embeddings.", &[]),
    ],
    ignored: &[
        "audio_tokenizer/decoder.",
        // Usage counts of codes, for training.
        "_codebook.cluster_size",
        "_codebook.embed_avg",
        "_codebook.inited",
    ],
    special,
    steps: |_, name, shape| {
        Ok(match (name, shape) {
            ("a.conv1d.1.bias" | "a.conv1d.2.bias", &[len]) => reshaped(shape, &[1, len]),
            _ => Vec::new(),
        })
    },
    kept: &[
        ("a.conv1d.", TypeOverride::F32),
        ("a.downsample.conv.", TypeOverride::F32),
        ("a.rvq.codebook.", TypeOverride::F32),
        ("mm.a.code_embd.", TypeOverride::F32),
    ],
    ..Encoder::VISION
};

const LOCAL: Table = &[
    ("projection.mlp.0", "mm.a.mlp.1"),
    ("projection.mlp.2", "mm.a.mlp.2"),
    ("input_local_transformer.layers.{}.self_attn.q_proj", "mm.a.local_blk.{}.attn_q"),
    ("input_local_transformer.layers.{}.self_attn.k_proj", "mm.a.local_blk.{}.attn_k"),
    ("input_local_transformer.layers.{}.self_attn.v_proj", "mm.a.local_blk.{}.attn_v"),
    ("input_local_transformer.layers.{}.self_attn.o_proj", "mm.a.local_blk.{}.attn_out"),
    ("input_local_transformer.layers.{}.mlp.gate_proj", "mm.a.local_blk.{}.ffn_gate"),
    ("input_local_transformer.layers.{}.mlp.up_proj", "mm.a.local_blk.{}.ffn_up"),
    ("input_local_transformer.layers.{}.mlp.down_proj", "mm.a.local_blk.{}.ffn_down"),
    ("input_local_transformer.layers.{}.input_layernorm", "mm.a.local_blk.{}.ln1"),
    ("input_local_transformer.layers.{}.post_attention_layernorm", "mm.a.local_blk.{}.ln2"),
    ("input_local_transformer.norm", "mm.a.local_norm"),
];

/// Tensors of the audio tokenizer that Whisper's encoder lacks.
const TOKENIZER: Table =
    &[("down_sample_layer.0", "a.downsample.conv"), ("down_sample_norm", "a.downsample.norm")];

fn complete(parts: &mut EncoderConfigs) -> Result<(), Error> {
    let heads =
        EncoderConfigs::number(&parts.vision, &["num_heads"], "the number of attention heads")?;
    parts.vision.default("image_size", 560);
    parts.vision.set("num_attention_heads", heads);
    parts.vision.default("depth", 28);
    parts.audio = parts.of_folder(FOLDER)?;
    for (field, stated) in [
        ("hidden_size", "d_model"),
        ("intermediate_size", "encoder_ffn_dim"),
        ("num_attention_heads", "encoder_attention_heads"),
    ] {
        let number =
            EncoderConfigs::number(&parts.audio, &[stated], "a size of the audio tokenizer")?;
        parts.audio.set(field, number);
    }
    Ok(())
}

/// Returns the size of each codebook.
fn survey(parts: &mut EncoderConfigs, checkpoint: &Checkpoint) -> Result<(), Error> {
    let of_codebook = |entry: &gguf_checkpoint::Entry| {
        Some((*captures(CODEBOOK, &entry.name)?.first()?, entry.shape.first().copied()?))
    };
    let sizes: BTreeMap<u32, u64> = checkpoint.entries.iter().filter_map(of_codebook).collect();
    let missing = (0..).zip(sizes.keys()).find(|(wanted, found)| wanted != *found);
    let missing = missing.map(|(wanted, _)| wanted).or(sizes.is_empty().then_some(0));
    if let Some(missing) = missing {
        let what = format!("has no codebook {missing} of the audio tokenizer");
        return Err(misfit(parts.audio.path(), what));
    }
    parts.audio.set(SIZES, sizes.into_values().collect::<Vec<_>>());
    Ok(())
}

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    let (vision, audio) = (&parts.vision, &parts.audio);
    keys.set(key::VISION_PROJECTOR_TYPE, "mimovl");
    keys.set(key::USE_SILU, true);
    let heads = vision.u32(&["num_key_value_heads"])?.unwrap_or(8);
    keys.set(key::VISION_ATTENTION_HEAD_COUNT_KV, heads);
    let merged = EncoderConfigs::number(
        vision,
        &["spatial_merge_size"],
        "the patches per side that are merged into one token",
    )?;
    keys.set(key::VISION_SPATIAL_MERGE_SIZE, merged);
    let window = &["visual_token_window_size"];
    keys.set(
        key::VISION_WINDOW_SIZE,
        EncoderConfigs::number(vision, window, "the width of windows")?,
    );
    let kinds = kinds_of_windows(vision)?;
    if !kinds.is_empty() {
        keys.set(key::VISION_WA_PATTERN_MODE, Array::from(&kinds[..]));
    }
    let epsilon = vision.f32(&["rms_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    parts.pixels(keys, "min_pixels", "max_pixels")?;
    keys.set(key::AUDIO_PROJECTOR_TYPE, "mimo_audio");
    keys.set(
        key::AUDIO_NUM_MEL_BINS,
        EncoderConfigs::number(audio, &["n_mels"], "of the spectrogram")?,
    );
    let epsilon = audio.f32(&["layer_norm_eps"])?.unwrap_or(1e-5);
    keys.set(key::AUDIO_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    let sizes = audio.u32s(SIZES)?.unwrap_or_default();
    keys.set(key::AUDIO_RVQ_NUM_QUANTIZERS, sizes.len() as u32);
    let sizes: Vec<i32> = sizes.into_iter().map(|size| size as i32).collect();
    keys.set(key::AUDIO_RVQ_CODEBOOK_SIZE, Array::from(&sizes[..]));
    keys.set(key::AUDIO_WA_PATTERN_MODE, Array::from(&windowed_layers(audio)?[..]));
    const WINDOW: &str = "encoder_attn_window_size";
    let window = audio.u32s(WINDOW)?.and_then(|sides| sides.first().copied());
    let window =
        window.ok_or_else(|| audio.missing(WINDOW, "the window size of audio attention"))?;
    keys.set(key::AUDIO_WINDOW_SIZE, window);
    let local = parts.model.part("audio_config");
    let number =
        |field| EncoderConfigs::number(&local, &[field], "a size of the layers that merge frames");
    keys.set(key::AUDIO_LOCAL_BLOCK_COUNT, number("input_local_layers")?);
    keys.set(key::AUDIO_LOCAL_GROUP_SIZE, number("group_size")?);
    Ok(())
}

/// Returns the attention kind of each vision layer: -1 for global attention, else the window order.
fn kinds_of_windows(vision: &Config) -> Result<Vec<i32>, Error> {
    const FIELD: &str = "vit_window_attn_types";
    let Some((_, value)) = vision.find(&[FIELD]) else { return Ok(Vec::new()) };
    let kind = |kind: &Value| kind.as_i64().and_then(|kind| i32::try_from(kind).ok());
    let kinds = value.as_array().and_then(|kinds| kinds.iter().map(kind).collect());
    kinds.ok_or_else(|| vision.wrong(FIELD, value, "a list of whole numbers"))
}

/// Returns the attention kind of each audio layer: 0 for windowed attention, -1 for global attention.
fn windowed_layers(audio: &Config) -> Result<Vec<i32>, Error> {
    let layers = EncoderConfigs::number(
        audio,
        &["encoder_layers"],
        "the number of layers of the audio encoder",
    )?;
    let layers = crate::convert::hparams::possible(audio, "layers", layers)?;
    let block = audio.u32(&["swa_per_block"])?.unwrap_or(1);
    let is_hybrid = audio.bool("hybrid_attention")?.unwrap_or(false) && block > 1;
    let kind = |layer: u32| if is_hybrid && layer % block < block - 1 { 0 } else { -1 };
    Ok((0..layers).map(kind).collect())
}

fn special(parts: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    if tensor.name == "visual.patch_embed.proj.weight" {
        const FIELD: &str = "temporal_patch_size";
        let stated = || parts.vision.find(&[FIELD]).map_or(Value::Null, |(_, value)| value.clone());
        let frames = frames(tensor.shape);
        return frames.map(Some).ok_or_else(|| parts.vision.wrong(FIELD, &stated(), "2"));
    }
    let first = |pattern: &str| captures(pattern, tensor.name)?.first().copied();
    if let Some(index) = first(EMBEDDING) {
        let fields = &["audio_channels"];
        let count =
            EncoderConfigs::number(&parts.model.part("audio_config"), fields, "streams of codes")?;
        let slot = ExpertSlot { index, count };
        return Ok(Some(EncoderMapping::Mapped(Mapping::slot(
            "mm.a.code_embd.weight".into(),
            slot,
        ))));
    }
    let Some(index) = first(CODEBOOK) else { return Ok(None) };
    let sizes = parts.audio.u32s(SIZES)?.unwrap_or_default();
    let steps = vec![Step::Pad { rows: sizes.iter().copied().max().unwrap_or(0).into() }];
    let slot = Some(ExpertSlot { index, count: sizes.len() as u32 });
    let name = "a.rvq.codebook.weight".to_owned();
    Ok(Some(EncoderMapping::Mapped(Mapping::Tensors(vec![MappedTensor { name, steps, slot }]))))
}
