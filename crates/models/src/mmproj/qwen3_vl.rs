//! Qwen3-VL, Qwen3.5, Qwen3-Omni and Qwen3-ASR: DeepStack feeds image features into several layers of the text model.

use gguf::{Array, Error};

use super::audio;
use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, Foreign, common, frames, reshaped};
use super::tensor_names::{QWEN, QWEN_AUDIO, captured};
use crate::convert::keys::Keys;
use crate::schema::key;

pub static QWEN3_VL: Encoder = Encoder {
    classes: &["Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration"],
    complete: |parts| {
        parts.vision.default("deepstack_visual_indexes", vec![8, 16, 24]);
        complete(parts)
    },
    keys: |parts, keys| {
        common(parts, keys)?;
        keys.set(key::PROJECTOR_TYPE, "qwen3vl_merger");
        of_images(parts, keys)
    },
    places: &[("visual.", QWEN)],
    special,
    ..Encoder::VISION
};

/// Qwen3.5, without DeepStack.
pub static QWEN3_5: Encoder = Encoder {
    classes: &[
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
        "Qwen4ExpForConditionalGeneration",
    ],
    complete,
    ..QWEN3_VL
};

pub static QWEN3_OMNI: Encoder = Encoder {
    classes: &["Qwen3OmniMoeForConditionalGeneration"],
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
        of_images(parts, keys)?;
        keys.set(key::VISION_PROJECTOR_TYPE, "qwen3vl_merger");
        keys.set(key::AUDIO_PROJECTOR_TYPE, "qwen3a");
        Ok(())
    },
    places: &[("visual.", QWEN), ("audio_tower.", QWEN_AUDIO)],
    steps: |_, name, shape| {
        Ok(match name.starts_with("a.conv2d.") && name.ends_with(".bias") {
            true => reshaped(shape, &[1, 1, shape.iter().product()]),
            false => Vec::new(),
        })
    },
    kept: audio::CONVOLUTIONS,
    computed: audio::positions,
    ..QWEN3_VL
};

pub static QWEN3_ASR: Encoder = Encoder {
    classes: &["Qwen3ASRForConditionalGeneration"],
    vision: &[],
    complete: |parts| {
        audio::whisper_fields(parts);
        Ok(())
    },
    keys: |parts, keys| {
        common(parts, keys)?;
        audio::spectrogram(parts, keys)?;
        keys.set(key::AUDIO_PROJECTOR_TYPE, "qwen3a");
        Ok(())
    },
    places: &[("audio_tower.", QWEN_AUDIO)],
    special: |_, _| Ok(None),
    ..QWEN3_OMNI
};

pub fn complete(parts: &mut EncoderConfigs) -> Result<(), Error> {
    let vision = &mut parts.vision;
    if vision.find(&["image_size"]).is_none() {
        let positions = vision.u32(&["num_position_embeddings"])?.unwrap_or(2304);
        let patch = vision.u32(&["patch_size"])?.unwrap_or(16);
        vision.set("image_size", (f64::from(positions).sqrt() * f64::from(patch)) as u32);
    }
    for (field, stated) in [("num_attention_heads", "num_heads"), ("num_hidden_layers", "depth")] {
        if let Some(value) = vision.find(&[stated]).map(|(_, value)| value.clone()) {
            vision.set(field, value);
        }
    }
    Ok(())
}

fn of_images(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    keys.set(key::USE_GELU, true);
    keys.set_u32(key::VISION_SPATIAL_MERGE_SIZE, parts.vision.u32(&["spatial_merge_size"])?);
    let epsilon = parts.text.f32(&["rms_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    let layers = EncoderConfigs::layers(&parts.vision)?;
    let taken = taken(parts)?;
    if let Some(layer) = taken.iter().find(|layer| **layer >= layers) {
        let expected = format!("layers below {layers}");
        return Err(parts.vision.wrong(TAKEN, &(*layer).into(), &expected));
    }
    let flags: Vec<bool> = (0..layers).map(|layer| taken.contains(&layer)).collect();
    if !flags.is_empty() {
        keys.set(key::VISION_IS_DEEPSTACK_LAYERS, Array::from(&flags[..]));
    }
    Ok(())
}

const TAKEN: &str = "deepstack_visual_indexes";

/// Returns the DeepStack layers.
fn taken(parts: &EncoderConfigs) -> Result<Vec<u32>, Error> {
    Ok(parts.vision.u32s(TAKEN)?.unwrap_or_default())
}

pub fn special(parts: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    if tensor.name == "visual.patch_embed.proj.weight" {
        return Ok(frames(tensor.shape));
    }
    const FURTHER: &[(&str, &str)] = &[
        ("visual.deepstack_merger_list.{}.norm", "norm"),
        ("visual.deepstack_merger_list.{}.linear_fc1", "fc1"),
        ("visual.deepstack_merger_list.{}.linear_fc2", "fc2"),
        ("visual.merger_list.{}.ln_q", "norm"),
        ("visual.merger_list.{}.mlp.0", "fc1"),
        ("visual.merger_list.{}.mlp.2", "fc2"),
    ];
    let Some((numbers, end, ours)) = captured(tensor.name, FURTHER) else { return Ok(None) };
    let place = numbers.first().copied().unwrap_or(0);
    let layers = taken(parts)?;
    let layer = layers.get(place as usize).ok_or_else(|| {
        let expected = format!("a list with the layer of projector {place}");
        parts.vision.wrong(TAKEN, &layers.clone().into(), &expected)
    })?;
    Ok(Some(EncoderMapping::one(format!("v.deepstack.{layer}.{ours}.{end}"), [])))
}
