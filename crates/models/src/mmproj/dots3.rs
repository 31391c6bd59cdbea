//! Dots 3: a vision encoder with mixture-of-experts layers, and an audio encoder with gated layers behind convolutions.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use serde_json::Value;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, Foreign, common, divided};
use super::tensor_names::layer_of;
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::captures;
use crate::convert::{ExpertSlot, Mapping};
use crate::schema::key;

const EXPERTS: [(&str, &str); 3] = [
    ("vision_encoder.blocks.{}.mlp.experts.{}.fc1.weight", "ffn_gate_exps"),
    ("vision_encoder.blocks.{}.mlp.experts.{}.fc2.weight", "ffn_down_exps"),
    ("vision_encoder.blocks.{}.mlp.experts.{}.fc3.weight", "ffn_up_exps"),
];
/// Tensors without a suffix in checkpoints.
const ROUTER: [(&str, &str); 2] = [
    ("vision_encoder.blocks.{}.mlp.gate_weight", "ffn_gate_inp"),
    ("vision_encoder.blocks.{}.mlp.router_bias", "exp_probs_b"),
];
const GATED: &str = "audio_encoder.dots_encoder.speech_encoder.layers.{}.fc1";
/// Epsilon of the audio encoder's norms, from its class.
const SOUND_EPSILON: f32 = 1e-6;

pub static DOTS3: Encoder = Encoder {
    classes: &["Dots3NoteForCausalLM", "Dots3NoteForConditionalGeneration"],
    audio: &["audio_config"],
    complete,
    keys,
    places: &[
        (
            "vision_encoder.",
            &[
                ("patch_embed.proj", "v.patch_embd"),
                ("patch_embed.norm", "v.pre_ln"),
                ("blocks.{}.norm_1", "v.blk.{}.ln1"),
                ("blocks.{}.norm_2", "v.blk.{}.ln2"),
                ("blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"),
                ("blocks.{}.attn.q_norm", "v.blk.{}.attn_q_norm"),
                ("blocks.{}.attn.k_norm", "v.blk.{}.attn_k_norm"),
                ("blocks.{}.attn.proj", "v.blk.{}.attn_out"),
                ("blocks.{}.mlp.fc1", "v.blk.{}.ffn_gate"),
                ("blocks.{}.mlp.fc2", "v.blk.{}.ffn_down"),
                ("blocks.{}.mlp.fc3", "v.blk.{}.ffn_up"),
                ("post_trunk_norm", "mm.post_norm"),
                ("adapter.ln_q", "mm.input_norm"),
                ("adapter.mlp.{}", "mm.{}"),
            ],
        ),
        (
            "audio_encoder.dots_encoder.speech_encoder.",
            &[
                ("conv2d{}", "a.conv2d.{}"),
                ("conv_out", "a.conv_out"),
                ("layer_norm", "a.post_ln"),
                ("layers.{}.self_attn_layer_norm", "a.blk.{}.ln1"),
                ("layers.{}.final_layer_norm", "a.blk.{}.ln2"),
                ("layers.{}.self_attn.q_proj", "a.blk.{}.attn_q"),
                ("layers.{}.self_attn.k_proj", "a.blk.{}.attn_k"),
                ("layers.{}.self_attn.v_proj", "a.blk.{}.attn_v"),
                ("layers.{}.self_attn.out_proj", "a.blk.{}.attn_out"),
                ("layers.{}.fc2", "a.blk.{}.ffn_down"),
            ],
        ),
        (
            "audio_encoder.audio_adapter.",
            &[("proj.0", "mm.a.norm_pre"), ("proj.{}", "mm.a.mlp.{}")],
        ),
    ],
    special,
    kept: &[
        (".ffn_gate_inp.", TypeOverride::F32),
        ("a.conv2d", TypeOverride::F32),
        ("a.conv_out", TypeOverride::F32),
    ],
    ..Encoder::VISION
};

fn complete(parts: &mut EncoderConfigs) -> Result<(), Error> {
    for (field, expected) in [
        ("adapter_type", Value::from("patch_merger")),
        ("pre_pixel_shuffle", true.into()),
        ("use_qk_norm", true.into()),
    ] {
        require(&parts.vision, field, &expected, true)?;
    }
    for (field, expected) in [
        ("router_scoring_func", Value::from("sigmoid")),
        ("router_scale", 1.0.into()),
        ("temporal_patch_size", 1.into()),
        ("use_bias", false.into()),
    ] {
        require(&parts.vision, field, &expected, false)?;
    }
    for field in ["use_conv2d_stem", "use_rope", "use_rms_norm"] {
        require(&parts.audio, field, &true.into(), true)?;
    }
    for (field, expected) in [("use_causal", Value::from(false)), ("merge_factor", 1.into())] {
        require(&parts.audio, field, &expected, false)?;
    }
    require(&parts.audio, "chunk_seconds", &60.into(), true)?;
    let rope = parts.audio.part("rope_parameters");
    require(&rope, "partial_rotary_factor", &0.5.into(), true)?;
    require(&rope, "rope_theta", &10000.0.into(), true)?;
    let whisper = parts.audio.part("whisper_config");
    require(&whisper, "activation_function", &"swiglu".into(), true)?;
    for (field, stated) in [
        ("hidden_size", "d_model"),
        ("intermediate_size", "encoder_ffn_dim"),
        ("num_attention_heads", "encoder_attention_heads"),
        ("num_hidden_layers", "encoder_layers"),
    ] {
        parts
            .audio
            .set(field, EncoderConfigs::number(&whisper, &[stated], "a size of the encoder")?);
    }
    // This field is the output width of the projector. Images have any size.
    let width =
        EncoderConfigs::number(&parts.vision, &["embed_dim"], "the embedding size of the encoder")?;
    parts.vision.set("hidden_size", width);
    parts.vision.set("image_size", 0);
    let of_images = parts.image.part("vision_config");
    for (field, value) in of_images.json().as_object().into_iter().flatten() {
        parts.image.set(field, value.clone());
    }
    Ok(())
}

/// Fails if a field has a value that no runtime supports, or if it is required and missing.
fn require(config: &Config, field: &str, expected: &Value, wanted: bool) -> Result<(), Error> {
    let same = |value: &Value| match (value.as_f64(), expected.as_f64()) {
        (Some(value), Some(expected)) => value == expected,
        _ => value == expected,
    };
    match config.find(&[field]) {
        None if wanted => Err(config.missing(field, &format!("which must be {expected}"))),
        Some((_, value)) if !same(value) => {
            Err(config.wrong(field, value, &format!("{expected}, which programs compute")))
        }
        _ => Ok(()),
    }
}

/// Returns the number of experts of each layer, 0 for dense layers.
fn pyramid(parts: &EncoderConfigs) -> Result<Vec<i32>, Error> {
    const FIELD: &str = "pyramid_num_routed";
    let missing = || parts.vision.missing(FIELD, "the experts of each layer");
    let (_, list) = parts.vision.find(&[FIELD]).ok_or_else(missing)?;
    let count = |value: &Value| Some(i32::try_from(value.as_i64()?).ok()?.max(0));
    let counts = list.as_array().and_then(|list| list.iter().map(count).collect());
    counts.ok_or_else(|| parts.vision.wrong(FIELD, list, "a list of numbers"))
}

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    let vision = &parts.vision;
    common(parts, keys)?;
    keys.set(key::VISION_PROJECTOR_TYPE, "dots3note_v");
    keys.set(key::USE_SILU, true);
    let epsilon = vision.require_f32(&["rms_norm_eps"], "epsilon of the norms")?;
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    let merged = EncoderConfigs::number(vision, &["spatial_merge_size"], "patches in one")?;
    keys.set(key::VISION_SPATIAL_MERGE_SIZE, merged);
    parts.pixels(keys, "min_pixels", "max_pixels")?;
    keys.set(key::VISION_EXPERT_COUNT_PER_LAYER, Array::from(&pyramid(parts)?[..]));
    let used = vision.require_f32(&["capacity_factor"], "the number of experts per patch")?;
    keys.set(key::VISION_EXPERT_USED_COUNT, used as u32);
    keys.set(key::AUDIO_PROJECTOR_TYPE, "dots3note_a");
    let whisper = parts.audio.part("whisper_config");
    let mels = EncoderConfigs::number(&whisper, &["num_mel_bins"], "the number of mel bins")?;
    keys.set(key::AUDIO_NUM_MEL_BINS, mels);
    keys.set(key::AUDIO_ATTENTION_LAYER_NORM_EPSILON, SOUND_EPSILON);
    Ok(())
}

fn special(parts: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    for (foreign, ours) in ROUTER {
        if let Some(&[block]) = captures(foreign, tensor.name).as_deref() {
            return Ok(Some(EncoderMapping::one(format!("v.blk.{block}.{ours}.weight"), [])));
        }
    }
    for (foreign, ours) in EXPERTS {
        if let Some(&[block, index]) = captures(foreign, tensor.name).as_deref() {
            let count = pyramid(parts)?.get(block as usize).copied().unwrap_or(0);
            let slot = ExpertSlot { index, count: count.unsigned_abs() };
            let name = format!("v.blk.{block}.{ours}.weight");
            return Ok(Some(EncoderMapping::Mapped(Mapping::slot(name, slot))));
        }
    }
    // Gate rows, then up rows.
    Ok(layer_of(tensor.name, GATED).map(|(block, end)| {
        let names = ["gate", "up"].map(|part| format!("a.blk.{block}.ffn_{part}.{end}"));
        divided(names, tensor.shape)
    }))
}
