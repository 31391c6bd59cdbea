//! Qwen2-VL, Qwen2.5-VL, Qwen2.5-Omni and models with their vision encoder: patches over two frames, and a projector that
//! merges four patches.

use gguf::Error;
use serde_json::Value;

use super::audio;
use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, Foreign, common, divided, frames, reshaped};
use super::tensor_names::{QWEN, QWEN_AUDIO, layer_of};
use crate::convert::keys::Keys;
use crate::schema::key;

pub static QWEN2_VL: Encoder = Encoder {
    classes: &["Qwen2VLForConditionalGeneration", "Qwen2VLModel"],
    complete: |parts| complete(parts),
    keys: |parts, keys| {
        common(parts, keys)?;
        keys.set(key::PROJECTOR_TYPE, "qwen2vl_merger");
        epsilon(keys);
        Ok(())
    },
    places: &[("visual.", QWEN)],
    special,
    ..Encoder::VISION
};

/// Sarashina2 Vision, whose text model is Llama's.
pub static SARASHINA2: Encoder = Encoder { classes: &["Sarashina2VisionForCausalLM"], ..QWEN2_VL };

pub static QWEN2_5_VL: Encoder = Encoder {
    classes: &["Qwen2_5_VLForConditionalGeneration"],
    keys: |parts, keys| {
        common(parts, keys)?;
        keys.set(key::PROJECTOR_TYPE, "qwen2.5vl_merger");
        windowed(parts, keys)
    },
    ..QWEN2_VL
};

pub static QWEN2_5_OMNI: Encoder = Encoder {
    classes: &["Qwen2_5OmniModel"],
    vision: &["thinker_config", "vision_config"],
    audio: &["thinker_config", "audio_config"],
    complete: |parts| {
        complete(parts)?;
        audio::whisper_fields(parts);
        Ok(())
    },
    keys: |parts, keys| {
        common(parts, keys)?;
        audio::spectrogram(parts, keys)?;
        keys.set(key::PROJECTOR_TYPE, "qwen2.5o");
        windowed(parts, keys)
    },
    places: &[("visual.", QWEN), ("audio_tower.", QWEN_AUDIO)],
    ignored: &["audio_bos_eos_token"],
    steps: |_, name, shape| {
        Ok(match name {
            "a.conv1d.1.bias" | "a.conv1d.2.bias" => reshaped(shape, &[1, shape.iter().product()]),
            _ => Vec::new(),
        })
    },
    kept: audio::CONVOLUTIONS,
    computed: audio::positions,
    ..QWEN2_VL
};

pub static EXAONE4_5: Encoder = Encoder {
    classes: &["Exaone4_5_ForConditionalGeneration"],
    keys: |parts, keys| {
        common(parts, keys)?;
        let vision = &parts.vision;
        keys.set(key::PROJECTOR_TYPE, "exaone4_5");
        keys.set(key::USE_SILU, true);
        parts.pixels(keys, "min_pixels", "max_pixels")?;
        keys.set_u32(key::VISION_ATTENTION_HEAD_COUNT_KV, vision.u32(&["num_key_value_heads"])?);
        let epsilon = vision.f32(&["rms_norm_eps"])?.or(parts.model.f32(&["rms_norm_eps"])?);
        keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon.unwrap_or(1e-6));
        keys.set_u32(key::VISION_WINDOW_SIZE, vision.u32(&["window_size"])?);
        keys.set_u32(key::VISION_N_WA_PATTERN, every(parts)?);
        Ok(())
    },
    special: |_, tensor| {
        Ok(match tensor.name {
            "visual.patch_embed.proj.weight" => frames(tensor.shape),
            _ => None,
        })
    },
    ..QWEN2_VL
};

fn complete(parts: &mut EncoderConfigs) -> Result<(), Error> {
    let vision = &mut parts.vision;
    vision.default("image_size", 560);
    for (field, stated) in [("num_attention_heads", "num_heads"), ("num_hidden_layers", "depth")] {
        if let Some((_, value)) = vision.find(&[stated]) {
            let value = value.clone();
            vision.set(field, value);
        }
    }
    // In Qwen2-VL, `hidden_size` is the width of the text model.
    if let Some(width) = vision.find(&["embed_dim"]).map(|(_, width)| width.clone()) {
        let hidden = vision.find(&["hidden_size"]).map_or(Value::Null, |(_, width)| width.clone());
        vision.set("intermediate_size", hidden);
        vision.set("hidden_size", width);
    }
    Ok(())
}

/// Default of the class, whatever the text model has.
fn epsilon(keys: &mut Keys) {
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, 1e-6f32);
}

/// Writes the keys of window attention, which most layers use.
fn windowed(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    keys.set(key::USE_SILU, true);
    let every = every(parts)?.ok_or_else(|| {
        parts.vision.missing("fullatt_block_indexes", "the layers with full attention")
    })?;
    keys.set(key::VISION_N_WA_PATTERN, every);
    epsilon(keys);
    Ok(())
}

/// Returns the period of layers with full attention.
fn every(parts: &EncoderConfigs) -> Result<Option<u32>, Error> {
    const FIELD: &str = "fullatt_block_indexes";
    let Some(layers) = parts.vision.u32s(FIELD)? else { return Ok(None) };
    let Some(every) = layers.first().map(|first| first.saturating_add(1)) else { return Ok(None) };
    match layers.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(every)) {
        true => Ok(Some(every)),
        false => Err(parts.vision.wrong(FIELD, &layers.into(), "layers at even distances")),
    }
}

pub fn special(_: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    if tensor.name == "visual.patch_embed.proj.weight" {
        return Ok(frames(tensor.shape));
    }
    Ok(layer_of(tensor.name, "visual.blocks.{}.attn.qkv").map(|(layer, end)| {
        divided(["q", "k", "v"].map(|x| format!("v.blk.{layer}.attn_{x}.{end}")), tensor.shape)
    }))
}
