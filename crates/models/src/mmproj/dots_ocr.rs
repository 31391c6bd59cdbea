//! dots.ocr: a vision encoder with gated layers for images of any size.

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common};
use crate::schema::key;

pub static DOTS_OCR: Encoder = Encoder {
    classes: &["DotsOCRForCausalLM"],
    complete: |parts| {
        parts.vision.set("image_size", 0);
        Ok(())
    },
    keys: |parts, keys| {
        common(parts, keys)?;
        keys.set(key::PROJECTOR_TYPE, "dots_ocr");
        parts.pixels(keys, "min_pixels", "max_pixels")?;
        let epsilon = parts.vision.require_f32(&["rms_norm_eps"], "epsilon of the norms")?;
        keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
        let merged =
            EncoderConfigs::number(&parts.vision, &["spatial_merge_size"], "patches in one")?;
        keys.set(key::VISION_PROJECTOR_SCALE_FACTOR, merged);
        keys.set(key::USE_SILU, true);
        Ok(())
    },
    places: &[(
        "vision_tower.",
        &[
            ("patch_embed.patchifier.proj", "v.patch_embd"),
            ("patch_embed.patchifier.norm", "v.pre_ln"),
            ("blocks.{}.norm1", "v.blk.{}.ln1"),
            ("blocks.{}.norm2", "v.blk.{}.ln2"),
            ("blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"),
            ("blocks.{}.attn.proj", "v.blk.{}.attn_out"),
            ("blocks.{}.mlp.fc1", "v.blk.{}.ffn_gate"),
            ("blocks.{}.mlp.fc2", "v.blk.{}.ffn_down"),
            ("blocks.{}.mlp.fc3", "v.blk.{}.ffn_up"),
            ("post_trunk_norm", "mm.post_norm"),
            ("merger.ln_q", "mm.input_norm"),
            ("merger.mlp.{}", "mm.{}"),
        ],
    )],
    ..Encoder::VISION
};
