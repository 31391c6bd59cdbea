//! Mistral, Ministral 3 and Mistral 4.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, HEADS, LORA_RANK, QK_NOPE, QK_ROPE, TIED, UNTIED, V_HEAD, WIDTH,
    checkpoint, config, gated_ffn, layer_tensor, layer_weight, llama_checkpoint, llama_config,
    llama_layer, mla_moe_fields, mla_projections, pre_norms, with_rms_norm,
};
use crate::fixtures::round_trip::{assert_round_trip, export_after_edit};
use crate::fixtures::sliding_window;

#[test]
pub fn ministral3_round_trip_with_attention_temperature() {
    let scaling = json!({"rope_type": "yarn", "factor": 16.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 64});
    let fields = with_rms_norm(json!({"head_dim": HEAD, "rope_scaling": scaling}));
    let tiny =
        checkpoint(config("Ministral3ForCausalLM", "ministral3", fields), llama_layer(), TIED);
    let exported = assert_round_trip(&tiny).config;
    let field = |name: &str| exported["rope_scaling"][name].as_f64().map(|x| x as f32);
    assert_eq!(field("llama_4_scaling_beta"), Some(0.1));
    assert_eq!(field("mscale_all_dim"), Some(1.0));
    let fields = with_rms_norm(json!({"head_dim": HEAD}));
    let seeing = config("Mistral3ForConditionalGeneration", "mistral3", fields);
    assert_round_trip(&checkpoint(seeing, llama_layer(), UNTIED));
}

#[test]
fn sliding_window_exports_as_mistral() {
    let tiny = checkpoint(llama_config(json!({})), llama_layer(), UNTIED);
    let key = "llama.attention.sliding_window";
    let (config, notes) = export_after_edit(&tiny, |metadata| metadata.set(key, 128u32));
    assert_eq!(config["architectures"], json!(["MistralForCausalLM"]));
    assert_eq!(config["sliding_window"], 128);
    assert_eq!(notes, [""; 0]);
}

#[test]
fn mistral4_round_trip() {
    let own = json!({"n_routed_experts": EXPERTS, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
        "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
            "original_max_position_embeddings": 64, "mscale_all_dim": 1.0, "mscale": 1.0,
            "llama_4_scaling_beta": 0.1}});
    let mut every = pre_norms();
    every.extend(mla_projections("self_attn", HEADS, LORA_RANK, [QK_NOPE, QK_ROPE, V_HEAD]));
    every.push(layer_weight("self_attn.o_proj", &[WIDTH, HEADS * V_HEAD]));
    every.push(layer_weight("mlp.gate", &[EXPERTS, WIDTH]));
    every.push(layer_tensor("mlp.experts.gate_up_proj", &[EXPERTS, 2 * EXPERT_FF, WIDTH]));
    every.push(layer_tensor("mlp.experts.down_proj", &[EXPERTS, WIDTH, EXPERT_FF]));
    every.extend(gated_ffn("mlp.shared_experts", EXPERT_FF));
    let config = config("Mistral3ForConditionalGeneration", "mistral4", mla_moe_fields(own));
    let tiny = checkpoint(config, vec![every], UNTIED);
    let exported = assert_round_trip(&tiny);
    let model = gguf::Gguf::read(&exported.gguf).unwrap();
    assert_eq!(model.metadata().architecture(), Some("mistral4"));
    let vocabulary = gguf_convert::hf::vocabulary(tiny.path()).unwrap();
    assert_eq!(vocabulary.metadata.architecture(), Some("mistral4"));
    let sharper = model.metadata().get("mistral4.attention.temperature_scale");
    assert_eq!(sharper, Some(&gguf::Value::F32(0.1)));
    assert_eq!(exported.config["model_type"], "mistral4");
}

#[test]
fn sliding_window_is_written_if_the_context_is_longer() {
    let of = |class: &str, fields: Value| sliding_window(&llama_checkpoint(class, fields));
    let none = [Value::Null, Value::Null];
    assert_eq!(of("MistralForCausalLM", json!({"sliding_window": 16})), [json!(16), Value::Null]);
    assert_eq!(of("MistralForCausalLM", json!({"sliding_window": 256})), none);
    assert_eq!(of("MistralForCausalLM", json!({"sliding_window": null})), none);
    assert_eq!(of("MistralForCausalLM", json!({})), none, "4096 is more than the context");
    let long = json!({"max_position_embeddings": 8192});
    assert_eq!(of("MistralForCausalLM", long), [json!(4096), Value::Null], "that of the class");
    assert_eq!(of("LlamaForCausalLM", json!({"sliding_window": 16})), none, "the class has none");
}
