//! Small families of after llama.

use serde_json::{Value, json};

use crate::there_and_back::exported_as_it_was;
use crate::{Tensors, tiny};

/// Fields that decoders of after llama share.
fn decoder(fields: Value) -> Value {
    let mut config = json!({
        "hidden_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "intermediate_size": 16, "max_position_embeddings": 64,
    });
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    config
}

const NORMS: Tensors = &[
    ("model.layers.{}.input_layernorm.weight", &[8]),
    ("model.layers.{}.post_attention_layernorm.weight", &[8]),
];
const BIASES_OF_NORMS: Tensors = &[
    ("model.layers.{}.input_layernorm.bias", &[8]),
    ("model.layers.{}.post_attention_layernorm.bias", &[8]),
];
const ATTENTION: Tensors = &[
    ("model.layers.{}.self_attn.q_proj.weight", &[8, 8]),
    ("model.layers.{}.self_attn.k_proj.weight", &[4, 8]),
    ("model.layers.{}.self_attn.v_proj.weight", &[4, 8]),
    ("model.layers.{}.self_attn.o_proj.weight", &[8, 8]),
];
const BIASES: Tensors = &[
    ("model.layers.{}.self_attn.q_proj.bias", &[8]),
    ("model.layers.{}.self_attn.k_proj.bias", &[4]),
    ("model.layers.{}.self_attn.v_proj.bias", &[4]),
    ("model.layers.{}.self_attn.o_proj.bias", &[8]),
];
const GATED: Tensors = &[
    ("model.layers.{}.mlp.gate_proj.weight", &[16, 8]),
    ("model.layers.{}.mlp.up_proj.weight", &[16, 8]),
    ("model.layers.{}.mlp.down_proj.weight", &[8, 16]),
];

#[test]
fn starcoder2_comes_back() {
    let config = decoder(json!({"norm_epsilon": 1e-5, "rope_theta": 999999.0}));
    let ends: Tensors = &[
        ("model.embed_tokens.weight", &[6, 8]),
        ("model.norm.weight", &[8]),
        ("model.norm.bias", &[8]),
    ];
    let feed_forward: Tensors = &[
        ("model.layers.{}.mlp.c_fc.weight", &[16, 8]),
        ("model.layers.{}.mlp.c_fc.bias", &[16]),
        ("model.layers.{}.mlp.c_proj.weight", &[8, 16]),
        ("model.layers.{}.mlp.c_proj.bias", &[8]),
    ];
    let layer = [NORMS, BIASES_OF_NORMS, ATTENTION, BIASES, feed_forward].concat();
    exported_as_it_was(&tiny("Starcoder2ForCausalLM", config, ends, &layer));
}

#[test]
fn phi2_comes_back() {
    let config = json!({
        "hidden_size": 20, "num_attention_heads": 2, "num_hidden_layers": 2,
        "intermediate_size": 80, "max_position_embeddings": 64, "partial_rotary_factor": 0.4,
        "layer_norm_eps": 1e-6, "rope_theta": 20000.0,
    });
    let phi = tiny(
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
    exported_as_it_was(&phi);
}

/// Embedding, last norm and output matrix.
const ENDS: Tensors = &[
    ("model.embed_tokens.weight", &[6, 8]),
    ("model.norm.weight", &[8]),
    ("lm_head.weight", &[6, 8]),
];

#[test]
fn norms_of_single_heads_come_back() {
    let config = decoder(json!({
        "layer_norm_eps": 1e-5, "use_parallel_residual": true, "partial_rotary_factor": 1.0,
        "qk_layernorm": true, "rope_theta": 1e6,
    }));
    let mut stablelm = tiny(
        "StableLmForCausalLM",
        config,
        ENDS,
        &[&NORMS[..1], &BIASES_OF_NORMS[..1], ATTENTION, GATED].concat(),
    )
    .tensors(&[("model.norm.bias", &[8])]);
    for (kind, heads) in [("q", 4), ("k", 2)] {
        for head in 0..heads {
            let name = format!("model.layers.{{}}.self_attn.{kind}_layernorm.norms.{head}.weight");
            stablelm = stablelm.layers(2, &[(&name, &[2])]);
        }
    }
    exported_as_it_was(&stablelm);
}

#[test]
fn smollm3_comes_back() {
    let layer = [NORMS, ATTENTION, GATED].concat();
    for base in [1e4, 5e6] {
        let config = decoder(json!({"rms_norm_eps": 1e-6, "rope_theta": base}));
        exported_as_it_was(&tiny("SmolLM3ForCausalLM", config, &ENDS[..2], &layer));
    }
}

#[test]
fn minicpm_comes_back_with_its_scales() {
    const SENTENCEPIECE: &[u8] =
        include_bytes!("../../../../testdata/Tiny-KJV-Llama-4M/tokenizer.model");
    let ends: Tensors = &[("model.embed_tokens.weight", &[2048, 8]), ("model.norm.weight", &[8])];
    let layer = [NORMS, ATTENTION, GATED].concat();
    let longrope = json!({
        "rope_type": "longrope", "long_factor": [4.7], "short_factor": [1.1],
        "original_max_position_embeddings": 64,
    });
    for scaling in [Value::Null, longrope] {
        let config = decoder(json!({
            "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 3, "rms_norm_eps": 1e-5,
            "vocab_size": 2048, "rope_scaling": scaling,
        }));
        let minicpm = tiny("MiniCPMForCausalLM", config, ends, &layer);
        std::fs::remove_file(minicpm.path().join("tokenizer.json")).unwrap();
        minicpm.file("tokenizer.model", SENTENCEPIECE);
        exported_as_it_was(&minicpm);
    }
}
