//! Jamba.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERTS, FF, WIDTH, alternating_layers, attention, checkpoint, config, gated_ffn, layer_weight,
    mamba_mixer, norms,
};
use crate::fixtures::round_trip::assert_round_trip_with_findings;
use crate::fixtures::tokenizer_files::use_sentencepiece;

#[test]
pub fn jamba_round_trip() {
    const INNER: usize = 2 * WIDTH;
    let states = mamba_mixer(
        INNER,
        &[
            ("", &[INNER]),
            ("mamba.in_proj.weight", &[2 * INNER, WIDTH]),
            ("mamba.x_proj.weight", &[4 + 2 * 8, INNER]),
            ("mamba.dt_proj.weight", &[INNER, 4]),
            ("mamba.dt_proj.bias", &[INNER]),
            ("mamba.dt_layernorm.weight", &[4]),
            ("mamba.b_layernorm.weight", &[8]),
            ("mamba.c_layernorm.weight", &[8]),
            ("mamba.A_log", &[INNER, 8]),
            ("mamba.D", &[INNER]),
        ],
    );
    let mut experts = vec![layer_weight("feed_forward.router", &[EXPERTS, WIDTH])];
    for e in 0..EXPERTS {
        experts.extend(gated_ffn(&format!("feed_forward.experts.{e}"), FF));
    }
    let every = norms(&["input_layernorm", "pre_ff_layernorm"]);
    let fields = json!({"rms_norm_eps": 1e-6, "mamba_d_state": 8, "mamba_d_conv": 4,
        "mamba_expand": 2, "mamba_dt_rank": 4, "attn_layer_period": 2, "attn_layer_offset": 1,
        "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": EXPERTS,
        "num_experts_per_tok": 2});
    let tiny = checkpoint(
        config("JambaForCausalLM", "jamba", fields),
        vec![every],
        &["model.final_layernorm", "lm_head"],
    );
    let tiny = alternating_layers(
        tiny,
        [&[states, gated_ffn("feed_forward", FF)].concat(), &[attention(), experts].concat()],
    );
    use_sentencepiece(&tiny);
    let exported = assert_round_trip_with_findings(&tiny).config;
    assert_eq!(exported["attn_layer_period"], 2);
    assert_eq!(exported["expert_layer_offset"], 1);
}
