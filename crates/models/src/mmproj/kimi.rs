//! MoonViT of Kimi-VL, and its successor for video in Kimi K2.5.

use gguf::Error;
use gguf_pipeline::Step;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, common, divided, reshaped};
use super::tensor_names::{PrefixedTables, TWO_LAYERS, layer_of};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::schema::key;

pub static KIMI_VL: Encoder = Encoder {
    classes: &["KimiVLForConditionalGeneration"],
    complete: |parts| {
        parts.vision.set("image_size", 64 * 14);
        Ok(())
    },
    keys: |parts, keys| {
        common(parts, keys)?;
        keys.set(key::PROJECTOR_TYPE, "kimivl");
        keys.set(key::USE_GELU, true);
        keys.set(key::VISION_PROJECTOR_SCALE_FACTOR, 2u32);
        let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-5);
        keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
        Ok(())
    },
    places: &[
        ("vision_tower.", TOWER),
        ("multi_modal_projector.", &[("pre_norm", "mm.input_norm")]),
        ("multi_modal_projector.", TWO_LAYERS),
    ],
    special: |_, tensor| {
        Ok(layer_of(tensor.name, "vision_tower.encoder.blocks.{}.wqkv").map(|(layer, end)| {
            divided(["q", "k", "v"].map(|x| format!("v.blk.{layer}.attn_{x}.{end}")), tensor.shape)
        }))
    },
    steps: |_, name, shape| Ok(flat_positions(name, shape)),
    ..Encoder::VISION
};

const TOWER: Table = &[
    ("patch_embed.proj", "v.patch_embd"),
    ("patch_embed.pos_emb", "v.position_embd"),
    ("encoder.blocks.{}.norm0", "v.blk.{}.ln1"),
    ("encoder.blocks.{}.norm1", "v.blk.{}.ln2"),
    ("encoder.blocks.{}.wqkv", "v.blk.{}.attn_qkv"),
    ("encoder.blocks.{}.wo", "v.blk.{}.attn_out"),
    ("encoder.blocks.{}.mlp.fc0", "v.blk.{}.ffn_up"),
    ("encoder.blocks.{}.mlp.fc1", "v.blk.{}.ffn_down"),
    ("encoder.final_layernorm", "v.post_ln"),
];

/// Flattens two-dimensional position embeddings.
fn flat_positions(name: &str, shape: &[u64]) -> Vec<Step> {
    match *shape {
        [width, columns, rows] if name == "v.position_embd.weight" => {
            reshaped(shape, &[width, columns * rows])
        }
        _ => Vec::new(),
    }
}

pub static KIMI_K2_5: Encoder = Encoder {
    classes: &["KimiK25ForConditionalGeneration"],
    complete: |parts| {
        let patch = parts.vision.u32(&["patch_size"])?.unwrap_or(14);
        let rows = parts.vision.u32(&["init_pos_emb_height"])?.unwrap_or(64);
        parts.vision.default("patch_size", patch);
        parts.vision.set("image_size", rows.saturating_mul(patch));
        Ok(())
    },
    keys: keys_with_frames,
    places: WITH_FRAMES,
    special: |parts, tensor| {
        let found = layer_of(tensor.name, "vision_tower.encoder.blocks.{}.wqkv");
        let Some((layer, end)) = found else { return Ok(None) };
        let heads = parts.vision.u32(&["num_attention_heads"])?.unwrap_or(16);
        let rows = tensor.shape.get(usize::from(tensor.shape.len() > 1)).copied().unwrap_or(0);
        let len = rows / 3;
        let part = |start| vec![Step::Pick { groups: 1, start: start * len, len }];
        // Alternating row and column RoPE pairs become row pairs, then column pairs.
        let outer = len / u64::from(heads.max(1)) / 4;
        let sorted = Step::Exchange { groups: heads.into(), start: 0, outer, inner: 2, len: 2 };
        let rotated = |start| [part(start), vec![sorted]].concat();
        let name = format!("v.blk.{layer}.attn_qkv.{end}");
        Ok(Some(EncoderMapping::Concatenated(name, vec![rotated(0), rotated(1), part(2)])))
    },
    // Runtimes compute this.
    ignored: &["pos_emb.time_weight"],
    ..Encoder::VISION
};

/// The encoder of GLM-5V: that of Kimi K2.5 with other projector names.
pub static GLM5_V: Encoder = Encoder { classes: &["Glm5vForConditionalGeneration"], ..KIMI_K2_5 };

const WITH_FRAMES: PrefixedTables = &[
    ("vision_tower.", TOWER),
    (
        "mm_projector.",
        &[
            ("pre_norm", "mm.input_norm"),
            // The activation between them has no weights.
            ("proj.0", "mm.1"),
            ("proj.2", "mm.2"),
            ("proj.linear_{}", "mm.{}"),
            ("linear_{}", "mm.{}"),
        ],
    ),
];

fn keys_with_frames(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    let vision = &parts.vision;
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "kimik25");
    for (key, field, usual) in [
        ("vision.pos_emb_height", "init_pos_emb_height", 64),
        ("vision.pos_emb_width", "init_pos_emb_width", 64),
        ("vision.pos_emb_time", "init_pos_emb_time", 4),
    ] {
        keys.set_unprefixed(key, vision.u32(&[field])?.unwrap_or(usual));
    }
    let activation = vision.find(&["projector_hidden_act"]).and_then(|(_, name)| name.as_str());
    keys.set(key::USE_GELU, activation.unwrap_or("gelu") == "gelu");
    let epsilon = vision.f32(&["projector_ln_eps"])?.unwrap_or(1e-5);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    let merged = vision.u32s("merge_kernel_size")?.and_then(|sides| sides.first().copied());
    keys.set(key::VISION_PROJECTOR_SCALE_FACTOR, merged.unwrap_or(2));
    let patch = vision.u32(&["patch_size"])?.unwrap_or(14);
    let area = patch.saturating_mul(patch);
    let most = parts.image.u32(&["in_patch_limit"])?.unwrap_or(16384);
    keys.set(key::VISION_IMAGE_MIN_PIXELS, area.saturating_mul(8));
    keys.set(key::VISION_IMAGE_MAX_PIXELS, area.saturating_mul(most));
    Ok(())
}
