//! Whisper's encoder in front of a text model: Qwen2-Audio, Ultravox, Voxtral and others.

use gguf::Error;

use super::audio;
use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, common, reshaped};
use super::tensor_names::{AUDIO_PROJECTOR, WHISPER, captured};
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::schema::key;

pub static QWEN2_AUDIO: Encoder = Encoder {
    classes: &["Qwen2AudioForConditionalGeneration"],
    complete: |parts| {
        audio::whisper_fields(parts);
        Ok(())
    },
    keys: |parts, keys| keys_of(parts, keys, "qwen2a"),
    places: &[("audio_tower.", WHISPER), ("multi_modal_projector.", AUDIO_PROJECTOR)],
    steps: |_, name, shape| {
        Ok(match name {
            "a.conv1d.1.bias" | "a.conv1d.2.bias" => reshaped(shape, &[1, shape.iter().product()]),
            _ => Vec::new(),
        })
    },
    kept: audio::CONVOLUTIONS,
    ..Encoder::AUDIO
};

pub static ULTRAVOX: Encoder = Encoder {
    classes: &["UltravoxModel"],
    keys: |parts, keys| {
        keys_of(parts, keys, "ultravox")?;
        stacked(parts, keys, "stack_factor")
    },
    ..QWEN2_AUDIO
};

pub static VOXTRAL: Encoder = Encoder {
    classes: &["VoxtralForConditionalGeneration"],
    keys: |parts, keys| {
        keys_of(parts, keys, "voxtral")?;
        keys.set(key::AUDIO_PROJECTOR_STACK_FACTOR, 4u32);
        Ok(())
    },
    ..QWEN2_AUDIO
};

pub static AUDIO_FLAMINGO: Encoder = Encoder {
    classes: &["AudioFlamingo3ForConditionalGeneration"],
    keys: |parts, keys| keys_of(parts, keys, "musicflamingo"),
    kept: &[("a.conv1d.", TypeOverride::F32)],
    ..QWEN2_AUDIO
};

pub static MERALION: Encoder = Encoder {
    classes: &["MERaLiON2ForConditionalGeneration"],
    audio: &["speech_config"],
    keys: |parts, keys| {
        keys_of(parts, keys, "meralion")?;
        let factor = parts.model.u32(&["speech_mlp_scale_factor"])?.unwrap_or(15);
        keys.set(key::AUDIO_PROJECTOR_STACK_FACTOR, factor);
        Ok(())
    },
    places: &[
        ("speech_encoder.", WHISPER),
        ("ln_speech.", &[]),
        (
            "speech_audio_adapter.",
            &[
                ("mlp_adapter.0", "mm.a.mlp.0"),
                ("gate_proj", "mm.a.mlp.1"),
                ("pool_proj", "mm.a.mlp.2"),
                ("out_proj", "mm.a.mlp.3"),
            ],
        ),
    ],
    special: |_, tensor| {
        let end = tensor.name.strip_prefix("ln_speech.");
        Ok(end.map(|end| EncoderMapping::one(format!("mm.a.norm_pre.{end}"), [])))
    },
    ..QWEN2_AUDIO
};

pub static GLM_ASR: Encoder = Encoder {
    classes: &["GlmasrModel"],
    audio: &["whisper_config"],
    keys: |parts, keys| {
        keys_of(parts, keys, "glma")?;
        stacked(parts, keys, "merge_factor")
    },
    places: &[
        ("audio_encoder.whisper.", WHISPER),
        ("audio_tower.", WHISPER),
        ("audio_encoder.", &[]),
    ],
    ignored: &["audio_encoder.proj."],
    special: |_, tensor| {
        const BOUNDS: &str = "audio_encoder.audio_bos_eos_token.weight";
        const PROJECTOR: &[(&str, &str)] = &[
            ("audio_encoder.layer_norm", "mm.a.norm_pre"),
            ("audio_encoder.adapting.{}", "mm.a.mlp"),
        ];
        if tensor.name == BOUNDS {
            let width = tensor.shape.first().copied().unwrap_or(0);
            let token = |name: &str, row| {
                let mut steps = vec![gguf_pipeline::Step::Pick { groups: 1, start: row, len: 1 }];
                steps.extend(reshaped(&[width, 1], &[width]));
                (name.to_owned(), steps)
            };
            return Ok(Some(EncoderMapping::several([token("v.boi", 0), token("v.eoi", 1)])));
        }
        Ok(captured(tensor.name, PROJECTOR).map(|(numbers, end, ours)| match numbers[..] {
            // The activation between them has no weights.
            [layer] => EncoderMapping::one(format!("{ours}.{}.{end}", layer / 2 + 1), []),
            _ => EncoderMapping::one(format!("{ours}.{end}"), []),
        }))
    },
    ..QWEN2_AUDIO
};

fn keys_of(parts: &EncoderConfigs, keys: &mut Keys, projector: &str) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, projector);
    audio::spectrogram(parts, keys)
}

/// Writes the number of frames that the projector stacks.
fn stacked(parts: &EncoderConfigs, keys: &mut Keys, field: &str) -> Result<(), Error> {
    let factor =
        parts.model.require_u32(&[field], "the number of frames that the projector merges")?;
    keys.set(key::AUDIO_PROJECTOR_STACK_FACTOR, factor);
    Ok(())
}
