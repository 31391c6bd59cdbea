//! Qwen, Qwen2, Qwen2 MoE and Qwen3 MoE.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, NamedShape, PROJECTIONS, UNTIED, VOCAB, WIDTH, attention,
    checkpoint, checkpoint_with_names, config, expert_ffns, gated_ffn, layer_weight,
    llama_checkpoint, llama_layer, merged, pre_norms, qk_norms, qkv_biases,
};
use crate::fixtures::round_trip::{
    assert_config_round_trip, assert_gguf_round_trip, assert_round_trip,
};
use crate::fixtures::{architecture_value, elements, sliding_window};

#[test]
pub fn qwen_counts_gate_and_up_in_intermediate_size() {
    let layer: Vec<NamedShape> = [
        ("ln_1.weight", &[WIDTH][..]),
        ("ln_2.weight", &[WIDTH]),
        ("attn.c_attn.weight", &[3 * WIDTH, WIDTH]),
        ("attn.c_attn.bias", &[3 * WIDTH]),
        ("attn.c_proj.weight", &[WIDTH, WIDTH]),
        ("mlp.w1.weight", &[FF, WIDTH]),
        ("mlp.w2.weight", &[FF, WIDTH]),
        ("mlp.c_proj.weight", &[WIDTH, FF]),
    ]
    .map(|(name, shape)| (format!("transformer.h.{{}}.{name}"), shape.to_vec()))
    .to_vec();
    let mut fields = config(
        "QWenLMHeadModel",
        "qwen",
        json!({"layer_norm_epsilon": 1e-6, "rotary_emb_base": 10000.0, "no_bias": true,
            "intermediate_size": 2 * FF}),
    );
    fields.as_object_mut().unwrap().remove("num_key_value_heads");
    let top = [("transformer.wte", &[VOCAB, WIDTH][..]), ("transformer.ln_f", &[WIDTH])];
    let exported = assert_round_trip(&checkpoint_with_names(fields, &top, &layer)).config;
    assert_eq!(exported["rotary_emb_base"].as_f64(), Some(10000.0));
}

fn qwen_moe_fields(fields: Value) -> Value {
    merged(
        json!({"rms_norm_eps": 1e-6, "rope_theta": 1e6, "num_experts": EXPERTS,
        "moe_intermediate_size": EXPERT_FF, "num_experts_per_tok": 2}),
        fields,
    )
}

#[test]
pub fn qwen2_moe_and_qwen3_moe_round_trip() {
    let block =
        || vec![pre_norms(), attention(), vec![layer_weight("mlp.gate", &[EXPERTS, WIDTH])]];
    let shared = vec![
        gated_ffn("mlp.shared_expert", FF),
        vec![layer_weight("mlp.shared_expert_gate", &[1, WIDTH])],
        qkv_biases(),
    ];
    let fused = vec![
        ("model.layers.{}.mlp.experts.gate_up_proj".into(), vec![EXPERTS, 2 * EXPERT_FF, WIDTH]),
        ("model.layers.{}.mlp.experts.down_proj".into(), vec![EXPERTS, WIDTH, EXPERT_FF]),
    ];
    let second = qwen_moe_fields(json!({"shared_expert_intermediate_size": FF}));
    let second = config("Qwen2MoeForCausalLM", "qwen2_moe", second);
    assert_config_round_trip(
        second.clone(),
        [block(), vec![expert_ffns("mlp", PROJECTIONS)], shared.clone()].concat(),
        UNTIED,
    );
    // The export splits fused experts.
    let tiny = checkpoint(second, [block(), vec![fused], shared].concat(), UNTIED);
    let gguf = tiny.convert().unwrap();
    let both = tiny.values("model.layers.1.mlp.experts.gate_up_proj");
    assert_eq!(elements(&gguf, "blk.1.ffn_gate_exps.weight")[..8], both[..8]);
    assert_gguf_round_trip(tiny.path());
    let norms = qk_norms();
    let yarn = json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64});
    let third = qwen_moe_fields(json!({"head_dim": HEAD, "rope_scaling": yarn}));
    let third = config("Qwen3MoeForCausalLM", "qwen3_moe", third);
    assert_config_round_trip(
        third,
        [block(), vec![expert_ffns("mlp", PROJECTIONS), norms]].concat(),
        UNTIED,
    );
}

#[test]
fn sliding_window_is_written_if_enabled() {
    let of = |fields: Value| sliding_window(&llama_checkpoint("Qwen2ForCausalLM", fields));
    let none = [Value::Null, Value::Null];
    assert_eq!(of(json!({"sliding_window": 16, "max_window_layers": 0})), none);
    let used = json!({"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 3});
    assert_eq!(of(used), [json!(16), json!([false, false, false, true])]);
    let all = json!({"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 0});
    assert_eq!(of(all), [json!(16), Value::Null]);
    let beyond = json!({"use_sliding_window": true, "sliding_window": 16});
    assert_eq!(of(beyond), none, "the first 28 layers have none");
    let kinds = ["sliding_attention", "full_attention", "full_attention", "full_attention"];
    let listed = json!({"use_sliding_window": true, "sliding_window": 16, "layer_types": kinds});
    assert_eq!(of(listed), [json!(16), json!([true, false, false, false])]);
}

#[test]
fn expert_weight_normalization_is_written_if_unusual() {
    const NORM: &str = "expert_weights_norm";
    let third = |fields: Value| {
        let all = merged(
            json!({"head_dim": HEAD, "num_experts": 2, "num_experts_per_tok": 1,
            "moe_intermediate_size": FF, "rms_norm_eps": 1e-5}),
            fields,
        );
        let mut layer = vec![pre_norms(), attention()];
        layer.push(vec![layer_weight("mlp.gate", &[2, WIDTH])]);
        layer.push(qk_norms());
        layer.extend((0..2).map(|expert| gated_ffn(&format!("mlp.experts.{expert}"), FF)));
        let config = config("Qwen3MoeForCausalLM", "qwen3_moe", all);
        checkpoint(config, layer, UNTIED)
    };
    assert_eq!(architecture_value(&third(json!({"norm_topk_prob": true})), NORM), Value::Null);
    assert_eq!(architecture_value(&third(json!({"norm_topk_prob": false})), NORM), false);
    assert_eq!(architecture_value(&third(json!({})), NORM), false, "that of the class");
}

#[test]
pub fn qwen3_round_trip() {
    let fields = json!({"rms_norm_eps": 1e-6, "rope_theta": 1e6, "head_dim": HEAD});
    let layer = [llama_layer(), vec![qk_norms()]].concat();
    assert_config_round_trip(config("Qwen3ForCausalLM", "qwen3", fields), layer, UNTIED);
}
