//! Falcon-H1.

use serde_json::{Value, json};

use crate::fixtures::Tiny;
use crate::fixtures::decoder::{
    FF, HEAD, WIDTH, attention, checkpoint, config, gated_ffn, mamba_mixer, merged, norms,
    with_rms_norm,
};
use crate::fixtures::round_trip::{assert_gguf_round_trip, assert_round_trip};

fn falcon_h1(fields: Value) -> Tiny {
    const INNER: usize = 2 * WIDTH;
    const STATE: usize = 8;
    let states = mamba_mixer(
        INNER,
        &[
            ("", &[INNER + 4 * STATE]),
            ("mamba.in_proj.weight", &[2 * INNER + 4 * STATE + 8, WIDTH]),
            ("mamba.norm.weight", &[INNER]),
            ("mamba.dt_bias", &[8]),
            ("mamba.A_log", &[8]),
            ("mamba.D", &[8]),
        ],
    );
    let all = with_rms_norm(json!({"head_dim": HEAD, "mamba_d_ssm": INNER, "mamba_d_state": STATE,
        "mamba_d_conv": 4, "mamba_n_groups": 2, "mamba_n_heads": 8, "mamba_d_head": 16}));
    let layer = vec![
        norms(&["input_layernorm", "pre_ff_layernorm"]),
        attention(),
        states,
        gated_ffn("feed_forward", FF),
    ];
    let config = config("FalconH1ForCausalLM", "falcon_h1", merged(all, fields));
    checkpoint(config, layer, &["model.final_layernorm", "lm_head"])
}

#[test]
pub fn falcon_h1_round_trip() {
    let exported = assert_round_trip(&falcon_h1(json!({}))).config;
    assert_eq!(exported["mamba_d_head"], 16);
    assert_eq!(exported["mamba_rms_norm"], true);
    assert_eq!(
        exported["mamba_norm_before_gate"], false,
        "which is not what `transformers` takes without it"
    );
    let message =
        falcon_h1(json!({"mamba_rms_norm": true, "mamba_norm_before_gate": true})).convert();
    let message = message.unwrap_err().to_string();
    assert!(
        message.contains("`mamba_norm_before_gate` is true, which llama.cpp does not support"),
        "{message}"
    );
    // Multipliers are folded into the weights.
    let factors = json!({"mlp_multipliers": [0.5, 0.25], "key_multiplier": 0.3,
        "attention_in_multiplier": 1.5, "ssm_in_multiplier": 0.7, "embedding_multiplier": 5.6,
        "ssm_multipliers": [0.35, 0.25, 0.18, 0.5, 0.35], "lm_head_multiplier": 0.02});
    let tiny = falcon_h1(factors);
    tiny.write_weights();
    assert_gguf_round_trip(tiny.path());
}
