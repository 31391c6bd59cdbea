//! Gemma 4 and its assistant.

use safetensors::SafeTensors;
use serde_json::json;

use crate::fixtures::decoder::{
    FF, HEAD, HEADS, KV, LAYERS, TIED, VOCAB, WIDTH, alternating_layers, alternating_types,
    checkpoint, config, gated_ffn, layer_tensor, layer_weight, norms,
};
use crate::fixtures::round_trip::exported_files;

#[test]
pub fn gemma4_assistant_exports_its_tensors() {
    const GLOBAL_HEAD: usize = 24;
    const TARGET_WIDTH: usize = 128;
    let heads = |width: usize| {
        vec![
            layer_weight("self_attn.q_proj", &[HEADS * width, WIDTH]),
            layer_weight("self_attn.o_proj", &[WIDTH, HEADS * width]),
            layer_weight("self_attn.q_norm", &[width]),
        ]
    };
    let mut every = norms(&[
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ]);
    every.extend(gated_ffn("mlp", FF));
    every.push(layer_tensor("layer_scalar", &[1]));
    let kinds = alternating_types(["sliding_attention", "full_attention"]);
    let parameters = json!({
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
            "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    });
    let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "global_head_dim": GLOBAL_HEAD,
        "num_kv_shared_layers": LAYERS, "sliding_window": 32, "layer_types": kinds,
        "backbone_hidden_size": TARGET_WIDTH, "rope_parameters": parameters});
    let config = config("Gemma4AssistantForCausalLM", "gemma4_assistant", fields);
    let tiny = checkpoint(config, vec![every], TIED).tensors(&[
        ("pre_projection.weight", &[WIDTH, 2 * TARGET_WIDTH]),
        ("post_projection.weight", &[TARGET_WIDTH, WIDTH]),
        ("masked_embedding.centroids.weight", &[3, WIDTH]),
    ]);
    let tiny = alternating_layers(tiny, [&heads(HEAD), &heads(GLOBAL_HEAD)]);
    let tokenizer = json!({"decoder": {"type": "Sequence", "decoders": []}, "model": {
        "type": "BPE", "byte_fallback": true, "merges": [],
        "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5}}});
    tiny.file("tokenizer.json", tokenizer.to_string());
    let files = exported_files(&tiny.convert().unwrap());
    let stored = std::fs::read(tiny.path().join("model.safetensors")).unwrap();
    let weights = files.weights();
    let [stored, weights] =
        [&stored, &weights].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    // The centroids of token clusters are not exported.
    assert_eq!(weights.len(), stored.len() - 1);
    for (name, tensor) in weights.iter() {
        assert!(tensor.data() == stored.tensor(name).unwrap().data(), "{name}");
    }
    let exported = files.json("config.json");
    assert_eq!(exported["backbone_hidden_size"], TARGET_WIDTH);
    assert_eq!(exported["architectures"], json!(["Gemma4AssistantForCausalLM"]));
}

#[test]
pub fn gemma4_exports_its_tensors() {
    const GLOBAL_HEAD: usize = 24;
    const PER_LAYER: usize = 8;
    let heads = |width: usize, kv: usize| {
        vec![
            layer_weight("self_attn.q_proj", &[HEADS * width, WIDTH]),
            layer_weight("self_attn.k_proj", &[kv * width, WIDTH]),
            layer_weight("self_attn.o_proj", &[WIDTH, HEADS * width]),
            layer_weight("self_attn.q_norm", &[width]),
            layer_weight("self_attn.k_norm", &[width]),
        ]
    };
    let mut every = norms(&[
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
        "post_per_layer_input_norm",
    ]);
    every.extend(gated_ffn("mlp", FF));
    every.push(layer_tensor("layer_scalar", &[1]));
    every.push(layer_weight("per_layer_input_gate", &[PER_LAYER, WIDTH]));
    every.push(layer_weight("per_layer_projection", &[WIDTH, PER_LAYER]));
    let kinds = alternating_types(["sliding_attention", "full_attention"]);
    let parameters = json!({
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
            "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    });
    let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "global_head_dim": GLOBAL_HEAD,
        "num_global_key_value_heads": 1, "hidden_size_per_layer_input": PER_LAYER,
        "num_kv_shared_layers": 0, "sliding_window": 32, "layer_types": kinds,
        "final_logit_softcapping": 30.0, "rope_parameters": parameters});
    let config = config("Gemma4ForCausalLM", "gemma4_text", fields);
    let tiny = checkpoint(config, vec![every], TIED).tensors(&[
        ("model.embed_tokens_per_layer.weight", &[VOCAB, LAYERS * PER_LAYER]),
        ("model.per_layer_model_projection.weight", &[LAYERS * PER_LAYER, WIDTH]),
        ("model.per_layer_projection_norm.weight", &[PER_LAYER]),
    ]);
    let value = layer_weight("self_attn.v_proj", &[KV * HEAD, WIDTH]);
    let windowed = [heads(HEAD, KV), vec![value]].concat();
    let tiny = alternating_layers(tiny, [&windowed, &heads(GLOBAL_HEAD, 1)]);
    let tokenizer = json!({"decoder": {"type": "Sequence", "decoders": []}, "model": {
        "type": "BPE", "byte_fallback": true, "merges": [],
        "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5}}});
    tiny.file("tokenizer.json", tokenizer.to_string());
    let gguf = tiny.convert().unwrap();
    let files = exported_files(&gguf);
    assert_eq!(files.notes, ["skipped the tokenizer: its kind `gemma4` is unknown"]);
    let stored = std::fs::read(tiny.path().join("model.safetensors")).unwrap();
    let weights = files.weights();
    let [stored, weights] =
        [&stored, &weights].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    assert_eq!(weights.len(), stored.len());
    for (name, tensor) in weights.iter() {
        assert!(tensor.data() == stored.tensor(name).unwrap().data(), "{name}");
    }
    let exported = files.json("config.json");
    assert_eq!(exported["global_head_dim"], GLOBAL_HEAD);
    assert_eq!(exported["num_global_key_value_heads"], 1);
    assert_eq!(exported["num_key_value_heads"], KV);
    assert_eq!(exported["rope_parameters"], parameters);
}
