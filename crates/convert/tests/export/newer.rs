//! There and back: the decoders that followed llama, and how rotary embedding is scaled.

use std::path::{Path, PathBuf};

use gguf::Metadata;
use serde_json::{Value, json};

use crate::decoder::*;
use crate::there_and_back::{convert, export, exported_as_it_was, go_on, there_and_back};
use crate::tiny::{Tiny, elements};

const EXPERTS: usize = 3;
const EXPERT_FF: usize = 32;

fn biases() -> Vec<Listed> {
    let bias = |(name, shape): Listed| (name.replace("weight", "bias"), vec![shape[0]]);
    attention().into_iter().take(3).map(bias).collect()
}

/// It goes there and back, and what is exported has the very tensors and fields of the checkpoint.
#[track_caller]
pub fn check(config: Value, layer: Vec<Vec<Listed>>, top: &[&str]) {
    let tiny = checkpoint(config, layer, top);
    assert_fields(&exported_as_it_was(&tiny).config, &json_in(tiny.path()));
}

fn json_in(dir: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(dir.join("config.json")).unwrap()).unwrap()
}

/// All fields of the checkpoint's configuration, but for those that no key of a GGUF holds, have
/// their values. Null and false are as good as nothing.
#[track_caller]
fn assert_fields(exported: &Value, of_checkpoint: &Value) {
    for (field, value) in of_checkpoint.as_object().unwrap() {
        let found = match field.as_str() {
            // Tokens with a role are the tokenizer's.
            _ if LEFT_OUT.contains(&&**field) || field.ends_with("_token_id") => continue,
            "type" | "rope_type" => {
                exported.get("type").or(exported.get("rope_type")).unwrap_or(&Value::Null)
            }
            // The first Gemmas have no key for the usual one.
            "rope_theta" if exported.get(field).is_none() => {
                assert_eq!(value.as_f64(), Some(10000.0));
                continue;
            }
            "model_max_length" => &exported["max_position_embeddings"],
            "max_position_embeddings" if of_checkpoint.get("model_max_length").is_some() => {
                continue;
            }
            "num_local_experts" if exported.get("num_experts").is_some() => {
                &exported["num_experts"]
            }
            "rope_parameters" => {
                let all = value.get("full_attention").unwrap_or(value);
                assert_eq!(exported["rope_theta"].as_f64(), all["rope_theta"].as_f64());
                continue;
            }
            field => &exported[field],
        };
        match (found, value) {
            (Value::Null, Value::Null | Value::Bool(false)) => {}
            (Value::Object(_), Value::Object(_)) => assert_fields(found, value),
            (Value::Number(_), _) => assert_eq!(found.as_f64(), value.as_f64(), "{field}"),
            _ => assert_eq!(found, value, "{field}"),
        }
    }
}

pub const TIED: &[&str] = &["model.norm"];
pub const UNTIED: &[&str] = &["model.norm", "lm_head"];

/// Fields that no key of a GGUF holds, and which have the values here that the classes in
/// `transformers` complete, or none that counts.
const LEFT_OUT: &[&str] = &[
    "attention_dropout",
    "decoder_sparse_step",
    "dtype",
    "embd_pdrop",
    "hidden_act",
    "hidden_activation",
    "initializer_range",
    "mlp_only_layers",
    "output_router_logits",
    "pretraining_tp",
    "resid_pdrop",
    "router_aux_loss_coef",
    "sliding_window_size",
    "transformers_version",
    "use_cache",
    "use_sliding_window",
];

#[test]
fn the_zoo_goes_there_and_back() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: set GGUF_TEST_DATA to the folder with the reference data");
        return;
    };
    for name in ["llama", "mixtral", "qwen3moe", "gemma2", "gemma3", "phi3", "olmo2"] {
        let folder = PathBuf::from(&data).join("zoo").join(name);
        there_and_back(&folder, u64::MAX);
        let dir = tempfile::tempdir().unwrap();
        let made = tempfile::tempdir().unwrap();
        let path = made.path().join("first.gguf");
        convert(&folder, &path, None);
        export(&path, dir.path(), u64::MAX);
        assert_fields(&json_in(dir.path()), &json_in(&folder));
    }
}

/// The checkpoint is converted, the header of the GGUF edited, and that exported: the
/// configuration, and the notes.
fn exported_after(tiny: &Tiny, edit: impl FnOnce(&mut Metadata)) -> (Value, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let made = tempfile::tempdir().unwrap();
    let path = made.path().join("first.gguf");
    std::fs::write(&path, tiny.convert().unwrap()).unwrap();
    gguf_store::edit::edit_header(&path, 0, &go_on, |draft| {
        edit(&mut draft.metadata);
        Ok::<_, gguf::Error>(())
    })
    .unwrap();
    let notes = export(&path, dir.path(), u64::MAX);
    (json_in(dir.path()), notes)
}

fn llama(fields: Value) -> Value {
    let mut all = json!({"rms_norm_eps": 1e-5, "rope_theta": 10000.0});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    config("LlamaForCausalLM", "llama", all)
}

#[test]
fn llama_with_biases_and_heads_of_another_width() {
    check(llama(json!({})), llama_block(), TIED);
    let biased = [llama_block(), vec![biases()]].concat();
    check(llama(json!({"attention_bias": true})), biased, UNTIED);
    // Nothing tells Mistral without windows from Llama: both compute the same.
    let mistral = config("MistralForCausalLM", "mistral", json!({"rms_norm_eps": 1e-6}));
    let mistral = checkpoint(mistral, llama_block(), UNTIED);
    mistral.convert().unwrap();
    there_and_back(mistral.path(), u64::MAX);
    let wide = vec![
        norms(&["input_layernorm", "post_attention_layernorm"]),
        vec![
            listed("self_attn.q_proj", &[HEADS * 32, WIDTH]),
            listed("self_attn.k_proj", &[KV * 32, WIDTH]),
            listed("self_attn.v_proj", &[KV * 32, WIDTH]),
            listed("self_attn.o_proj", &[WIDTH, HEADS * 32]),
        ],
        gated("mlp", FF),
    ];
    check(llama(json!({"head_dim": 32})), wide, UNTIED);
}

#[test]
fn windows_are_those_of_mistral() {
    let tiny = checkpoint(llama(json!({})), llama_block(), UNTIED);
    let key = "llama.attention.sliding_window";
    let (config, notes) = exported_after(&tiny, |metadata| metadata.set(key, 128u32));
    assert_eq!(config["architectures"], json!(["MistralForCausalLM"]));
    assert_eq!(config["sliding_window"], 128);
    assert_eq!(notes, [""; 0]);
}

#[test]
fn what_does_not_come_back_is_told() {
    let other_bounds = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 3.0, "original_max_position_embeddings": 100});
    let config = llama(json!({"rope_scaling": other_bounds}));
    let (config, notes) = exported_after(&checkpoint(config, llama_block(), TIED), |_| {});
    assert_eq!(config.get("rope_scaling"), None);
    assert_eq!(notes, ["left out `rope_freqs.weight`: the configuration cannot express it"]);
    let (_, notes) = exported_after(&checkpoint(llama(json!({})), llama_block(), TIED), |keys| {
        keys.set("llama.rope.dimension_count", 8u32);
        keys.remove("llama.vocab_size");
    });
    let key = |key| format!("`llama.{key}`");
    let another = format!("converting back gives another {}", key("rope.dimension_count"));
    assert_eq!(notes, [another, format!("converting back adds {}", key("vocab_size"))]);
}

#[test]
fn every_scaling_of_rotary_embedding() {
    let llama3 = |factor: f64, original: u32| {
        json!({"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": original})
    };
    for scaling in [
        json!({"type": "linear", "factor": 4.0}),
        json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}),
        json!({"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 64,
            "beta_fast": 32.0, "beta_slow": 1.5, "attention_factor": 1.25,
            "extrapolation_factor": 0.5}),
        llama3(8.0, 8192),
        llama3(32.0, 8192),
        llama3(8.0, 64),
        llama3(4.5, 1024),
    ] {
        check(llama(json!({"rope_scaling": scaling})), llama_block(), UNTIED);
        let qwen = json!({"rms_norm_eps": 1e-6, "rope_theta": 1e6, "rope_scaling": scaling});
        if scaling["rope_type"] != "llama3" {
            check(config("Qwen2ForCausalLM", "qwen2", qwen.clone()), llama_block(), UNTIED);
        }
        check(config("GraniteForCausalLM", "granite", qwen), llama_block(), UNTIED);
    }
}

fn experts(stem: &str) -> Vec<Listed> {
    (0..EXPERTS).flat_map(|i| gated(&format!("{stem}.experts.{i}"), EXPERT_FF)).collect()
}

fn qwen_moe(fields: Value) -> Value {
    let mut all = json!({"rms_norm_eps": 1e-6, "rope_theta": 1e6, "num_experts": EXPERTS,
        "moe_intermediate_size": EXPERT_FF, "num_experts_per_tok": 2});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    all
}

#[test]
fn qwen_with_experts() {
    let block = || {
        vec![
            norms(&["input_layernorm", "post_attention_layernorm"]),
            attention(),
            vec![listed("mlp.gate", &[EXPERTS, WIDTH])],
        ]
    };
    let shared = vec![
        gated("mlp.shared_expert", FF),
        vec![listed("mlp.shared_expert_gate", &[1, WIDTH])],
        biases(),
    ];
    let fused = vec![
        ("model.layers.{}.mlp.experts.gate_up_proj".into(), vec![EXPERTS, 2 * EXPERT_FF, WIDTH]),
        ("model.layers.{}.mlp.experts.down_proj".into(), vec![EXPERTS, WIDTH, EXPERT_FF]),
    ];
    let second = qwen_moe(json!({"shared_expert_intermediate_size": FF}));
    let second = config("Qwen2MoeForCausalLM", "qwen2_moe", second);
    check(second.clone(), [block(), vec![experts("mlp")], shared.clone()].concat(), UNTIED);
    // Experts in one tensor come back one by one.
    let tiny = checkpoint(second, [block(), vec![fused], shared].concat(), UNTIED);
    let gguf = tiny.convert().unwrap();
    let both = tiny.values("model.layers.1.mlp.experts.gate_up_proj");
    assert_eq!(elements(&gguf, "blk.1.ffn_gate_exps.weight")[..8], both[..8]);
    there_and_back(tiny.path(), u64::MAX);
    let norms = vec![listed("self_attn.q_norm", &[HEAD]), listed("self_attn.k_norm", &[HEAD])];
    let yarn = json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64});
    let third = qwen_moe(json!({"head_dim": HEAD, "rope_scaling": yarn}));
    let third = config("Qwen3MoeForCausalLM", "qwen3_moe", third);
    check(third, [block(), vec![experts("mlp"), norms]].concat(), UNTIED);
}

#[test]
fn gemma() {
    let first = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6});
    check(config("GemmaForCausalLM", "gemma", first.clone()), llama_block(), TIED);
    let unusual = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 5e4});
    check(config("GemmaForCausalLM", "gemma", unusual), llama_block(), TIED);
    let block = || {
        let norms = norms(&["pre_feedforward_layernorm", "post_feedforward_layernorm"]);
        [llama_block(), vec![norms]].concat()
    };
    check(config("Gemma2ForCausalLM", "gemma2", first), block(), TIED);
    let capped = json!({"head_dim": HEAD, "attn_logit_softcapping": 40.0,
        "final_logit_softcapping": 20.0, "sliding_window": 16});
    check(config("Gemma2ForCausalLM", "gemma2", capped), block(), TIED);
    let heads = vec![listed("self_attn.q_norm", &[HEAD]), listed("self_attn.k_norm", &[HEAD])];
    for fields in [
        json!({"head_dim": HEAD, "sliding_window": 16, "rope_theta": 1e6,
            "rope_local_base_freq": 2e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
        json!({"head_dim": HEAD, "sliding_window": 16, "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}}),
        json!({"head_dim": HEAD, "sliding_window_pattern": 1, "final_logit_softcapping": 30.0}),
    ] {
        let config = config("Gemma3ForCausalLM", "gemma3_text", fields);
        check(config, [block(), vec![heads.clone()]].concat(), TIED);
    }
    // Programs scale attention of the model of 27B otherwise, and know it by its blocks.
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6});
    let second = checkpoint(config("Gemma2ForCausalLM", "gemma2", fields), block(), TIED);
    for (blocks, scalar) in [(4, 32), (46, 16)] {
        let (config, _) = exported_after(&second, |metadata| {
            metadata.set("gemma2.attention.key_length", 32u32);
            metadata.set("gemma2.block_count", blocks as u32);
        });
        assert_eq!(config["query_pre_attn_scalar"], scalar);
    }
}

#[test]
fn phi3_with_factors_for_long_contexts() {
    let block = || {
        vec![
            norms(&["input_layernorm", "post_attention_layernorm"]),
            vec![
                listed("self_attn.qkv_proj", &[(HEADS + 2 * KV) * HEAD, WIDTH]),
                listed("self_attn.o_proj", &[WIDTH, WIDTH]),
                listed("mlp.gate_up_proj", &[2 * FF, WIDTH]),
                listed("mlp.down_proj", &[WIDTH, FF]),
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
        check(config("Phi3ForCausalLM", "phi3", fields.clone()), block(), UNTIED);
        check(config("Phi3ForCausalLM", "phi3", fields), block(), TIED);
    }
}

#[test]
fn olmo() {
    let first = vec![attention(), gated("mlp", FF)];
    check(config("OlmoForCausalLM", "olmo", json!({"clip_qkv": 8.0})), first.clone(), &["lm_head"]);
    check(config("OlmoForCausalLM", "olmo", json!({})), first.clone(), &[]);
    let later = || {
        let norms = norms(&["post_attention_layernorm", "post_feedforward_layernorm"]);
        let of_heads = vec![
            listed("self_attn.q_norm", &[HEADS * HEAD]),
            listed("self_attn.k_norm", &[KV * HEAD]),
        ];
        [first.clone(), vec![norms, of_heads]].concat()
    };
    let second = json!({"rms_norm_eps": 1e-6, "rope_theta": 5e5});
    check(config("Olmo2ForCausalLM", "olmo2", second), later(), UNTIED);
    let yarn = json!({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64,
        "beta_fast": 32, "beta_slow": 1});
    let kinds = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"];
    for third in [
        json!({"sliding_window": 32, "rope_theta": 5e5, "rope_scaling": yarn}),
        json!({"sliding_window": 32, "layer_types": kinds}),
    ] {
        check(config("Olmo3ForCausalLM", "olmo3", third), later(), UNTIED);
    }
}

#[test]
fn cohere() {
    let block = || vec![norms(&["input_layernorm"]), attention(), gated("mlp", FF)];
    let fields = json!({"layer_norm_eps": 1e-6, "logit_scale": 0.25, "rope_theta": 8e6});
    check(config("CohereForCausalLM", "cohere", fields.clone()), block(), TIED);
    let mut long = fields.clone();
    long["model_max_length"] = json!(1024);
    let of_heads =
        vec![listed("self_attn.q_norm", &[HEADS, HEAD]), listed("self_attn.k_norm", &[KV, HEAD])];
    check(config("CohereForCausalLM", "cohere", long), [block(), vec![of_heads]].concat(), TIED);
    let mut second = fields;
    second["sliding_window"] = json!(64);
    check(config("Cohere2ForCausalLM", "cohere2", second), block(), TIED);
}

#[test]
fn granite() {
    let fields = json!({"rms_norm_eps": 1e-6, "embedding_multiplier": 12.0,
        "residual_multiplier": 0.22, "logits_scaling": 8.0, "attention_multiplier": 0.015625,
        "num_local_experts": EXPERTS, "num_experts_per_tok": 2, "rope_theta": 1e4});
    let mut dense = fields.clone();
    dense.as_object_mut().unwrap().retain(|name, _| !name.contains("experts"));
    check(config("GraniteForCausalLM", "granite", dense), llama_block(), TIED);
    let experts = || {
        vec![
            norms(&["input_layernorm", "post_attention_layernorm"]),
            attention(),
            vec![
                listed("block_sparse_moe.router.layer", &[EXPERTS, WIDTH]),
                listed("block_sparse_moe.input_linear", &[EXPERTS, 2 * FF, WIDTH]),
                listed("block_sparse_moe.output_linear", &[EXPERTS, WIDTH, FF]),
            ],
        ]
    };
    check(config("GraniteMoeForCausalLM", "granitemoe", fields.clone()), experts(), TIED);
    let asked = vec![
        listed("shared_mlp.input_linear", &[2 * EXPERT_FF, WIDTH]),
        listed("shared_mlp.output_linear", &[WIDTH, EXPERT_FF]),
    ];
    let mut shared = fields;
    shared["shared_intermediate_size"] = json!(EXPERT_FF);
    let class = "GraniteMoeSharedForCausalLM";
    let all = [experts(), vec![asked.clone()]].concat();
    check(config(class, "granitemoeshared", shared.clone()), all, TIED);
    // Without experts, the one that is always asked is all there is.
    shared["num_local_experts"] = json!(0);
    shared["num_experts_per_tok"] = json!(0);
    shared["intermediate_size"] = json!(EXPERT_FF);
    let block = vec![norms(&["input_layernorm", "post_attention_layernorm"]), attention(), asked];
    check(config(class, "granitemoeshared", shared), block, TIED);
}

#[test]
fn glm4() {
    let block = || {
        vec![
            norms(&["input_layernorm", "post_attention_layernorm"]),
            norms(&["post_self_attn_layernorm", "post_mlp_layernorm"]),
            attention(),
            vec![
                listed("mlp.gate_up_proj", &[2 * FF, WIDTH]),
                listed("mlp.down_proj", &[WIDTH, FF]),
            ],
        ]
    };
    let plain = json!({"head_dim": HEAD, "attention_bias": false, "partial_rotary_factor": 0.75});
    check(config("Glm4ForCausalLM", "glm4", plain), block(), UNTIED);
    let biased = json!({"head_dim": HEAD, "rope_parameters": {"rope_theta": 5e4}});
    check(config("Glm4ForCausalLM", "glm4", biased), [block(), vec![biases()]].concat(), UNTIED);
}
