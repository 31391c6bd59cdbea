//! MiMo V2.

use gguf::Gguf;
use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, PROJECTIONS, UNTIED, WIDTH, alternating_layers,
    attention_of, checkpoint, config, expert_ffns, gated_ffn, layer_tensor, layer_weight,
    pre_norms, with_rms_norm,
};
use crate::fixtures::mmproj::{convert_mmproj, nest_checkpoint, with_preprocessor_config};
use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{Tiny, elements};

#[test]
pub fn mimo_v2_flash_round_trip() {
    const VALUE: usize = 8;
    let fields =
        with_rms_norm(json!({"head_dim": HEAD, "v_head_dim": VALUE, "layernorm_epsilon": 1e-5,
        "rms_norm_eps": null, "swa_num_key_value_heads": 4, "swa_rope_theta": 1e4,
        "hybrid_layer_pattern": [0, 1, 0, 1], "sliding_window": 16, "partial_rotary_factor": 0.5,
        "n_routed_experts": EXPERTS, "num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF,
        "scoring_func": "sigmoid", "topk_method": "noaux_tc", "attention_value_scale": 0.7}));
    let network = [
        vec![
            layer_weight("mlp.gate", &[EXPERTS, WIDTH]),
            layer_tensor("mlp.gate.e_score_correction_bias", &[EXPERTS]),
        ],
        expert_ffns("mlp", PROJECTIONS),
    ]
    .concat();
    let windowed = [
        attention_of(HEADS, 4, VALUE),
        vec![layer_tensor("self_attn.attention_sink_bias", &[HEADS])],
    ]
    .concat();
    let class = "MiMoV2FlashForCausalLM";
    let tiny =
        checkpoint(config(class, "mimo_v2_flash", fields), vec![pre_norms(), network], UNTIED);
    let mut tiny = alternating_layers(tiny, [&attention_of(HEADS, KV, VALUE), &windowed]);
    let further = [pre_norms(), windowed, gated_ffn("mlp", FF)].concat();
    for (name, shape) in further {
        let name = name.replace("model.layers.{}", "model.mtp.layers.0");
        tiny = tiny.tensors(&[(&name, &shape)]);
    }
    for (name, shape) in [
        ("eh_proj", &[WIDTH, 2 * WIDTH][..]),
        ("enorm", &[WIDTH]),
        ("hnorm", &[WIDTH]),
        ("final_layernorm", &[WIDTH]),
    ] {
        tiny = tiny.tensors(&[(&format!("model.mtp.layers.0.{name}.weight"), shape)]);
    }
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["hybrid_layer_pattern"], json!([0, 1, 0, 1]));
    assert_eq!(
        (&exported["num_key_value_heads"], &exported["swa_num_key_value_heads"]),
        (&json!(2), &json!(4))
    );
}

fn mimo_encoders() -> Tiny {
    let vision = json!({"hidden_size": 8, "intermediate_size": 8, "depth": 1, "num_heads": 2,
        "patch_size": 2, "spatial_merge_size": 2, "visual_token_window_size": 16,
        "vit_window_attn_types": [-1]});
    let config = json!({"architectures": ["MiMoV2ForCausalLM"], "hidden_size": 8, "vision_config": vision,
        "audio_config": {"audio_channels": 2, "input_local_layers": 1, "group_size": 4}});
    let stated = json!({"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "min_pixels": 4,
        "max_pixels": 64});
    let tiny = with_preprocessor_config(Tiny::new(config)).tensors(&[
        ("visual.blocks.0.attn.sinks", &[2]),
        ("speech_embeddings.0.weight", &[5, 8]),
        ("speech_embeddings.1.weight", &[5, 8]),
    ]);
    tiny.file("preprocessor_config.json", stated.to_string());
    tiny
}

/// Builds an audio tokenizer with two codebooks of different sizes.
fn audio_tokenizer(second: &str) -> Tiny {
    let config = json!({"d_model": 4, "encoder_ffn_dim": 8, "encoder_attention_heads": 2, "encoder_layers": 3,
        "n_mels": 16, "hybrid_attention": true, "swa_per_block": 2, "encoder_attn_window_size": [128, 0]});
    let book = |i: &str| format!("encoder.quantizer.vq.layers.{i}._codebook.embed");
    Tiny::new(config).tensors(&[
        ("decoder.conv.weight", &[2, 2]),
        ("encoder.conv1.bias", &[4]),
        (&book("0"), &[3, 4]),
        (&book(second), &[2, 4]),
    ])
}

#[test]
fn audio_codebooks_are_concatenated() {
    let tiny = mimo_encoders();
    let error = convert_mmproj(&tiny, "f32").unwrap_err();
    assert_eq!(error.code(), "checkpoint-weights-missing", "{error}");
    assert!(error.to_string().contains("`audio_tokenizer`"), "{error}");
    let inside = audio_tokenizer("1");
    nest_checkpoint(&tiny, "audio_tokenizer", &inside);
    let (bytes, _) = convert_mmproj(&tiny, "f32").unwrap();
    let [large, small] =
        [0, 1].map(|i| inside.values(&format!("encoder.quantizer.vq.layers.{i}._codebook.embed")));
    assert_eq!(elements(&bytes, "a.rvq.codebook.weight"), [large, small, vec![0.0; 4]].concat());
    let both = [0, 1].map(|i| tiny.values(&format!("speech_embeddings.{i}.weight"))).concat();
    assert_eq!(elements(&bytes, "mm.a.code_embd.weight"), both);
    let model = Gguf::read(&bytes).unwrap();
    let names: Vec<_> = model.tensors().iter().map(|tensor| &*tensor.name).collect();
    let expected =
        ["a.conv1d.1.bias", "a.rvq.codebook.weight", "mm.a.code_embd.weight", "v.blk.0.attn_sinks"];
    assert_eq!(names, expected, "the folder first");
    let list = |key: &str| -> Vec<i64> {
        model.metadata().array(key).unwrap().iter().map(|x| x.to_i64().unwrap()).collect()
    };
    assert_eq!(list("clip.audio.rvq.codebook_size"), [3, 2]);
    assert_eq!(list("clip.audio.wa_pattern_mode"), [0, -1, 0]);
    let (findings, _) = gguf_check::check(&bytes);
    let bad = findings.iter().find(|finding| finding.severity != gguf::Severity::Note);
    assert!(bad.is_none(), "{}", bad.unwrap());

    nest_checkpoint(&tiny, "audio_tokenizer", &audio_tokenizer("2"));
    let error = convert_mmproj(&tiny, "f32").unwrap_err().to_string();
    assert!(error.contains("has no codebook 1"), "{error}");
}
