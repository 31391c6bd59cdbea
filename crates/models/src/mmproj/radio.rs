//! RADIO, the vision encoder of Nemotron Nano VL, and Parakeet, its audio encoder.

use gguf::{Error, Shape};
use serde_json::json;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, Foreign, common, reshaped};
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::schema::key;

const PATCHES: &str = "vision_model.radio_model.model.patch_generator.embedder.weight";
/// Tensor names with or without a suffix.
const POSITIONS: &str = "vision_model.radio_model.model.patch_generator.pos_embed";
const SIDE: &str = "force_image_size";

pub static RADIO: Encoder = Encoder {
    classes: &["NemotronH_Nano_VL_V2", "RADIOModel"],
    audio: &["sound_config"],
    complete: |parts| {
        // The size of the published model, which no configuration has.
        for (field, value) in [
            ("hidden_size", 1280),
            ("intermediate_size", 5120),
            ("num_hidden_layers", 32),
            ("num_attention_heads", 16),
        ] {
            parts.vision.set(field, value);
        }
        parts.vision.set("image_size", parts.model.u32(&[SIDE])?.unwrap_or(512));
        parts.image.default("image_mean", json!([0.485, 0.456, 0.406]));
        parts.image.default("image_std", json!([0.229, 0.224, 0.225]));
        parts.has_audio = parts.model.find(&["sound_config"]).is_some();
        Ok(())
    },
    keys,
    places: &[
        (
            "vision_model.radio_model.model.",
            &[
                ("patch_generator.cls_token.token", "v.class_embd"),
                ("blocks.{}.norm1", "v.blk.{}.ln1"),
                ("blocks.{}.norm2", "v.blk.{}.ln2"),
                ("blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"),
                ("blocks.{}.attn.proj", "v.blk.{}.attn_out"),
                ("blocks.{}.mlp.fc1", "v.blk.{}.ffn_up"),
                ("blocks.{}.mlp.fc2", "v.blk.{}.ffn_down"),
            ],
        ),
        ("mlp1.", &[("{}", "mm.model.mlp.{}")]),
        (
            "sound_encoder.encoder.",
            &[
                ("subsampling.layers.{}", "a.conv1d.{}"),
                ("subsampling.linear", "a.pre_encode.out"),
                ("feature_extractor.featurizer.fb", "a.mel_filters"),
                ("feature_extractor.featurizer.window", "a.window"),
                ("layers.{}.norm_self_att", "a.blk.{}.ln1"),
                ("layers.{}.norm_out", "a.blk.{}.ln2"),
                ("layers.{}.norm_conv", "a.blk.{}.norm_conv"),
                ("layers.{}.norm_feed_forward1", "a.blk.{}.ffn_norm"),
                ("layers.{}.norm_feed_forward2", "a.blk.{}.ffn_norm_1"),
                ("layers.{}.feed_forward1.linear1", "a.blk.{}.ffn_up"),
                ("layers.{}.feed_forward1.linear2", "a.blk.{}.ffn_down"),
                ("layers.{}.feed_forward2.linear1", "a.blk.{}.ffn_up_1"),
                ("layers.{}.feed_forward2.linear2", "a.blk.{}.ffn_down_1"),
                ("layers.{}.self_attn.q_proj", "a.blk.{}.attn_q"),
                ("layers.{}.self_attn.k_proj", "a.blk.{}.attn_k"),
                ("layers.{}.self_attn.v_proj", "a.blk.{}.attn_v"),
                ("layers.{}.self_attn.o_proj", "a.blk.{}.attn_out"),
                ("layers.{}.self_attn.relative_k_proj", "a.blk.{}.linear_pos"),
                ("layers.{}.self_attn.bias_u", "a.blk.{}.pos_bias_u"),
                ("layers.{}.self_attn.bias_v", "a.blk.{}.pos_bias_v"),
                ("layers.{}.conv.depthwise_conv", "a.blk.{}.conv_dw"),
                ("layers.{}.conv.pointwise_conv1", "a.blk.{}.conv_pw1"),
                ("layers.{}.conv.pointwise_conv2", "a.blk.{}.conv_pw2"),
                ("layers.{}.conv.norm.running_mean", "a.blk.{}.conv_norm_mean"),
                ("layers.{}.conv.norm.running_var", "a.blk.{}.conv_norm_var"),
                ("layers.{}.conv.norm", "a.blk.{}.conv_norm"),
            ],
        ),
        ("sound_projection.", &[("norm", "mm.a.norm_pre"), ("linear{}", "mm.a.mlp.{}")]),
    ],
    // Image preprocessing, video, and tensors for training.
    ignored: &["input_conditioner", "video_embedder", "num_batches"],
    special,
    steps: |_, name, shape| {
        let is_convolution = name.contains(".conv_dw.") || name.contains(".conv_pw");
        Ok(match *shape {
            [kernel, 1, channels] if name.contains(".conv_dw.") => {
                reshaped(shape, &[kernel, channels, 1, 1])
            }
            [1, inputs, outputs] if is_convolution => reshaped(shape, &[inputs, outputs]),
            [channels] if name.ends_with(".bias") && has_broad_bias(name) => {
                reshaped(shape, &[1, 1, channels, 1])
            }
            _ => Vec::new(),
        })
    },
    kept: &[
        ("a.conv1d.", TypeOverride::F32),
        (".conv_dw.", TypeOverride::F32),
        (".conv_pw", TypeOverride::F32),
        ("mm.a.norm_pre.", TypeOverride::F32),
    ],
    ..Encoder::VISION
};

/// Returns whether a bias belongs to a convolution.
fn has_broad_bias(name: &str) -> bool {
    name.starts_with("a.conv1d.") || name.contains(".conv_pw")
}

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    const IMAGES: &str = "nemotron_v2_vl";
    if parts.has_audio {
        let number =
            |field: &str| EncoderConfigs::number(&parts.audio, &[field], "a size of the encoder");
        keys.set(key::AUDIO_NUM_MEL_BINS, number("num_mel_bins")?);
        keys.set(key::AUDIO_ATTENTION_LAYER_NORM_EPSILON, 1e-5f32);
        keys.set(key::AUDIO_SUBSAMPLING_FACTOR, number("subsampling_factor")?);
        keys.set(key::AUDIO_CONV_KERNEL_SIZE, number("conv_kernel_size")?);
        keys.set(key::AUDIO_PROJECTOR_TYPE, "parakeet");
        keys.set(key::VISION_PROJECTOR_TYPE, IMAGES);
    } else {
        keys.set(key::PROJECTOR_TYPE, IMAGES);
    }
    common(parts, keys)?;
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, 1e-6f32);
    keys.set(key::USE_GELU, true);
    let ratio = parts.model.f64(&["downsample_ratio"])?.filter(|&ratio| ratio > 0.0);
    keys.set(key::VISION_PROJECTOR_SCALE_FACTOR, (1.0 / ratio.unwrap_or(0.5)) as u32);
    Ok(())
}

fn special(parts: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    let number = |field: &str| {
        EncoderConfigs::number(&parts.vision, &[field], "a size of the vision encoder")
    };
    if tensor.name == PATCHES {
        let side = u64::from(number("patch_size")?);
        let rows = tensor.shape.last().copied().unwrap_or(0);
        let steps = reshaped(tensor.shape, &[side, side, 3, rows]);
        return Ok(Some(EncoderMapping::one("v.patch_embd.weight", steps)));
    }
    if tensor.name.strip_suffix(".weight").unwrap_or(tensor.name) != POSITIONS {
        return Ok(None);
    }
    const NAME: &str = "v.position_embd.weight";
    let [width, places, 1] = *tensor.shape else { return Ok(Some(EncoderMapping::one(NAME, []))) };
    let side = u64::from(number("image_size")? / number("patch_size")?.max(1));
    let stored = places.isqrt();
    let shape = Shape::new(&[width, side.saturating_mul(side), 1]);
    let shape = shape.filter(|_| stored * stored == places && (1..=stored).contains(&side));
    let Some(shape) = shape else {
        let what = format!("the positions of {places} patches");
        return Err(parts.model.wrong(SIDE, &side.into(), &what));
    };
    if side == stored {
        return Ok(Some(EncoderMapping::one(NAME, [])));
    }
    let values = tensor.vector(tensor.name)?;
    let made = shrunk(&values, width as usize, stored as usize, side as usize);
    Ok(Some(EncoderMapping::Tensor(NAME.to_owned(), shape, made)))
}

/// Resizes position embeddings from a square of `stored` patches to one of `side` by bilinear interpolation.
///
/// Computes in F32 with fused multiply-add, in the order of torch's `interpolate` with `align_corners`.
fn shrunk(values: &[f32], width: usize, stored: usize, side: usize) -> Vec<f32> {
    let scale = if side > 1 { (stored - 1) as f32 / (side - 1) as f32 } else { 0.0 };
    let between = |i: usize| {
        let at = scale * i as f32;
        let first = (at as usize).min(stored - 1);
        let share = at - first as f32;
        (first, (first + 1).min(stored - 1), 1.0 - share, share)
    };
    let mut made = Vec::with_capacity(side * side * width);
    for y in 0..side {
        let (top, bottom, of_top, of_bottom) = between(y);
        for x in 0..side {
            let (left, right, of_left, of_right) = between(x);
            let place =
                |row: usize, column: usize| &values[(row * stored + column) * width..][..width];
            let first = place(bottom, left);
            let others = [
                (place(bottom, right), of_bottom * of_right),
                (place(top, right), of_top * of_right),
                (place(top, left), of_top * of_left),
            ];
            made.extend((0..width).map(|i| {
                let sum = first[i] * (of_bottom * of_left);
                others.iter().fold(sum, |sum, (corner, share)| corner[i].mul_add(*share, sum))
            }));
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_stay_where_they_are() {
        // 3 x 3 positions of width 1, resized to 2 x 2.
        let values: Vec<f32> = (0..9).map(|i| i as f32).collect();
        assert_eq!(shrunk(&values, 1, 3, 2), [0.0, 2.0, 6.0, 8.0]);
        assert_eq!(shrunk(&values, 1, 3, 1), [0.0]);
        // Center of four positions.
        let values: Vec<f32> = (0..16).map(|i| i as f32).collect();
        assert_eq!(shrunk(&values, 1, 4, 3)[4], 7.5);
    }
}
