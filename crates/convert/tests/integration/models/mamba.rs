//! Mamba, Falcon Mamba and Mamba 2.

use serde_json::json;

use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{Tiny, assert_valid, elements, metadata_value, two_layer_model};

/// Builds Mamba 2 with two layers.
fn mamba2() -> Tiny {
    two_layer_model(
        "Mamba2ForCausalLM",
        json!({
            "hidden_size": 8, "expand": 2, "head_dim": 4, "num_heads": 4, "n_groups": 2,
            "state_size": 4, "conv_kernel": 4, "num_hidden_layers": 2, "layer_norm_epsilon": 1e-6,
            "pad_vocab_size_multiple": 1,
        }),
        &[
            ("backbone.embeddings.weight", &[6, 8]),
            ("backbone.norm_f.weight", &[8]),
            ("lm_head.weight", &[6, 8]),
        ],
        &[
            ("backbone.layers.{}.norm.weight", &[8]),
            ("backbone.layers.{}.mixer.A_log", &[4]),
            ("backbone.layers.{}.mixer.D", &[4]),
            ("backbone.layers.{}.mixer.dt_bias", &[4]),
            ("backbone.layers.{}.mixer.conv1d.weight", &[32, 1, 4]),
            ("backbone.layers.{}.mixer.conv1d.bias", &[32]),
            ("backbone.layers.{}.mixer.in_proj.weight", &[52, 8]),
            ("backbone.layers.{}.mixer.norm.weight", &[16]),
            ("backbone.layers.{}.mixer.out_proj.weight", &[8, 16]),
        ],
    )
}

#[test]
pub fn mamba2_round_trip() {
    assert_round_trip(&mamba2());
}

#[test]
pub fn mamba_and_falcon_mamba_round_trip() {
    for kind in ["mamba", "falcon_mamba"] {
        let mamba = two_layer_model(
            "MambaForCausalLM",
            json!({
                "model_type": kind, "hidden_size": 8, "expand": 2, "state_size": 4,
                "num_hidden_layers": 2, "layer_norm_epsilon": 1e-5, "time_step_rank": 2,
                "tie_word_embeddings": false,
            }),
            &[
                ("backbone.embeddings.weight", &[6, 8]),
                ("backbone.norm_f.weight", &[8]),
                ("lm_head.weight", &[6, 8]),
            ],
            &[
                ("backbone.layers.{}.norm.weight", &[8]),
                ("backbone.layers.{}.mixer.A_log", &[16, 4]),
                ("backbone.layers.{}.mixer.D", &[16]),
                ("backbone.layers.{}.mixer.conv1d.weight", &[16, 1, 4]),
                ("backbone.layers.{}.mixer.conv1d.bias", &[16]),
                ("backbone.layers.{}.mixer.x_proj.weight", &[10, 16]),
                ("backbone.layers.{}.mixer.dt_proj.weight", &[16, 2]),
                ("backbone.layers.{}.mixer.dt_proj.bias", &[16]),
                ("backbone.layers.{}.mixer.in_proj.weight", &[32, 8]),
                ("backbone.layers.{}.mixer.out_proj.weight", &[8, 16]),
            ],
        );
        assert_round_trip(&mamba);
    }
}

#[test]
fn mamba2_converts_per_head_parameters() {
    let tiny = mamba2();
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "mamba2.ssm.time_step_rank"), 4);
    let exp = |x: &f32| -(f64::from(*x).exp() as f32);
    let decay: Vec<f32> = tiny.values("backbone.layers.0.mixer.A_log").iter().map(exp).collect();
    assert_eq!(elements(&gguf, "blk.0.ssm_a"), decay);
    let bias = tiny.values("backbone.layers.0.mixer.dt_bias");
    assert_eq!(elements(&gguf, "blk.0.ssm_dt.bias"), bias);
}
