//! OLMo, OLMo 2, OLMo 3 and OLMoE.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, PROJECTIONS, TIED, UNTIED, WIDTH, attention,
    checkpoint, config, expert_ffns, gated_ffn, layer_weight, norms, pre_norms,
    qk_norms_of_all_heads,
};
use crate::fixtures::round_trip::{assert_config_round_trip, assert_round_trip};
use crate::fixtures::{assert_valid, elements};

#[test]
pub fn olmoe_round_trip() {
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4, "num_experts": EXPERTS,
        "num_experts_per_tok": 2, "intermediate_size": EXPERT_FF});
    let router = vec![layer_weight("mlp.gate", &[EXPERTS, WIDTH])];
    let norms = qk_norms_of_all_heads();
    let layer = vec![pre_norms(), attention(), norms, router, expert_ffns("mlp", PROJECTIONS)];
    let tiny = checkpoint(config("OlmoeForCausalLM", "olmoe", fields), layer, UNTIED);
    assert_round_trip(&tiny);
}

#[test]
pub fn olmo_olmo2_and_olmo3_round_trip() {
    let first = vec![attention(), gated_ffn("mlp", FF)];
    assert_config_round_trip(
        config("OlmoForCausalLM", "olmo", json!({"clip_qkv": 8.0})),
        first.clone(),
        &["lm_head"],
    );
    assert_config_round_trip(config("OlmoForCausalLM", "olmo", json!({})), first.clone(), &[]);
    let later = || {
        let norms = norms(&["post_attention_layernorm", "post_feedforward_layernorm"]);
        let of_heads = vec![
            layer_weight("self_attn.q_norm", &[HEADS * HEAD]),
            layer_weight("self_attn.k_norm", &[KV * HEAD]),
        ];
        [first.clone(), vec![norms, of_heads]].concat()
    };
    let second = json!({"rms_norm_eps": 1e-6, "rope_theta": 5e5});
    assert_config_round_trip(config("Olmo2ForCausalLM", "olmo2", second), later(), UNTIED);
    let yarn = json!({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64,
        "beta_fast": 32, "beta_slow": 1});
    let kinds = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"];
    for third in [
        json!({"sliding_window": 32, "rope_theta": 5e5, "rope_scaling": yarn}),
        json!({"sliding_window": 32, "layer_types": kinds}),
    ] {
        assert_config_round_trip(config("Olmo3ForCausalLM", "olmo3", third), later(), UNTIED);
    }
}

#[test]
fn tied_output_projection_is_written() {
    let norms = vec![
        layer_weight("self_attn.q_norm", &[HEADS * HEAD]),
        layer_weight("self_attn.k_norm", &[KV * HEAD]),
        layer_weight("post_attention_layernorm", &[WIDTH]),
        layer_weight("post_feedforward_layernorm", &[WIDTH]),
    ];
    let layer = vec![norms, attention(), gated_ffn("mlp", FF)];
    let fields = json!({"tie_word_embeddings": true, "rms_norm_eps": 1e-6});
    let tiny = checkpoint(config("Olmo2ForCausalLM", "olmo2", fields), layer, TIED);
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    let embedding = tiny.values("model.embed_tokens.weight");
    assert_eq!(elements(&gguf, "output.weight"), embedding);
    assert_eq!(elements(&gguf, "token_embd.weight"), embedding);
}
