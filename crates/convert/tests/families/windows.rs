//! Windows and weights of experts that programs do not expect of an architecture.

use gguf::Gguf;
use serde_json::{Value, json};

use crate::decoder::{
    FF, HEAD, WIDTH, attention, checkpoint, config, gated, listed, llama_block, norms,
};
use crate::tiny::{Tiny, assert_sound};

/// The value of a key, in the words of JSON; null if there is none.
fn key(tiny: &Tiny, key: &str) -> Value {
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    let model = Gguf::read(&gguf).unwrap();
    let architecture = model.metadata().architecture().unwrap().to_owned();
    match model.metadata().get(&format!("{architecture}.{key}")) {
        None => Value::Null,
        Some(gguf::Value::Bool(flag)) => json!(flag),
        Some(value) => match value.as_array() {
            Some(flags) => flags.iter().map(|flag| json!(flag.to_bool().unwrap())).collect(),
            None => json!(value.to_i64().unwrap()),
        },
    }
}

fn window(tiny: &Tiny) -> [Value; 2] {
    ["attention.sliding_window", "attention.sliding_window_pattern"].map(|name| key(tiny, name))
}

fn llama_like(class: &str, fields: Value) -> Tiny {
    let mut all = json!({"rms_norm_eps": 1e-5});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    checkpoint(config(class, "x", all), llama_block(), &["model.norm", "lm_head"])
}

#[test]
fn mistral_says_its_window_where_a_context_is_longer() {
    let of = |class: &str, fields: Value| window(&llama_like(class, fields));
    let none = [Value::Null, Value::Null];
    assert_eq!(of("MistralForCausalLM", json!({"sliding_window": 16})), [json!(16), Value::Null]);
    assert_eq!(of("MistralForCausalLM", json!({"sliding_window": 256})), none);
    assert_eq!(of("MistralForCausalLM", json!({"sliding_window": null})), none);
    assert_eq!(of("MistralForCausalLM", json!({})), none, "4096 is more than the context");
    let long = json!({"max_position_embeddings": 8192});
    assert_eq!(of("MistralForCausalLM", long), [json!(4096), Value::Null], "that of the class");
    assert_eq!(of("LlamaForCausalLM", json!({"sliding_window": 16})), none, "the class has none");
}

#[test]
fn qwen_says_its_window_if_it_is_used() {
    let of = |fields: Value| window(&llama_like("Qwen2ForCausalLM", fields));
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
fn gemma_says_which_layers_have_a_window_if_they_are_unusual() {
    let more = norms(&["pre_feedforward_layernorm", "post_feedforward_layernorm"]);
    let layer = || [llama_block(), vec![more.clone()]].concat();
    let second = |fields: Value| {
        let mut all = json!({"head_dim": HEAD, "sliding_window": 16});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        checkpoint(config("Gemma2ForCausalLM", "gemma2", all), layer(), &["model.norm"])
    };
    let (windowed, whole) = ("sliding_attention", "full_attention");
    assert_eq!(window(&second(json!({}))), [json!(16), Value::Null]);
    let usual = json!({"layer_types": [windowed, whole, windowed, whole]});
    assert_eq!(window(&second(usual)), [json!(16), Value::Null]);
    let unusual = json!({"layer_types": [whole, windowed, windowed, whole]});
    assert_eq!(window(&second(unusual)), [json!(16), json!([false, true, true, false])]);
    let heads = vec![listed("self_attn.q_norm", &[HEAD]), listed("self_attn.k_norm", &[HEAD])];
    let third = json!({"head_dim": HEAD, "sliding_window": 16, "sliding_window_pattern": 2});
    let third = config("Gemma3ForCausalLM", "gemma3_text", third);
    let third = checkpoint(third, [layer(), vec![heads]].concat(), &["model.norm"]);
    assert_eq!(window(&third), [json!(16), json!([true, false, true, false])]);
}

#[test]
fn qwen_says_what_its_experts_weigh_if_it_is_unusual() {
    const NORM: &str = "expert_weights_norm";
    let third = |fields: Value| {
        let mut all = json!({"head_dim": HEAD, "num_experts": 2, "num_experts_per_tok": 1,
            "moe_intermediate_size": FF, "rms_norm_eps": 1e-5});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let mut layer = vec![norms(&["input_layernorm", "post_attention_layernorm"]), attention()];
        layer.push(vec![listed("mlp.gate", &[2, WIDTH])]);
        layer.push(vec![listed("self_attn.q_norm", &[HEAD]), listed("self_attn.k_norm", &[HEAD])]);
        layer.extend((0..2).map(|expert| gated(&format!("mlp.experts.{expert}"), FF)));
        let config = config("Qwen3MoeForCausalLM", "qwen3_moe", all);
        checkpoint(config, layer, &["model.norm", "lm_head"])
    };
    assert_eq!(key(&third(json!({"norm_topk_prob": true})), NORM), Value::Null);
    assert_eq!(key(&third(json!({"norm_topk_prob": false})), NORM), false);
    assert_eq!(key(&third(json!({})), NORM), false, "that of the class");
}
