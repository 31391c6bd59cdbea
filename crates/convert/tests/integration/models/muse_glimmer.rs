//! Muse Glimmer.

use gguf::Gguf;
use serde_json::json;

use crate::fixtures::decoder::{
    FF, HEAD, HEADS, UNTIED, WIDTH, alternating_types, attention, checkpoint, config, gated_ffn,
    layer_weight, norms,
};
use crate::fixtures::mmproj::{convert_mmproj, with_preprocessor_config};
use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{Tiny, elements};

#[test]
pub fn muse_glimmer_round_trip() {
    let kinds = alternating_types(["sliding_attention", "full_attention"]);
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "layer_types": kinds,
        "sliding_window": 16, "qk_scale_factor": 1.25, "final_logit_softcapping": 30.0, "output_multiplier": 0.5});
    let mut layer = norms(&[
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ]);
    layer.push(layer_weight("self_attn.gate_proj", &[HEADS * HEAD, WIDTH]));
    let layer = vec![layer, attention(), gated_ffn("mlp", FF)];
    let config = config("MuseGlimmerForConditionalGeneration", "muse_glimmer", fields);
    let exported = assert_round_trip(&checkpoint(config, layer, UNTIED));
    assert_eq!(elements(&exported.gguf, "blk.3.attn_q_norm.weight"), [1.25; HEAD]);
    assert_eq!(exported.config["qk_scale_factor"], 1.25);
}

fn muse_glimmer_encoder(times: u32) -> Tiny {
    let vision = json!({"hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 1, "patch_size": 2, "patch_temporal": times, "merge_size": 2,
        "pos_emb_height": 3, "layer_norm_eps": 1e-5});
    let config = json!({"architectures": ["MuseGlimmerForConditionalGeneration"],
        "model_type": "muse_glimmer", "hidden_size": 8, "vision_config": vision});
    with_preprocessor_config(Tiny::new(config)).tensors(&[
        ("model.vision_tower.patch_embedder.patch_embedding.weight", &[4, 24]),
        ("model.vision_tower.layers.0.attn.q_proj.weight", &[4, 4]),
        ("model.vision_projection.weight", &[8, 4]),
    ])
}

#[test]
fn encoder_sums_temporal_patches() {
    let tiny = muse_glimmer_encoder(2);
    let (bytes, _) = convert_mmproj(&tiny, "f32").unwrap();
    let model = Gguf::read(&bytes).unwrap();
    assert_eq!(model.metadata().u64("clip.vision.image_size"), Some(12));
    let stored = tiny.values("model.vision_tower.patch_embedder.patch_embedding.weight");
    let both = stored.chunks(24).flat_map(|row| (0..12).map(move |i| row[i] + row[12 + i]));
    assert_eq!(elements(&bytes, "v.patch_embd.weight"), both.collect::<Vec<f32>>());
    // RoPE halves become interleaved pairs.
    let stored = tiny.values("model.vision_tower.layers.0.attn.q_proj.weight");
    let rows = [0, 2, 1, 3].map(|row| &stored[row * 4..][..4]).concat();
    assert_eq!(elements(&bytes, "v.blk.0.attn_q.weight"), rows);
    let error = convert_mmproj(&muse_glimmer_encoder(3), "f32").unwrap_err().to_string();
    assert!(error.contains("patch_temporal"), "{error}");
}
