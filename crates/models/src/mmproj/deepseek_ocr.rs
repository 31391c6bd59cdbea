//! DeepSeek-OCR: SAM's encoder in front of CLIP or Qwen2.

use gguf::Error;
use serde_json::Value;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common, reshaped};
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::schema::key;

pub static DEEPSEEK_OCR: Encoder = Encoder {
    classes: &["DeepseekOCRForCausalLM"],
    complete: |parts| {
        let clip = parts.vision.part("width").part("clip-l-14-224");
        take(parts, &clip);
        heads(parts)
    },
    keys: |parts, keys| keys_of(parts, keys, "deepseekocr", 9),
    places: &[
        ("sam_model.", SAM),
        ("vision_model.", CLIP),
        ("qwen2_model.", QWEN2),
        ("projector.", &[("layers", "mm.model.fc")]),
        ("image_newline", &[("", "v.image_newline")]),
        // Misspelled in checkpoints.
        ("view_seperator", &[("", "v.view_seperator")]),
    ],
    steps: |_, name, shape| {
        Ok(match (name, shape) {
            ("v.view_seperator", &[width]) => reshaped(shape, &[width, 1]),
            _ => Vec::new(),
        })
    },
    kept: &[
        ("v.patch_embd.weight", TypeOverride::F32),
        ("v.sam.pos_embd.weight", TypeOverride::F32),
        (".attn.pos_h.weight", TypeOverride::F32),
        (".attn.pos_w.weight", TypeOverride::F32),
        ("v.sam.neck.", TypeOverride::F32),
        ("v.sam.net_", TypeOverride::F32),
    ],
    ..Encoder::VISION
};

/// DeepSeek-OCR with smaller image tiles.
pub static UNLIMITED_OCR: Encoder = Encoder {
    classes: &["UnlimitedOCRForCausalLM"],
    keys: |parts, keys| keys_of(parts, keys, "deepseekocr", 32),
    ..DEEPSEEK_OCR
};

pub static DEEPSEEK_OCR_2: Encoder = Encoder {
    classes: &["DeepseekOCR2ForCausalLM"],
    complete: |parts| {
        let width = parts.vision.part("width").part("qwen2-0-5b").u32(&["dim"])?;
        heads(parts)?;
        if let Some(width) = width {
            parts.vision.set("hidden_size", width);
        }
        for (field, value) in [
            ("layers", 24),
            ("patch_size", 16),
            ("intermediate_size", 4864),
            ("num_attention_heads", 14),
        ] {
            parts.vision.default(field, value);
        }
        Ok(())
    },
    keys: |parts, keys| {
        keys_of(parts, keys, "deepseekocr2", 6)?;
        keys.set(key::VISION_ATTENTION_HEAD_COUNT_KV, 2u32);
        Ok(())
    },
    ..DEEPSEEK_OCR
};

const SAM: Table = &[
    ("pos_embed", "v.sam.pos_embd.weight"),
    ("patch_embed.proj", "v.sam.patch_embd"),
    ("blocks.{}.norm1", "v.sam.blk.{}.pre_ln"),
    ("blocks.{}.norm2", "v.sam.blk.{}.post_ln"),
    ("blocks.{}.attn.rel_pos_h", "v.sam.blk.{}.attn.pos_h.weight"),
    ("blocks.{}.attn.rel_pos_w", "v.sam.blk.{}.attn.pos_w.weight"),
    ("blocks.{}.attn.qkv", "v.sam.blk.{}.attn.qkv"),
    ("blocks.{}.attn.proj", "v.sam.blk.{}.attn.out"),
    ("blocks.{}.mlp.lin1", "v.sam.blk.{}.mlp.lin1"),
    ("blocks.{}.mlp.lin2", "v.sam.blk.{}.mlp.lin2"),
    ("neck.{}", "v.sam.neck.{}"),
    ("net_2", "v.sam.net_2"),
    ("net_3", "v.sam.net_3"),
];

const CLIP: Table = &[
    ("embeddings.class_embedding", "v.class_embd"),
    ("embeddings.patch_embedding", "v.patch_embd"),
    ("embeddings.position_embedding", "v.position_embd"),
    // Misspelled in checkpoints.
    ("pre_layrnorm", "v.pre_ln"),
    ("transformer.layers.{}.layer_norm1", "v.blk.{}.ln1"),
    ("transformer.layers.{}.layer_norm2", "v.blk.{}.ln2"),
    ("transformer.layers.{}.self_attn.qkv_proj", "v.blk.{}.attn_qkv"),
    ("transformer.layers.{}.self_attn.out_proj", "v.blk.{}.attn_out"),
    ("transformer.layers.{}.mlp.fc1", "v.blk.{}.ffn_up"),
    ("transformer.layers.{}.mlp.fc2", "v.blk.{}.ffn_down"),
];

const QWEN2: Table = &[
    ("query_768", "v.resample_query_768"),
    ("query_1024", "v.resample_query_1024"),
    ("model.model.norm", "v.post_ln"),
    ("model.model.layers.{}.input_layernorm", "v.blk.{}.ln1"),
    ("model.model.layers.{}.post_attention_layernorm", "v.blk.{}.ln2"),
    ("model.model.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"),
    ("model.model.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"),
    ("model.model.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"),
    ("model.model.layers.{}.self_attn.o_proj", "v.blk.{}.attn_out"),
    ("model.model.layers.{}.mlp.gate_proj", "v.blk.{}.ffn_gate"),
    ("model.model.layers.{}.mlp.up_proj", "v.blk.{}.ffn_up"),
    ("model.model.layers.{}.mlp.down_proj", "v.blk.{}.ffn_down"),
];

/// Moves the SAM configuration to its own section, and CLIP's fields to the top level.
fn take(parts: &mut EncoderConfigs, clip: &gguf_checkpoint::config::Config) {
    for (field, value) in clip.json().as_object().into_iter().flatten() {
        parts.vision.set(field, value.clone());
    }
    if let Some(width) = clip.find(&["width"]).map(|(_, width)| width.clone()) {
        parts.vision.set("hidden_size", width);
    }
}

/// Feed-forward width as llama.cpp's converter writes it. Runtimes do not read it.
fn heads(parts: &mut EncoderConfigs) -> Result<(), Error> {
    if let Some(heads) = parts.vision.u32(&["heads"])? {
        parts.vision.set("num_heads", heads);
        parts.vision.set("intermediate_size", heads.saturating_mul(4));
    }
    Ok(())
}

fn keys_of(
    parts: &EncoderConfigs,
    keys: &mut Keys,
    projector: &str,
    tiles: u32,
) -> Result<(), Error> {
    common(parts, keys)?;
    let vision = &parts.vision;
    keys.set(key::PROJECTOR_TYPE, projector);
    let epsilon = vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    keys.set(key::USE_GELU, true);
    keys.set_u32(key::VISION_PROJECTOR_SCALE_FACTOR, parts.pooled()?);
    keys.set(key::VISION_WINDOW_SIZE, vision.u32(&["window_size"])?.unwrap_or(14));
    keys.set(key::VISION_PREPROC_MIN_TILES, 2u32);
    keys.set(key::VISION_PREPROC_MAX_TILES, tiles);
    let sam = parts.model.part("vision_config").part("width").part("sam_vit_b");
    for (key, field) in [
        ("vision.sam.block_count", "layers"),
        ("vision.sam.embedding_length", "width"),
        ("vision.sam.head_count", "heads"),
    ] {
        let number = sam.u32(&[field])?;
        let number = number.ok_or_else(|| {
            vision.wrong("width", &Value::Null, "an object with the SAM encoder, `sam_vit_b`")
        })?;
        keys.set(key, number);
    }
    Ok(())
}
