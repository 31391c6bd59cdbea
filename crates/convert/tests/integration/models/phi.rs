//! Phi-2, Phi-3 and Phi-3.5 MoE.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, NUMBERED, NamedShape, TIED, UNTIED, VOCAB, WIDTH,
    attention, checkpoint, config, expert_ffns, layer_weight, pre_norms,
};
use crate::fixtures::round_trip::{assert_config_round_trip, assert_round_trip};
use crate::fixtures::{Tiny, assert_valid, elements, metadata_value, two_layer_model};

#[test]
pub fn phi_moe_round_trip() {
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4, "num_local_experts": EXPERTS,
        "num_experts_per_tok": 2, "intermediate_size": EXPERT_FF, "sliding_window": 200,
        "original_max_position_embeddings": 256});
    let bias = |(name, shape): &NamedShape| (name.replace("weight", "bias"), vec![shape[0]]);
    let attended = [pre_norms(), attention()].concat();
    let biases = attended.iter().map(bias).collect();
    let router = vec![layer_weight("block_sparse_moe.gate", &[EXPERTS, WIDTH])];
    let layer = vec![attended, biases, router, expert_ffns("block_sparse_moe", NUMBERED)];
    let config = config("PhiMoEForCausalLM", "phimoe", fields);
    let tiny = checkpoint(config, layer, UNTIED)
        .tensors(&[("model.norm.bias", &[WIDTH]), ("lm_head.bias", &[VOCAB])]);
    assert_eq!(assert_round_trip(&tiny).config["num_local_experts"], EXPERTS);
}

#[test]
pub fn phi3_round_trip_with_longrope() {
    let block = || {
        vec![
            pre_norms(),
            vec![
                layer_weight("self_attn.qkv_proj", &[(HEADS + 2 * KV) * HEAD, WIDTH]),
                layer_weight("self_attn.o_proj", &[WIDTH, WIDTH]),
                layer_weight("mlp.gate_up_proj", &[2 * FF, WIDTH]),
                layer_weight("mlp.down_proj", &[WIDTH, FF]),
            ],
        ]
    };
    let factors = |len: usize, slope: f64| (0..len).map(|i| 1.0 + slope * i as f64).collect();
    let longrope = |len: usize| {
        let (long, short): (Vec<f64>, Vec<f64>) = (factors(len, 1.3), factors(len, 0.05));
        json!({"type": "longrope", "long_factor": long, "short_factor": short})
    };
    for fields in [
        json!({"rms_norm_eps": 1e-5, "sliding_window": 200, "rope_theta": 10000.0}),
        json!({"rms_norm_eps": 1e-5, "sliding_window": 200, "rope_scaling": longrope(HEAD / 2),
            "max_position_embeddings": 2048, "original_max_position_embeddings": 128}),
        json!({"rms_norm_eps": 1e-5, "sliding_window": null, "rope_scaling": longrope(6),
            "partial_rotary_factor": 0.75, "original_max_position_embeddings": 256}),
    ] {
        assert_config_round_trip(
            config("Phi3ForCausalLM", "phi3", fields.clone()),
            block(),
            UNTIED,
        );
        assert_config_round_trip(config("Phi3ForCausalLM", "phi3", fields), block(), TIED);
    }
}

#[test]
pub fn phi2_round_trip() {
    let config = json!({
        "hidden_size": 20, "num_attention_heads": 2, "num_hidden_layers": 2,
        "intermediate_size": 80, "max_position_embeddings": 64, "partial_rotary_factor": 0.4,
        "layer_norm_eps": 1e-6, "rope_theta": 20000.0,
    });
    let phi = two_layer_model(
        "PhiForCausalLM",
        config,
        &[
            ("model.embed_tokens.weight", &[6, 20]),
            ("model.final_layernorm.weight", &[20]),
            ("model.final_layernorm.bias", &[20]),
            ("lm_head.weight", &[6, 20]),
            ("lm_head.bias", &[6]),
        ],
        &[
            ("model.layers.{}.input_layernorm.weight", &[20]),
            ("model.layers.{}.input_layernorm.bias", &[20]),
            ("model.layers.{}.self_attn.q_proj.weight", &[20, 20]),
            ("model.layers.{}.self_attn.q_proj.bias", &[20]),
            ("model.layers.{}.self_attn.k_proj.weight", &[20, 20]),
            ("model.layers.{}.self_attn.k_proj.bias", &[20]),
            ("model.layers.{}.self_attn.v_proj.weight", &[20, 20]),
            ("model.layers.{}.self_attn.v_proj.bias", &[20]),
            ("model.layers.{}.self_attn.dense.weight", &[20, 20]),
            ("model.layers.{}.self_attn.dense.bias", &[20]),
            ("model.layers.{}.mlp.fc1.weight", &[80, 20]),
            ("model.layers.{}.mlp.fc1.bias", &[80]),
            ("model.layers.{}.mlp.fc2.weight", &[20, 80]),
            ("model.layers.{}.mlp.fc2.bias", &[20]),
        ],
    );
    assert_round_trip(&phi);
}

/// Builds Phi-2 with these numbers of key heads and this feed-forward width.
fn phi2(fields: Value, heads_kv: usize, inner: usize) -> Tiny {
    let config = config("PhiForCausalLM", "phi", fields);
    let weight = |name: &str, shape: &[usize]| layer_weight(name, shape);
    let with_bias = |name: &str, shape: &[usize]| {
        let (weight, shape) = weight(name, shape);
        [(weight.clone(), shape.clone()), (weight.replace("weight", "bias"), vec![shape[0]])]
    };
    let layer: Vec<NamedShape> = [
        with_bias("input_layernorm", &[WIDTH]),
        with_bias("self_attn.q_proj", &[HEADS * HEAD, WIDTH]),
        with_bias("self_attn.k_proj", &[heads_kv * HEAD, WIDTH]),
        with_bias("self_attn.v_proj", &[heads_kv * HEAD, WIDTH]),
        with_bias("self_attn.dense", &[WIDTH, HEADS * HEAD]),
        with_bias("mlp.fc1", &[inner, WIDTH]),
        with_bias("mlp.fc2", &[WIDTH, inner]),
    ]
    .concat();
    checkpoint(config, vec![layer], &["model.final_layernorm", "lm_head"])
        .tensors(&[("model.final_layernorm.bias", &[WIDTH]), ("lm_head.bias", &[VOCAB])])
}

#[test]
fn phi2_kv_heads_and_ffn_width_come_from_the_config() {
    for (heads_kv, stated, inner) in [(KV, json!(KV), FF), (HEADS, Value::Null, 4 * WIDTH)] {
        let tiny = phi2(
            json!({"num_key_value_heads": stated, "intermediate_size": inner}),
            heads_kv,
            inner,
        );
        let gguf = tiny.convert().unwrap();
        assert_valid(&gguf);
        assert_eq!(metadata_value(&gguf, "phi2.attention.head_count_kv"), heads_kv);
        assert_eq!(metadata_value(&gguf, "phi2.feed_forward_length"), inner);
        let stored = tiny.values("model.layers.1.self_attn.k_proj.weight");
        assert_eq!(elements(&gguf, "blk.1.attn_k.weight"), stored);
    }
    let message = phi2(json!({"qk_layernorm": true}), KV, FF).convert().unwrap_err().to_string();
    assert!(message.contains("`qk_layernorm` is true"), "{message}");
}
