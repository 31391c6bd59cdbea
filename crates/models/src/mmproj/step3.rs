//! Step3-VL: a vision transformer with OpenAI CLIP's names, and downsampling convolutions.

use gguf::Error;

use super::configs::{CLIP_DEVIATION, CLIP_MEAN, EncoderConfigs};
use super::encoder::{Encoder, EncoderMapping, common};
use super::tensor_names::captured;
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::schema::key;

pub static STEP3_VL: Encoder = Encoder {
    classes: &["StepVLForConditionalGeneration", "Step3p7ForConditionalGeneration"],
    complete: |parts| {
        if parts.vision.u32(&["intermediate_size"])?.unwrap_or(0) == 0 {
            let width = parts.vision.f64(&["hidden_size", "width"])?.unwrap_or(0.0);
            let ratio = parts.vision.f64(&["mlp_ratio"])?.unwrap_or(8960.0 / 1536.0);
            parts.vision.set("intermediate_size", (width * ratio).round_ties_even() as u32);
        }
        parts.image.default("image_mean", CLIP_MEAN.to_vec());
        parts.image.default("image_std", CLIP_DEVIATION.to_vec());
        Ok(())
    },
    keys,
    places: &[
        ("vision_model.", TOWER),
        ("vit_large_projector.", &[("weight", "mm.model.fc.weight")]),
    ],
    special: |_, tensor| {
        let found = captured(tensor.name, &[("vision_model.vit_downsampler{}", "mm")]);
        Ok(found.map(|(numbers, end, ours)| {
            let place = numbers.first().map_or(0, |number| number.saturating_sub(1));
            EncoderMapping::one(format!("{ours}.{place}.{end}"), [])
        }))
    },
    kept: &[("mm.0.weight", TypeOverride::Float), ("mm.1.weight", TypeOverride::Float)],
    ..Encoder::VISION
};

const TOWER: Table = &[
    ("conv1", "v.patch_embd"),
    ("positional_embedding", "v.position_embd.weight"),
    ("ln_pre", "v.pre_ln"),
    ("transformer.resblocks.{}.ln_1", "v.blk.{}.ln1"),
    ("transformer.resblocks.{}.ln_2", "v.blk.{}.ln2"),
    ("transformer.resblocks.{}.attn.in_proj_weight", "v.blk.{}.attn_qkv.weight"),
    ("transformer.resblocks.{}.attn.in_proj_bias", "v.blk.{}.attn_qkv.bias"),
    ("transformer.resblocks.{}.attn.out_proj", "v.blk.{}.attn_out"),
    ("transformer.resblocks.{}.ls_1.gamma", "v.blk.{}.ls1.weight"),
    ("transformer.resblocks.{}.ls_2.gamma", "v.blk.{}.ls2.weight"),
    ("transformer.resblocks.{}.mlp.c_fc", "v.blk.{}.ffn_up"),
    ("transformer.resblocks.{}.mlp.c_proj", "v.blk.{}.ffn_down"),
];

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    let field = "understand_projector_stride";
    let stride = parts.model.require_u32(&[field], "the downsampling factor of images")?;
    keys.set(key::PROJECTOR_TYPE, "step3vl");
    let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-5);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    keys.set(key::VISION_PROJECTOR_SCALE_FACTOR, stride.saturating_mul(stride));
    keys.set(key::VISION_PREPROC_IMAGE_SIZE, 3024u32);
    Ok(())
}
